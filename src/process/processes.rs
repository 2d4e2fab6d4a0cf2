//! The processes that a test started: found through `/proc`, and ended whatever they do against it.
//!
//! The process that calls [`end_below`] is a subreaper: whoever loses its parent becomes its child.
//! So "no child is left", which the kernel answers, means "no process is left".

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::fd::OwnedFd,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
        pidfd_send_signal, wait,
    },
};
use serde::{Deserialize, Serialize};

/// The variable that every process of one test run inherits, so that a lost run can be swept up.
pub(crate) const MARK: &str = "OCX_TEST_RUN";

/// How long a process that ends by itself may take for it, as `tee` behind `>(tee log)` does.
const LINGER: Duration = Duration::from_millis(200);
/// After that long of killing, what still lives belongs to another user or hangs in the kernel.
const PATIENCE: Duration = Duration::from_secs(5);
const MAX_NAMED: usize = 50;
const MAX_COMMAND: usize = 200;

/// A process that outlived the command that started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Its process id.
    pub pid: i32,
    /// Its command line, at most 200 bytes.
    pub command: String,
    /// Whether it is gone now; false when the system did not let it be ended.
    pub ended: bool,
}

/// Ends and reaps every process below the calling one. `unnamed` is ended without being reported.
pub(crate) fn end_below(linger: bool, unnamed: Option<Pid>) -> Vec<Leftover> {
    let start = Instant::now();
    while linger && start.elapsed() < LINGER && reap(|_, _| ()) {
        sleep(Duration::from_millis(2));
    }
    let mut named = BTreeMap::new();
    let mut alive = BTreeSet::new();
    while reap(|_, _| ()) && start.elapsed() < PATIENCE {
        alive = freeze(&mut named);
        for process in &alive {
            process.signal(Signal::KILL);
        }
        sleep(Duration::from_millis(1));
    }
    if !reap(|_, _| ()) {
        alive.clear();
    }
    named.retain(|pid, _| unnamed.is_none_or(|u| u.as_raw_pid() != *pid));
    let ended = |pid| !alive.iter().any(|process| process.pid == pid);
    let leftover = |(pid, command)| Leftover { pid, command, ended: ended(pid) };
    named.into_iter().take(MAX_NAMED).map(leftover).collect()
}

/// Asks every process below the calling one to end, except `spared`.
pub(crate) fn terminate_below(spared: Pid) {
    for process in below().iter().filter(|process| process.pid != spared.as_raw_pid()) {
        process.signal(Signal::TERM);
        process.signal(Signal::CONT);
    }
}

/// Reaps every child that has ended and hands it to `each`. False when there is no child any more.
pub(crate) fn reap(mut each: impl FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => each(pid, status),
            Ok(None) | Err(Errno::INTR) => return true,
            Err(_) => return false,
        }
    }
}

/// Ends every process that carries `mark` in its environment, for when nothing watches over them
/// any more. Gives how many were found.
pub(crate) fn sweep(mark: &str) -> usize {
    let entry = format!("{MARK}={mark}").into_bytes();
    let carries = |process: &Process| {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == entry)
    };
    let start = Instant::now();
    let mut found = BTreeSet::new();
    loop {
        let alive: Vec<_> = all().into_iter().filter(|process| !process.zombie && carries(process)).collect();
        if alive.is_empty() || start.elapsed() > PATIENCE {
            return found.len();
        }
        for process in alive {
            process.signal(Signal::KILL);
            found.insert(process);
        }
        sleep(Duration::from_millis(2));
    }
}

/// Whether a process with this id and start time lives.
pub(crate) fn lives(pid: i32, start: u64) -> bool {
    Process::read(pid).is_some_and(|process| process.start == start && !process.zombie)
}

/// The calling process's id and start time.
pub(crate) fn this() -> (i32, u64) {
    let pid = getpid().as_raw_pid();
    (pid, Process::read(pid).map_or(0, |process| process.start))
}

/// One line of `/proc`. The start time tells a process from a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    pid: i32,
    parent: i32,
    start: u64,
    zombie: bool,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let line = String::from_utf8_lossy(&line);
        // The second field is the program's own name, which may hold spaces and brackets.
        let mut fields = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace();
        let zombie = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        let start = fields.nth(17)?.parse().ok()?;
        Some(Self { pid, parent, start, zombie })
    }

    /// Sends `signal`, unless the id belongs to another process by now.
    fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let held = pidfd(pid);
        if Self::read(self.pid).is_none_or(|now| now.start != self.start) {
            return;
        }
        // A failure means that it is gone or another user's; the caller looks again.
        let _sent = match held {
            Some(held) => pidfd_send_signal(held, signal),
            None => kill_process(pid, signal),
        };
    }

    fn command(self) -> String {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let name = || fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let line = if line.trim().is_empty() { name() } else { line };
        let line = line.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
        line.scan(0, |bytes, c| {
            *bytes += c.len_utf8();
            (*bytes <= MAX_COMMAND).then_some(c)
        })
        .collect()
    }
}

/// A handle on the process, where the kernel has them (5.3 and newer).
pub(crate) fn pidfd(pid: Pid) -> Option<OwnedFd> {
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pid = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    entries.flatten().filter_map(pid).filter_map(Process::read).collect()
}

/// Every living process whose line of parents leads to the calling one.
fn below() -> BTreeSet<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in all() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = BTreeSet::new();
    let mut open = vec![getpid().as_raw_pid()];
    while let Some(parent) = open.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            open.push(process.pid);
            found.insert(process);
        }
    }
    found.retain(|process| !process.zombie);
    found
}

/// Stops all processes below until no new one shows up, so that none forks away from the kill.
fn freeze(named: &mut BTreeMap<i32, String>) -> BTreeSet<Process> {
    let mut frozen = BTreeSet::new();
    for _ in 0..20 {
        let fresh: Vec<_> = below().difference(&frozen).copied().collect();
        if fresh.is_empty() {
            break;
        }
        for process in fresh {
            process.signal(Signal::STOP);
            if named.len() < MAX_NAMED {
                named.entry(process.pid).or_insert_with(|| process.command());
            }
            frozen.insert(process);
        }
    }
    frozen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_another_start_time_does_not() {
        let (pid, start) = this();
        assert!(start > 0 && lives(pid, start));
        assert!(!lives(pid, start + 1));
    }

    #[test]
    fn a_sweep_ends_what_carries_the_mark_and_nothing_else() {
        // The kernel shows a new program's environment only a moment after the program has started.
        let shown = |process: &std::process::Child| {
            let environment = fs::read(format!("/proc/{}/environ", process.id())).unwrap_or_default();
            !environment.is_empty()
        };
        let sleeper = |mark: &str| {
            let process = std::process::Command::new("sleep").arg("60").env(MARK, mark).spawn().unwrap();
            let start = Instant::now();
            while !shown(&process) && start.elapsed() < PATIENCE {
                sleep(Duration::from_millis(1));
            }
            process
        };
        let (mut marked, mut other) = (sleeper("aaaa-sweep"), sleeper("aaaa-sweep-2"));
        assert_eq!(sweep("aaaa-sweep"), 1);
        assert!(!marked.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
