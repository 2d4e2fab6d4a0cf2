//! How long a call waits for its turn on the engine thread, and what ends the wait early.
//!
//! The limits belong to the calling thread. So code between a caller and the engine hands nothing through.

use std::cell::RefCell;
use std::time::Duration;

use crate::cancel::Cancel;
use crate::error::Result;

/// How long a call waits where its caller says nothing.
const TIMEOUT: Duration = Duration::from_mins(1);

thread_local! {
    static LIMITS: RefCell<Limits> = const { RefCell::new(Limits { timeout: TIMEOUT, cancels: Vec::new() }) };
}

/// The limits of one wait.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// The call begins within this time or not at all.
    pub timeout: Duration,
    /// Each of these ends the wait.
    pub cancels: Vec<Cancel>,
}

impl Limits {
    /// The limits of the thread that calls.
    pub fn current() -> Self {
        LIMITS.with_borrow(Clone::clone)
    }

    /// Runs `f` on this thread under these limits, and puts the former ones back, after a panic too.
    pub fn apply<R>(self, f: impl FnOnce() -> R) -> R {
        struct Former(Option<Limits>);
        impl Drop for Former {
            fn drop(&mut self) {
                if let Some(limits) = self.0.take() {
                    LIMITS.set(limits);
                }
            }
        }
        let _former = Former(Some(LIMITS.replace(self)));
        f()
    }
}

/// The cancels that count where this was made, for long work of our own that asks it again and again. Threads may share
/// it.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Vec<Cancel>);

impl Stop {
    /// The cancels of the thread that calls.
    pub fn of_this_thread() -> Self {
        Self(Limits::current().cancels)
    }

    /// Refuses to go on after a cancel. `what` names what was not done.
    ///
    /// # Errors
    /// [`Kind::Cancelled`](crate::error::Kind::Cancelled) after a cancel.
    pub fn check(&self, what: &str) -> Result<()> {
        self.0.iter().try_for_each(|cancel| cancel.check(what))
    }
}

/// Runs `f`. Engine calls that it makes on this thread end with [`Kind::Cancelled`](crate::error::Kind::Cancelled) if
/// `cancel` fires before they begin: nothing was done then. A call that has begun runs to its end, except where it
/// takes artifacts in; then all of it is undone.
///
/// Scopes nest: a cancel of an outer scope counts too. [`close`](super::close) and [`close_all`](super::close_all) are
/// never cancelled, so that what a failed step leaves can be cleared away.
///
/// ```
/// use ocx::{cancel::Cancel, engine, error::Kind};
/// let cancel = Cancel::new();
/// cancel.cancel();
/// let version = || engine::command("/".as_ref(), &["version"], None);
/// assert_eq!(engine::with_cancel(&cancel, version).unwrap_err().kind(), Kind::Cancelled);
/// assert!(version().is_ok());
/// ```
pub fn with_cancel<R>(cancel: &Cancel, f: impl FnOnce() -> R) -> R {
    let mut limits = Limits::current();
    limits.cancels.push(cancel.clone());
    limits.apply(f)
}

/// Runs `f`. Engine calls that it makes on this thread end with [`Kind::Busy`](crate::error::Kind::Busy) if they
/// cannot begin within `timeout`: nothing was done then. Without it the time is one minute; the innermost scope counts.
///
/// ```
/// use std::time::Duration;
/// let output = ocx::engine::with_timeout(Duration::from_secs(5), || {
///     ocx::engine::command("/".as_ref(), &["version"], None)
/// })?;
/// assert!(output.out.contains("fossil"));
/// # Ok::<(), ocx::error::Error>(())
/// ```
pub fn with_timeout<R>(timeout: Duration, f: impl FnOnce() -> R) -> R {
    Limits { timeout, ..Limits::current() }.apply(f)
}

/// Runs `f`, whose engine calls no cancel ends.
pub(super) fn without_cancel<R>(f: impl FnOnce() -> R) -> R {
    Limits { cancels: Vec::new(), ..Limits::current() }.apply(f)
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    fn limits() -> (Duration, usize) {
        let limits = Limits::current();
        (limits.timeout, limits.cancels.len())
    }

    #[test]
    fn limits_nest_and_end_with_their_scope() {
        let (one, five) = (Duration::from_secs(1), Duration::from_secs(5));
        let cancel = Cancel::new();
        assert_eq!(limits(), (TIMEOUT, 0));
        with_timeout(one, || {
            with_cancel(&cancel, || {
                with_cancel(&Cancel::new(), || assert_eq!(limits(), (one, 2)));
                with_timeout(five, || assert_eq!(limits(), (five, 1)));
                without_cancel(|| assert_eq!(limits(), (one, 0)));
                assert!(catch_unwind(|| with_timeout(five, || panic!("planned"))).is_err());
                assert_eq!(limits(), (one, 1));
                std::thread::spawn(|| assert_eq!(limits(), (TIMEOUT, 0))).join().unwrap();
            });
        });
        assert_eq!(limits(), (TIMEOUT, 0));
    }
}
