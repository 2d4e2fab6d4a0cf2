//! What a call that asked for tests learns: the tests that ended, and the one that runs.

use std::time::Duration;

use super::{Outcome, Test};
use crate::checkout::Change;
use crate::name::Hash;
use crate::process::Leftover;

/// The test that runs at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Its name.
    pub test: String,
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
    /// How long it ran.
    pub duration: Duration,
    /// How many lines it printed.
    pub lines: u64,
    /// The last of them, standard output and standard error as they came.
    pub tail: Vec<String>,
    /// Processes that were still there when its command ended, and were ended then.
    pub left_behind: Vec<Leftover>,
    /// What changed in the tree while it ran; then its outcome counts for no tree.
    pub changes: Vec<Change>,
    /// Why the tree could not be read afterwards; then its outcome counts for no tree.
    pub unreadable: Option<String>,
}

impl TestResult {
    /// Whether this is a pass of exactly [`tree`](Self::tree).
    #[must_use]
    pub fn passed(&self) -> bool {
        self.outcome == Outcome::Passed && self.on_one_tree()
    }

    /// Whether the tree is known to have stayed as it was.
    pub(super) fn on_one_tree(&self) -> bool {
        self.changes.is_empty() && self.unreadable.is_none()
    }
}

/// What a call to [`Jobs::test`](super::Jobs::test) saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestReport {
    /// The tests that have ended, in order.
    pub results: Vec<TestResult>,
    /// The test that still runs: the same call goes on waiting for it.
    pub running: Option<Progress>,
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
