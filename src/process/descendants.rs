//! The processes that a command started: found through `/proc`, and ended whatever they do against it.
//!
//! The process that calls [`end_all`] is a subreaper: a process that loses its parent becomes its child. So if the
//! kernel says that no child is left, no process is left.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::fd::OwnedFd,
    thread::sleep,
    time::{Duration, Instant},
};

use procfs::process::{Process, Stat, all_processes};
use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
        pidfd_send_signal, wait,
    },
};

use super::exit::Leftover;
use super::identity::Identity;

/// The variable that every process of one command inherits, so that what is left of a lost one can be swept up.
pub(super) const MARK: &str = "OCX_RUN_MARK";

/// How long a process that ends by itself may take for it, as `tee` does behind `>(tee log)`.
const LINGER: Duration = Duration::from_millis(200);
/// What still lives after this long of killing belongs to another user or hangs in the kernel.
const PATIENCE: Duration = Duration::from_secs(5);
const NAMED_MAX: usize = 1_000;
const COMMAND_BYTES_MAX: usize = 200;

/// Ends and reaps every process below the calling one. `unnamed` is ended without being reported.
pub(super) fn end_all(linger: bool, unnamed: Option<Pid>) -> Vec<Leftover> {
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
    let ended = |pid| !alive.iter().any(|process| process.identity.pid == pid);
    let leftover = |(pid, command)| Leftover { pid, command, ended: ended(pid) };
    named.into_iter().take(NAMED_MAX).map(leftover).collect()
}

/// Asks every process below the calling one to end, except `spared`.
pub(super) fn terminate_all(spared: Pid) {
    for process in living().iter().filter(|process| process.identity.pid != spared.as_raw_pid()) {
        process.signal(Signal::TERM);
        process.signal(Signal::CONT);
    }
}

/// Reaps every child that has ended and hands it to `each`. Returns false if there is no child any more.
pub(super) fn reap(mut each: impl FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => each(pid, status),
            Ok(None) | Err(Errno::INTR) => return true,
            Err(_) => return false,
        }
    }
}

/// Ends every process that carries `mark` in its environment, for when nothing watches over them
/// any more. Returns how many were found.
pub(super) fn sweep(mark: &str) -> usize {
    let start = Instant::now();
    let mut found = BTreeSet::new();
    loop {
        let alive: Vec<_> = all().filter(|process| process.carries(mark)).collect();
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

/// A handle on the process, if the kernel has such handles (5.3 and newer).
fn pidfd(pid: Pid) -> Option<OwnedFd> {
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// A process as `/proc` showed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    identity: Identity,
    parent: i32,
    zombie: bool,
}

impl Seen {
    fn of(stat: &Stat) -> Self {
        Self {
            identity: Identity { pid: stat.pid, start: stat.starttime },
            parent: stat.ppid,
            zombie: matches!(stat.state, 'Z' | 'X'),
        }
    }

    fn look(pid: i32) -> Option<Self> {
        Process::new(pid).and_then(|process| process.stat()).ok().map(|stat| Self::of(&stat))
    }

    /// Sends `signal`, unless the id belongs to another process by now.
    fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.identity.pid) else { return };
        let held = pidfd(pid);
        if Self::look(self.identity.pid).is_none_or(|now| now.identity != self.identity) {
            return;
        }
        // A failure means that it is gone or another user's; the caller looks again.
        let _sent = match held {
            Some(held) => pidfd_send_signal(held, signal),
            None => kill_process(pid, signal),
        };
    }

    fn carries(self, mark: &str) -> bool {
        let environment = Process::new(self.identity.pid).and_then(|process| process.environ());
        let of = |all: std::collections::HashMap<_, _>| all.get(OsStr::new(MARK)).is_some_and(|m| m == mark);
        !self.zombie && environment.is_ok_and(of)
    }

    /// Its command line, or its name if it shows none; control characters become spaces.
    fn command(self) -> String {
        let Ok(process) = Process::new(self.identity.pid) else { return String::new() };
        let line = process.cmdline().unwrap_or_default().join(" ");
        let name = || process.stat().map(|stat| stat.comm).unwrap_or_default();
        let line = if line.trim().is_empty() { name() } else { line };
        let mut line: String = line.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        line.truncate(line.floor_char_boundary(COMMAND_BYTES_MAX));
        line
    }
}

fn all() -> impl Iterator<Item = Seen> {
    let processes = all_processes().into_iter().flatten().flatten();
    processes.filter_map(|process| process.stat().ok()).map(|stat| Seen::of(&stat))
}

/// Every living process whose line of parents leads to the calling one.
fn living() -> BTreeSet<Seen> {
    let mut children: BTreeMap<i32, Vec<Seen>> = BTreeMap::new();
    for process in all() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = BTreeSet::new();
    let mut open = vec![getpid().as_raw_pid()];
    while let Some(parent) = open.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            open.push(process.identity.pid);
            found.insert(process);
        }
    }
    found.retain(|process| !process.zombie);
    found
}

/// Stops all processes below until no new one shows up, so that none forks away from the kill.
fn freeze(named: &mut BTreeMap<i32, String>) -> BTreeSet<Seen> {
    let mut frozen = BTreeSet::new();
    for _ in 0..20 {
        let fresh: Vec<_> = living().difference(&frozen).copied().collect();
        if fresh.is_empty() {
            break;
        }
        for process in fresh {
            process.signal(Signal::STOP);
            if named.len() < NAMED_MAX {
                named.entry(process.identity.pid).or_insert_with(|| process.command());
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
    fn a_sweep_ends_what_carries_the_mark_and_nothing_else() {
        // The kernel shows a new program's environment only a moment after the program has started.
        let shown = |process: &std::process::Child| {
            let environment = std::fs::read(format!("/proc/{}/environ", process.id())).unwrap_or_default();
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
