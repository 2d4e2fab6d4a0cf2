//! What a merge is made from: the base, and the trees of the two sides with what they renamed.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::TreePath;
use crate::repo::store::{FileEntry, Files};

/// The files of one side, and which file of the base each renamed one was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Side {
    /// Its files.
    pub files: Files,
    /// Its path of a file by which the base knows it under another, with that other.
    pub renames: BTreeMap<TreePath, TreePath>,
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
