//! The one thread that Fossil's code runs on.

use std::cell::Cell;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;

use super::queue::{Queue, Started};
use crate::error::{Error, Kind, Result};

/// Stack of the engine thread, in bytes; a command-line program has eight megabytes.
const STACK_SIZE: usize = 16 << 20;
/// How many calls may wait for their turn. A waiting call holds its input in memory.
const WAITING_MAX: usize = 256;

thread_local! {
    static OF_THE_ENGINE: Cell<bool> = const { Cell::new(false) };
}

/// The way to the engine thread; nothing where it could not start.
static QUEUE: OnceLock<Option<Arc<Queue>>> = OnceLock::new();

/// Puts `f` in the queue of the engine thread, which the first call starts. `prepare` is the first act of that thread.
///
/// One call runs at a time. A call that the engine thread itself makes would wait for itself, and is refused.
pub(super) fn start<R: Send + 'static>(
    prepare: fn() -> Result<()>,
    f: impl FnOnce() -> R + Send + 'static,
) -> Result<Started<R>> {
    if OF_THE_ENGINE.get() {
        return Err(Error::new(Kind::Invalid, "the work of an engine call makes another one")
            .with_hint("Call the engine when that call has ended."));
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
            if is_up {
                served.0.serve();
            }
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

/// Whether the engine thread was ever wanted.
pub(super) fn has_started() -> bool {
    QUEUE.get().is_some()
}
