//! What a merge is made from: the base, and the trees of the two sides with what they renamed.

use std::collections::{BTreeMap, BTreeSet};

use super::renames::renames;
use crate::error::Result;
use crate::name::{Hash, TreePath};
use crate::repo::store::{FileEntry, Files, Store};

/// The files of one side, and which file of the base each renamed one was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Side {
    /// Its files.
    pub files: Files,
    /// Its path of a file by which the base knows it under another, with that other.
    pub renames: BTreeMap<TreePath, TreePath>,
}

impl Side {
    /// The files of a check-in, seen from `base`.
    ///
    /// # Errors
    /// Those of reading the check-ins.
    pub fn of(store: &Store, base: &Hash, version: &Hash) -> Result<Self> {
        Ok(Self { files: store.files(version)?.as_ref().clone(), renames: renames(store, base, version)? })
    }

    /// What becomes of this side by changes that are not saved: `files` are there now, and `moved` has for each new
    /// path the one that the file has in this side.
    #[must_use]
    pub fn with(&self, files: Files, moved: &BTreeMap<TreePath, TreePath>) -> Self {
        let left: BTreeSet<&TreePath> = moved.values().collect();
        let mut renames = BTreeMap::new();
        for path in files.keys() {
            let before = match moved.get(path) {
                Some(before) => before,
                // A new file, where the old one went elsewhere.
                None if left.contains(path) => continue,
                None => path,
            };
            let base = self.renames.get(before).unwrap_or(before);
            if base != path {
                renames.insert(path.clone(), base.clone());
            }
        }
        Self { files, renames }
    }
}

/// Everything that a plan is made from.
///
/// The kinds of merge choose the trees: for an update, `base` is the checkout's parent and `there` the version to go to;
/// for a merge, `base` is the common ancestor; for a cherrypick, the parent of `there`; to back a check-in out, `base`
/// is that check-in and `there` its parent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trees {
    /// The files that both sides come from.
    pub base: Files,
    /// This side: the working files with their unsaved changes, or the check-in that another is merged into.
    pub here: Side,
    /// The other side: the check-in that comes in.
    pub there: Side,
    /// The paths of `here` whose content or kind is in no check-in yet.
    pub unsaved: BTreeSet<TreePath>,
    /// The files on the disk that are not part of `here`.
    pub untracked: BTreeMap<TreePath, FileEntry>,
    /// What lies on the disk, is no file, link or plain folder, and cannot be moved: a socket, another checkout.
    pub immovable: BTreeSet<TreePath>,
}
