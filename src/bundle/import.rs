//! Taking a bundle into a repository: all of it or nothing.
//!
//! Rows are stored as they came, deltas as deltas, in the one transaction in which Fossil's code then links
//! the artifacts in.

pub(super) mod receiver;
mod rules;

use rusqlite::Connection;

use crate::engine::{self, Transaction};
use crate::error::{Error, Kind, Result};
use crate::name::{Branch, Hash, User};
use crate::repo::Repository;
use crate::repo::store::connect;

use super::judge::{Findings, Likely, Queue};
use super::{Bundle, Contents, Progress};
use receiver::{Receiver, Stored};

/// New artifacts from which on the planner's statistics are made anew at once.
const ANALYZED_FROM: usize = 200;

/// How a bundle is taken in.
#[derive(Clone)]
pub struct Import {
    /// The login of this repository that the artifacts are received from.
    pub user: User,
    /// Accept nothing new but check-ins by this user on this branch, their files, and the tags that they set on
    /// themselves: for bundles from others. What is here and public already brings nothing, and may be of anyone.
    pub only: Option<(User, Branch)>,
    /// Told of every artifact.
    pub progress: Option<Progress>,
}

impl Import {
    /// Everything in the bundle is accepted, in the name of `user`.
    #[must_use]
    pub fn by(user: User) -> Self {
        Self { user, only: None, progress: None }
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

impl Repository {
    /// Takes all of a bundle in, or nothing. What is new is public and will be sent by the next push.
    ///
    /// # Errors
    /// [`Kind::Foreign`] for a bundle of another project; [`Kind::NotFound`] when a basis is not here with content, or
    /// there is no such user; [`Kind::Corrupt`] for content that has not its hash; [`Kind::TooLarge`]; [`Kind::Denied`] for what
    /// is shunned here, follows a private check-in, or is not what [`Import::only`] accepts; [`Kind::Invalid`] for file
    /// content that would be obeyed as a control artifact; [`Kind::Busy`], [`Kind::DiskFull`].
    pub fn import_bundle(&self, bundle: &Bundle, import: &Import) -> Result<Imported> {
        let user = import.user.to_string();
        let (bundle, import) = (bundle.clone(), import.clone());
        engine::transaction(self.path(), &user, move |change| take_in(change, &bundle, &import))
    }

    /// Verifies a bundle and tells what is in it, with the refusals of an import but for those that need Fossil's
    /// linking: on which branch its check-ins come to be. Nothing is written.
    ///
    /// # Errors
    /// As [`import_bundle`](Self::import_bundle).
    pub fn check_bundle(&self, bundle: &Bundle, import: &Import) -> Result<Contents> {
        let db = connect(self.path())?;
        rules::same_project(&db, bundle)?;
        rules::nothing_shunned(&db, bundle)?;
        let held = rules::held(&db, bundle)?;
        let mut bases = receiver::Bases::of(&db, bundle)?;
        let (findings, _) = bundle.judge(|queue| queue.walk(|hash| bases.content(hash), |_| Ok(())))?;
        rules::no_private_parent(&db, bundle, &findings)?;
        if let Some((user, _)) = &import.only {
            rules::only_check_ins(bundle, &findings, user, |row| held[row])?;
        }
        Ok(bundle.told(findings))
    }
}

fn take_in(change: &mut Transaction<'_>, bundle: &Bundle, import: &Import) -> Result<Imported> {
    rules::same_project(change.connection(), bundle)?;
    rules::nothing_shunned(change.connection(), bundle)?;
    let held = rules::held(change.connection(), bundle)?;
    let (findings, (stored, likely)) = bundle.judge(|queue| {
        let (stored, likely) = store(change, bundle, import, queue)?;
        // What is not from others is linked in while it is verified: should it fail, all is undone.
        if import.only.is_none() {
            link(change, bundle, &stored, &likely)?;
        }
        Ok((stored, likely))
    })?;
    rules::no_content_is_control(change.connection(), bundle, &findings, &stored)?;
    rules::no_private_parent(change.connection(), bundle, &findings)?;
    if let Some((user, _)) = &import.only {
        rules::only_check_ins(bundle, &findings, user, |row| held[row] && !stored.is_new(row))?;
        link(change, bundle, &stored, &likely)?;
    }
    let check_ins = in_order(bundle, &findings, &stored);
    rules::all_linked(change.connection(), bundle, &check_ins, &stored)?;
    if let Some((_, branch)) = &import.only {
        rules::only_branch(change.connection(), bundle, &check_ins, &stored, branch)?;
    }
    Ok(Imported {
        check_ins: check_ins.iter().map(|&row| bundle.inner.rows[row].hash).collect(),
        artifacts: stored.new,
        present: bundle.len() - stored.new,
    })
}

/// Expands and stores every row; gives what may be control artifacts, too.
fn store(
    change: &mut Transaction<'_>,
    bundle: &Bundle,
    import: &Import,
    queue: &Queue<'_>,
) -> Result<(Stored, Vec<Likely>)> {
    let receipt = change.receipt()?;
    let mut receiver = Receiver::new(change.connection(), bundle, receipt)?;
    let (mut done, all) = (0, bundle.len() as u64);
    let mut bases = receiver::Bases::of(change.connection(), bundle)?;
    let likely = queue.walk(
        |hash| bases.content(hash),
        |expanded| {
            done += 1;
            if let Some(progress) = &import.progress {
                progress(done, all);
            }
            receiver.store(expanded)
        },
    )?;
    Ok((receiver.finish()?, likely))
}

/// Has Fossil's code link in what is new, check-ins by their time first, so that it finds most parents
/// linked in and at hand.
fn link(change: &mut Transaction<'_>, bundle: &Bundle, stored: &Stored, likely: &[Likely]) -> Result<()> {
    let mut new: Vec<_> = likely.iter().filter(|likely| stored.is_new(likely.row)).collect();
    new.sort_unstable_by_key(|likely| (&likely.glance, bundle.inner.rows[likely.row].id));
    let linked: Vec<_> = new.iter().map(|likely| (stored.rids[likely.row], likely.text())).collect();
    forget_statistics(change.connection())?;
    change.crosslink(&linked)?;
    renew_statistics(change.connection(), stored.new)?;
    if !stored.filled.is_empty() {
        change.filled(&stored.filled)?;
    }
    Ok(())
}

/// Tables whose statistics guide the queries that link artifacts in.
const LINKED: [&str; 7] = ["blob", "delta", "event", "leaf", "mlink", "plink", "tagxref"];

/// Lets the planner forget how few rows there were before the import: by that it would read whole tables for
/// each artifact that is linked in.
fn forget_statistics(db: &Connection) -> Result<()> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE name='sqlite_stat1'";
    if !db.prepare(sql)?.exists([])? {
        return Ok(());
    }
    for table in LINKED {
        db.execute("DELETE FROM sqlite_stat1 WHERE tbl=?1", [table])?;
    }
    Ok(db.execute_batch("ANALYZE sqlite_schema")?)
}

fn renew_statistics(db: &Connection, new: usize) -> Result<()> {
    if new < ANALYZED_FROM {
        return Ok(());
    }
    db.execute_batch("PRAGMA analysis_limit=1000")?;
    LINKED.iter().try_for_each(|table| Ok(db.execute_batch(&format!("ANALYZE {table}"))?))
}

/// The new check-ins by their time.
fn in_order(bundle: &Bundle, findings: &Findings, stored: &Stored) -> Vec<usize> {
    let mut found: Vec<(&str, usize)> = findings
        .controls
        .iter()
        .filter(|control| stored.is_new(control.row))
        .filter_map(|control| Some((control.check_in.as_ref()?.date.as_str(), control.row)))
        .collect();
    found.sort_unstable_by_key(|&(date, row)| (date, bundle.inner.rows[row].id));
    found.into_iter().map(|(_, row)| row).collect()
}

/// A refusal that names an artifact.
fn denied(what: String, hint: &str) -> Error {
    Error::new(Kind::Denied, what).with_hint(hint)
}
