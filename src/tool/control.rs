//! The control of a running call: it can be cancelled, and its last line of progress can be read.

use std::time::Duration;

use parking_lot::Mutex;

use crate::cancel::Cancel;

/// How long a caller waits unless it says otherwise. Clients give up after a minute.
const PATIENCE: Duration = Duration::from_secs(45);

/// What the caller of a tool and the tool share while it runs.
#[derive(Debug)]
pub struct CallControl {
    cancel: Cancel,
    patience: Duration,
    line: Mutex<Option<String>>,
}

impl CallControl {
    /// A control that `cancel` ends.
    #[must_use]
    pub fn new(cancel: Cancel) -> Self {
        Self { cancel, patience: PATIENCE, line: Mutex::default() }
    }

    /// A control for a caller that waits as long as it takes.
    #[must_use]
    pub fn patient() -> Self {
        Self { patience: Duration::MAX, ..Self::default() }
    }

    /// How long the caller waits before it wants to hear that the call goes on.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Asks the call to end.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Whether the call is to end.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// The handle that ends the call.
    #[must_use]
    pub fn handle(&self) -> &Cancel {
        &self.cancel
    }

    /// Says how far the call is.
    pub fn progress(&self, line: impl Into<String>) {
        *self.line.lock() = Some(line.into());
    }

    /// The last line of progress since it was last asked for.
    #[must_use]
    pub fn last_line(&self) -> Option<String> {
        self.line.lock().take()
    }
}

impl Default for CallControl {
    fn default() -> Self {
        Self::new(Cancel::new())
    }
}
