//! The tests of one checkout, run one after another, also longer than a call waits for them.
//!
//! A call that stops waiting leaves the job running; the same call later joins it, or fetches its
//! result when the tree is still the one it ended on. One job at a time in a checkout: within a
//! process by this type, between processes by a claim in its database.

use std::{
    path::Path,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::cancel::Cancel;
use rusqlite::Connection;

use super::claim::Claim;
use super::{Declared, Progress, Snapshot, Test, TestReport, TestResult, evidence, log};
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::process::command::{Stopper, TAIL, lock};
use crate::process::{Command, Ended, Kept, Leash, Output};

/// How often a waiting call looks at its cancel token.
const TICK: Duration = Duration::from_millis(50);
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// How long a cancelled job has to end: longer than the leash needs.
const END_WAIT: Duration = Duration::from_secs(12);

/// What tests run on: a checkout, seen from here.
pub trait Ground: Send + Sync + 'static {
    /// The folder that tests run in.
    fn root(&self) -> &Path;
    /// What the tree holds now.
    ///
    /// # Errors
    /// When the tree cannot be read, or holds what a check-in cannot store.
    fn snapshot(&self) -> Result<Snapshot>;
    /// Hands the database that keeps the checkout's state to `act`.
    ///
    /// # Errors
    /// Those of `act` and of opening the database.
    fn state<T>(&self, act: impl FnOnce(&Connection) -> Result<T>) -> Result<T>;
}

/// Which tests are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// All that are declared, in their order.
    All,
    /// One, by name.
    Named(String),
}

/// How a call waits.
pub struct Ask<'a> {
    /// How long at most.
    pub wait: Duration,
    /// Ends the tests when it is cancelled.
    pub cancel: &'a Cancel,
    /// Called about once a second while waiting.
    pub progress: &'a mut dyn FnMut(&Progress),
}

/// Runs the tests of one checkout. Dropping it ends what runs.
pub struct Jobs<G> {
    ground: Arc<G>,
    leash: Leash,
    starting: Mutex<()>,
    current: Mutex<Option<Arc<Job>>>,
}

impl<G: Ground> Jobs<G> {
    /// Runs tests on `ground`, each on a `leash`.
    pub fn new(ground: Arc<G>, leash: Leash) -> Self {
        Self { ground, leash, starting: Mutex::default(), current: Mutex::default() }
    }

    /// Runs the tests, or joins the job that runs them already, and waits as `ask` says.
    ///
    /// # Errors
    /// `NotFound` for a test that is not declared, `Busy` while others run, and what reading the
    /// tree, starting the test or the database gives.
    pub fn test(&self, declared: &Declared, which: &Which, ask: &mut Ask<'_>) -> Result<TestReport> {
        let tests = match which {
            Which::All => declared.tests().to_vec(),
            Which::Named(name) => vec![declared.test(name)?.clone()],
        };
        self.job(tests)?.attend(ask)
    }
}

impl<G> Jobs<G> {
    /// The test that runs in this process.
    #[must_use]
    pub fn running(&self) -> Option<Progress> {
        let job = lock(&self.current).clone()?;
        let inner = lock(&job.inner);
        inner.now.as_ref().map(Now::progress)
    }

    /// Whether no job runs in this process.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        lock(&self.current).as_ref().is_none_or(|job| job.has_ended())
    }

    /// Ends what runs and waits until it is gone and entered.
    pub fn stop(&self) {
        if let Some(job) = lock(&self.current).take() {
            job.stop();
            job.wait_for_end(END_WAIT);
        }
    }
}

impl<G: Ground> Jobs<G> {
    fn job(&self, tests: Vec<Test>) -> Result<Arc<Job>> {
        let _one_at_a_time = lock(&self.starting);
        let current = lock(&self.current).clone();
        if let Some(job) = current.as_ref().filter(|job| !job.has_ended()) {
            return if job.tests == tests { Ok(Arc::clone(job)) } else { Err(busy(&job.shown())) };
        }
        let held = self.hold()?;
        let before = self.ground.snapshot()?;
        if let Some(job) = current.filter(|job| job.tests == tests && job.is_untold_of(&before.tree)) {
            return Ok(job);
        }
        let job = Arc::new(Job { tests, inner: Mutex::default(), changed: Condvar::new() });
        *lock(&self.current) = Some(Arc::clone(&job));
        let work =
            Work { ground: Arc::clone(&self.ground), leash: self.leash.clone(), job: Arc::clone(&job), held };
        thread::Builder::new()
            .name("ocx-test".into())
            .spawn(move || work.run(before))
            .map_err(|e| Error::io("cannot start a thread for the tests", e))?;
        Ok(job)
    }

    /// Takes the lock on the checkout's tests. Whoever had it and ended without a word left its run
    /// entered as running: that is put right here.
    fn hold(&self) -> Result<Claim<G>> {
        let Some(claim) = Claim::take(&self.ground)? else {
            let other = self.ground.state(log::running).ok().flatten();
            let what =
                other.map(|run| format!("test `{}` in process {}, since {}", run.test, run.pid, run.started));
            return Err(busy(&what.unwrap_or_else(|| "a test in another process".into())));
        };
        self.ground.state(log::abandon)?;
        Ok(claim)
    }
}

impl<G> Drop for Jobs<G> {
    fn drop(&mut self) {
        self.stop();
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
    /// The tree that the last test ended on.
    tree: Option<Hash>,
    failure: Option<Error>,
    stopping: bool,
    ended: bool,
    /// Whether a call has had the result.
    told: bool,
}

struct Now {
    test: String,
    since: Instant,
    stopper: Stopper,
    output: Arc<Mutex<Output>>,
}

impl Now {
    fn progress(&self) -> Progress {
        let output = lock(&self.output);
        let (lines, tail) = (output.count().lines(), output.tail(TAIL));
        Progress { test: self.test.clone(), elapsed: self.since.elapsed(), lines, tail }
    }
}

impl Job {
    fn has_ended(&self) -> bool {
        lock(&self.inner).ended
    }

