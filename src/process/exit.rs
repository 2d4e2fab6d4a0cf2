//! How a command ended, and what was left of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// It ended by itself, with this exit status.
    Status(i32),
    /// The signal with this number ended it.
    Signal(i32),
    /// It was ended at its time limit.
    TimedOut,
    /// It was ended because the caller asked for it.
    Cancelled,
    /// It was to be sandboxed, and could not be. Nothing of it has run.
    NoSandbox {
        /// What failed, in one line.
        why: String,
    },
    /// Its result is unknown: it did not start, or what watched over it ended first.
    Lost {
        /// What is known.
        why: String,
    },
}

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// How long it ran.
    pub duration: Duration,
    /// Processes that were still there when the command ended, and were ended then.
    pub left_behind: Vec<Leftover>,
    /// Whether it ran in the sandbox that was asked for. Never true by mistake.
    pub sandboxed: bool,
    /// How many processes the kernel ended for want of memory meanwhile, in the control group that the command shares
    /// with OCX; where that has no counter, on the machine.
    pub out_of_memory: u64,
}

/// A process that outlived the command that started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Its process id.
    pub pid: i32,
    /// Its command line, at most 200 bytes.
    pub command: String,
    /// Whether it is gone now; false if the system did not let it be ended.
    pub ended: bool,
}
