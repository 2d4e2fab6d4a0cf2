//! Fossil's own sync client: its round trips over HTTP, what is seen of them, and the lock that it runs under.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::client::Exchange;
use crate::cancel::Cancel;
use crate::engine::Transport;
use crate::error::{Error, Kind, Result};
use crate::format::sync_message::{Reply, Request};
use crate::name::Hash;

/// The most round trips of one sync. A server may always ask for one more.
const ROUND_TRIPS_MAX: u32 = 10_000;

/// The most round trips in a row that bring nothing new to either side.
const IDLE_ROUND_TRIPS_MAX: u32 = 50;

/// What passed by in a sync.
#[derive(Debug, Default)]
pub(super) struct Log {
    round_trips: u32,
    idle_round_trips: u32,
    seen: HashSet<Seen>,
    pub sent: Vec<Hash>,
    /// How many artifacts came.
    pub received: usize,
    /// Names of the unversioned files that went to the server.
    pub sent_unversioned: Vec<String>,
    /// The server's unversioned files were not all the same as those here.
    pub unversioned_differ: bool,
    pub unversioned_pull_only: bool,
    pull_only: bool,
    /// The error of each reply that had one, and of the transport.
    errors: Vec<Error>,
}

impl Log {
    pub fn failure(&self, push: bool) -> Option<Error> {
        if let Some(e) = self.last_failure() {
            return Some(e);
        }
        (push && self.pull_only).then(|| {
            Error::new(Kind::Denied, "the server does not let this login push")
                .with_hint("Ask for the check-in capability (`i`) on the server.")
        })
    }

    pub fn last_failure(&self) -> Option<Error> {
        self.errors.last().cloned()
    }

    pub fn note_request(&mut self, body: &[u8]) {
        self.round_trips += 1;
        self.idle_round_trips += 1;
        let sent = Request::read(body);
        self.note_new(sent.files.iter().map(|hash| Seen::Sent(*hash)));
        self.note_new(sent.unversioned.iter().map(|name| Seen::Unversioned(name.clone())));
        self.sent.extend(sent.files);
        self.sent_unversioned.extend(sent.unversioned);
    }

    pub fn note_reply(&mut self, reply: &Reply) {
        self.received += reply.files.len();
        self.note_new(reply.files.iter().map(|hash| Seen::Received(*hash)));
        self.note_new(reply.brought_unversioned.iter().map(|name| Seen::Unversioned(name.clone())));
        self.pull_only |= reply.pull_only;
        self.unversioned_pull_only |= reply.unversioned_pull_only;
        self.unversioned_differ |= !reply.unversioned.is_empty() || reply.unversioned_pull_only;
        if let Some(e) = reply.error() {
            self.note(e);
        }
    }

    fn note_new(&mut self, seen: impl Iterator<Item = Seen>) {
        for seen in seen {
            if self.seen.insert(seen) {
                self.idle_round_trips = 0;
            }
        }
    }

    fn goes_on_for_ever(&self) -> bool {
        self.round_trips > ROUND_TRIPS_MAX || self.idle_round_trips > IDLE_ROUND_TRIPS_MAX
    }

    pub fn note(&mut self, e: Error) {
        self.errors.push(e);
    }
}

/// What a round trip brought that no earlier one had.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Seen {
    Sent(Hash),
    Received(Hash),
    Unversioned(String),
}

/// Carries Fossil's cards, noting what passes by.
pub(super) struct LoggedTransport {
    exchange: Arc<Exchange>,
    log: Arc<Mutex<Log>>,
}

impl LoggedTransport {
    pub fn new(exchange: Arc<Exchange>) -> Self {
        Self { exchange, log: Arc::default() }
    }

    /// The log that it writes.
    pub fn log(&self) -> Arc<Mutex<Log>> {
        Arc::clone(&self.log)
    }
}

/// Takes what was noted.
pub(super) fn take_log(log: &Mutex<Log>) -> Log {
    std::mem::take(&mut *log.lock())
}

impl Transport for LoggedTransport {
    fn exchange(&mut self, login_card: &[u8], body: &[u8]) -> Option<Vec<u8>> {
        let mut log = self.log.lock();
        log.note_request(body);
        if log.goes_on_for_ever() {
            log.note(Error::new(Kind::Refused, "the server asks for ever more round trips"));
            return None;
        }
        match self.exchange.exchange((!login_card.is_empty()).then_some(login_card), body) {
            Ok(bytes) => {
                log.note_reply(&Reply::read(&bytes));
                Some(bytes)
            }
            Err(e) => {
                log.note(e);
                None
            }
        }
    }
}

static TAKEN: Mutex<bool> = Mutex::new(false);
static CHANGED: Condvar = Condvar::new();

/// Lets only one sync of Fossil's own code run at a time, its waits for the server included.
///
/// The engine runs other calls during such a wait, but a second wait would end only after the first. So the second
/// sync waits here, where a cancel reaches it.
pub(super) struct SyncLock;

impl SyncLock {
    /// Waits until no other sync runs.
    pub fn take(cancel: &Cancel) -> Result<Self> {
        let waking = cancel.on_cancel(|| {
            // Whoever has looked at the cancel holds this until it waits, so that it is not missed.
            let _taken = TAKEN.lock();
            CHANGED.notify_all();
        });
        let mut taken = TAKEN.lock();
        CHANGED.wait_while(&mut taken, |taken| *taken && !cancel.is_cancelled());
        let lock = if *taken { None } else { Some(Self) };
        *taken = true;
        drop(taken);
        drop(waking);
        lock.ok_or_else(|| {
            Error::new(Kind::Cancelled, "cancelled while another sync ran")
                .with_hint("Do it again when it suits.")
        })
    }
}

impl Drop for SyncLock {
    fn drop(&mut self) {
        *TAKEN.lock() = false;
        CHANGED.notify_all();
    }
}
