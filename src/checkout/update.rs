//! Moving the files of a checkout to another version, and joining another version's changes into them.
//!
//! What is to happen is a plan (`crate::merge`), which is made from three trees and can be looked at before anything is
//! done. Here it is performed: on the disk, and in Fossil's tables.

mod change;
mod outcome;
mod room;
mod tables;
mod trees;
mod undo;
mod unfinished;

pub use outcome::{Updated, UpdatedFile};

use super::lock::CheckoutLock;
use super::open::Checkout;
use super::status::Status;
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};
use crate::merge::{MergeHow, Plan, Refusal, Trees, Versions};
use crate::name::{Branch, Hash};
use crate::repo::store::CheckInInfo;
use crate::tree::ignore::Ignore;

/// A plan for this checkout, and what it was made from.
struct Planned {
    status: Status,
    trees: Trees,
    plan: Plan,
}

impl Checkout {
    /// The version that an update goes to if none is named: the newest open leaf of the checkout's branch that follows
    /// its check-in, or else the newest open leaf.
    ///
    /// # Errors
    /// Those of reading the repository.
    pub fn latest(&self) -> Result<Hash> {
        let store = self.repository.store();
        let parent = self.parent()?;
        let branch = store.check_in(&parent)?.branch;
        let tips =
            Branch::parse(&branch).map_or_else(|_| Ok(Vec::new()), |branch| store.branch_tips(&branch))?;
        for tip in &tips {
            if *tip == parent || store.descends(tip, &parent)? {
                return Ok(*tip);
            }
        }
        Ok(tips.first().copied().unwrap_or(parent))
    }

    /// Moves the checkout to another version, and joins the changes made here into it. No byte is lost: what cannot be
    /// joined is a conflict, and stands beside.
    ///
    /// # Errors
    /// [`Kind::NotFound`] or [`Kind::Ambiguous`] for the version, [`Kind::Exists`] if something lies in the way that is
    /// no file; [`Kind::Changed`], [`Kind::Busy`], [`Kind::DiskFull`]. The files are then as before.
    pub fn update(&self, version: &str) -> Result<Updated> {
        let hash = self.repository.store().resolve(version)?;
        let lock = CheckoutLock::take(self, &Cancel::new())?;
        self.follow_renumbering()?;
        let Planned { status, trees, plan } = self.plan_update(&hash)?;
        let changes = self.changes(&plan, &trees)?;
        self.perform(&lock, "update", &changes, |db| self.tables_of_update(db, &status, &plan, &hash))?;
        // What the new version's own setting says wrongly undoes no update.
        if let Err(e) = self.make_empty_dirs() {
            tracing::warn!(target: "ocx::finished", "{e}");
        }
        self.write_manifest(&hash)?;
        Ok(Updated::by(&plan, hash))
    }

