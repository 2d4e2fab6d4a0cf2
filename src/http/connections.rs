//! The open connections of a listener: what each one is doing, and which one gives way.
//!
//! A connection is *at work* from the last byte of a request until the answer's body is handed over. Everything else,
//! such as half a head, waits for its client, and may be dropped. Those whose client has proved who it is go last, and half
//! of the places are theirs.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How many connections there can be, and how long they may be silent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How many connections can be open at once.
    pub count_max: usize,
    /// How many of them can be without a proof of who calls.
    pub unproven_max: usize,
    /// The longest time until the client has proved who it is.
    pub head_wait: Duration,
    /// The time that a connection has to make its request before it must give way to another one.
    pub young: Duration,
}

impl Limits {
    pub const USUAL: Self = Self {
        count_max: 128,
        unproven_max: 64,
        head_wait: Duration::from_secs(5),
        young: Duration::from_secs(1),
    };
}

/// The connections that are open.
pub(super) struct Connections {
    limits: Limits,
    open: Mutex<Vec<Arc<Connection>>>,
    /// One connection has ended.
    ended: Notify,
}

/// One open connection.
pub(super) struct Connection {
    opened: Instant,
    state: Mutex<State>,
    /// A request on it has passed the gate and its token.
    proven: AtomicBool,
    leave: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No request's head has come yet.
    Silent,
    /// A request's head has come, and not all of its body.
    Receiving,
    /// A request is answered.
    AtWork,
    /// All requests were answered, the last one then.
    Idle(Instant),
}

impl Connections {
    pub fn new(limits: Limits) -> Self {
        Self { limits, open: Mutex::default(), ended: Notify::new() }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Makes place for a connection that has come, and adds it. If there are too many, the oldest one that is not at
    /// work is dropped, and one of a client that has proved who it is only if there is no other. If all are at work or
    /// young, it waits.
    pub async fn add(&self) -> Arc<Connection> {
        loop {
            let wait = match self.try_add() {
                Ok(added) => return added,
                Err(wait) => wait,
            };
            tokio::select! {
                () = self.ended.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Adds a connection, or returns after which time that may be possible.
    fn try_add(&self) -> Result<Arc<Connection>, Duration> {
        let mut open = self.open.lock();
        let unproven = open.iter().filter(|one| !one.is_proven()).count();
        if open.len() >= self.limits.count_max || unproven >= self.limits.unproven_max {
            // They stand in the order in which they came.
            let unproven = open.iter().position(|one| one.gives_way() && !one.is_proven());
            let any = || open.iter().position(|one| one.gives_way());
            let Some(at) = unproven.or_else(any) else { return Err(self.limits.young) };
            let young = self.limits.young.saturating_sub(open[at].opened.elapsed());
            if !young.is_zero() {
                return Err(young);
            }
            open.remove(at).leave.notify_one();
        }
        let added = Arc::new(Connection {
            opened: Instant::now(),
            state: Mutex::new(State::Silent),
            proven: AtomicBool::new(false),
            leave: Notify::new(),
        });
        open.push(Arc::clone(&added));
        Ok(added)
    }

    /// Forgets a connection that has ended.
    pub fn remove(&self, ended: &Arc<Connection>) {
        self.open.lock().retain(|one| !Arc::ptr_eq(one, ended));
        self.ended.notify_one();
    }

    /// Drops each connection that is not at work. One that was answered within `flush` keeps its time to send the
    /// answer.
    pub fn drop_waiting(&self, flush: Duration) {
        for one in self.open.lock().iter() {
            let answered = matches!(*one.state.lock(), State::Idle(at) if at.elapsed() < flush);
            if one.gives_way() && !answered {
                one.leave.notify_one();
            }
        }
    }
}

impl Connection {
    /// Waits until this connection must be dropped: another one needs its place, the server ends, or `head_wait` has
    /// passed without a proof of who calls.
    pub async fn must_leave(&self, head_wait: Duration) {
        tokio::select! {
            () = self.leave.notified() => return,
            () = tokio::time::sleep(head_wait) => {}
        }
        if self.is_proven() || *self.state.lock() == State::AtWork {
            self.leave.notified().await;
        }
    }

    /// Its client has proved who it is.
    pub fn prove(&self) {
        self.proven.store(true, Ordering::Relaxed);
    }

    fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }

    fn gives_way(&self) -> bool {
        *self.state.lock() != State::AtWork
    }

    /// Watches a request whose head has come. Returns the body to read, and the mark to keep until the answer is handed
    /// over.
    pub fn request(self: &Arc<Self>, body: Body) -> (Body, Answering) {
        *self.state.lock() = State::Receiving;
        let body = Watched { body, mark: Received(Arc::clone(self)) };
        if body.body.is_end_stream() {
            body.mark.all();
        }
        (Body::new(body), Answering(Arc::clone(self)))
    }
}

/// Marks a connection as idle when it is dropped.
pub(super) struct Answering(Arc<Connection>);

impl Answering {
    /// The answer's body, which keeps the mark until it is handed over.
    pub fn keep(self, body: Body) -> Body {
        Body::new(Watched { body, mark: self })
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        *self.0.state.lock() = State::Idle(Instant::now());
    }
}

/// Marks a connection as at work when the request's body has come, or nobody reads it any more.
struct Received(Arc<Connection>);

impl Received {
    fn all(&self) {
        let mut state = self.0.state.lock();
        if *state == State::Receiving {
            *state = State::AtWork;
        }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.all();
    }
}

/// What happens when a body's last frame has come.
trait AtEnd: Unpin {
    fn at_end(&self);
}

impl AtEnd for Received {
    fn at_end(&self) {
        self.all();
    }
}

impl AtEnd for Answering {
    fn at_end(&self) {}
}

/// A body with a mark that lives as long as it.
struct Watched<M> {
    body: Body,
    mark: M,
}

impl<M: AtEnd> HttpBody for Watched<M> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.mark.at_end();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
