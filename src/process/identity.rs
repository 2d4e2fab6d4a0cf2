//! Which process: the system gives an id again to a later process, so the start time belongs to it.

use procfs::process::Process;
use rustix::process::getpid;

/// A process of this machine since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub pid: i32,
    /// When it started, in the kernel's ticks since the machine did.
    pub start: u64,
}

impl Identity {
    /// The calling process.
    pub(crate) fn this() -> Self {
        let pid = getpid().as_raw_pid();
        let stat = Process::new(pid).and_then(|process| process.stat());
        Self { pid, start: stat.map_or(0, |stat| stat.starttime) }
    }

    /// Whether the process has not ended. A zombie has.
    pub(crate) fn lives(self) -> bool {
        let stat = Process::new(self.pid).and_then(|process| process.stat());
        stat.is_ok_and(|stat| stat.starttime == self.start && !matches!(stat.state, 'Z' | 'X'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_another_start_time_does_not() {
        let this = Identity::this();
        assert!(this.start > 0 && this.lives());
        assert!(!Identity { start: this.start + 1, ..this }.lives());
    }
}
