//! One command: started under a supervisor, its output read to the end, its exit known.
//!
//! The command gets no terminal, no input, no descriptor but its output, a session of its own and the variables that
//! [`Environment`] lets through. However it ends, no process of it is left (how: `supervisor.rs`).

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::{BuildHasher, Hasher},
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::descendants::{self, MARK};
use super::environment::Environment;
use super::exit::{Exit, Finished};
use super::launcher::launch;
use super::memory::OutOfMemory;
use super::order::{CANCEL, GRACE, Order, Report};
use super::output::Output;
use super::sandbox::Sandbox;
use super::supervisor::Supervisor;
use crate::error::{Error, Result};

/// How much longer than the command's own limit the supervisor may take before it is ended itself.
const SLACK: Duration = Duration::from_secs(8);
/// How long output may still come once the supervisor has ended.
const DRAIN: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(200);

/// A command, ready to start.
///
/// ```no_run
/// use std::time::Duration;
/// use ocx::process::{Command, Exit, Supervisor};
/// let command = Command::new("cargo build | tail -5", "/home/me/project", Duration::from_mins(10));
/// let (finished, output) = command.start(&Supervisor::at("/usr/bin/ocx"))?.wait()?;
/// assert_eq!(finished.exit, Exit::Status(0), "{}", output.tail(20).join("\n"));
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Command {
    /// The command, as a shell reads it.
    pub text: String,
    /// The folder it runs in.
    pub folder: PathBuf,
    /// How long it may run.
    pub limit: Duration,
    /// Its variables.
    pub environment: Environment,
    /// The mark that its processes carry.
    pub mark: Mark,
    /// How it is confined. Without a sandbox it runs on the machine as it is.
    pub sandbox: Option<Sandbox>,
}

/// A word in the environment of every process of one command, and of no other process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(String);

impl Mark {
    /// Makes a mark that no other command has.
    #[must_use]
    pub fn fresh() -> Self {
        let number = || RandomState::new().build_hasher().finish();
        Self(format!("{:016x}{:016x}", number(), number()))
    }

    pub(crate) fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// Ends every process that carries the mark; returns how many there were.
    #[must_use]
    pub fn sweep(&self) -> usize {
        descendants::sweep(&self.0)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A command that runs.
pub struct Running {
    child: Child,
    mark: Mark,
    since: Instant,
    limit: Duration,
    stopper: Stopper,
    output: Arc<Mutex<Output>>,
    out_of_memory: OutOfMemory,
}

/// Ends a running command from another thread.
#[derive(Clone)]
pub struct Stopper {
    asked: Arc<AtomicBool>,
    control: Arc<Mutex<Option<ChildStdin>>>,
}

impl Stopper {
    /// Asks all processes of the command to end, and ends them after two seconds.
    pub fn stop(&self) {
        if !self.asked.swap(true, Ordering::SeqCst)
            && let Some(control) = self.control.lock().as_mut()
        {
            // A failure means that the supervisor has ended: then so has the command.
            let _sent = control.write_all(&[CANCEL]);
        }
    }
}

impl Command {
    /// A command in `folder` with the variables that the caller's environment may hand on.
    pub fn new(text: impl Into<String>, folder: impl Into<PathBuf>, limit: Duration) -> Self {
        let environment = Environment::from(std::env::vars_os());
        Self {
            text: text.into(),
            folder: folder.into(),
            limit,
            environment,
            mark: Mark::fresh(),
            sandbox: None,
        }
    }

    /// Starts the command under `supervisor`.
    ///
    /// # Errors
    /// `NotFound`, `Denied` or `Io` if the supervisor or the folder cannot be used.
    pub fn start(&self, supervisor: &Supervisor) -> Result<Running> {
        let failed = |e| Error::io(format!("cannot start a command in `{}`", self.folder.display()), e);
        let order = self.order().to_bytes().map_err(failed)?;
        // In a sandbox the folder may be there only inside.
        let folder = if self.sandbox.is_some() { Path::new("/") } else { &self.folder };
        let mut program = supervisor.command();
        program
            .env_clear()
            .env(MARK, &self.mark.0)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(libraries) = std::env::var_os("LD_LIBRARY_PATH") {
            program.env("LD_LIBRARY_PATH", libraries);
        }
        let out_of_memory = OutOfMemory::begin();
        let mut child = launch(program).map_err(failed)?;
        let mut control = child.stdin.take();
        if let Some(control) = control.as_mut() {
            // If the supervisor is gone already, the command shows as lost below.
            let _sent = control.write_all(&order);
        }
        let control = Arc::new(Mutex::new(control));
        let stopper = Stopper { asked: Arc::default(), control };
        let output = Arc::new(Mutex::new(Output::new().map_err(failed)?));
        let (mark, since) = (self.mark.clone(), Instant::now());
        Ok(Running { child, mark, since, limit: self.limit, stopper, output, out_of_memory })
    }

    fn order(&self) -> Order {
        let mut environment = self.environment.clone().with(MARK, &self.mark.0);
        if let Some(sandbox) = &self.sandbox {
            environment = environment.with("HOME", &sandbox.home).with("TMPDIR", "/tmp");
        }
        let words =
            environment.variables().map(|(name, value)| (name.to_owned().into(), value.to_owned().into()));
        Order {
            command: self.text.clone(),
            folder: self.folder.clone(),
            limit_ms: u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX),
            environment: words.collect(),
            sandbox: self.sandbox.clone(),
            home: std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
            outside: None,
        }
    }
}

impl Running {
    /// Returns what ends it early.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Returns its output, which grows while [`wait`](Self::wait) runs.
    #[must_use]
    pub fn output(&self) -> Arc<Mutex<Output>> {
        Arc::clone(&self.output)
    }

