//! Taking a set of artifacts into a repository: all of it or nothing.
//!
//! Rows are stored as they came, deltas as deltas, in the one transaction in which Fossil's code then links
//! the artifacts in.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use super::agent::Agent;
use super::bases::Bases;
use super::findings::Findings;
use super::link::link;
use super::row::Progress;
use super::rules;
use super::staged::Staged;
use super::store::{Stored, Storing};
use super::verdict::{Origin, judged};
use crate::engine::Transaction;
use crate::error::Result;
use crate::name::{Branch, Hash, User};
use crate::repo::Store;

/// From so many rows on, linking is worth a wider cache of pages: it looks rows up all over the file.
const MANY_ROWS: usize = 20_000;
const WIDE_CACHE: &str = "PRAGMA cache_size=-131072";

/// How artifacts are taken in.
#[derive(Clone)]
pub struct Import {
    /// The login of this repository that the artifacts are received from.
    pub user: User,
    /// Accept nothing new but check-ins by this user on this branch, their files, and the tags by which they begin the
    /// branch. For artifacts that come from others. What is here already and public may be of anyone.
    pub only: Option<(User, Branch)>,
    /// Called for every artifact.
    pub progress: Option<Progress>,
}

impl Import {
    /// Everything is accepted, in the name of `user`.
    #[must_use]
    pub fn by(user: User) -> Self {
        Self { user, only: None, progress: None }
    }

    /// Only check-ins by `user` on `branch` are accepted, which must be a working branch of that user's own
    /// (`agent/USER-XXXXXXXX`) and not the repository's main branch.
    ///
    /// # Errors
    /// [`Kind::Denied`] for another branch.
    ///
    /// [`Kind::Denied`]: crate::error::Kind::Denied
    pub fn of_agent(store: &Store, user: User, branch: Branch) -> Result<Self> {
        let what = if store.is_main_branch(branch.as_str())? {
            format!("`{branch}` is the main branch here")
        } else if branch.is_working_branch_of(&user) {
            return Ok(Self { only: Some((user.clone(), branch)), ..Self::by(user) });
        } else {
            format!("`{branch}` is no working branch of `{user}`")
        };
        let hint =
            format!("Commit on a branch `agent/{user}-XXXXXXXX` with eight hex digits, and send that.");
        Err(rules::denied(what, hint))
    }

    pub(crate) fn origin(&self) -> Origin<'_> {
        match &self.only {
            Some((user, branch)) => Origin::Agent(Agent { user, branch }),
            None => Origin::Person,
        }
    }
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import").field("user", &self.user).field("only", &self.only).finish_non_exhaustive()
    }
}

/// What an import brought.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Imported {
    /// The check-ins that are new here, the oldest first.
    pub check_ins: Vec<Hash>,
    /// How many artifacts are new here.
    pub artifacts: usize,
    /// How many were here already.
    pub present: usize,
    /// What the new check-ins name and nobody has: it is private or shunned where they come from, or was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Hash>,
}

/// What was taken in.
pub(crate) struct Received {
    pub imported: Imported,
    /// Why some artifacts of a server were stored and not linked in, one line each.
    pub not_linked: Vec<String>,
}

/// Verifies a set and applies the rules of an import, except for the branch of the check-ins, which only Fossil's
/// linking tells. Writes nothing.
///
/// # Errors
/// As for [`receive`].
pub(crate) fn check(db: &Connection, staged: &Staged, origin: Origin<'_>) -> Result<Arc<Findings>> {
    judge(db, staged, origin).map(|(findings, _)| findings)
}

/// Verifies a set and applies the rules for its origin to what is not held. Returns the rows, too, that must not be
/// linked in, with the reasons.
fn judge(
    db: &Connection,
    staged: &Staged,
    origin: Origin<'_>,
) -> Result<(Arc<Findings>, HashMap<usize, String>)> {
    let held = rules::held(db, staged)?;
    let mut bases = Bases::of(db, staged)?;
    if !origin.is_server() {
        rules::nothing_shunned(db, staged)?;
    }
    let findings = staged.verify(|hash| bases.content(hash))?;
    let is_held = |row: usize| held[row];
    if !origin.is_server() {
        findings.refuse_control_as_content()?;
        rules::no_private_parent(db, staged, &findings)?;
    }
    // First: it says more than the judge on what both refuse.
    if let Origin::Agent(agent) = origin {
        agent.check(db, staged, &findings, is_held)?;
    }
    let not_linked = judged(db, &findings, origin, is_held)?;
    Ok((findings, not_linked))
}

