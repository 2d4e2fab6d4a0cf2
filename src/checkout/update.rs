//! Turning the files of a checkout into those of another version, and joining another version's changes into them.
//!
//! Fossil's own code does it; what it did is told from the files and from Fossil's table `mergestat`, not from what it
//! prints. Nothing that was changed here is lost: what Fossil would drop or overwrite is put back, or beside.

mod found;
mod obstacle;
mod rehearsal;
mod safe;

use found::report;
use obstacle::refuse_obstacles;
use safe::Safe;

use super::Checkout;
use super::database::var;
use crate::checkout::status::Status;
use crate::engine;
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::repo::store::CheckInInfo;

/// What an update, a merge or an undo did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    /// The check-in that the checkout stands on now.
    pub hash: Hash,
    /// The files that it touched, by path.
    pub files: Vec<UpdatedFile>,
    /// The paths of those in conflict.
    pub conflicts: Vec<String>,
}

/// A file that an update or a merge touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatedFile {
    /// Its path, where it is now or was.
    pub path: String,
    /// What happened to it.
    pub what: Happened,
    /// Its path before, where that was another.
    pub from: Option<String>,
    /// Where this side's bytes lie, when others stand in their place.
    pub backup: Option<String>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Happened {
    /// It was not there.
    Added,
    /// It was unchanged here, and has the other content now.
    Updated,
    /// It was changed on both sides, and both changes are in it.
    Merged,
    /// It has another path.
    Renamed,
    /// It was unchanged here, and is gone.
    Removed,
    /// Both sides changed the same lines: they stand in the file between conflict marks.
    ConflictMarked,
    /// Both sides added it: this side's is there.
    ConflictBothAdded,
    /// It was changed here and removed on the other side: this side's is there.
    ConflictRemovedThere,
    /// It was removed here and changed on the other side: the other side's is back.
    ConflictRemovedHere,
    /// Both sides changed a binary file or a link: one of them is there.
    ConflictUnjoinable,
    /// A file that is not part of the checkout lay in its place.
    ConflictInTheWay,
}

impl Happened {
    /// Whether somebody must look at the file.
    #[must_use]
    pub fn is_conflict(self) -> bool {
        !matches!(self, Self::Added | Self::Updated | Self::Merged | Self::Renamed | Self::Removed)
    }
}

impl std::fmt::Display for Happened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Merged => "merged",
            Self::Renamed => "renamed",
            Self::Removed => "removed",
            Self::ConflictMarked => {
                "conflict: both sides changed the same lines, which are marked in the file"
            }
            Self::ConflictBothAdded => "conflict: both sides added it; yours is kept",
            Self::ConflictRemovedThere => "conflict: changed here, removed there; yours is kept",
            Self::ConflictRemovedHere => "conflict: removed here, changed there; theirs is back",
            Self::ConflictUnjoinable => "conflict: both sides changed it, and it cannot be joined",
            Self::ConflictInTheWay => "conflict: a file that is not part of the checkout lay there",
        })
    }
}

/// Which changes a merge takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MergeHow {
    /// All since the common ancestor.
    #[default]
    Whole,
    /// All, and the check-in that follows closes the merged branch.
    Integrate,
    /// Those of the one check-in.
    Cherrypick,
    /// Those of the one check-in are taken back.
    Backout,
}

impl MergeHow {
    fn option(self) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            Self::Integrate => Some("--integrate"),
            Self::Cherrypick => Some("--cherrypick"),
            Self::Backout => Some("--backout"),
        }
    }
}

impl Checkout {
    /// Moves the checkout to another version by Fossil's own code, joining what has changed here into it.
    ///
    /// # Errors
    /// [`Kind::NotFound`] or [`Kind::Ambiguous`] for the version, [`Kind::Denied`] where a link lies in the place of a file or folder
    /// that differs, [`Kind::Exists`] where something else does; [`Kind::Busy`], [`Kind::DiskFull`]. The files are as before then.
    pub fn update(&self, version: &str) -> Result<Updated> {
        let hash = self.repository.store().resolve(version)?;
        let status = self.status()?;
        refuse_obstacles(self, &*self.repository.store().files(&status.parent)?, &[hash])?;
        let safe = Safe::of(self, &status, &[hash])?;
        self.tell_fossil(&status)?;
        let done = self.fossil(&["update", "--nosync", hash.as_str()], &status, &safe);
        self.rename_again(&status)?;
        done?;
        report(self, &status, &safe)
    }

