//! The tests of one checkout, run one after another, also longer than a call waits for them.
//!
//! A call that stops waiting leaves the job running. The same call later joins it, or takes its result. A checkout has
//! one job at a time: within a process by this type, between processes by a [`TestLock`](super::state::TestLock). A call
//! for other files or other tests waits until the job has ended; a job that nobody waits for any more makes room.

use std::{
    sync::Arc,
    thread::{self, JoinHandle, sleep},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::beside::Beside;
use super::evidence::{self, Subject, TestEvidence};
use super::job::{Attendance, END_WAIT, Job, PROGRESS_EVERY};
use super::log::{self, LogEntry, LogPart};
use super::room::TreesTaken;
use super::runner::{Owner, Runner};
use super::state::{CheckoutState, StateFolder};
use super::test_tree::TestTree;
use super::{Activity, Declared, Progress, Test, TestReport, Waiter};
use crate::cancel::Cancel;
use crate::checkout::{Checkout, Status};
use crate::error::{Error, Kind, Result};
use crate::process::Supervisor;

/// How soon, and how seldom at most, the tests of another process are looked at again.
const POLL: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(250)];

/// Which tests are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// All that are declared, in their order.
    All,
    /// One, by name.
    Named(String),
}

/// Runs the tests of one checkout. Dropping it ends what runs.
pub struct Jobs {
    checkout: Arc<Checkout>,
    supervisor: Supervisor,
    folder: StateFolder,
    state: Mutex<Option<Arc<CheckoutState>>>,
    starting: Mutex<()>,
    current: Mutex<Option<Arc<Job>>>,
    runner: Mutex<Option<JoinHandle<()>>>,
}

impl Jobs {
    /// Runs the tests of `checkout`, each under `supervisor`, and keeps what is known of them in `folder`.
    #[must_use]
    pub fn new(checkout: Arc<Checkout>, supervisor: Supervisor, folder: StateFolder) -> Self {
        Self {
            checkout,
            supervisor,
            folder,
            state: Mutex::default(),
            starting: Mutex::default(),
            current: Mutex::default(),
            runner: Mutex::default(),
        }
    }

