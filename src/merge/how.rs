//! The ways of merging.

/// Which changes a merge takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MergeHow {
    /// All changes since the common ancestor.
    #[default]
    Whole,
    /// All changes; the check-in that follows closes the merged branch.
    Integrate,
    /// The changes of the one check-in.
    Cherrypick,
    /// The changes of the one check-in, taken back.
    Backout,
}

impl MergeHow {
    /// Whether all changes of a line of check-ins are taken, so that the next check-in has it as a parent.
    #[must_use]
    pub fn is_whole(self) -> bool {
        matches!(self, Self::Whole | Self::Integrate)
    }
}
