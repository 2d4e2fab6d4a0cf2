//! One sync of Fossil's own code at a time, as long as it waits for its server too.
//!
//! The engine runs other calls during that wait, but a second wait would end only after the first. So who comes
//! second waits here, where a cancel reaches it.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::error::{Error, Kind, Result};
use crate::sync::client::Cancel;

static TAKEN: Mutex<bool> = Mutex::new(false);
static CHANGED: Condvar = Condvar::new();

/// The turn to sync; the next one gets it when it is dropped.
pub(super) struct Turn;

impl Turn {
    /// Waits until no other sync runs.
    pub fn take(cancel: &Cancel) -> Result<Self> {
        let number = cancel.watch(|| {
            // Whoever has looked at the cancel holds this until it waits, so that it is not missed.
            let _taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
            CHANGED.notify_all();
        });
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = CHANGED
            .wait_while(taken, |taken| *taken && !cancel.is_cancelled())
            .unwrap_or_else(PoisonError::into_inner);
        let turn = if *taken { None } else { Some(Self) };
        *taken = true;
        drop(taken);
        cancel.forget(number);
        turn.ok_or_else(|| {
            Error::new(Kind::Cancelled, "cancelled while another sync ran").hint("Do it again when it suits.")
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = false;
        CHANGED.notify_all();
    }
}
