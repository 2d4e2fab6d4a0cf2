//! The bounded queue of calls that wait for their turn.
//!
//! A call that is no longer wanted is taken out of the queue. So it never runs, and its caller knows that nothing was
//! done. Only a call that has begun cannot be taken out.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::wait::Limits;
use crate::cancel::{Cancel, OnCancel};
use crate::error::{Error, Kind, Result};

type Job = Box<dyn FnOnce() + Send>;

/// Calls in the order in which they came. No lock is held while a call runs.
pub(super) struct Queue {
    jobs: Mutex<Jobs>,
    changed: Condvar,
    capacity: usize,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<(u64, Job)>,
    last: u64,
    closed: bool,
}

impl Queue {
    /// Makes a queue in which at most `capacity` calls wait.
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { jobs: Mutex::default(), changed: Condvar::new(), capacity })
    }

    /// Puts a call at the end. It waits and runs under the limits of this thread.
    pub fn start<R: Send + 'static>(
        self: &Arc<Self>,
        f: impl FnOnce() -> R + Send + 'static,
    ) -> Result<Started<R>> {
        let limits = Limits::current();
        let Limits { timeout, cancels } = limits.clone();
        if cancels.iter().any(Cancel::is_cancelled) {
            return Err(cancelled());
        }
        let (reply, result) = mpsc::sync_channel(1);
        let number = self.push(Box::new(move || {
            let done = catch_unwind(AssertUnwindSafe(|| limits.apply(f)));
            // Nobody waits any more if what ran beside it has panicked.
            let _ = reply.send(done);
        }))?;
        let cancelled = Arc::new(AtomicBool::new(false));
        let withdrawing = cancels.iter().map(|cancel| {
            let (queue, cancelled) = (Arc::clone(self), Arc::clone(&cancelled));
            cancel.on_cancel(move || {
                let job = queue.take_out(number);
                // The caller sees this when the job, and with it the sender of its result, is dropped.
                cancelled.fetch_or(job.is_some(), Ordering::SeqCst);
            })
        });
        Ok(Started {
            _withdrawing: withdrawing.collect(),
            queue: Arc::clone(self),
            number,
            timeout,
            deadline: Instant::now().checked_add(timeout),
            late: Cell::new(false),
            cancelled,
            result,
        })
    }

    fn push(&self, job: Job) -> Result<u64> {
        let mut jobs = self.jobs.lock();
        if jobs.closed {
            return Err(gone());
        }
        if jobs.waiting.len() >= self.capacity {
            return Err(busy(format!("{} calls wait for the engine already", self.capacity)));
        }
        jobs.last += 1;
        let number = jobs.last;
        jobs.waiting.push_back((number, job));
        drop(jobs);
        self.changed.notify_one();
        Ok(number)
    }

    /// Takes a call out that has not begun.
    fn take_out(&self, number: u64) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        let at = jobs.waiting.iter().position(|(waiting, _)| *waiting == number)?;
        jobs.waiting.remove(at).map(|(_, job)| job)
    }

    /// Runs the calls that come, for ever.
    pub fn serve(&self) {
        loop {
            let job = self.next();
            job();
        }
    }

    fn next(&self) -> Job {
        let mut jobs = self.jobs.lock();
        loop {
            if let Some((_, job)) = jobs.waiting.pop_front() {
                return job;
            }
            self.changed.wait(&mut jobs);
        }
    }

    /// Refuses what waits and what comes: nobody serves any more.
    pub fn close(&self) {
        let waiting = {
            let mut jobs = self.jobs.lock();
            jobs.closed = true;
            std::mem::take(&mut jobs.waiting)
        };
        drop(waiting);
    }
}

/// A call in the queue, or one that has begun.
pub(super) struct Started<R> {
    /// Taken back first, so that no cancel looks for a call that has ended.
    _withdrawing: Vec<OnCancel>,
    queue: Arc<Queue>,
    number: u64,
    timeout: Duration,
    /// When the wait ends; never, where the clock has no such time.
    deadline: Option<Instant>,
    late: Cell<bool>,
    cancelled: Arc<AtomicBool>,
    result: mpsc::Receiver<thread::Result<R>>,
}

impl<R> Started<R> {
    /// Waits for the result. A panic of the call goes on here.
    ///
    /// # Errors
    /// [`Kind::Busy`] or [`Kind::Cancelled`] if the call was taken out before it began.
    pub fn wait(self) -> Result<R> {
        match self.receive(&self.result) {
            Some(Ok(value)) => Ok(value),
            Some(Err(panic)) => resume_unwind(panic),
            None if self.late.get() => Err(busy(format!(
                "the engine is busy: no turn came within {} seconds",
                self.timeout.as_secs_f32()
            ))),
            None if self.cancelled.load(Ordering::SeqCst) => Err(cancelled()),
            None => Err(gone()),
        }
    }

