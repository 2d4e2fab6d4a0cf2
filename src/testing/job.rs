//! The tests of one checkout, run one after another, also longer than a call waits for them.
//!
//! A call that stops waiting leaves the job running. The same call later joins it, or takes its result if the tree is
//! still the one it ended on. A checkout has one job at a time: within a process by this type, between processes by a
//! [`TestLock`].

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

use super::outcome::TAIL_LINES;
use super::test_lock::TestLock;
use super::{Declared, Outcome, Progress, Test, TestReport, TestResult, evidence, log};
use crate::cancel::Cancel;
use crate::checkout::{Checkout, Status};
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::process::{Command, Finished, Output, Stopper, Supervisor};

const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// How long a cancelled job may take to end: longer than the supervisor needs.
const END_WAIT: Duration = Duration::from_secs(12);

/// Which tests are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// All that are declared, in their order.
    All,
    /// One, by name.
    Named(String),
}

/// Who waits for tests, and how.
pub struct Waiter<'a> {
    /// How long at most.
    pub limit: Duration,
    /// Ends the tests when it is cancelled.
    pub cancel: &'a Cancel,
    /// Called about once a second while waiting.
    pub progress: &'a mut dyn FnMut(&Progress),
}

/// Runs the tests of one checkout. Dropping it ends what runs.
pub struct Jobs {
    checkout: Arc<Checkout>,
    supervisor: Supervisor,
    starting: Mutex<()>,
    current: Mutex<Option<Arc<Job>>>,
}

impl Jobs {
    /// Runs the tests of `checkout`, each under `supervisor`.
    #[must_use]
    pub fn new(checkout: Arc<Checkout>, supervisor: Supervisor) -> Self {
        Self { checkout, supervisor, starting: Mutex::default(), current: Mutex::default() }
    }

    /// Runs the tests, or joins the job that runs them already, and waits as `waiter` says.
    ///
    /// # Errors
    /// `NotFound` for a test that is not declared, `Busy` while other tests run, and the errors of reading the tree,
    /// starting the test and using the database.
    pub fn test(&self, declared: &Declared, which: &Which, waiter: &mut Waiter<'_>) -> Result<TestReport> {
        let tests = match which {
            Which::All => declared.tests().to_vec(),
            Which::Named(name) => vec![declared.test(name)?.clone()],
        };
        self.job(tests)?.attend(waiter)
    }

    /// Returns the test that runs in this process.
    #[must_use]
    pub fn running(&self) -> Option<Progress> {
        let job = self.current.lock().clone()?;
        job.progress()
    }