    /// Runs the tests on exactly what a check-in would hold now, or joins the job that does so already, and waits as
    /// `waiter` says.
    ///
    /// # Errors
    /// `NotFound` for a test that is not declared, and the errors of reading the tree, starting the test and using the
    /// state folder.
    pub fn test(&self, declared: &Declared, which: &Which, waiter: &mut Waiter<'_>) -> Result<TestReport> {
        let tests = match which {
            Which::All => declared.tests().to_vec(),
            Which::Named(name) => vec![declared.test(name)?.clone()],
        };
        let started = Instant::now();
        let mut told = started;
        let mut poll = POLL[0];
        loop {
            let busy = match self.job(declared, &tests)? {
                Turn::Ours(job) => return job.wait_for(waiter, started),
                Turn::Others(busy) => busy,
            };
            if waiter.cancel.is_cancelled() {
                return Err(Error::new(Kind::Cancelled, "cancelled while other tests of this checkout ran"));
            }
            let elapsed = started.elapsed();
            if elapsed >= waiter.limit {
                let not_run = tests.iter().map(|test| test.name.clone()).collect();
                let now = Some(Activity::Waiting { on: busy.shown(), elapsed });
                return Ok(TestReport { results: Vec::new(), now, not_run, finished: false });
            }
            if told.elapsed() >= PROGRESS_EVERY {
                told = Instant::now();
                (waiter.progress)(&Activity::Waiting { on: busy.shown(), elapsed });
            }
            busy.wait(waiter.limit.saturating_sub(elapsed).min(PROGRESS_EVERY), poll, waiter.cancel);
            poll = (poll * 2).min(POLL[1]);
        }
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

    /// What is known of each of `tests` on exactly the files of `status`, with all that it has beside them as that is now.
    ///
    /// # Errors
    /// Those of reading the state folder.
    pub fn evidence(&self, tests: &[Test], status: &Status) -> Result<Vec<TestEvidence>> {
        let (state, tree) = (self.existing_state()?, status.tree_hash());
        let pass = |test: &Test| {
            let Some(state) = &state else { return Ok(None) };
            // What is needed beside the tree and is not there makes no pass.
            let Ok(beside) = Beside::of(test, &self.checkout, &status.files) else { return Ok(None) };
            let subject = Subject { tree, test, beside: beside.digest() };
            state.with(|db| evidence::passed(db, &subject))
        };
        tests.iter().map(|test| Ok(TestEvidence { test: test.name.clone(), pass: pass(test)? })).collect()
    }

    /// The latest run of each test, the newest first.
    ///
    /// # Errors
    /// Those of reading the state folder.
    pub fn latest(&self) -> Result<Vec<LogEntry>> {
        self.existing_state()?.map_or_else(|| Ok(Vec::new()), |state| state.with(log::latest))
    }

    /// A stretch of the last log of a test.
    ///
    /// # Errors
    /// As [`log::read`].
    pub fn log(&self, test: &str, from: u64, count: usize) -> Result<LogPart> {
        match self.existing_state()? {
            Some(state) => state.with(|db| log::read(db, test, from, count)),
            None => Err(log::never_ran(test)),
        }
    }

    /// What the test trees of this checkout, and of all, take on the disk.
    ///
    /// # Errors
    /// Those of reading the state folder.
    pub fn taken(&self) -> Result<TreesTaken> {
        Ok(self.folder.taken(self.existing_state()?.as_deref()))
    }

    fn existing_state(&self) -> Result<Option<Arc<CheckoutState>>> {
        let mut state = self.state.lock();
        if state.is_none() {
            *state = self.folder.existing(&self.checkout)?.map(Arc::new);
        }
        Ok(state.clone())
    }

    fn made_state(&self) -> Result<Arc<CheckoutState>> {
        let mut state = self.state.lock();
        if let Some(state) = state.as_ref().filter(|state| state.is_there()) {
            return Ok(Arc::clone(state));
        }
        let made = Arc::new(self.folder.made(&self.checkout)?);
        *state = Some(Arc::clone(&made));
        Ok(made)
    }

    /// The job that runs these tests on the files as they are, started if need be, or what has to end before it.
    fn job(&self, declared: &Declared, tests: &[Test]) -> Result<Turn> {
        let _one_at_a_time = self.starting.lock();
        let status = files_to_test(&self.checkout)?;
        let tree = status.tree_hash();
        let current = self.current.lock().clone();
        if let Some(job) = current {
            if job.tests == tests && job.tree == tree && job.is_of_use() {
                return Ok(Turn::Ours(Attendance::of(job)));
            }
            if !job.has_ended() {
                job.make_room();
                return Ok(Turn::Others(Busy::Here(job)));
            }
        }
        let state = self.made_state()?;
        let Some(lock) = state.lock()? else {
            let other = state.with(log::running).ok().flatten();
            let what =
                other.map(|run| format!("test `{}` of process {}, since {}", run.test, run.pid, run.started));
            return Ok(Turn::Others(Busy::Elsewhere(
                what.unwrap_or_else(|| "a test of another process".into()),
            )));
        };
        if let Err(e) = state.with(log::abandon) {
            if e.kind() != Kind::DiskFull {
                return Err(e);
            }
            // What tests have left may fill the disk, so that nothing can be noted.
            TestTree::open(&state)?.empty()?;
            state.with(log::abandon)?;
        }
        let job = Arc::new(Job::new(tests.to_vec(), tree));
        let attendance = Attendance::of(Arc::clone(&job));
        *self.current.lock() = Some(Arc::clone(&job));
        let (checkout, supervisor) = (Arc::clone(&self.checkout), self.supervisor.clone());
        let owner = Owner { checkout, supervisor, state, folder: self.folder.clone() };
        let runner = Runner::new(job, owner, declared, status);
        let runner = thread::Builder::new()
            .name("ocx-test".into())
            .spawn(move || runner.run(lock))
            .map_err(|e| Error::io("cannot start a thread for the tests", e))?;
        *self.runner.lock() = Some(runner);
        Ok(Turn::Ours(attendance))
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.stop();
        // The runner still notes what the tests have left. A program that ends at once would cut it short.
        if let Some(runner) = self.runner.lock().take() {
            // If it panicked, its job has ended without a result, and the caller was told.
            let _ended = runner.join();
        }
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

/// Whose turn it is.
enum Turn {
    Ours(Attendance),
    Others(Busy),
}

/// Tests that run first.
enum Busy {
    Here(Arc<Job>),
    Elsewhere(String),
}

impl Busy {
    fn shown(&self) -> String {
        match self {
            Self::Here(job) => job.shown(),
            Self::Elsewhere(what) => what.clone(),
        }
    }

    fn wait(&self, limit: Duration, poll: Duration, cancel: &Cancel) {
        match self {
            Self::Here(job) => {
                let waking = Arc::clone(job);
                let _waking = cancel.on_cancel(move || waking.wake());
                job.wait(limit, Some(cancel));
                // A job counts as ended a moment before it gives its lock back.
                sleep(Duration::from_millis(1));
            }
            Self::Elsewhere(_) => sleep(poll.min(limit)),
        }
    }
}
