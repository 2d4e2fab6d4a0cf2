//! What a sync is to do.

use std::fmt;

use crate::cancel::Cancel;
use crate::transfer::Progress;

/// What a sync is to do.
///
/// ```
/// use ocx::{cancel::Cancel, sync::SyncOptions};
/// let cancel = Cancel::new();
/// let options = SyncOptions::both().with_unversioned().until(&cancel);
/// assert!(options.push && options.pull && options.unversioned && !options.private);
/// ```
#[derive(Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own, as it is in the protocol")]
pub struct SyncOptions {
    /// Send what the server lacks.
    pub push: bool,
    /// Fetch what is lacking here.
    pub pull: bool,
    /// Take private check-ins along, in the same directions; the login needs the capability `x`.
    pub private: bool,
    /// Make the unversioned files the same on both sides. Of each, the newer one stays.
    pub unversioned: bool,
    /// Ends it from another thread.
    pub cancel: Cancel,
    /// Called while artifacts come, with how many came and how many that are by now known of.
    pub progress: Option<Progress>,
}

impl SyncOptions {
    /// Sends only.
    #[must_use]
    pub fn push() -> Self {
        Self { push: true, ..Self::default() }
    }

    /// Fetches only.
    #[must_use]
    pub fn pull() -> Self {
        Self { pull: true, ..Self::default() }
    }

    /// Sends and fetches.
    #[must_use]
    pub fn both() -> Self {
        Self { push: true, pull: true, ..Self::default() }
    }

    /// Private check-ins too.
    #[must_use]
    pub fn with_private(self) -> Self {
        Self { private: true, ..self }
    }

    /// Unversioned files too.
    #[must_use]
    pub fn with_unversioned(self) -> Self {
        Self { unversioned: true, ..self }
    }

    /// Calls `progress` while artifacts come.
    #[must_use]
    pub fn with_progress(self, progress: Progress) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// The handle that may end it.
    #[must_use]
    pub fn until(self, cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), ..self }
    }
}

impl fmt::Debug for SyncOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncOptions")
            .field("push", &self.push)
            .field("pull", &self.pull)
            .field("private", &self.private)
            .field("unversioned", &self.unversioned)
            .finish_non_exhaustive()
    }
}
