//! What happens to a file in a merge, in the words that answers use.

use serde::Serialize;

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOutcome {
    /// The file was not there before.
    Added,
    /// It was unchanged here, and has the other side's content now.
    Updated,
    /// It was changed on both sides, and both changes are in it.
    Merged,
    /// It has another path.
    Renamed,
    /// It was unchanged here, and is gone.
    Removed,
    /// Both sides changed the same lines. They stand in the file between conflict marks.
    ConflictMarked,
    /// Both sides added it. This side's file is there.
    ConflictBothAdded,
    /// It was changed here and removed on the other side. This side's file is there.
    ConflictRemovedThere,
    /// It was removed here and changed on the other side. The other side's file is back.
    ConflictRemovedHere,
    /// Both sides changed a binary file or a link. One of them is there.
    ConflictUnjoinable,
    /// A file that is not part of the checkout lay in its place.
    ConflictInTheWay,
    /// Each side gave it another name, or the other side's name is taken here. This side's name is kept.
    ConflictNames,
}

impl FileOutcome {
    /// Whether somebody must look at the file.
    #[must_use]
    pub fn is_conflict(self) -> bool {
        !matches!(self, Self::Added | Self::Updated | Self::Merged | Self::Renamed | Self::Removed)
    }
}

impl std::fmt::Display for FileOutcome {
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
            Self::ConflictNames => "conflict: the other side gave it another name; yours is kept",
        })
    }
}
