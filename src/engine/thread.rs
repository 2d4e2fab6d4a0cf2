//! The one thread that Fossil's code runs on, and what it does while a call waits for a server.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;

use super::queue::{Queue, Started};
use crate::error::{Error, Kind, Result};

/// Stack of the engine thread, in bytes; a command-line program has eight megabytes.
const STACK_SIZE: usize = 16 << 20;
/// How many calls may wait for their turn. A waiting call holds its input in memory.
const WAITING_MAX: usize = 256;

thread_local! {
    /// On the engine thread, and on one that carries a sync's round trip for it.
    static OF_THE_ENGINE: Cell<bool> = const { Cell::new(false) };
}

/// The way to the engine thread; nothing where it could not start.
static QUEUE: OnceLock<Option<Arc<Queue>>> = OnceLock::new();

/// Puts `f` in the queue of the engine thread, which the first call starts. `prepare` is the first act of that thread.
///
/// One call runs at a time; while a sync waits for its server, others do. A call made by a transport might wait
/// for itself, and is refused.
pub(super) fn start<R: Send + 'static>(
    prepare: fn() -> Result<()>,
    f: impl FnOnce() -> R + Send + 'static,
) -> Result<Started<R>> {
    if OF_THE_ENGINE.get() {
        return Err(Error::new(Kind::Invalid, "a transport calls the engine while its own call runs")
            .with_hint("Call the engine after the sync has ended."));
    }
    let queue = QUEUE.get_or_init(|| start_thread(prepare)).as_ref().ok_or_else(|| {
        Error::new(Kind::Unsupported, "the engine thread cannot start")
            .with_hint("Check the limits on threads and memory.")
    })?;
    queue.start(f)
}

fn start_thread(prepare: fn() -> Result<()>) -> Option<Arc<Queue>> {
    let queue = Queue::new(WAITING_MAX);
    let served = Closing(Arc::clone(&queue));
    let (ready, started) = mpsc::sync_channel(1);
    thread::Builder::new()
        .name("ocx-engine".to_owned())
        .stack_size(STACK_SIZE)
        .spawn(move || {
            OF_THE_ENGINE.set(true);
            let is_up = prepare().is_ok();
            let _ = ready.send(is_up);
            served.0.serve_until(&AtomicBool::new(!is_up));
        })
        .ok()?;
    started.recv().ok()?.then_some(queue)
}

/// Closes the queue when the thread that serves it ends, whatever ends it.
struct Closing(Arc<Queue>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs `wait` on a thread of its own, and meanwhile, on this engine thread, the calls that come (I10).
///
/// They run above the frames of the call that waits, each to its end: so the wait lasts until the one at work has
/// ended. A second sync among them holds up the others.
pub(super) fn meanwhile<R: Send>(mut wait: impl FnMut() -> R + Send) -> thread::Result<R> {
    static WAITS: AtomicBool = AtomicBool::new(false);
    let queue = QUEUE.get().and_then(Option::as_ref);
    let mut result = None;
    if let (Some(queue), false) = (queue, WAITS.swap(true, Ordering::SeqCst)) {
        let ended = AtomicBool::new(false);
        result = thread::scope(|scope| {
            let (has_ended, wait) = (&ended, &mut wait);
            let waiting = thread::Builder::new().name("ocx-wait".to_owned()).spawn_scoped(scope, move || {
                OF_THE_ENGINE.set(true);
                let result = catch_unwind(AssertUnwindSafe(wait));
                has_ended.store(true, Ordering::SeqCst);
                queue.wake();
                result
            });
            let waiting = waiting.ok()?;
            queue.serve_until(&ended);
            Some(waiting.join().and_then(|result| result))
        });
        WAITS.store(false, Ordering::SeqCst);
    }
    result.unwrap_or_else(|| catch_unwind(AssertUnwindSafe(wait)))
}

/// Whether the engine thread was ever wanted.
pub(super) fn has_started() -> bool {
    QUEUE.get().is_some()
}
