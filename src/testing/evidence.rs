//! What a pass counts for: exactly the tree, the declaration and what was beside the tree when it was seen.
//!
//! The latest outcome on these counts: a test that passed and then failed on the same content has not passed. A run
//! that was cancelled or lost says nothing. Times of files play no part.

use rusqlite::{Connection, OptionalExtension, params};

use super::{Outcome, Test};
use crate::error::Result;
use crate::name::Hash;
use crate::repo::store::has_table;

const TABLE: &str = "evidence";

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS evidence(
  tree TEXT NOT NULL, test TEXT NOT NULL, declaration TEXT NOT NULL, beside TEXT NOT NULL,
  outcome TEXT NOT NULL, fresh INTEGER NOT NULL, unsandboxed TEXT, brought TEXT NOT NULL,
  time TEXT NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY(tree, test, declaration, beside)
) WITHOUT ROWID";
const ROWS_MAX: i64 = 2_000;

/// What a run of a test was seen on: the key of evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The tree.
    pub tree: Hash,
    /// The test as it is declared.
    pub test: &'a Test,
    /// A hash over what the test has beside the tree; nothing if it has nothing.
    pub beside: Option<Hash>,
}

/// How a test was run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// Whether the test tree was empty before, as in a fresh checkout.
    pub fresh: bool,
    /// Why there was no sandbox; nothing if there was one.
    pub unsandboxed: Option<String>,
    /// What was brought along beside the tree: paths and variables.
    pub brought: Vec<String>,
}

/// That a test passed on a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The test's name.
    pub test: String,
    /// The tree it passed on.
    pub tree: Hash,
    /// When, in UTC: `2026-01-31T12:00:00Z`.
    pub time: String,
    /// How it was run.
    pub run: Circumstances,
}

/// What is known of a declared test on one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestEvidence {
    /// The test's name.
    pub test: String,
    /// Its pass on exactly this tree, if it has one.
    pub pass: Option<Pass>,
}

/// Stores how the test of `subject` ended.
///
/// # Errors
/// Those of the database.
pub fn record(
    state: &Connection,
    subject: &Subject<'_>,
    outcome: &Outcome,
    run: &Circumstances,
) -> Result<()> {
    if matches!(outcome, Outcome::Cancelled | Outcome::Lost { .. }) {
        return Ok(());
    }
    state.execute_batch(SCHEMA)?;
    let seq: i64 = state.query_row("SELECT coalesce(max(seq), 0) + 1 FROM evidence", [], |row| row.get(0))?;
    state.execute(
        "REPLACE INTO evidence VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), ?9)",
        params![
            subject.tree.as_str(),
            subject.test.name,
            subject.test.digest().as_str(),
            beside(subject),
            outcome.word(),
            run.fresh,
            run.unsandboxed,
            serde_json::to_string(&run.brought).unwrap_or_default(),
            seq
        ],
    )?;
    state.execute("DELETE FROM evidence WHERE seq <= ?1", [seq - ROWS_MAX])?;
    Ok(())
}

/// Returns the pass on exactly `subject`, if the latest outcome there is a pass.
///
/// # Errors
/// Those of the database.
pub fn passed(state: &Connection, subject: &Subject<'_>) -> Result<Option<Pass>> {
    if !has_table(state, TABLE)? {
        return Ok(None);
    }
    let sql = "SELECT time, fresh, unsandboxed, brought FROM evidence
               WHERE tree=?1 AND test=?2 AND declaration=?3 AND beside=?4 AND outcome='passed'";
    let declaration = subject.test.digest();
    let key = params![subject.tree.as_str(), subject.test.name, declaration.as_str(), beside(subject)];
    let pass = state.query_row(sql, key, |row| {
        let brought: String = row.get(3)?;
        let brought = serde_json::from_str(&brought).unwrap_or_default();
        let run = Circumstances { fresh: row.get(1)?, unsandboxed: row.get(2)?, brought };
        Ok(Pass { test: subject.test.name.clone(), tree: subject.tree, time: row.get(0)?, run })
    });
    Ok(pass.optional()?)
}

fn beside<'a>(subject: &'a Subject<'_>) -> &'a str {
    subject.beside.as_ref().map_or("", Hash::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(tree: Hash, test: &Test) -> Subject<'_> {
        Subject { tree, test, beside: None }
    }

    fn put(state: &Connection, subject: &Subject<'_>, outcome: &Outcome) {
        record(state, subject, outcome, &Circumstances::default()).unwrap();
    }

    fn test(command: &str) -> Test {
        Test::new("unit", command)
    }

    #[test]
    fn g07_a_pass_counts_for_exactly_its_tree_its_declaration_and_what_was_beside_it() {
        let state = Connection::open_in_memory().unwrap();
        let (one, two) = (Hash::of(b"1"), Hash::of(b"2"));
        let (make, weak) = (test("make"), test("true"));
        assert_eq!(passed(&state, &on(one, &make)).unwrap(), None);
        let run = Circumstances { fresh: true, unsandboxed: Some("no".into()), brought: vec!["a".into()] };
        record(&state, &on(one, &make), &Outcome::Passed, &run).unwrap();
        let pass = passed(&state, &on(one, &make)).unwrap().unwrap();
        assert_eq!((pass.tree, pass.run), (one, run));
        assert_eq!(passed(&state, &on(two, &make)).unwrap(), None);
        assert_eq!(passed(&state, &on(one, &weak)).unwrap(), None, "g03: a weakened command has not passed");
        let beside = Subject { beside: Some(two), ..on(one, &make) };
        assert_eq!(passed(&state, &beside).unwrap(), None);
        put(&state, &on(two, &make), &Outcome::Failed { exit: 1 });
        assert!(passed(&state, &on(one, &make)).unwrap().is_some(), "edited and edited back");
    }

    #[test]
    fn a_later_failure_on_the_same_tree_takes_the_pass_away() {
        let state = Connection::open_in_memory().unwrap();
        let (tree, make) = (Hash::of(b"1"), test("make"));
        for (outcome, counts) in [
            (Outcome::Passed, true),
            (Outcome::Cancelled, true),
            (Outcome::Lost { why: String::new() }, true),
            (Outcome::TimedOut, false),
            (Outcome::Passed, true),
            (Outcome::Signal { number: 9 }, false),
        ] {
            put(&state, &on(tree, &make), &outcome);
            assert_eq!(passed(&state, &on(tree, &make)).unwrap().is_some(), counts, "{outcome}");
        }
    }

    #[test]
    fn old_evidence_makes_room() {
        let state = Connection::open_in_memory().unwrap();
        let make = test("make");
        state.execute_batch("BEGIN").unwrap();
        for n in 0..ROWS_MAX + 5 {
            put(&state, &on(Hash::of(&n.to_le_bytes()), &make), &Outcome::Passed);
        }
        let rows: i64 = state.query_row("SELECT count(*) FROM evidence", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, ROWS_MAX);
        assert!(passed(&state, &on(Hash::of(&0_i64.to_le_bytes()), &make)).unwrap().is_none());
    }
}
