//! Some tests that run on one tree, and the calls that wait for them.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::outcome::TAIL_LINES;
use super::{Activity, Progress, Test, TestReport, TestResult};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::name::Hash;
use crate::process::{Output, Stopper};

/// How often a call that waits is told how far it is.
pub(super) const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// How long a cancelled job may take to end: longer than the supervisor needs.
pub(super) const END_WAIT: Duration = Duration::from_secs(12);

/// Who waits for tests, and how.
pub struct Waiter<'a> {
    /// How long at most.
    pub limit: Duration,
    /// Ends the tests when it is cancelled.
    pub cancel: &'a Cancel,
    /// Called about once a second while waiting.
    pub progress: &'a mut dyn FnMut(&Activity),
}

/// Some tests that run on one tree.
pub(super) struct Job {
    pub tests: Vec<Test>,
    pub tree: Hash,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    results: Vec<TestResult>,
    now: Option<Now>,
    failure: Option<Error>,
    stopping: bool,
    ended: bool,
    /// Whether a call has had the result.
    reported: bool,
    /// How many calls wait for it.
    waiting: usize,
}

/// The command that runs.
struct Now {
    test: String,
    fetching: bool,
    since: Instant,
    stopper: Stopper,
    output: Arc<Mutex<Output>>,
}

impl Job {
    pub fn new(tests: Vec<Test>, tree: Hash) -> Self {
        Self { tests, tree, inner: Mutex::default(), changed: Condvar::new() }
    }

    pub fn has_ended(&self) -> bool {
        self.inner.lock().ended
    }

    /// Whether a call for the same can join it: it runs, or no call has had its result.
    pub fn is_of_use(&self) -> bool {
        let inner = self.inner.lock();
        if inner.ended { !inner.reported } else { !inner.stopping }
    }

    pub fn progress(&self) -> Option<Progress> {
        self.inner.lock().now.as_ref().map(|now| self.progress_of(now))
    }

    fn progress_of(&self, now: &Now) -> Progress {
        let output = now.output.lock();
        let (lines, tail) = (output.count().lines(), output.tail(TAIL_LINES));
        let (test, elapsed) = (now.test.clone(), now.since.elapsed());
        Progress { test, fetching: now.fetching, tree: self.tree, elapsed, lines, tail }
    }

    pub fn shown(&self) -> String {
        let names: Vec<_> = self.tests.iter().map(|test| format!("`{}`", test.name)).collect();
        format!("the tests {} on tree {}", names.join(", "), self.tree.short())
    }

    pub fn stop(&self) {
        let stopper = {
            let mut inner = self.inner.lock();
            inner.stopping = true;
            inner.now.as_ref().map(|now| now.stopper.clone())
        };
        if let Some(stopper) = stopper {
            stopper.stop();
        }
    }

    /// Ends the job if nobody waits for it: another call needs its place.
    pub fn make_room(&self) {
        if self.inner.lock().waiting == 0 {
            self.stop();
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.inner.lock().stopping
    }

    /// Waits until the job has ended or `cancel` is cancelled, for at most `limit`. Returns whether it has ended.
    pub fn wait(&self, limit: Duration, cancel: Option<&Cancel>) -> bool {
        let mut inner = self.inner.lock();
        let goes_on = |inner: &mut Inner| !inner.ended && !cancel.is_some_and(Cancel::is_cancelled);
        self.changed.wait_while_for(&mut inner, goes_on, limit);
        inner.ended
    }

    /// Has those who wait look again. Taking the lock makes sure that none is between its look and its wait.
    pub fn wake(&self) {
        drop(self.inner.lock());
        self.changed.notify_all();
    }

    fn report(&self) -> Result<TestReport> {
        let mut inner = self.inner.lock();
        inner.reported |= inner.ended;
        if let Some(failure) = &inner.failure {
            return Err(failure.clone());
        }
        let now = inner.now.as_ref().map(|now| self.progress_of(now));
        let known = inner.results.len() + usize::from(now.is_some());
        let not_run = self.tests.iter().skip(known).map(|test| test.name.clone()).collect();
        let (results, finished) = (inner.results.clone(), inner.ended);
        Ok(TestReport { results, now: now.map(Activity::Running), not_run, finished })
    }

    pub fn show(&self, test: &Test, fetching: bool, stopper: Stopper, output: Arc<Mutex<Output>>) {
        let mut inner = self.inner.lock();
        // The job may have been stopped before this test had a stopper.
        if inner.stopping {
            stopper.stop();
        }
        inner.now = Some(Now { test: test.name.clone(), fetching, since: Instant::now(), stopper, output });
    }

    pub fn enter(&self, result: TestResult) {
        let mut inner = self.inner.lock();
        inner.now = None;
        inner.results.push(result);
    }

    pub fn fail(&self, error: Error) {
        self.inner.lock().failure = Some(error);
    }

    pub fn finish(&self) {
        let mut inner = self.inner.lock();
        inner.now = None;
        inner.ended = true;
        drop(inner);
        self.changed.notify_all();
    }
}

/// A call that waits for a job, as long as it waits.
pub(super) struct Attendance(Arc<Job>);

impl Attendance {
    pub fn of(job: Arc<Job>) -> Self {
        job.inner.lock().waiting += 1;
        Self(job)
    }

    /// Waits as `waiter` says, from `start` on.
    pub fn wait_for(self, waiter: &mut Waiter<'_>, start: Instant) -> Result<TestReport> {
        let job = Arc::clone(&self.0);
        let _waking = waiter.cancel.on_cancel(move || job.wake());
        let mut next = start.elapsed() + PROGRESS_EVERY;
        loop {
            let elapsed = start.elapsed();
            let left = waiter.limit.saturating_sub(elapsed);
            let ended = self.wait(left.min(next.saturating_sub(elapsed)), Some(waiter.cancel));
            if waiter.cancel.is_cancelled() && !ended {
                self.stop();
                self.wait(END_WAIT, None);
                return self.report();
            }
            if ended || start.elapsed() >= waiter.limit {
                return self.report();
            }
            if start.elapsed() >= next {
                next = start.elapsed() + PROGRESS_EVERY;
                if let Some(now) = self.progress() {
                    (waiter.progress)(&Activity::Running(now));
                }
            }
        }
    }
}

impl Deref for Attendance {
    type Target = Job;

    fn deref(&self) -> &Job {
        &self.0
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.0.inner.lock().waiting -= 1;
    }
}
