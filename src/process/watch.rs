//! The outer process of a supervisor: it makes the sandbox's namespaces, keeps the time, and ends the command.

use std::{
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, set_parent_process_death_signal};

use super::confine::separate;
use super::descendants::{end_all, terminate_all};
use super::exit::Exit;
use super::order::{ARGUMENT, CANCEL, GRACE, Order, Report, STANDS, raw_read, ready};

pub(super) const HOLD: &str = "hold";
pub(super) const INSIDE: &str = "inside";
const TICK: Duration = Duration::from_secs(1);

/// Runs a command and reports what came of it.
pub(super) fn watch() -> io::Result<()> {
    let mut order = Order::read(io::stdin().as_fd())?;
    let deadline = Instant::now() + Duration::from_millis(order.limit_ms);
    let mut signal = Signal::CONT;
    if let Some(sandbox) = &order.sandbox {
        match separate(sandbox, order.home.as_deref()) {
            Ok(outside) => order.outside = Some(outside),
            Err(why) => return refuse(why),
        }
        signal = Signal::KILL;
    }
    // New namespaces take an earlier setting away. If the caller has ended by now, the control pipe says so.
    set_parent_process_death_signal(Some(signal))?;
    let inner = match start_hold(&order) {
        Err(e) if order.sandbox.is_some() => return refuse(format!("no process can be started inside: {e}")),
        inner => inner?,
    };
    let pid = Pid::from_child(&inner);
    let mut read = Vec::new();
    let reason = attend(&inner, deadline, &mut read);
    let (report, stands) = match read.strip_prefix(STANDS) {
        Some(report) => (report, true),
        None => (read.as_slice(), false),
    };
    let report = serde_json::from_slice::<Report>(report).ok();
    let mut left_behind = end_all(false, Some(pid));
    let (exit, mut more) = match report {
        Some(report) => (report.exit, report.left_behind),
        None if order.sandbox.is_some() && !stands => {
            (Exit::NoSandbox { why: "the first process inside ended early".into() }, Vec::new())
        }
        None => (Exit::Lost { why: "the command ended the process that ran it".into() }, Vec::new()),
    };
    left_behind.append(&mut more);
    let exit = match reason {
        Some(EndReason::CallerGone) => return Ok(()),
        Some(EndReason::TimedOut) => Exit::TimedOut,
        Some(EndReason::Cancelled) => Exit::Cancelled,
        None => exit,
    };
    Report { exit, left_behind, sandboxed: stands }.write()
}

fn refuse(why: String) -> io::Result<()> {
    Report { exit: Exit::NoSandbox { why }, left_behind: Vec::new(), sandboxed: false }.write()
}

/// Why `watch` ended the command before it ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndReason {
    TimedOut,
    Cancelled,
    CallerGone,
}

fn start_hold(order: &Order) -> io::Result<Child> {
    let part = if order.sandbox.is_some() { INSIDE } else { HOLD };
    let mut inner = Command::new("/proc/self/exe")
        .args([ARGUMENT, part])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    if let Some(lifeline) = inner.stdin.as_mut() {
        // If `hold` is gone already, the command shows as lost below.
        let _sent = lifeline.write_all(&order.to_bytes()?);
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
        let [asked, reported] = ready([control.as_fd(), report], wait);
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
