//! What a pass counts for: exactly the tree, the test and the command it was seen with.
//!
//! The latest outcome on a tree counts: a test that passed and then failed on the same content has
//! not passed. A run that was cancelled or lost says nothing. Times of files play no part.
//!
//! ```
//! use ocx::{name::Hash, testing::{Declared, Outcome, evidence}};
//! let state = rusqlite::Connection::open_in_memory()?;
//! let declared = Declared::parse(br#"{"tests":[{"name":"unit","command":"make check"}]}"#)?;
//! let (tested, edited) = (Hash::of(b"a tree"), Hash::of(b"another"));
//! evidence::record(&state, &tested, &declared.tests()[0], &Outcome::Passed)?;
//! assert!(evidence::missing(&state, &tested, &declared)?.is_empty());
//! assert_eq!(evidence::missing(&state, &edited, &declared)?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use rusqlite::{Connection, OptionalExtension, params};

use super::{Declared, Outcome, Test};
use crate::error::Result;
use crate::name::Hash;
use crate::repo::store::has_table;

const TABLE: &str = "ocx_evidence";

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS ocx_evidence(
  tree TEXT NOT NULL, test TEXT NOT NULL, command TEXT NOT NULL,
  outcome TEXT NOT NULL, time TEXT NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY(tree, test, command)
) WITHOUT ROWID";
const ROWS_MAX: i64 = 2_000;

/// That a test passed on a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The tree it passed on.
    pub tree: Hash,
    /// The test's name.
    pub test: String,
    /// The command that was run.
    pub command: String,
    /// When, in UTC: `2026-01-31T12:00:00Z`.
    pub time: String,
}

/// Stores how `test` ended on `tree`, which did not change meanwhile.
///
/// # Errors
/// Those of the database.
pub fn record(state: &Connection, tree: &Hash, test: &Test, outcome: &Outcome) -> Result<()> {
    if matches!(outcome, Outcome::Cancelled | Outcome::Lost { .. }) {
        return Ok(());
    }
    state.execute_batch(SCHEMA)?;
    let seq: i64 =
        state.query_row("SELECT coalesce(max(seq), 0) + 1 FROM ocx_evidence", [], |row| row.get(0))?;
    state.execute(
        "REPLACE INTO ocx_evidence VALUES(?1, ?2, ?3, ?4, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), ?5)",
        params![tree.as_str(), test.name, test.command, outcome.word(), seq],
    )?;
    state.execute("DELETE FROM ocx_evidence WHERE seq <= ?1", [seq - ROWS_MAX])?;
    Ok(())
}

/// Returns the pass of `test` on exactly `tree`, if its latest outcome there is a pass.
///
/// # Errors
/// Those of the database.
pub fn passed(state: &Connection, tree: &Hash, test: &Test) -> Result<Option<Pass>> {
    if !has_table(state, TABLE)? {
        return Ok(None);
    }
    let time = state
        .query_row(
            "SELECT time FROM ocx_evidence WHERE tree = ?1 AND test = ?2 AND command = ?3 AND outcome = 'passed'",
            params![tree.as_str(), test.name, test.command],
            |row| row.get(0),
        )
        .optional()?;
    let pass = |time| Pass { tree: *tree, test: test.name.clone(), command: test.command.clone(), time };
    Ok(time.map(pass))
}

/// Returns the declared tests that have no pass on `tree`.
///
/// # Errors
/// Those of the database.
pub fn missing<'d>(state: &Connection, tree: &Hash, declared: &'d Declared) -> Result<Vec<&'d Test>> {
    let mut missing = Vec::new();
    for test in declared.tests() {
        if passed(state, tree, test)?.is_none() {
            missing.push(test);
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(command: &str) -> Test {
        Test { name: "unit".into(), command: command.into(), limit: "1m".parse().unwrap() }
    }

    #[test]
    fn g07_a_pass_counts_for_exactly_its_tree_and_command() {
        let state = Connection::open_in_memory().unwrap();
        let (one, two) = (Hash::of(b"1"), Hash::of(b"2"));
        assert_eq!(passed(&state, &one, &test("make")).unwrap(), None);
        record(&state, &one, &test("make"), &Outcome::Passed).unwrap();
        assert_eq!(passed(&state, &one, &test("make")).unwrap().unwrap().tree, one);
        assert_eq!(passed(&state, &two, &test("make")).unwrap(), None);
        assert_eq!(passed(&state, &one, &test("true")).unwrap(), None);
        record(&state, &two, &test("make"), &Outcome::Failed { exit: 1 }).unwrap();
        assert!(passed(&state, &one, &test("make")).unwrap().is_some(), "edited and edited back");
    }

    #[test]
    fn a_later_failure_on_the_same_tree_takes_the_pass_away() {
        let state = Connection::open_in_memory().unwrap();
        let tree = Hash::of(b"1");
        for (outcome, counts) in [
            (Outcome::Passed, true),
            (Outcome::Cancelled, true),
            (Outcome::Lost { why: String::new() }, true),
            (Outcome::TimedOut, false),
            (Outcome::Passed, true),
            (Outcome::Signal { number: 9 }, false),
        ] {
            record(&state, &tree, &test("make"), &outcome).unwrap();
            assert_eq!(passed(&state, &tree, &test("make")).unwrap().is_some(), counts, "{outcome}");
        }
    }

    #[test]
    fn g03_a_weakened_command_has_not_passed() {
        let state = Connection::open_in_memory().unwrap();
        let tree = Hash::of(b"1");
        record(&state, &tree, &test("make check"), &Outcome::Passed).unwrap();
        let weak = Declared::parse(br#"{"tests":[{"name":"unit","command":"true"}]}"#).unwrap();
        assert_eq!(missing(&state, &tree, &weak).unwrap(), [&weak.tests()[0]]);
        assert!(missing(&state, &tree, &Declared::default()).unwrap().is_empty());
    }

    #[test]
    fn old_evidence_makes_room() {
        let state = Connection::open_in_memory().unwrap();
        state.execute_batch("BEGIN").unwrap();
        for n in 0..ROWS_MAX + 5 {
            record(&state, &Hash::of(&n.to_le_bytes()), &test("make"), &Outcome::Passed).unwrap();
        }
        let rows: i64 = state.query_row("SELECT count(*) FROM ocx_evidence", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, ROWS_MAX);
        assert!(passed(&state, &Hash::of(&0_i64.to_le_bytes()), &test("make")).unwrap().is_none());
    }
}