/// Takes all of a set in. After an error, the transaction must be rolled back.
///
/// # Errors
/// [`Kind::NotFound`] when a basis is not here with content; [`Kind::Corrupt`] for content that does not have its hash;
/// [`Kind::Denied`] for what is shunned here, follows a private check-in, or is not what [`Import::only`] accepts, and
/// [`Kind::Refused`] for a date that it does not; [`Kind::Invalid`] for file content that would be obeyed as a control
/// artifact, and for a tag whose value Fossil's code would trust wrongly; [`Kind::TooLarge`], [`Kind::DiskFull`].
///
/// [`Kind::NotFound`]: crate::error::Kind::NotFound
/// [`Kind::Corrupt`]: crate::error::Kind::Corrupt
/// [`Kind::Denied`]: crate::error::Kind::Denied
/// [`Kind::Invalid`]: crate::error::Kind::Invalid
/// [`Kind::Refused`]: crate::error::Kind::Refused
/// [`Kind::TooLarge`]: crate::error::Kind::TooLarge
/// [`Kind::DiskFull`]: crate::error::Kind::DiskFull
pub(crate) fn receive(
    transaction: &mut Transaction<'_>,
    staged: &Staged,
    origin: Origin<'_>,
    progress: Option<&Progress>,
) -> Result<Received> {
    let (findings, not_linked) = judge(transaction.connection(), staged, origin)?;
    let receipt = transaction.receipt()?;
    let db = transaction.connection();
    let cache: i64 = db.query_row("PRAGMA cache_size", [], |row| row.get(0))?;
    if staged.rows().len() >= MANY_ROWS {
        db.execute_batch(WIDE_CACHE)?;
    }
    let stored = store(db, staged, receipt, origin, progress)?;
    if !origin.is_server() {
        rules::no_content_is_control(db, &findings, &stored)?;
    }
    let gaps = rules::gaps(db, staged, &findings)?;
    // Nothing reaches Fossil's code before all of it is judged.
    let is_linked = |row: usize| stored.is_new(row) && !not_linked.contains_key(&row);
    link(transaction, staged, &stored, is_linked)?;
    transaction.connection().pragma_update(None, "cache_size", cache)?;
    let mut check_ins = in_order(staged, &findings, &stored);
    check_ins.retain(|row| !not_linked.contains_key(row));
    if !origin.is_server() {
        rules::all_linked(transaction.connection(), staged, &check_ins, &stored)?;
    }
    if let Origin::Agent(agent) = origin {
        agent.only_branch(transaction.connection(), staged, &check_ins, &stored)?;
    }
    let imported = Imported {
        check_ins: check_ins.iter().map(|&row| staged.rows()[row].hash).collect(),
        artifacts: stored.new,
        present: staged.rows().len() - stored.new,
        gaps,
    };
    Ok(Received { imported, not_linked: not_linked.into_values().collect() })
}

/// Stores every row as it came.
fn store(
    db: &Connection,
    staged: &Staged,
    receipt: i64,
    origin: Origin<'_>,
    progress: Option<&Progress>,
) -> Result<Stored> {
    let mut storing = Storing::new(db, staged, receipt, !origin.is_server())?;
    let (mut done, all) = (0, staged.rows().len() as u64);
    let mut bases = Bases::of(db, staged)?;
    staged.each_verified(|verified, row, packed| {
        done += 1;
        if let Some(progress) = progress {
            progress(done, all);
        }
        storing.store(row, packed, || verified.expand(row, |hash| bases.content(hash)))
    })?;
    storing.finish()
}

/// The new check-ins by their time.
fn in_order(staged: &Staged, findings: &Findings, stored: &Stored) -> Vec<usize> {
    let mut found: Vec<(&str, usize)> = findings
        .check_ins()
        .filter(|(artifact, _)| stored.is_new(artifact.row))
        .map(|(artifact, manifest)| (manifest.date.as_str(), artifact.row))
        .collect();
    found.sort_unstable_by_key(|&(date, row)| (date, staged.rows()[row].id));
    found.into_iter().map(|(_, row)| row).collect()
}
