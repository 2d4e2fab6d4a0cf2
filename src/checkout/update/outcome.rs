//! What an update or a merge did.

use crate::merge::FileOutcome;
use crate::name::Hash;

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
    pub what: FileOutcome,
    /// Its path before, if that was another.
    pub from: Option<String>,
    /// Where this side's bytes lie, if others stand in their place.
    pub backup: Option<String>,
}