    /// Whether it ended on `tree` and nobody has had its result.
    fn is_untold_of(&self, tree: &Hash) -> bool {
        let inner = lock(&self.inner);
        inner.ended && !inner.told && inner.tree.as_ref() == Some(tree)
    }

    fn shown(&self) -> String {
        let names: Vec<_> = self.tests.iter().map(|test| format!("`{}`", test.name)).collect();
        format!("the tests {}", names.join(", "))
    }

    fn stop(&self) {
        let stopper = {
            let mut inner = lock(&self.inner);
            inner.stopping = true;
            inner.now.as_ref().map(|now| now.stopper.clone())
        };
        if let Some(stopper) = stopper {
            stopper.stop();
        }
    }

    fn wait_for_end(&self, limit: Duration) -> bool {
        let inner = lock(&self.inner);
        let waited = self.changed.wait_timeout_while(inner, limit, |inner| !inner.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    fn attend(&self, ask: &mut Ask<'_>) -> Result<TestReport> {
        let start = Instant::now();
        let mut next = PROGRESS_EVERY;
        loop {
            let left = ask.wait.saturating_sub(start.elapsed());
            let ended = self.wait_for_end(TICK.min(left));
            if ask.cancel.is_cancelled() && !ended {
                self.stop();
                self.wait_for_end(END_WAIT);
                return self.report();
            }
            if ended || left.is_zero() {
                return self.report();
            }
            if start.elapsed() >= next {
                next = start.elapsed() + PROGRESS_EVERY;
                let now = lock(&self.inner).now.as_ref().map(Now::progress);
                if let Some(now) = now {
                    (ask.progress)(&now);
                }
            }
        }
    }

    fn report(&self) -> Result<TestReport> {
        let mut inner = lock(&self.inner);
        inner.told |= inner.ended;
        if let Some(failure) = &inner.failure {
            return Err(failure.clone());
        }
        let running = inner.now.as_ref().map(Now::progress);
        let known = inner.results.len() + usize::from(running.is_some());
        let not_run = self.tests.iter().skip(known).map(|test| test.name.clone()).collect();
        Ok(TestReport { results: inner.results.clone(), running, not_run, finished: inner.ended })
    }
}

/// The thread that runs a job. It holds the lock on the checkout's tests.
struct Work<G: Ground> {
    ground: Arc<G>,
    leash: Leash,
    job: Arc<Job>,
    held: Claim<G>,
}

impl<G: Ground> Work<G> {
    fn run(self, mut before: Snapshot) {
        let _ending = Ending(Arc::clone(&self.job));
        for test in &self.job.tests {
            if lock(&self.job.inner).stopping {
                break;
            }
            match self.one(test, &before) {
                Ok(Some(after)) => before = after,
                Ok(None) => break,
                Err(e) => {
                    lock(&self.job.inner).failure = Some(e);
                    break;
                }
            }
        }
        // Before the job counts as ended: whoever sees that may start the next.
        drop(self.held);
    }

    /// Runs one test and enters its result; gives the tree as it is afterwards, if it can be read.
    fn one(&self, test: &Test, before: &Snapshot) -> Result<Option<Snapshot>> {
        let command = Command::new(&test.command, self.ground.root(), test.limit.duration());
        let id = self.ground.state(|state| log::begin(state, test, &before.tree, &command.mark))?;
        let (ended, kept) = match self.to_its_end(test, &command) {
            Ok(done) => done,
            Err(e) => {
                self.ground.state(|state| log::lose(state, id, &e.to_string()))?;
                return Err(e);
            }
        };
        let after = self.ground.snapshot();
        let changes = after.as_ref().map(|after| before.changes(after)).unwrap_or_default();
        let unreadable = after.as_ref().err().map(ToString::to_string);
        let result = TestResult { test: test.clone(), tree: before.tree, ended, changes, unreadable };
        self.ground.state(|state| {
            log::end(state, id, &result.ended, &kept)?;
            if result.on_one_tree() {
                evidence::record(state, &result.tree, test, &result.ended.outcome)?;
            }
            Ok(())
        })?;
        let after = after.ok();
        self.job.enter(result, after.as_ref().map(|after| after.tree));
        Ok(after)
    }

    fn to_its_end(&self, test: &Test, command: &Command) -> Result<(Ended, Kept)> {
        let started = command.start(&self.leash)?;
        self.job.show(test, started.stopper(), started.output());
        started.wait()
    }
}

/// Ends the job also when a snapshot panics, so that no call waits for a thread that is gone.
struct Ending(Arc<Job>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.finish();
    }
}

impl Job {
    fn show(&self, test: &Test, stopper: Stopper, output: Arc<Mutex<Output>>) {
        let mut inner = lock(&self.inner);
        // Whoever stopped the job before this test had a stopper is heard now.
        if inner.stopping {
            stopper.stop();
        }
        inner.now = Some(Now { test: test.name.clone(), since: Instant::now(), stopper, output });
    }

    fn enter(&self, result: TestResult, tree: Option<Hash>) {
        let mut inner = lock(&self.inner);
        inner.now = None;
        inner.tree = tree;
        inner.results.push(result);
    }

    fn finish(&self) {
        let mut inner = lock(&self.inner);
        inner.now = None;
        inner.ended = true;
        drop(inner);
        self.changed.notify_all();
    }
}
