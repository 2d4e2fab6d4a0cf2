//! Taking a set of artifacts into a repository: all of it or nothing.
//!
//! Rows are stored as they came, deltas as deltas, in the one transaction in which Fossil's code then links
//! the artifacts in.

use std::sync::Arc;

use rusqlite::Connection;

use super::agent::Agent;
use super::bases::Bases;
use super::findings::Findings;
use super::judge::{Likely, Queue};
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
        let main = store.setting("main-branch")?;
        let what = if branch.is_trunk() || main.as_deref() == Some(branch.as_str()) {
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

    fn origin(&self) -> Origin<'_> {
        self.agent().map_or(Origin::Person, Origin::Agent)
    }

    fn agent(&self) -> Option<Agent<'_>> {
        self.only.as_ref().map(|(user, branch)| Agent { user, branch })
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
}

/// Verifies a set and applies the rules of an import, except for the branch of the check-ins, which only Fossil's
/// linking tells. Writes nothing.
///
/// # Errors
/// As for [`receive`].
pub(crate) fn check(db: &Connection, staged: &Staged, import: &Import) -> Result<Arc<Findings>> {
    rules::nothing_shunned(db, staged)?;
    let held = rules::held(db, staged)?;
    let mut bases = Bases::of(db, staged)?;
    let findings = staged.verify(|hash| bases.content(hash))?;
    rules::no_private_parent(db, staged, &findings)?;
    // First: it says more than the judge on what both refuse.
    if let Some(agent) = import.agent() {
        agent.check(db, staged, &findings, |row| held[row])?;
    }
    judged(db, &findings, import.origin(), |row| held[row])?;
    Ok(findings)
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
    import: &Import,
) -> Result<Imported> {
    rules::nothing_shunned(transaction.connection(), staged)?;
    let held = rules::held(transaction.connection(), staged)?;
    let (findings, (stored, mut likely)) = staged.judge(|queue| store(transaction, staged, import, queue))?;
    let is_held = |row: usize| held[row] && !stored.is_new(row);
    if let Some(agent) = import.agent() {
        agent.check(transaction.connection(), staged, &findings, is_held)?;
    }
    let not_linked = judged(transaction.connection(), &findings, import.origin(), is_held)?;
    likely.retain(|likely| !not_linked.contains_key(&likely.row));
    rules::no_content_is_control(transaction.connection(), &findings, &stored)?;
    rules::no_private_parent(transaction.connection(), staged, &findings)?;
    // Nothing reaches Fossil's code before all of it is judged.
    link(transaction, staged, &stored, &likely)?;
    let mut check_ins = in_order(staged, &findings, &stored);
    check_ins.retain(|row| !not_linked.contains_key(row));
    rules::all_linked(transaction.connection(), staged, &check_ins, &stored)?;
    if let Some(agent) = import.agent() {
        agent.only_branch(transaction.connection(), staged, &check_ins, &stored)?;
    }
    Ok(Imported {
        check_ins: check_ins.iter().map(|&row| staged.rows()[row].hash).collect(),
        artifacts: stored.new,
        present: staged.rows().len() - stored.new,
    })
}

/// Expands and stores every row. Returns what may be structural artifacts, too.
fn store(
    transaction: &mut Transaction<'_>,
    staged: &Staged,
    import: &Import,
    queue: &Queue<'_>,
) -> Result<(Stored, Vec<Likely>)> {
    let receipt = transaction.receipt()?;
    let mut storing = Storing::new(transaction.connection(), staged, receipt)?;
    let (mut done, all) = (0, staged.rows().len() as u64);
    let mut bases = Bases::of(transaction.connection(), staged)?;
    let likely = queue.walk(
        |hash| bases.content(hash),
        |expanded| {
            done += 1;
            if let Some(progress) = &import.progress {
                progress(done, all);
            }
            storing.store(expanded)
        },
    )?;
    Ok((storing.finish()?, likely))
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
