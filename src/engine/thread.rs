//! The one thread that Fossil's code runs on, and what it does while a call waits for a server.

use std::cell::{Cell, OnceCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;

use super::desk::Desk;
use super::session;
use crate::error::{Error, Kind, Result};

/// Stack of the engine thread, in bytes; a command-line program has eight megabytes.
const STACK_SIZE: usize = 16 << 20;
/// How long a call waits for a lock that another process holds, in milliseconds.
const BUSY_TIMEOUT_MS: i32 = 5000;

thread_local! {
    /// On the engine thread, and on one that carries a sync's round trip for it.
    static OF_THE_ENGINE: Cell<bool> = const { Cell::new(false) };
    /// What the engine thread works on and with; nothing on other threads.
    static WORK: OnceCell<Work> = const { OnceCell::new() };
}

type Job = Box<dyn FnOnce(&Desk) + Send>;

struct Work {
    queue: mpsc::Receiver<Job>,
    desk: Desk,
}

/// The way to the engine thread; nothing where it could not start.
static JOBS: OnceLock<Option<mpsc::Sender<Job>>> = OnceLock::new();

/// Runs `f` on the engine thread and waits for its result; a panic goes on in the caller.
///
/// One call runs at a time; while a sync waits for its server, others do. A call made by a transport might wait
/// for itself, and is refused.
pub(super) fn call<R: Send + 'static>(f: impl FnOnce(&Desk) -> R + Send + 'static) -> Result<R> {
    start(f)?.wait()
}

/// A call that runs on the engine thread.
pub(super) struct Started<R>(mpsc::Receiver<thread::Result<R>>);

impl<R> Started<R> {
    pub fn wait(self) -> Result<R> {
        match self.0.recv().map_err(|_| ended())? {
            Ok(value) => Ok(value),
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// As [`call`], without waiting yet.
pub(super) fn start<R: Send + 'static>(f: impl FnOnce(&Desk) -> R + Send + 'static) -> Result<Started<R>> {
    if OF_THE_ENGINE.get() {
        return Err(Error::new(Kind::Invalid, "a transport calls the engine while its own call runs")
            .with_hint("Call the engine after the sync has ended."));
    }
    let (reply, result) = mpsc::sync_channel(1);
    let job: Job = Box::new(move |desk| {
        let done = catch_unwind(AssertUnwindSafe(|| f(desk)));
        // Nobody may wait any more, where what ran meanwhile has panicked.
        let _ = reply.send(done);
    });
    jobs()?.send(job).map_err(|_| ended())?;
    Ok(Started(result))
}

fn ended() -> Error {
    Error::new(Kind::Internal, "the engine thread has ended").with_hint("Start the process again.")
}

/// The way to the engine thread, which the first call starts.
fn jobs() -> Result<&'static mpsc::Sender<Job>> {
    JOBS.get_or_init(start_thread).as_ref().ok_or_else(|| {
        Error::new(Kind::Unsupported, "the engine thread cannot start")
            .with_hint("Check the limits on threads and memory.")
    })
}

fn start_thread() -> Option<mpsc::Sender<Job>> {
    let (jobs, queue) = mpsc::channel::<Job>();
    let (ready, started) = mpsc::sync_channel(1);
    thread::Builder::new()
        .name("ocx-engine".to_owned())
        .stack_size(STACK_SIZE)
        .spawn(move || {
            OF_THE_ENGINE.set(true);
            // SAFETY: I3 - this thread alone gets a working directory and umask of its own; no other thread is affected.
            let own_directory =
                unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }.is_ok();
            let is_up = session::start(BUSY_TIMEOUT_MS).is_ok();
            let _ = ready.send(is_up);
            WORK.with(|work| {
                let work = work.get_or_init(|| Work { queue, desk: Desk::new(own_directory) });
                serve_until(&AtomicBool::new(false), Some(work));
            });
        })
        .ok()?;
    started.recv().ok()?.then_some(jobs)
}

/// Runs `wait` on a thread of its own, and meanwhile, on this engine thread, the calls that come (I10).
///
/// They run above the frames of the call that waits, each to its end: so the wait lasts until the one at work has
/// ended. A second sync among them would hold up the others.
pub(super) fn meanwhile<R: Send>(mut wait: impl FnMut() -> R + Send) -> thread::Result<R> {
    static WAITS: AtomicBool = AtomicBool::new(false);
    let jobs = JOBS.get().and_then(Option::as_ref);
    let mut result = None;
    if let (Some(jobs), false) = (jobs, WAITS.swap(true, Ordering::SeqCst)) {
        result = thread::scope(|scope| {
            let ended = Arc::new(AtomicBool::new(false));
            let has_ended = Arc::clone(&ended);
            let wait = &mut wait;
            let waiting = thread::Builder::new().name("ocx-wait".to_owned()).spawn_scoped(scope, move || {
                OF_THE_ENGINE.set(true);
                let result = catch_unwind(AssertUnwindSafe(wait));
                has_ended.store(true, Ordering::SeqCst);
                // Wakes the engine thread; its queue lives as long as it does.
                let _ = jobs.send(Box::new(|_| ()));
                result
            });
            let waiting = waiting.ok()?;
            WORK.with(|work| serve_until(&ended, work.get()));
            Some(waiting.join().and_then(|result| result))
        });
        WAITS.store(false, Ordering::SeqCst);
    }
    result.unwrap_or_else(|| catch_unwind(AssertUnwindSafe(wait)))
}

/// Runs the calls that come until the flag is set and a last one, which may do nothing, has come.
fn serve_until(ended: &AtomicBool, work: Option<&Work>) {
    let Some(work) = work else { return };
    while !ended.load(Ordering::SeqCst) {
        let Ok(job) = work.queue.recv() else { return };
        job(&work.desk);
    }
}

/// Whether the engine thread was ever wanted.
pub(super) fn has_started() -> bool {
    JOBS.get().is_some()
}
