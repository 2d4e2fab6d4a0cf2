//! How a test ended, in the words that people and agents read.

use std::fmt;

use crate::process::Exit;

/// How many of the last lines of its output are shown with a test.
pub(super) const TAIL_LINES: usize = 100;

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its command ended with exit status 0.
    Passed,
    /// Its command ended with another exit status.
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
    /// What ran it ended before it did, so its result is unknown.
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

    /// The number that belongs to the word: an exit status or a signal.
    pub(super) fn code(&self) -> Option<i32> {
        match self {
            Self::Failed { exit: code } | Self::Signal { number: code } => Some(*code),
            _ => None,
        }
    }

    /// Why the result is unknown.
    pub(super) fn why(&self) -> Option<&str> {
        match self {
            Self::Lost { why } => Some(why),
            _ => None,
        }
    }

    /// Reads what [`word`](Self::word), [`code`](Self::code) and [`why`](Self::why) gave.
    pub(super) fn from_parts(word: &str, code: Option<i32>, why: Option<String>) -> Self {
        let code = code.unwrap_or_default();
        match word {
            "passed" => Self::Passed,
            "failed" => Self::Failed { exit: code },
            "signal" => Self::Signal { number: code },
            "timed_out" => Self::TimedOut,
            "cancelled" => Self::Cancelled,
            _ => Self::Lost { why: why.unwrap_or_default() },
        }
    }
}

impl From<&Exit> for Outcome {
    fn from(exit: &Exit) -> Self {
        match exit {
            Exit::Status(0) => Self::Passed,
            Exit::Status(exit) => Self::Failed { exit: *exit },
            Exit::Signal(number) => Self::Signal { number: *number },
            Exit::TimedOut => Self::TimedOut,
            Exit::Cancelled => Self::Cancelled,
            Exit::NoSandbox { why } | Exit::Lost { why } => Self::Lost { why: why.clone() },
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