    /// Returns what [`update`](Self::update) would do. Writes nothing.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn would_update(&self, version: &str) -> Result<Updated> {
        let hash = self.repository.store().resolve(version)?;
        Ok(Updated::by(&self.plan_update(&hash)?.plan, hash))
    }

    /// Joins another version's changes into the files. The next check-in names that version.
    ///
    /// ```
    /// use ocx::{name::{Branch, User}, checkout::{CheckIn, Checkout, FileOutcome, MergeHow}, repo::{NewRepository, Repository}};
    /// let folder = tempfile::tempdir()?;
    /// let user = User::parse("ann")?;
    /// let repository = Repository::create(&folder.path().join("r.fossil"), &NewRepository { user: user.clone() })?;
    /// let work = Checkout::open(&repository, &folder.path().join("work"), None, Some(&user))?;
    /// std::fs::write(work.root().join("a.txt"), "one\n")?;
    /// let mut next = CheckIn { comment: "on a side branch".into(), branch: Some(Branch::parse("side")?), user, time: None };
    /// work.check_in(&next, &work.status()?)?;
    /// work.update("trunk")?;
    /// let merged = work.merge("side", MergeHow::Whole)?;
    /// assert_eq!((merged.files[0].path.as_str(), merged.files[0].what), ("a.txt", FileOutcome::Added));
    /// next.branch = None;
    /// work.check_in(&next, &work.status()?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Kind::NotFound`] or [`Kind::Ambiguous`] for the version, [`Kind::Unchanged`] if it is part of what is here,
    /// [`Kind::Closed`] if the checkout stands on a closed leaf, [`Kind::Invalid`] for a single check-in without a
    /// parent, [`Kind::Exists`] as [`update`](Self::update); [`Kind::Changed`], [`Kind::Busy`], [`Kind::DiskFull`].
    /// The files are then as before.
    pub fn merge(&self, version: &str, how: MergeHow) -> Result<Updated> {
        let other = self.mergeable(version, how)?;
        let lock = CheckoutLock::take(self, &Cancel::new())?;
        self.follow_renumbering()?;
        let Planned { status, trees, plan } = self.plan_merge(&other.hash, how)?;
        let changes = self.changes(&plan, &trees)?;
        let there = (&other.hash, &trees.there.files, how);
        self.perform(&lock, "merge", &changes, |db| self.tables_of_merge(db, &status, &plan, there))?;
        Ok(Updated::by(&plan, status.parent))
    }

    /// Returns what [`merge`](Self::merge) would do. Writes nothing.
    ///
    /// # Errors
    /// As [`merge`](Self::merge).
    pub fn would_merge(&self, version: &str, how: MergeHow) -> Result<Updated> {
        let other = self.mergeable(version, how)?;
        let Planned { status, plan, .. } = self.plan_merge(&other.hash, how)?;
        Ok(Updated::by(&plan, status.parent))
    }

    fn plan_update(&self, to: &Hash) -> Result<Planned> {
        self.settings().empty_dirs()?;
        let status = self.status()?;
        let versions = Versions { base: status.parent, there: *to };
        self.plan(status, versions)
    }

    fn plan_merge(&self, incoming: &Hash, how: MergeHow) -> Result<Planned> {
        let status = self.status()?;
        let mut here = vec![status.parent];
        here.extend(self.merged()?.into_iter().filter(|(_, how)| how.is_whole()).map(|(hash, _)| hash));
        let versions = Versions::of(self.repository.store(), how, incoming, &here)?;
        self.plan(status, versions)
    }

    fn plan(&self, status: Status, versions: Versions) -> Result<Planned> {
        let trees = self.trees(&status, versions)?;
        let mut plan = Plan::of(&trees);
        if let Some(refusal) = plan.refusals.first() {
            return Err(in_the_way(refusal));
        }
        let binary = Ignore::parse(&self.settings().value("binary-glob")?.unwrap_or_default());
        plan.settle(
            |path| !binary.matches(path.as_str()),
            |wanted| match wanted.here.and_then(|path| Some((path, status.files.get(path)?))) {
                Some((path, file)) => self.stored_content(path, file),
                None => self.repository.store().content(wanted.hash),
            },
        )?;
        Ok(Planned { status, trees, plan })
    }

    /// Returns the check-in to merge, if there is anything to take from it.
    fn mergeable(&self, version: &str, how: MergeHow) -> Result<CheckInInfo> {
        let store = self.repository.store();
        let other = store.check_in(&store.resolve(version)?)?;
        let parent = store.check_in(&self.parent()?)?;
        if parent.closed && parent.leaf {
            return Err(Error::new(
                Kind::Closed,
                format!("the checkout stands on a closed leaf of `{}`", parent.branch),
            )
            .with_hint("Update to another branch, or open this one again."));
        }
        let is_here = || -> Result<bool> {
            Ok(store.descends(&parent.hash, &other.hash)?
                || self.merged()?.iter().any(|(hash, _)| *hash == other.hash))
        };
        if how.is_whole() && is_here()? {
            let what = format!("there is nothing to take from check-in `{}`", other.hash.short());
            return Err(Error::new(Kind::Unchanged, what).with_hint("It is part of what is here already."));
        }
        Ok(other)
    }
}

fn in_the_way(Refusal { path, why }: &Refusal) -> Error {
    let what = format!("`{}` is in the way: {why}", path.shown());
    Error::new(Kind::Exists, what).with_hint("Move it away first.")
}
