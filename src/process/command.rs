//! One test command: started on a leash, its output read to the end, its outcome told.
//!
//! The command gets no terminal, no input, no descriptor but its output, a session of its own and
//! the variables that [`Environment`] lets through. When it has ended, on whatever way, no process
//! of it is left (how: [`leash`](super::leash)).

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::{BuildHasher, Hasher},
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    path::PathBuf,
    process::{Child, ChildStdin, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::environment::Environment;
use super::leash::{CANCEL, End, GRACE, Leash, Order, Report};
use super::output::{Kept, Output};
use super::processes::{self, Leftover, MARK};
use crate::error::{Error, Result};

/// How many lines of output a result carries.
pub const TAIL: usize = 100;
/// How much longer than its own limit the leash may take before it is ended itself.
const SLACK: Duration = Duration::from_secs(8);
/// How long output may still come once the leash has ended.
const DRAIN: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(200);

/// A test command, ready to start.
///
/// ```no_run
/// use std::time::Duration;
/// use ocx::process::{Command, Leash, Outcome};
/// let command = Command::new("cargo test | tail -5", "/home/me/checkout", Duration::from_mins(10));
/// let (ended, _log) = command.start(&Leash::at("/usr/bin/ocx"))?.wait()?;
/// assert_eq!(ended.outcome, Outcome::Passed, "{}", ended.tail.join("\n"));
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Command {
    /// What the shell is given.
    pub text: String,
    /// The folder it runs in.
    pub root: PathBuf,
    /// How long it may run.
    pub limit: Duration,
    /// Its variables.
    pub environment: Environment,
    /// The mark that its processes carry.
    pub mark: Mark,
}

/// What tells the processes of one run from all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(String);

impl Mark {
    /// A mark that no other run has.
    #[must_use]
    pub fn fresh() -> Self {
        let number = || RandomState::new().build_hasher().finish();
        Self(format!("{:016x}{:016x}", number(), number()))
    }

    pub(crate) fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// Ends every process that carries the mark; gives how many there were.
    #[must_use]
    pub fn sweep(&self) -> usize {
        processes::sweep(&self.0)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It ended with exit status 0.
    Passed,
    /// It ended with another exit status.
    Failed {
        /// The status.
        exit: i32,
    },
    /// A signal ended it.
    Signal {
        /// The signal's number.
        number: i32,
    },
    /// It was ended at its time limit.
    TimedOut,
    /// It was ended because the caller asked for it.
    Cancelled,
    /// What ran it ended before it did, so nobody knows its result.
    Lost {
        /// What is known.
        why: String,
    },
}

impl Outcome {
    /// The stable word for it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed { .. } => "failed",
            Self::Signal { .. } => "signal",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Lost { .. } => "lost",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Failed { exit } => write!(f, "failed with exit status {exit}"),
            Self::Signal { number } => write!(f, "ended by signal {number}"),
            Self::TimedOut => f.write_str("ended at its time limit"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Lost { why } => write!(f, "lost: {why}"),
        }
    }
}

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub outcome: Outcome,
    /// After how long.
    pub duration: Duration,
    /// The last lines it printed, standard output and standard error as they came.
    pub tail: Vec<String>,
    /// All lines it printed.
    pub lines: u64,
    /// All bytes it printed.
    pub bytes: u64,
    /// Processes that were still there when the command ended, and were ended then.
    pub left_behind: Vec<Leftover>,
}

/// A command that runs.
pub struct Started {
    child: Child,
    mark: Mark,
    since: Instant,
    limit: Duration,
    stopper: Stopper,
    output: Arc<Mutex<Output>>,
}

/// Ends a running command from another thread.
#[derive(Clone)]
pub struct Stopper {
    asked: Arc<AtomicBool>,
    control: Arc<Mutex<Option<ChildStdin>>>,
}

impl Stopper {
    /// Asks all its processes to end, and ends them after two seconds.
    pub fn stop(&self) {
        if !self.asked.swap(true, Ordering::SeqCst)
            && let Some(control) = lock(&self.control).as_mut()
        {
            // A failure means that the leash has ended: then so has the command.
            let _sent = control.write_all(&[CANCEL]);
        }
    }
}

impl Command {
    /// A command in `root` with the variables that the caller's environment may hand on.
    pub fn new(text: impl Into<String>, root: impl Into<PathBuf>, limit: Duration) -> Self {
        let environment = Environment::from(std::env::vars_os());
        Self { text: text.into(), root: root.into(), limit, environment, mark: Mark::fresh() }
    }

