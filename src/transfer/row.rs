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

/// The most bytes that a set may expand to in all, if `received` bytes of it came. Real histories expand to 40 to 140
/// times their bytes. A check-in that changes one line in a tree of 10,000 files expands to some 1,000 times its bytes,
/// since its manifest names them all. What is allowed without regard to the bytes is hashed in about a second.
pub(super) fn expanded_max(received: u64) -> u64 {
    received.saturating_mul(2_000).saturating_add(1 << 30)
}

/// The most bytes of contents that may be in memory at a time, if `received` bytes of their set came: a content, what
/// it is a delta from, and the others from which deltas are to come.
pub(super) fn held_max(received: u64) -> u64 {
    received.saturating_mul(10).saturating_add(256 << 20)
}

/// Receives how much of a long work is done: artifacts done, and all.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;
