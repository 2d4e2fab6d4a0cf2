//! What a call that asked for tests learns: the tests that ended, and what is going on.

use std::time::Duration;

use super::evidence::Circumstances;
use super::{Outcome, Test};
use crate::checkout::Change;
use crate::name::Hash;
use crate::process::Leftover;

/// What a call waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// Other tests of this checkout, which run first.
    Waiting {
        /// Which tests, and whose.
        on: String,
        /// For how long.
        elapsed: Duration,
    },
    /// One of the tests that it asked for.
    Running(Progress),
}

/// The test that runs at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Its name.
    pub test: String,
    /// Whether its fetch command runs, and not yet the test.
    pub fetching: bool,
    /// The tree it runs on.
    pub tree: Hash,
    /// For how long it has been running.
    pub elapsed: Duration,
    /// How many lines it has printed.
    pub lines: u64,
    /// The last of them.
    pub tail: Vec<String>,
}

/// One test that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    /// What was run.
    pub test: Test,
    /// The tree it ran on.
    pub tree: Hash,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether the outcome is that of its fetch command. Then the test itself did not run.
    pub in_fetch: bool,
    /// How it was run.
    pub run: Circumstances,
    /// Why the test tree was emptied before, if it was.
    pub emptied: Option<String>,
    /// How long it ran.
    pub duration: Duration,
    /// How many lines it printed.
    pub lines: u64,
    /// The last of them, standard output and standard error as they came.
    pub tail: Vec<String>,
    /// Processes that were still there when its command ended, and were ended then.
    pub left_behind: Vec<Leftover>,
    /// How many of its processes the kernel ended because memory ran out.
    pub out_of_memory: u64,
    /// Stored files that it changed in its own tree. They are put back before the next test.
    pub changes: Vec<Change>,
    /// Why its outcome counts for no tree, if it does not.
    pub void: Option<String>,
    /// The names of the caller's variables that were withheld.
    pub withheld: Vec<String>,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

impl TestResult {
    /// Whether this is a pass of exactly [`tree`](Self::tree).
    #[must_use]
    pub fn passed(&self) -> bool {
        self.outcome == Outcome::Passed && !self.in_fetch && self.void.is_none()
    }
}

/// What a call to [`Jobs::test`](super::Jobs::test) saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestReport {
    /// The tests that have ended, in order.
    pub results: Vec<TestResult>,
    /// What is still waited for: the same call goes on waiting for it.
    pub now: Option<Activity>,
    /// The tests that have not started. They never will if nothing runs any more.
    pub not_run: Vec<String>,
    /// Whether nothing runs any more.
    pub finished: bool,
}

impl TestReport {
    /// Whether every test asked for passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.finished && self.not_run.is_empty() && self.results.iter().all(TestResult::passed)
    }
}