    /// Waits for what the call sends while it runs. Takes the call out if it has not begun by its deadline.
    ///
    /// Returns nothing if the call ends, or is taken out, before it sends.
    pub fn receive<T>(&self, from: &mpsc::Receiver<T>) -> Option<T> {
        let left = self.deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        match from.recv_timeout(left) {
            Ok(value) => return Some(value),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if self.queue.take_out(self.number).is_some() {
            self.late.set(true);
            return None;
        }
        from.recv().ok()
    }
}

fn busy(what: String) -> Error {
    Error::new(Kind::Busy, what).with_hint("Call again in a moment; nothing was done.")
}

fn cancelled() -> Error {
    Error::new(Kind::Cancelled, "the call was cancelled before it began; nothing was done")
}

fn gone() -> Error {
    Error::new(Kind::Internal, "the engine thread has ended").with_hint("Start the process again.")
}

#[cfg(test)]
mod tests {
    use super::super::wait::{with_cancel, with_timeout};
    use super::*;

    /// A queue whose thread is held by a first call.
    struct Held {
        queue: Arc<Queue>,
        release: mpsc::Sender<()>,
        first: Started<()>,
    }

    fn held(capacity: usize) -> Held {
        let queue = Queue::new(capacity);
        let serving = Arc::clone(&queue);
        thread::spawn(move || serving.serve());
        let (release, released) = mpsc::channel();
        let (begun, has_begun) = mpsc::channel();
        let first = queue.start(move || {
            begun.send(()).unwrap();
            released.recv().unwrap();
        });
        has_begun.recv().unwrap();
        Held { queue, release, first: first.unwrap() }
    }

    impl Held {
        /// Lets the first call end, and sees that the next one runs.
        fn goes_on(self) -> Arc<Queue> {
            self.release.send(()).unwrap();
            self.first.wait().unwrap();
            assert_eq!(self.queue.start(|| 7).unwrap().wait().unwrap(), 7);
            self.queue
        }
    }

    /// What a call does, so that it is seen when it has run.
    fn marked() -> (Arc<AtomicBool>, impl FnOnce() + Send + 'static) {
        let mark = Arc::new(AtomicBool::new(false));
        let marks = Arc::clone(&mark);
        (mark, move || marks.store(true, Ordering::SeqCst))
    }

    #[track_caller]
    fn refused<R>(done: Result<R>, kind: Kind) {
        let error = done.err().expect("a refusal");
        assert_eq!(error.kind(), kind, "{error}");
    }

    #[test]
    fn a_full_queue_refuses_the_next_call_and_keeps_those_that_wait() {
        let held = held(2);
        let (marks, calls): (Vec<_>, Vec<_>) = (0..2).map(|_| marked()).unzip();
        let waiting: Vec<_> = calls.into_iter().map(|call| held.queue.start(call).unwrap()).collect();
        let (never, call) = marked();
        refused(held.queue.start(call), Kind::Busy);
        held.goes_on();
        for call in waiting {
            call.wait().unwrap();
        }
        assert!(marks.iter().all(|mark| mark.load(Ordering::SeqCst)));
        assert!(!never.load(Ordering::SeqCst));
    }

    #[test]
    fn a_call_that_has_not_begun_at_its_deadline_is_busy_and_never_runs() {
        let held = held(2);
        let (mark, call) = marked();
        let late = with_timeout(Duration::from_millis(20), || held.queue.start(call).unwrap().wait());
        refused(late, Kind::Busy);
        held.goes_on();
        assert!(!mark.load(Ordering::SeqCst));
    }

    #[test]
    fn a_call_that_has_begun_runs_past_its_deadline_to_its_end() {
        let queue = held(2).goes_on();
        let (begun, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let call = with_timeout(Duration::from_millis(20), || {
            queue.start(move || {
                begun.send(()).unwrap();
                released.recv().is_err()
            })
        });
        has_begun.recv().unwrap();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(60));
            drop(release);
        });
        assert!(call.unwrap().wait().unwrap());
    }

    #[test]
    fn a_cancel_takes_a_waiting_call_out_for_good() {
        let held = held(2);
        let (cancel, inner) = (Cancel::new(), Cancel::new());
        let (mark, call) = marked();
        let waiting = with_cancel(&cancel, || with_cancel(&inner, || held.queue.start(call).unwrap()));
        cancel.cancel();
        assert!(held.queue.jobs.lock().waiting.is_empty());
        refused(waiting.wait(), Kind::Cancelled);
        let (second, call) = marked();
        refused(with_cancel(&cancel, || held.queue.start(call)), Kind::Cancelled);
        held.goes_on();
        assert!(!mark.load(Ordering::SeqCst) && !second.load(Ordering::SeqCst));
    }

    #[test]
    fn a_cancel_while_a_call_runs_changes_nothing() {
        let (queue, cancel) = (held(1).goes_on(), Cancel::new());
        let cancels = cancel.clone();
        let call = with_cancel(&cancel, || queue.start(move || cancels.cancel()).unwrap());
        call.wait().unwrap();
    }

    #[test]
    fn a_queue_that_nobody_serves_any_more_refuses_what_waits_and_what_comes() {
        let queue = Queue::new(2);
        let waiting = queue.start(|| ()).unwrap();
        queue.close();
        refused(waiting.wait(), Kind::Internal);
        refused(queue.start(|| ()), Kind::Internal);
    }
}
