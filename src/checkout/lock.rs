//! One writer at a time in a checkout, over all processes that save, update or merge through OCX.
//!
//! The lock is an advisory one on the checkout's own folder, so it leaves no file behind and ends with its process.
//! Plain Fossil knows nothing of it. The check-in's own transaction protects against Fossil.

use std::fs::File;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::open::Checkout;
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};

/// How long a writer waits for another.
const WAIT: Duration = Duration::from_secs(20);

const POLL: Duration = Duration::from_millis(5);

/// The right to write in one checkout, given back when dropped.
#[derive(Debug)]
pub(crate) struct CheckoutLock {
    _folder: File,
}

impl CheckoutLock {
    /// Waits for the lock of a checkout. What an update or a merge left unfinished there is finished then.
    ///
    /// # Errors
    /// `Busy` if another call keeps it too long, `Cancelled`, what the operating system refuses, and those of finishing.
    pub fn take(checkout: &Checkout, cancel: &Cancel) -> Result<Self> {
        let lock = Self::of_folder(checkout.root(), cancel)?;
        checkout.finish(&lock)?;
        Ok(lock)
    }

    pub(super) fn of_folder(root: &Path, cancel: &Cancel) -> Result<Self> {
        let refused = |e| Error::io("cannot lock the checkout", e);
        let folder = File::open(root).map_err(refused)?;
        let started = Instant::now();
        loop {
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _folder: folder }),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(e) => return Err(refused(e.into())),
            }
            if cancel.is_cancelled() {
                return Err(Error::new(
                    Kind::Cancelled,
                    "cancelled while another call was writing; nothing was done",
                ));
            }
            if started.elapsed() > WAIT {
                return Err(Error::new(Kind::Busy, "another call is writing in this checkout"));
            }
            sleep(POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn only_one_holds_the_lock_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let inside = AtomicU32::new(0);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..20 {
                        let _lock = CheckoutLock::of_folder(folder.path(), &Cancel::new()).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn a_cancelled_call_stops_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let _held = CheckoutLock::of_folder(folder.path(), &Cancel::new()).unwrap();
        let cancel = Cancel::new();
        cancel.cancel();
        let refused = CheckoutLock::of_folder(folder.path(), &cancel).unwrap_err();
        assert_eq!(refused.kind(), Kind::Cancelled);
    }
}