    /// Whether no job runs in this process.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.current.lock().as_ref().is_none_or(|job| job.has_ended())
    }

    /// Ends what runs. Waits until it is gone and its result is stored.
    pub fn stop(&self) {
        if let Some(job) = self.current.lock().take() {
            job.stop();
            job.wait(END_WAIT, None);
        }
    }

    fn job(&self, tests: Vec<Test>) -> Result<Arc<Job>> {
        let _one_at_a_time = self.starting.lock();
        let current = self.current.lock().clone();
        if let Some(job) = current.as_ref().filter(|job| !job.has_ended()) {
            return if job.tests == tests { Ok(Arc::clone(job)) } else { Err(busy(&job.shown())) };
        }
        let lock = self.lock()?;
        let before = files_to_test(&self.checkout)?;
        if let Some(job) = current.filter(|job| job.tests == tests && job.has_unreported(&before.tree_hash()))
        {
            return Ok(job);
        }
        let job = Arc::new(Job { tests, inner: Mutex::default(), changed: Condvar::new() });
        *self.current.lock() = Some(Arc::clone(&job));
        let runner = Runner {
            checkout: Arc::clone(&self.checkout),
            supervisor: self.supervisor.clone(),
            job: Arc::clone(&job),
            lock,
        };
        thread::Builder::new()
            .name("ocx-test".into())
            .spawn(move || runner.run(before))
            .map_err(|e| Error::io("cannot start a thread for the tests", e))?;
        Ok(job)
    }

    /// Takes the lock on the checkout's tests. If whoever had it ended without storing a result, its run still counts
    /// as running; it is stored as lost here.
    fn lock(&self) -> Result<TestLock> {
        let Some(lock) = TestLock::take(&self.checkout)? else {
            let other = self.checkout.state(log::running).ok().flatten();
            let what =
                other.map(|run| format!("test `{}` in process {}, since {}", run.test, run.pid, run.started));
            return Err(busy(&what.unwrap_or_else(|| "a test in another process".into())));
        };
        self.checkout.state(log::abandon)?;
        Ok(lock)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The checkout's files, if all of them can be saved: a pass counts for what a check-in would hold.
fn files_to_test(checkout: &Checkout) -> Result<Status> {
    let status = checkout.status()?;
    match status.refused.first() {
        None => Ok(status),
        Some((name, why)) => {
            Err(Error::new(Kind::Invalid, format!("a check-in cannot hold `{name}` ({why})"))
                .with_hint("Rename, remove or ignore it; a pass counts for what can be saved."))
        }
    }
}

fn busy(what: &str) -> Error {
    Error::new(Kind::Busy, format!("this checkout runs {what}"))
        .with_hint("Wait until it has ended, then run the test again.")
}

struct Job {
    tests: Vec<Test>,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    results: Vec<TestResult>,
    now: Option<Now>,
    /// The tree that was there when the last test ended.
    tree: Option<Hash>,
    failure: Option<Error>,
    stopping: bool,
    ended: bool,
    /// Whether a call has had the result.
    reported: bool,
}

struct Now {
    test: String,
    since: Instant,
    stopper: Stopper,
    output: Arc<Mutex<Output>>,
}

impl Now {
    fn progress(&self) -> Progress {
        let output = self.output.lock();
        let (lines, tail) = (output.count().lines(), output.tail(TAIL_LINES));
        Progress { test: self.test.clone(), elapsed: self.since.elapsed(), lines, tail }
    }
}

impl Job {
    fn has_ended(&self) -> bool {
        self.inner.lock().ended
    }

    fn progress(&self) -> Option<Progress> {
        self.inner.lock().now.as_ref().map(Now::progress)
    }

    /// Whether it ended on `tree` and no call has had its result.
    fn has_unreported(&self, tree: &Hash) -> bool {
        let inner = self.inner.lock();
        inner.ended && !inner.reported && inner.tree.as_ref() == Some(tree)
    }

    fn shown(&self) -> String {
        let names: Vec<_> = self.tests.iter().map(|test| format!("`{}`", test.name)).collect();
        format!("the tests {}", names.join(", "))
    }

    fn stop(&self) {
        let stopper = {
            let mut inner = self.inner.lock();
            inner.stopping = true;
            inner.now.as_ref().map(|now| now.stopper.clone())
        };
        if let Some(stopper) = stopper {
            stopper.stop();
        }
    }

    /// Waits until the job has ended or `cancel` is cancelled, for at most `limit`. Returns whether it has ended.
    fn wait(&self, limit: Duration, cancel: Option<&Cancel>) -> bool {
        let mut inner = self.inner.lock();
        let goes_on = |inner: &mut Inner| !inner.ended && !cancel.is_some_and(Cancel::is_cancelled);
        self.changed.wait_while_for(&mut inner, goes_on, limit);
        inner.ended
    }

    /// Has those who wait look again. Taking the lock makes sure that none is between its look and its wait.
    fn wake(&self) {
        drop(self.inner.lock());
        self.changed.notify_all();
    }

    fn attend(self: &Arc<Self>, waiter: &mut Waiter<'_>) -> Result<TestReport> {
        let job = Arc::clone(self);
        let _waking = waiter.cancel.on_cancel(move || job.wake());
        let start = Instant::now();
        let mut next = PROGRESS_EVERY;
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
                    (waiter.progress)(&now);
                }
            }
        }
    }

    fn report(&self) -> Result<TestReport> {
        let mut inner = self.inner.lock();
        inner.reported |= inner.ended;
        if let Some(failure) = &inner.failure {
            return Err(failure.clone());
        }
        let running = inner.now.as_ref().map(Now::progress);
        let known = inner.results.len() + usize::from(running.is_some());
        let not_run = self.tests.iter().skip(known).map(|test| test.name.clone()).collect();
        Ok(TestReport { results: inner.results.clone(), running, not_run, finished: inner.ended })
    }

    fn show(&self, test: &Test, stopper: Stopper, output: Arc<Mutex<Output>>) {
        let mut inner = self.inner.lock();
        // The job may have been stopped before this test had a stopper.
        if inner.stopping {
            stopper.stop();
        }
        inner.now = Some(Now { test: test.name.clone(), since: Instant::now(), stopper, output });
    }

    fn enter(&self, result: TestResult, tree: Option<Hash>) {
        let mut inner = self.inner.lock();
        inner.now = None;
        inner.tree = tree;
        inner.results.push(result);
    }

    fn finish(&self) {
        let mut inner = self.inner.lock();
        inner.now = None;
        inner.ended = true;
        drop(inner);
        self.changed.notify_all();
    }
}

