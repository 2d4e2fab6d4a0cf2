//! A sync that ends with the call it belongs to.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::sync::Cancel;

/// Has a call's token cancel a sync, until it is dropped. There is no thread and no runtime in it: the sync is
/// cancelled by whoever cancels the token.
pub(crate) struct Bound {
    _waiting: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Bound {
    pub fn new(token: &CancellationToken, cancel: &Cancel) -> Self {
        let mut waiting = Box::pin(token.clone().cancelled_owned());
        let waker = Waker::from(Arc::new(Tie { token: token.clone(), cancel: cancel.clone() }));
        if waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            cancel.cancel();
        }
        Self { _waiting: waiting }
    }
}

struct Tie {
    token: CancellationToken,
    cancel: Cancel,
}

impl Wake for Tie {
    fn wake(self: Arc<Self>) {
        if self.token.is_cancelled() {
            self.cancel.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_cancels_the_sync_bound_to_it_and_no_other() {
        let token = CancellationToken::new();
        let (bound, free, late) = (Cancel::new(), Cancel::new(), Cancel::new());
        let _bound = Bound::new(&token.child_token(), &bound);
        drop(Bound::new(&token, &free));
        assert!(!bound.is_cancelled());
        token.cancel();
        assert!(bound.is_cancelled() && !free.is_cancelled());
        let _late = Bound::new(&token, &late);
        assert!(late.is_cancelled());
    }
}
