//! The leash: two small processes between OCX and a test command, so that no process of it is left.
//!
//! ```text
//! ocx ──── watch ──── hold ──── shell ──── whatever the test starts
//!    control     lifeline
//! ```
//! `watch` and `hold` are this program again, each with one thread, each a subreaper: a process that
//! forks twice, leaves its group or its session still becomes a child of `hold` when its parent ends,
//! and of `watch` when `hold` ends. So
//! - the shell ends: `hold` ends the rest and reports;
//! - time runs out, or the caller cancels: `watch` sends TERM to all, then KILL;
//! - `hold` is killed (it is the shell's `$PPID`): `watch` ends the rest and reports the run lost;
//! - `watch` is killed: `hold` sees its lifeline close and ends the rest;
//! - OCX is killed: `watch` sees its control pipe close and ends the rest.
//!
//! A test that kills both within the same moment, or every process of its user (`kill -9 -1`),
//! gets away with what it started; only a sandbox with its own process ids prevents that. OCX then
//! sweeps up what still carries the run's mark in its environment.
//!
//! What it is not: a wall. A test runs as its user and may read and write what that user may.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{
        DumpableBehavior, Pid, Resource, Rlimit, WaitStatus, getpid, set_child_subreaper,
        set_dumpable_behavior, setrlimit, setsid,
    },
};
use serde::{Deserialize, Serialize};

use super::processes::{Leftover, end_below, pidfd, reap, terminate_below};

/// The argument after which [`main`] takes over.
pub const ARGUMENT: &str = "leash";
/// Sent over the control pipe to end the run.
pub(crate) const CANCEL: u8 = b'c';
/// Between TERM and KILL.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_secs(1);
/// Without a handle on the shell its end is looked for this often.
const SHORT_TICK: Duration = Duration::from_millis(20);

/// The program that has the leash built in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leash {
    program: PathBuf,
}

impl Leash {
    /// The running program: right only where its `main` starts with [`main`] for [`ARGUMENT`].
    #[must_use]
    pub fn this_program() -> Self {
        // The link keeps naming this program when its file is replaced by a newer one.
        Self::at("/proc/self/exe")
    }

    /// The `ocx` program at `path`, for a host that is another program.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into() }
    }

    /// Where the program is.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(ARGUMENT).arg(WATCH);
        command
    }
}

/// What `watch` is told first, on one line of its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub command: String,
    pub limit_ms: u64,
}

/// What `watch` says last, on its standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub end: End,
    pub left: Vec<Leftover>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    Exit(i32),
    Signal(i32),
    TimedOut,
    Cancelled,
    Lost(String),
    NotStarted(String),
}

const WATCH: &str = "watch";
const HOLD: &str = "hold";

