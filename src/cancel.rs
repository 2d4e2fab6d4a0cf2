//! The one cancel: a handle by which one thread ends what another has under way.
//!
//! It needs no runtime. What waits for something else than a flag says by [`Cancel::on_cancel`] how it is to be woken.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, Kind};

/// Ends from another thread what is under way. Clones are one handle.
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

    /// Ends what was given this handle, at once even while it waits; what is begun with it later does not begin.
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

    /// Whether [`cancel`](Self::cancel) was called.
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

    /// Has a cancel call `callback`, on the cancelling thread, until the guard is dropped. After a cancel it is called
    /// at once. It must not wait for anything.
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

/// A callback of [`Cancel::on_cancel`], taken back when this is dropped.
#[derive(Debug)]
#[must_use = "the callback is taken back when this is dropped"]
pub struct OnCancel {
    cancel: Cancel,
    number: u64,
}

impl OnCancel {
    /// Takes the callback back; says whether it was not called and never will be.
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
