//! What of a set may be structural, with the texts that are still at hand.

use std::sync::Arc;

use crate::format::artifact::Sniffed;

/// What may be a structural artifact, by its first bytes.
pub(super) struct Likely {
    pub row: usize,
    pub sniffed: Sniffed,
    /// The artifact, while it is at hand.
    pub content: Option<Arc<Vec<u8>>>,
}

impl Likely {
    /// The artifact. Nothing if it did not stay at hand.
    pub fn text(&self) -> Option<&[u8]> {
        self.content.as_deref().map(Vec::as_slice)
    }
}
