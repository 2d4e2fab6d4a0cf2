//! Moving the files of a checkout to another version, and joining another version's changes into them.
//!
//! Fossil's own code does it. What it did is read from the files and from Fossil's table `mergestat`, not from what it
//! prints. No change made here is lost: what Fossil would drop or overwrite is put back, or put beside.

mod backups;
mod found;
mod obstacle;
mod outcome;
mod rehearsal;

use backups::Backups;
use found::report;
use obstacle::refuse_obstacles;
pub use outcome::{Updated, UpdatedFile};

use super::database::var;
use super::merged::option;
use super::open::Checkout;
use super::status::Status;
use crate::engine;
use crate::error::{Error, Kind, Result};
use crate::merge::MergeHow;
use crate::name::Hash;
use crate::repo::store::CheckInInfo;

impl Checkout {
    /// Moves the checkout to another version by Fossil's own code, and joins the changes made here into it.
    ///
    /// # Errors
    /// [`Kind::NotFound`] or [`Kind::Ambiguous`] for the version. [`Kind::Denied`] if a link lies in the place of a
    /// file or folder that differs, [`Kind::Exists`] if something else does. [`Kind::Busy`], [`Kind::DiskFull`]. The
    /// files are then as before.
    pub fn update(&self, version: &str) -> Result<Updated> {
        let hash = self.repository.store().resolve(version)?;
        let status = self.status()?;
        refuse_obstacles(self, &*self.repository.store().files(&status.parent)?, &[hash])?;
        let backups = Backups::of(self, &status, &[hash])?;
        self.tell_fossil(&status)?;
        let done = self.fossil(&["update", "--nosync", hash.as_str()], &status, &backups);
        self.rename_again(&status)?;
        done?;
        report(self, &status, &backups)
    }

    /// Returns what [`update`](Self::update) would do. It is done in a copy of the checkout beside the repository,
    /// which is then removed.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn would_update(&self, version: &str) -> Result<Updated> {
        let hash = self.repository.store().resolve(version)?;
        self.rehearse(&[hash], |copy| copy.update(hash.as_str()))
    }

    /// Joins another version's changes into the files, by Fossil's own code. The next check-in names that version.
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
    /// [`Kind::NotFound`] or [`Kind::Ambiguous`] for the version, [`Kind::Unchanged`] if there is nothing to take,
    /// [`Kind::Closed`] if the checkout stands on a closed leaf, [`Kind::Invalid`] for a single check-in without a
    /// parent, [`Kind::Denied`] and [`Kind::Exists`] as [`update`](Self::update); [`Kind::Busy`], [`Kind::DiskFull`].
    /// The files are then as before.
    pub fn merge(&self, version: &str, how: MergeHow) -> Result<Updated> {
        let other = self.mergeable(version, how)?;
        let status = self.status()?;
        let mut versions = vec![other.hash];
        versions.extend(other.parents.first());
        refuse_obstacles(self, &*self.repository.store().files(&status.parent)?, &versions)?;
        let backups = Backups::of(self, &status, &versions)?;
        self.tell_fossil_but_renames(&status)?;
        let mut args = vec!["merge", "--nosync"];
        args.extend(option(how));
        args.push(other.hash.as_str());
        let before = self.merged()?.len();
        self.fossil(&args, &status, &backups)?;
        let done = report(self, &status, &backups)?;
        if done.files.is_empty() && self.merged()?.len() == before {
            return Err(nothing(&other.hash));
        }
        Ok(done)
    }

    /// Returns what [`merge`](Self::merge) would do, as [`would_update`](Self::would_update).
    ///
    /// # Errors
    /// As [`merge`](Self::merge).
    pub fn would_merge(&self, version: &str, how: MergeHow) -> Result<Updated> {
        let other = self.mergeable(version, how)?;
        let mut versions = vec![other.hash];
        versions.extend(other.parents.first());
        self.rehearse(&versions, |copy| copy.merge(other.hash.as_str(), how))
    }

    /// Takes the last update or merge back, as long as no check-in followed. Fossil's `redo` makes it again, with
    /// edits that were made to its files since.
    ///
    /// # Errors
    /// [`Kind::NotFound`] if there is nothing to take back; [`Kind::Busy`], [`Kind::DiskFull`].
    pub fn undo(&self) -> Result<Updated> {
        if self.state(|db| var(db, "undo_available"))?.as_deref() != Some("1") {
            return Err(Error::new(Kind::NotFound, "there is no update or merge to take back")
                .with_hint("Only the last one can be, and none before a check-in."));
        }
        let status = self.status()?;
        engine::command(&self.root, &["undo"], Some(self.user()?.as_str()))?;
        self.rename_again(&status)?;
        self.forget_merge_statistics()?;
        // A file that comes back is in no conflict with its removal.
        report(self, &Status { changes: Vec::new(), ..status }, &Backups::empty(self)?)
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
        if matches!(how, MergeHow::Cherrypick | MergeHow::Backout) {
            if other.parents.is_empty() {
                return Err(Error::new(
                    Kind::Invalid,
                    format!("check-in `{}` has no parent", other.hash.short()),
                )
                .with_hint("Merge it whole."));
            }
        } else if store.descends(&parent.hash, &other.hash)?
            || self.merged()?.iter().any(|(hash, _)| *hash == other.hash)
        {
            return Err(nothing(&other.hash));
        }
        Ok(other)
    }

    /// Runs a command of Fossil's that changes files. Puts the files back if it fails.
    fn fossil(&self, args: &[&str], before: &Status, backups: &Backups) -> Result<()> {
        self.forget_merge_statistics()?;
        engine::command(&self.root, args, Some(self.user()?.as_str())).map(drop).inspect_err(|_| {
            if let Err(e) = backups.put_back(self, before) {
                tracing::warn!("a failed update left files changed: {e}");
            }
        })
    }

    /// Drops what Fossil keeps of the last update or merge, so that what is there afterwards is of the next one.
    fn forget_merge_statistics(&self) -> Result<()> {
        self.state(|db| Ok(db.execute_batch("DROP TABLE IF EXISTS mergestat")?))
    }

    /// As [`tell_fossil`](Self::tell_fossil), but renames stay renames, because Fossil's merge follows them.
    fn tell_fossil_but_renames(&self, status: &Status) -> Result<()> {
        let status = Status { renamed: std::collections::BTreeMap::new(), ..status.clone() };
        self.tell_fossil(&status)?;
        self.state(|db| Ok(db.execute_batch("UPDATE vfile SET mtime=0 WHERE origname IS NOT NULL")?))
    }
}

fn nothing(hash: &Hash) -> Error {
    Error::new(Kind::Unchanged, format!("there is nothing to take from check-in `{}`", hash.short()))
        .with_hint("It is part of what is here already.")
}
