//! The one cancel: a handle by which one thread ends what another has under way.
//!
//! It needs no runtime. Code that waits for something other than a flag says with [`Cancel::on_cancel`] how to wake it.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, Kind};

/// A handle that ends work from another thread. Its clones are the same handle.
///
/// ```
/// use ocx::cancel::Cancel;
/// let cancel = Cancel::new();
/// let elsewhere = cancel.clone();
/// std::thread::spawn(move || elsewhere.cancel()).join().unwrap();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    cancelled: bool,
    callbacks: Vec<(u64, Callback)>,
    last: u64,
}

type Callback = Box<dyn FnOnce() + Send>;

impl Cancel {
    /// Makes a handle that nothing has cancelled yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends all work that has this handle, at once, even while it waits. Work that starts later with it ends at once too.
    pub fn cancel(&self) {
        let callbacks = {
            let mut state = self.0.lock();
            state.cancelled = true;
            std::mem::take(&mut state.callbacks)
        };
        for (_, callback) in callbacks {
            callback();
        }
    }

    /// Returns whether [`cancel`](Self::cancel) was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().cancelled
    }

    /// Refuses to go on after a cancel. `what` names what was not done.
    ///
    /// # Errors
    /// [`Kind::Cancelled`] after a cancel.
    pub fn check(&self, what: &str) -> Result<(), Error> {
        if self.is_cancelled() { Err(Error::new(Kind::Cancelled, what)) } else { Ok(()) }
    }

    /// Calls `callback` on the cancelling thread when a cancel comes, until the guard is dropped. If it came already,
    /// calls it at once. The callback must not wait for anything.
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) -> OnCancel {
        let mut state = self.0.lock();
        if state.cancelled {
            drop(state);
            callback();
            return OnCancel { cancel: self.clone(), number: 0 };
        }
        state.last += 1;
        let number = state.last;
        state.callbacks.push((number, Box::new(callback)));
        drop(state);
        OnCancel { cancel: self.clone(), number }
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

/// The guard of a callback of [`Cancel::on_cancel`]. Dropping it takes the callback back.
#[derive(Debug)]
#[must_use = "the callback is taken back when this is dropped"]
pub struct OnCancel {
    cancel: Cancel,
    number: u64,
}

impl OnCancel {
    /// Takes the callback back. Returns whether it was not called and never will be.
    pub fn take_back(&mut self) -> bool {
        let mut state = self.cancel.0.lock();
        state.callbacks.retain(|(number, _)| *number != self.number);
        !state.cancelled
    }
}

impl Drop for OnCancel {
    fn drop(&mut self) {
        self.take_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_ends_what_is_under_way_and_what_begins_later_but_not_what_has_ended() {
        let cancel = Cancel::new();
        let (ended, ends) = std::sync::mpsc::channel();
        let end = |name: &'static str| {
            let ended = ended.clone();
            move || ended.send(name).unwrap()
        };
        assert!(cancel.on_cancel(end("past")).take_back());
        drop(cancel.on_cancel(end("dropped")));
        let mut now = cancel.on_cancel(end("now"));
        assert!(cancel.check("nothing was done").is_ok());
        cancel.cancel();
        assert!(!now.take_back());
        let _later = cancel.on_cancel(end("later"));
        assert_eq!(ends.try_iter().collect::<Vec<_>>(), ["now", "later"]);
        assert_eq!(cancel.check("nothing was done").unwrap_err().kind(), Kind::Cancelled);
        assert_eq!(format!("{cancel:?}"), "Cancel(true)");
    }
}