    /// Reads its output until it has ended; returns how it ended and what it printed.
    ///
    /// # Errors
    /// `Io` if the compressor fails.
    pub fn wait(mut self) -> Result<(Finished, Output)> {
        let mut reported = Vec::new();
        self.read_to_end(&mut reported);
        let report = serde_json::from_slice::<Report>(&reported).ok();
        drop(self.stopper.control.lock().take());
        if report.is_none() {
            // Ending the supervisor is enough in most cases; the sweep is for the others.
            let _ended = self.child.kill();
            let _count = self.mark.sweep();
        }
        let _reaped = self.child.wait();
        let empty = Output::new().map_err(|e| Error::io("cannot keep a command's output", e))?;
        let output = std::mem::replace(&mut *self.output.lock(), empty);
        let report = report.unwrap_or_else(|| self.unreported());
        let finished = Finished {
            exit: report.exit,
            duration: self.since.elapsed(),
            left_behind: report.left_behind,
            sandboxed: report.sandboxed,
            out_of_memory: self.out_of_memory.so_far(),
        };
        Ok((finished, output))
    }

    /// What is known if the supervisor ended without a report.
    fn unreported(&self) -> Report {
        let why = || "the processes that watched over it were ended".to_owned();
        let cancelled = self.stopper.asked.load(Ordering::SeqCst);
        let exit = if cancelled { Exit::Cancelled } else { Exit::Lost { why: why() } };
        Report { exit, left_behind: Vec::new(), sandboxed: false }
    }

    fn read_to_end(&mut self, reported: &mut Vec<u8>) {
        let (Some(output), Some(report)) = (self.child.stderr.take(), self.child.stdout.take()) else {
            return;
        };
        let mut last = self.since.checked_add(self.limit + GRACE + SLACK);
        let (mut reporting, mut stopping) = (true, false);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let [printed, said] = ready(output.as_fd(), reporting.then_some(report.as_fd()));
            if said && !read(report.as_fd(), &mut buffer, |bytes| reported.extend_from_slice(bytes)) {
                reporting = false;
                last = Some(Instant::now() + DRAIN);
            }
            if printed
                && !read(output.as_fd(), &mut buffer, |bytes| self.output.lock().push(bytes))
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

/// Waits for at most a tick; returns whether the output and the report have something.
fn ready(output: BorrowedFd<'_>, report: Option<BorrowedFd<'_>>) -> [bool; 2] {
    let mut asked = vec![PollFd::from_borrowed_fd(output, PollFlags::IN)];
    asked.extend(report.map(|report| PollFd::from_borrowed_fd(report, PollFlags::IN)));
    let tick = Timespec::try_from(TICK).unwrap_or_default();
    let some = poll(&mut asked, Some(&tick)).is_ok_and(|n| n > 0);
    let has = |i: usize| some && asked.get(i).is_some_and(|fd| !fd.revents().is_empty());
    [has(0), has(1)]
}

/// Reads once. Returns false at the end.
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
