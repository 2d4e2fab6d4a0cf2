//! The supervisor: two small processes between OCX and a command, so that no process of it is left.
//!
//! ```text
//! ocx ──── watch ──── hold ──── shell ──── whatever the command starts
//!    control     lifeline
//! ```
//! `watch` and `hold` are this program again. Each has one thread and is a subreaper: a process that forks twice, or
//! leaves its group or its session, still becomes a child of `hold` when its parent ends, and of `watch` when `hold`
//! ends. So
//! - the shell ends: `hold` ends the rest and reports;
//! - time runs out, or the caller cancels: `watch` sends TERM to all, then KILL;
//! - `hold` is killed (it is the shell's `$PPID`): `watch` ends the rest and reports the command lost;
//! - `watch` is killed: `hold` sees its lifeline close and ends the rest;
//! - OCX is killed: `watch` sees its control pipe close and ends the rest.
//!
//! A command that kills both within the same moment, or every process of its user (`kill -9 -1`), gets away with what
//! it started. Only a sandbox with its own process ids prevents that. OCX then sweeps up what still carries the
//! command's mark in its environment.
//!
//! It is no wall: a command runs as its user and may read and write what that user may.

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

use super::descendants::{end_all, pidfd, reap, terminate_all};
use super::exit::{Exit, Leftover};

/// The byte that asks over the control pipe for the command's end.
pub(super) const CANCEL: u8 = b'c';
/// The time between TERM and KILL.
pub(super) const GRACE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_secs(1);
/// How often the shell's end is looked for if there is no handle on it.
const SHORT_TICK: Duration = Duration::from_millis(20);

const WATCH: &str = "watch";
const HOLD: &str = "hold";

/// The program that can supervise commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    program: PathBuf,
}

impl Supervisor {
    /// The first argument with which the program's `main` hands over to [`Supervisor::main`].
    pub const ARGUMENT: &str = "supervise";

    /// The running program. It must hand over to [`Supervisor::main`].
    #[must_use]
    pub fn this_program() -> Self {
        // The link keeps naming this program when its file is replaced by a newer one.
        Self::at("/proc/self/exe")
    }

    /// The `ocx` program at `path`, for a host that is another program.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into() }
    }

    /// The program's path.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs the program as a supervisor; `arguments` are those after [`ARGUMENT`](Self::ARGUMENT). It reads its order
    /// from standard input and is of no use to people.
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

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(Self::ARGUMENT).arg(WATCH);
        command
    }
}

/// What to run: the first line of a supervisor's standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub command: String,
    pub limit_ms: u64,
}

/// What came of it: the standard output of a supervisor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Report {
    pub exit: Exit,
    pub left_behind: Vec<Leftover>,
}

/// Gives the process a session without a terminal, and makes it the parent of orphans. No descriptor gets through to
/// the command, it leaves no core file, and it cannot write into this process's pipes through `/proc`.
fn settle() -> io::Result<()> {
    close_fds::set_fds_cloexec(3, &[]);
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Reads up to the line's end and not a byte more: what follows is read when `poll` announces it.
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

/// Waits for at most `wait`; returns which of `sources` are ready. An interrupted wait returns none.
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
    let mut read = Vec::new();
    let reason = attend(&inner, deadline, &mut read);
    let report = serde_json::from_slice::<Report>(&read).ok();
    let mut left_behind = end_all(false, Some(pid));
    let (exit, mut more) = match report {
        Some(report) => (report.exit, report.left_behind),
        None => (Exit::Lost { why: "the command ended the process that ran it".into() }, Vec::new()),
    };
    left_behind.append(&mut more);
    let exit = match reason {
        Some(EndReason::CallerGone) => return Ok(()),
        Some(EndReason::TimedOut) => Exit::TimedOut,
        Some(EndReason::Cancelled) => Exit::Cancelled,
        None => exit,
    };
    write_report(&Report { exit, left_behind })
}

/// Why `watch` ended the command before it ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndReason {
    TimedOut,
    Cancelled,
    CallerGone,
}

fn start_hold(order: &Order) -> io::Result<Child> {
    let mut inner = Command::new("/proc/self/exe")
        .args([Supervisor::ARGUMENT, HOLD])
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

/// Waits until `hold` has ended or must be ended; collects its report in `into`.
fn attend(inner: &Child, deadline: Instant, into: &mut Vec<u8>) -> Option<EndReason> {
    let (control, spared) = (io::stdin(), Pid::from_child(inner));
    let mut reason = None;
    let mut until = deadline;
    loop {
        let wait = until.saturating_duration_since(Instant::now()).min(TICK);
        let report = inner.stdout.as_ref()?.as_fd();
        let [asked, reported] = ready([(control.as_fd(), PollFlags::IN), (report, PollFlags::IN)], wait);
        if reported && !read_more(report, into) {
            return reason;
        }
        let why = if asked { read_control(control.as_fd()) } else { None };
        if why == Some(EndReason::CallerGone) {
            return why;
        }
        let late = Instant::now() >= until;
        if late && reason.is_some() {
            return reason;
        }
        if reason.is_none() && (late || why.is_some()) {
            reason = why.or(Some(EndReason::TimedOut));
            until = Instant::now() + GRACE;
            terminate_all(spared);
        }
    }
}

fn read_control(control: BorrowedFd<'_>) -> Option<EndReason> {
    let mut byte = [0];
    match raw_read(control, &mut byte) {
        Ok(1) => (byte[0] == CANCEL).then_some(EndReason::Cancelled),
        _ => Some(EndReason::CallerGone),
    }
}

/// Reads what is there. Returns false at the end.
fn read_more(from: BorrowedFd<'_>, into: &mut Vec<u8>) -> bool {
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
    let exit = match start_shell(&order.command) {
        Ok(shell) => await_shell(Pid::from_child(&shell)),
        Err(e) => Some(Exit::Lost { why: format!("no shell could be started: {e}") }),
    };
    let left_behind = end_all(exit.is_some(), None);
    match exit {
        Some(exit) => write_report(&Report { exit, left_behind }),
        None => Ok(()),
    }
}

/// Returns how the shell ended, or nothing if the lifeline closed before it did.
fn await_shell(shell: Pid) -> Option<Exit> {
    let lifeline = io::stdin();
    let handle = pidfd(shell);
    let mut exit = None;
    loop {
        reap(|pid, status| {
            if pid == shell {
                exit = Some(exit_of(status));
            }
        });
        if exit.is_some() {
            return exit;
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

fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Status(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Lost { why: "the shell ended in an unknown way".into() },
    }
}

/// Starts bash if it is there, because then a failure inside a pipe fails the command; plain `sh` cannot do that
/// everywhere.
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
