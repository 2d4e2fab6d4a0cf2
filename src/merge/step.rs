//! What a plan says of one path.

use serde::Serialize;

use super::outcome::FileOutcome;
use crate::name::{Hash, TreePath};
use crate::repo::store::FileEntry;

/// What happens to one path, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Where the file is afterwards; or was, if it is gone.
    pub path: TreePath,
    /// What happens to it.
    pub what: FileOutcome,
    /// Why: what each side did, and what follows, for people.
    pub why: String,
    /// Where the content comes from.
    pub source: Source,
    /// What stands there afterwards. For a joined text that is not yet [settled](super::Plan::settle), its hash is that
    /// of this side's text.
    pub result: Option<FileEntry>,
    /// The file's path in the base, if it has one.
    pub base: Option<TreePath>,
    /// The file's path here before, if it had one.
    pub here: Option<TreePath>,
    /// The file's path on the other side, if it has one.
    pub there: Option<TreePath>,
    /// Whether this side's file has changes that no check-in holds.
    pub unsaved: bool,
    /// What is put beside, so that it is not lost. Never part of a check-in unasked.
    pub backups: Vec<Backup>,
}

impl Step {
    /// The path that the file had here, if that was another.
    #[must_use]
    pub fn from(&self) -> Option<&TreePath> {
        self.here.as_ref().filter(|here| **here != self.path)
    }
}

/// Where the content of a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// This side's file, as it is.
    Here,
    /// The other side's file, as it is.
    There,
    /// The text joined from these.
    Joined {
        /// The base's text.
        base: Hash,
        /// This side's text.
        here: Hash,
        /// The other side's text.
        there: Hash,
    },
    /// Nothing: the file is gone, or not there.
    Nothing,
}

/// A file that is put beside another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Backup {
    /// The new file. No other file is there.
    pub path: TreePath,
    /// Whose file it is.
    pub of: Owner,
    /// Where that one has the file.
    pub from: TreePath,
    /// What it is.
    pub entry: FileEntry,
}

/// Whose file is put beside another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The other side's. It is new on the disk.
    There,
    /// Nobody's: it is not part of the checkout. It is moved from where it lies.
    Untracked,
}

/// A file afterwards, and where each tree has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// What it is. See [`Step::result`] for a joined text.
    pub entry: FileEntry,
    /// Its path in the base.
    pub base: Option<TreePath>,
    /// Its path here before.
    pub here: Option<TreePath>,
    /// Its path on the other side.
    pub there: Option<TreePath>,
}

/// Why a plan cannot be performed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// What lies in the way.
    pub path: TreePath,
    /// What would have to stand there.
    pub why: String,
}
