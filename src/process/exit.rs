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
