//! One sync of Fossil's own code at a time, as long as it waits for its server too.
//!
//! The engine runs other calls during that wait, but a second wait would end only after the first. So who comes
//! second waits here, where a cancel reaches it.

use parking_lot::{Condvar, Mutex};

use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};

static TAKEN: Mutex<bool> = Mutex::new(false);
static CHANGED: Condvar = Condvar::new();

/// The turn to sync; the next one gets it when it is dropped.
pub(super) struct Turn;

impl Turn {
    /// Waits until no other sync runs.
    pub fn take(cancel: &Cancel) -> Result<Self> {
        let waking = cancel.on_cancel(|| {
            // Whoever has looked at the cancel holds this until it waits, so that it is not missed.
            let _taken = TAKEN.lock();
            CHANGED.notify_all();
        });
        let mut taken = TAKEN.lock();
        CHANGED.wait_while(&mut taken, |taken| *taken && !cancel.is_cancelled());
        let turn = if *taken { None } else { Some(Self) };
        *taken = true;
        drop(taken);
        drop(waking);
        turn.ok_or_else(|| {
            Error::new(Kind::Cancelled, "cancelled while another sync ran")
                .with_hint("Do it again when it suits.")
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TAKEN.lock() = false;
        CHANGED.notify_all();
    }
}