/// Runs the leash's part of the program; `arguments` are those after [`ARGUMENT`]. It reads its
/// order from standard input and is of no use to people.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let part = arguments.into_iter().next();
    let run = match part.as_deref().and_then(|part| part.to_str()) {
        Some(WATCH) => watch,
        Some(HOLD) => hold,
        _ => return ExitCode::from(2),
    };
    match settle().and_then(|()| read_order()).and_then(|order| run(&order)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// A session without a terminal, orphans come here, no descriptor gets through, no core file, and
/// the test cannot write into this process's pipes through `/proc`.
fn settle() -> io::Result<()> {
    close_fds::set_fds_cloexec(3, &[]);
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Reads up to the line's end and not a byte more: what follows is for `poll`.
fn read_order() -> io::Result<Order> {
    let mut line = Vec::new();
    let mut byte = [0];
    while raw_read(io::stdin().as_fd(), &mut byte)? == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    Ok(serde_json::from_slice(&line)?)
}

fn raw_read(from: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::io::read(from, &mut *buffer) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

fn write_report(report: &Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, report)?;
    out.flush()
}

/// Which of `sources` has something to say, within `wait`. An interrupted wait is an early nothing.
fn ready<const N: usize>(sources: [(BorrowedFd<'_>, PollFlags); N], wait: Duration) -> [bool; N] {
    let mut asked = sources.map(|(source, events)| PollFd::from_borrowed_fd(source, events));
    let wait = Timespec::try_from(wait).unwrap_or_default();
    match poll(&mut asked, Some(&wait)) {
        Ok(_) => std::array::from_fn(|i| !asked[i].revents().is_empty()),
        Err(_) => [false; N],
    }
}

fn watch(order: &Order) -> io::Result<()> {
    let deadline = Instant::now() + Duration::from_millis(order.limit_ms);
    let inner = start_hold(order)?;
    let pid = Pid::from_child(&inner);
    let mut told = Vec::new();
    let end = attend(&inner, deadline, &mut told);
    let report = serde_json::from_slice::<Report>(&told).ok();
    let mut left = end_below(false, Some(pid));
    let (held, mut more) = match report {
        Some(Report { end, left }) => (end, left),
        None => (End::Lost("the test ended the process that ran it".into()), Vec::new()),
    };
    left.append(&mut more);
    match end {
        Some(Stop::CallerGone) => Ok(()),
        Some(Stop::TimedOut) => write_report(&Report { end: End::TimedOut, left }),
        Some(Stop::Cancelled) => write_report(&Report { end: End::Cancelled, left }),
        None => write_report(&Report { end: held, left }),
    }
}

/// Why `watch` ended the run before the command did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    TimedOut,
    Cancelled,
    CallerGone,
}

fn start_hold(order: &Order) -> io::Result<Child> {
    let mut inner = Command::new("/proc/self/exe")
        .args([ARGUMENT, HOLD])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    if let Some(lifeline) = inner.stdin.as_mut() {
        serde_json::to_writer(&mut *lifeline, order)?;
        lifeline.write_all(b"\n")?;
    }
    Ok(inner)
}

/// Waits until `hold` has ended or must be ended; collects its report in `told`.
fn attend(inner: &Child, deadline: Instant, told: &mut Vec<u8>) -> Option<Stop> {
    let (control, spared) = (io::stdin(), Pid::from_child(inner));
    let mut stop = None;
    let mut until = deadline;
    loop {
        let wait = until.saturating_duration_since(Instant::now()).min(TICK);
        let report = inner.stdout.as_ref()?.as_fd();
        let [asked, said] = ready([(control.as_fd(), PollFlags::IN), (report, PollFlags::IN)], wait);
        if said && !more(report, told) {
            return stop;
        }
        let why = match asked.then(|| heard(control.as_fd())) {
            Some(Some(Stop::CallerGone)) => return Some(Stop::CallerGone),
            Some(other) => other,
            None => None,
        };
        let late = Instant::now() >= until;
        if late && stop.is_some() {
            return stop;
        }
        if stop.is_none() && (late || why.is_some()) {
            stop = why.or(Some(Stop::TimedOut));
            until = Instant::now() + GRACE;
            terminate_below(spared);
        }
    }
}

fn heard(control: BorrowedFd<'_>) -> Option<Stop> {
    let mut byte = [0];
    match raw_read(control, &mut byte) {
        Ok(1) => (byte[0] == CANCEL).then_some(Stop::Cancelled),
        _ => Some(Stop::CallerGone),
    }
}

/// Reads what is there; false at the end.
fn more(from: BorrowedFd<'_>, into: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 4096];
    match raw_read(from, &mut buffer) {
        Ok(n @ 1..) => {
            into.extend_from_slice(&buffer[..n]);
            true
        }
        _ => false,
    }
}

fn hold(order: &Order) -> io::Result<()> {
    let end = match start_shell(&order.command) {
        Ok(shell) => await_shell(Pid::from_child(&shell)),
        Err(e) => Some(End::NotStarted(format!("no shell could be started: {e}"))),
    };
    let left = end_below(end.is_some(), None);
    match end {
        Some(end) => write_report(&Report { end, left }),
        None => Ok(()),
    }
}

/// How the shell ended, or nothing when the lifeline closed before it did.
fn await_shell(shell: Pid) -> Option<End> {
    let lifeline = io::stdin();
    let handle = pidfd(shell);
    let mut end = None;
    loop {
        reap(|pid, status| {
            if pid == shell {
                end = Some(of(status));
            }
        });
        if end.is_some() {
            return end;
        }
        let cut = (lifeline.as_fd(), PollFlags::IN);
        let gone = match &handle {
            Some(handle) => ready([cut, (handle.as_fd(), PollFlags::IN)], TICK)[0],
            None => ready([cut], SHORT_TICK)[0],
        };
        if gone {
            return None;
        }
    }
}

fn of(status: WaitStatus) -> End {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => End::Exit(code),
        (None, Some(signal)) => End::Signal(signal),
        (None, None) => End::Lost("the shell ended in an unknown way".into()),
    }
}

/// With bash a failure inside a pipe fails the command; plain `sh` cannot do that everywhere.
fn start_shell(text: &str) -> io::Result<Child> {
    let bash = start("bash", &["-o", "pipefail", "-c", text]);
    match bash {
        Err(e) if e.kind() == io::ErrorKind::NotFound => start("/bin/sh", &["-c", text]),
        other => other,
    }
}

fn start(shell: &str, arguments: &[&str]) -> io::Result<Child> {
    let output = || io::stderr().as_fd().try_clone_to_owned().map(Stdio::from);
    Command::new(shell)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output()?)
        .stderr(output()?)
        .process_group(0)
        .spawn()
}