    /// What [`update`](Self::update) would do: it is done in a copy of the checkout, beside the repository, which is then removed.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn would_update(&self, version: &str) -> Result<Updated> {
        let hash = self.repository.store().resolve(version)?;
        self.rehearse(&[hash], |copy| copy.update(hash.as_str()))
    }

    /// Joins another version's changes into the files, by Fossil's own code; the next check-in tells of it.
    ///
    /// ```
    /// use ocx::{name::{Branch, User}, checkout::{CheckIn, Checkout, Happened, MergeHow}, repo::{NewRepository, Repository}};
    /// let folder = tempfile::tempdir()?;
    /// let user = User::parse("ann")?;
    /// let repository = Repository::create(&folder.path().join("r.fossil"), &NewRepository { user: user.clone() })?;
    /// let work = Checkout::open(&repository, &folder.path().join("work"), None, Some(&user))?;
    /// std::fs::write(work.root().join("a.txt"), "one\n")?;
    /// let mut next = CheckIn { comment: "on a side branch".into(), branch: Some(Branch::parse("side")?), user, time: None };
    /// work.check_in(&next, &work.status()?)?;
    /// work.update("trunk")?;
    /// let merged = work.merge("side", MergeHow::Whole)?;
    /// assert_eq!((merged.files[0].path.as_str(), merged.files[0].what), ("a.txt", Happened::Added));
    /// next.branch = None;
    /// work.check_in(&next, &work.status()?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Kind::NotFound`] or [`Kind::Ambiguous`] for the version, [`Kind::Unchanged`] when there is nothing to take,
    /// [`Kind::Closed`] when the checkout stands on a closed leaf, [`Kind::Invalid`] for a single check-in that has no
    /// parent, [`Kind::Denied`] and [`Kind::Exists`] as [`update`](Self::update); [`Kind::Busy`], [`Kind::DiskFull`]. The files
    /// are as before then.
    pub fn merge(&self, version: &str, how: MergeHow) -> Result<Updated> {
        let other = self.mergeable(version, how)?;
        let status = self.status()?;
        let mut versions = vec![other.hash];
        versions.extend(other.parents.first());
        refuse_obstacles(self, &*self.repository.store().files(&status.parent)?, &versions)?;
        let safe = Safe::of(self, &status, &versions)?;
        self.tell_fossil_but_renames(&status)?;
        let mut args = vec!["merge", "--nosync"];
        args.extend(how.option());
        args.push(other.hash.as_str());
        let before = self.merged()?.len();
        self.fossil(&args, &status, &safe)?;
        let done = report(self, &status, &safe)?;
        if done.files.is_empty() && self.merged()?.len() == before {
            return Err(nothing(&other.hash));
        }
        Ok(done)
    }

    /// What [`merge`](Self::merge) would do, as [`would_update`](Self::would_update).
    ///
    /// # Errors
    /// As [`merge`](Self::merge).
    pub fn would_merge(&self, version: &str, how: MergeHow) -> Result<Updated> {
        let other = self.mergeable(version, how)?;
        let mut versions = vec![other.hash];
        versions.extend(other.parents.first());
        self.rehearse(&versions, |copy| copy.merge(other.hash.as_str(), how))
    }

    /// Takes the last update or merge back, as long as no check-in followed. `fossil redo` makes it again, with edits
    /// that were made to its files since.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when there is nothing to take back; [`Kind::Busy`], [`Kind::DiskFull`].
    pub fn undo(&self) -> Result<Updated> {
        if self.state(|db| var(db, "undo_available"))?.as_deref() != Some("1") {
            return Err(Error::new(Kind::NotFound, "there is no update or merge to take back")
                .with_hint("Only the last one can be, and none before a check-in."));
        }
        let status = self.status()?;
        engine::command(&self.root, &["undo"], Some(self.user()?.as_str()))?;
        self.rename_again(&status)?;
        self.forget_merge_statistics()?;
        // What comes back is no conflict with its having been removed.
        report(self, &Status { changes: Vec::new(), ..status }, &Safe::empty(self)?)
    }

    /// The check-in to merge, if there is anything to take from it.
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

    /// Runs a command of Fossil's that changes files; when it fails they are put back.
    fn fossil(&self, args: &[&str], before: &Status, safe: &Safe) -> Result<()> {
        self.forget_merge_statistics()?;
        engine::command(&self.root, args, Some(self.user()?.as_str())).map(drop).inspect_err(|_| {
            if let Err(e) = safe.put_back(self, before) {
                tracing::warn!("a failed update left files changed: {e}");
            }
        })
    }

    /// Drops what Fossil keeps of the last update or merge, so that what is there afterwards is of the next.
    fn forget_merge_statistics(&self) -> Result<()> {
        self.state(|db| Ok(db.execute_batch("DROP TABLE IF EXISTS mergestat")?))
    }

    /// Tells Fossil's database what [`tell_fossil`](Self::tell_fossil) does, but leaves renames what they are: its merge follows them.
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
