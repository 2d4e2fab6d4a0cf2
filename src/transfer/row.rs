//! One packed artifact of a set, without its data, and the count of those that are done.

use std::sync::Arc;

use crate::name::Hash;

/// A packed artifact, without its data.
#[derive(Debug)]
pub(crate) struct Row {
    /// Its number where the data lie.
    pub id: i64,
    pub hash: Hash,
    /// Bytes of the expanded artifact, as declared.
    pub size: usize,
    pub basis: Basis,
    pub keep: Keep,
}

/// What a row's data are a delta from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Nothing: the data are the content.
    None,
    /// A row of the same set, by its index.
    Row(usize),
    /// An artifact that the receiver must have.
    External(Hash),
}

/// How the receiver keeps an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Public,
    /// For those alone who may see private artifacts.
    Private,
    /// Not at all: others are deltas from it.
    ForOthers,
}

/// The most bytes that the data of an artifact of `size` bytes may inflate to.
pub(crate) fn data_max(size: usize) -> usize {
    // A delta that is somewhat longer than its target is possible. One that is much longer is an attack.
    size * 2 + 1024
}

/// Receives how much of a long work is done: artifacts done, and all.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;