/// What runs a job, in a thread of its own. It holds the lock on the checkout's tests.
struct Runner {
    checkout: Arc<Checkout>,
    supervisor: Supervisor,
    job: Arc<Job>,
    lock: TestLock,
}

impl Runner {
    fn run(self, mut before: Status) {
        let _ending = Ending(Arc::clone(&self.job));
        for test in &self.job.tests {
            if self.job.inner.lock().stopping {
                break;
            }
            match self.one(test, &before) {
                Ok(Some(after)) => before = after,
                Ok(None) => break,
                Err(e) => {
                    self.job.inner.lock().failure = Some(e);
                    break;
                }
            }
        }
        // Before the job counts as ended: whoever sees that may start the next.
        drop(self.lock);
    }

    /// Runs one test and stores its result. Returns the tree as it is afterwards, if it can be read.
    fn one(&self, test: &Test, before: &Status) -> Result<Option<Status>> {
        let command = Command::new(&test.command, self.checkout.root(), test.limit.duration());
        let tree = before.tree_hash();
        let id = self.checkout.state(|state| log::begin(state, test, &tree, &command.mark))?;
        let (finished, output) = match self.to_its_end(test, &command) {
            Ok(done) => done,
            Err(e) => {
                self.checkout.state(|state| log::lose(state, id, &e.to_string()))?;
                return Err(e);
            }
        };
        let (lines, tail) = (output.count().lines(), output.tail(TAIL_LINES));
        let kept = output.finish().map_err(|e| Error::io("cannot keep a test's output", e))?;
        let after = files_to_test(&self.checkout);
        let result = TestResult {
            test: test.clone(),
            tree,
            outcome: Outcome::from(&finished.exit),
            duration: finished.duration,
            lines,
            tail,
            left_behind: finished.left_behind.clone(),
            changes: after.as_ref().map(|after| after.changes_since(before)).unwrap_or_default(),
            unreadable: after.as_ref().err().map(ToString::to_string),
        };
        self.checkout.state(|state| {
            log::end(state, id, &finished, &kept)?;
            if result.on_one_tree() {
                evidence::record(state, &result.tree, test, &result.outcome)?;
            }
            Ok(())
        })?;
        let after = after.ok();
        self.job.enter(result, after.as_ref().map(Status::tree_hash));
        Ok(after)
    }

    fn to_its_end(&self, test: &Test, command: &Command) -> Result<(Finished, Output)> {
        let running = command.start(&self.supervisor)?;
        self.job.show(test, running.stopper(), running.output());
        running.wait()
    }
}

/// Ends the job also if its thread panics, so that no call waits for a thread that is gone.
struct Ending(Arc<Job>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.finish();
    }
}