    /// Starts it.
    ///
    /// # Errors
    /// `NotFound`, `Denied` or `Io` when the leash or the folder cannot be used.
    pub fn start(&self, leash: &Leash) -> Result<Started> {
        let failed = |e| Error::io(format!("cannot start a test in `{}`", self.root.display()), e);
        let environment = self.environment.clone().with(MARK, &self.mark.0);
        let mut child = leash
            .command()
            .env_clear()
            .envs(environment.variables())
            .current_dir(&self.root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let limit_ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        let order = serde_json::to_vec(&Order { command: self.text.clone(), limit_ms }).unwrap_or_default();
        let mut control = child.stdin.take();
        if let Some(control) = control.as_mut() {
            // A leash that is gone already shows as a lost run below.
            let _sent = control.write_all(&order).and_then(|()| control.write_all(b"\n"));
        }
        let control = Arc::new(Mutex::new(control));
        let stopper = Stopper { asked: Arc::default(), control };
        let output = Arc::new(Mutex::new(Output::new().map_err(failed)?));
        Ok(Started {
            child,
            mark: self.mark.clone(),
            since: Instant::now(),
            limit: self.limit,
            stopper,
            output,
        })
    }
}

impl Started {
    /// What ends it early.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Its output, which grows while [`wait`](Self::wait) runs.
    #[must_use]
    pub fn output(&self) -> Arc<Mutex<Output>> {
        Arc::clone(&self.output)
    }

    /// Reads its output until it has ended; gives the result and the log.
    ///
    /// # Errors
    /// `Io` when the compressor fails.
    pub fn wait(mut self) -> Result<(Ended, Kept)> {
        let mut told = Vec::new();
        self.read_to_end(&mut told);
        let report = serde_json::from_slice::<Report>(&told).ok();
        drop(lock(&self.stopper.control).take());
        if report.is_none() {
            // Ending the leash is enough in most cases; the sweep is for the others.
            let _ended = self.child.kill();
            let _count = self.mark.sweep();
        }
        let _reaped = self.child.wait();
        let failed = |e| Error::io("cannot keep a test's output", e);
        let output = std::mem::replace(&mut *lock(&self.output), Output::new().map_err(failed)?);
        let (tail, count) = (output.tail(TAIL), output.count());
        let kept = output.finish().map_err(failed)?;
        let (outcome, left_behind) = judge(report, self.stopper.asked.load(Ordering::SeqCst));
        let duration = self.since.elapsed();
        Ok((Ended { outcome, duration, tail, lines: count.lines(), bytes: count.bytes, left_behind }, kept))
    }

    fn read_to_end(&mut self, told: &mut Vec<u8>) {
        let (Some(output), Some(report)) = (self.child.stderr.take(), self.child.stdout.take()) else {
            return;
        };
        let mut last = self.since.checked_add(self.limit + GRACE + SLACK);
        let (mut reporting, mut stopping) = (true, false);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let [printed, said] = ready(output.as_fd(), reporting.then_some(report.as_fd()));
            if said && !read(report.as_fd(), &mut buffer, |bytes| told.extend_from_slice(bytes)) {
                reporting = false;
                last = Some(Instant::now() + DRAIN);
            }
            if printed
                && !read(output.as_fd(), &mut buffer, |bytes| lock(&self.output).push(bytes))
                && !reporting
            {
                return;
            }
            if !stopping && self.stopper.asked.load(Ordering::SeqCst) {
                stopping = true;
                last = last.map(|last| last.min(Instant::now() + GRACE + SLACK));
            }
            if last.is_some_and(|last| Instant::now() > last) {
                return;
            }
        }
    }
}

fn judge(report: Option<Report>, cancelled: bool) -> (Outcome, Vec<Leftover>) {
    let Some(Report { end, left }) = report else {
        let why = "the processes that watched over it were ended".to_owned();
        return (if cancelled { Outcome::Cancelled } else { Outcome::Lost { why } }, Vec::new());
    };
    let outcome = match end {
        End::Exit(0) => Outcome::Passed,
        End::Exit(exit) => Outcome::Failed { exit },
        End::Signal(number) => Outcome::Signal { number },
        End::TimedOut => Outcome::TimedOut,
        End::Cancelled => Outcome::Cancelled,
        End::Lost(why) | End::NotStarted(why) => Outcome::Lost { why },
    };
    (outcome, left)
}

/// Whether the output and the report have something, waiting a tick at most.
fn ready(output: BorrowedFd<'_>, report: Option<BorrowedFd<'_>>) -> [bool; 2] {
    let mut asked = vec![PollFd::from_borrowed_fd(output, PollFlags::IN)];
    asked.extend(report.map(|report| PollFd::from_borrowed_fd(report, PollFlags::IN)));
    let tick = Timespec::try_from(TICK).unwrap_or_default();
    let some = poll(&mut asked, Some(&tick)).is_ok_and(|n| n > 0);
    let has = |i: usize| some && asked.get(i).is_some_and(|fd| !fd.revents().is_empty());
    [has(0), has(1)]
}

/// Reads once; false at the end.
fn read(from: BorrowedFd<'_>, buffer: &mut [u8], mut take: impl FnMut(&[u8])) -> bool {
    match rustix::io::read(from, &mut *buffer) {
        Ok(0) => false,
        Ok(n) => {
            take(&buffer[..n]);
            true
        }
        Err(e) => io::Error::from(e).kind() == io::ErrorKind::Interrupted,
    }
}

/// A panic elsewhere does not make what is behind the lock wrong.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
