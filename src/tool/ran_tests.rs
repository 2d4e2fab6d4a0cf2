//! What an answer says of tests that ran: those that failed first, in the room that an answer has.

use schemars::JsonSchema;
use serde::Serialize;

use super::changes::ChangedFile;
use super::page::{self, BYTES_MAX, counted};
use crate::name::Hash;
use crate::testing::{Activity, DECLARED_FILE, Outcome, TestReport, TestResult};

/// The bytes that the output of passed tests gets beside that of failed ones.
const PASSED_BYTES: usize = 1_500;

/// How many names of withheld variables are shown.
const WITHHELD_MAX: usize = 40;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct RanTests {
    /// The tree that was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Hash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandboxed: Option<bool>,
    /// Why there was no sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsandboxed: Option<String>,
    /// The tests that ended, those that failed first.
    tests: Vec<RanTest>,
    /// What is still waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<RunningTest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_run: Option<Vec<String>>,
    /// The names of variables that tests do not get; `env` in ocx-tests.json gives one to a test.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    withheld: Vec<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct RanTest {
    name: String,
    passed: bool,
    outcome: String,
    seconds: f64,
    /// Whether it ran as in a fresh checkout, and not beside what earlier runs left.
    fresh: bool,
    /// Why what earlier runs had left was thrown away.
    #[serde(skip_serializing_if = "Option::is_none")]
    emptied: Option<String>,
    /// What it had beside the tree: the paths of `with` and the variables of `env`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    with: Vec<String>,
    /// The last lines that it printed.
    output: String,
    shown: usize,
    of: u64,
    /// Why the outcome counts for no files.
    #[serde(skip_serializing_if = "Option::is_none")]
    void: Option<String>,
    /// Stored files that it changed in its own copy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<ChangedFile>,
    /// How many processes it left, which were ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    processes_ended: Option<usize>,
    /// How many of its processes the kernel ended because memory ran out.
    #[serde(skip_serializing_if = "Option::is_none")]
    out_of_memory: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct RunningTest {
    name: String,
    seconds: u64,
    lines: u64,
    last: String,
}

/// The tests that ended, those that failed first: they get the room.
pub(super) fn ran_tests(report: &TestReport) -> RanTests {
    let (failed, passed): (Vec<_>, Vec<_>) = report.results.iter().partition(|r| !r.passed());
    let few = if failed.is_empty() { BYTES_MAX } else { PASSED_BYTES };
    let each_passed = few / passed.len().max(1);
    let each_failed = (BYTES_MAX - if passed.is_empty() { 0 } else { PASSED_BYTES }) / failed.len().max(1);
    let failed = failed.into_iter().map(|r| ran(r, each_failed));
    let tests: Vec<_> = failed.chain(passed.into_iter().map(|r| ran(r, each_passed))).collect();
    let first = report.results.first();
    let withheld = report.results.iter().find(|r| !r.withheld.is_empty()).map(|r| r.withheld.clone());
    RanTests {
        tree: first.map(|r| r.tree),
        sandboxed: first.map(|r| r.run.unsandboxed.is_none()),
        unsandboxed: first.and_then(|r| r.run.unsandboxed.clone()),
        tests,
        running: report.now.as_ref().map(running),
        not_run: (!report.not_run.is_empty()).then(|| report.not_run.clone()),
        withheld: withheld.unwrap_or_default().into_iter().take(WITHHELD_MAX).collect(),
    }
}

fn running(now: &Activity) -> RunningTest {
    match now {
        Activity::Waiting { on, elapsed } => {
            RunningTest { name: on.clone(), seconds: elapsed.as_secs(), lines: 0, last: String::new() }
        }
        Activity::Running(now) => RunningTest {
            name: now.test.clone(),
            seconds: now.elapsed.as_secs(),
            lines: now.lines,
            last: last(&now.tail, 2_000).0,
        },
    }
}

pub(super) fn why(result: &TestResult) -> String {
    let limit = result.test.limit;
    let outcome = match &result.outcome {
        Outcome::TimedOut => format!("ran into its time limit, the `timeout` of {limit} in {DECLARED_FILE}"),
        Outcome::Signal { number } if result.out_of_memory > 0 => {
            format!(
                "ended by signal {number}: memory ran out, and the kernel ended {}",
                counted_big(result.out_of_memory)
            )
        }
        other => other.to_string(),
    };
    match &result.void {
        _ if result.in_fetch => format!("was not run: its fetch command {outcome}"),
        Some(void) => format!("{outcome}, which counts for no files: {void}"),
        None => outcome,
    }
}

fn counted_big(processes: u64) -> String {
    counted(usize::try_from(processes).unwrap_or(usize::MAX), "process")
}

fn ran(result: &TestResult, budget: usize) -> RanTest {
    let (output, cut) = last(&result.tail, budget);
    let changes = result.changes.iter().take(20);
    let changes = changes.map(|c| ChangedFile { path: c.path.shown(), how: c.how.to_string() });
    let left_behind = result.left_behind.len();
    RanTest {
        name: result.test.name.clone(),
        passed: result.passed(),
        outcome: if result.passed() { result.outcome.to_string() } else { why(result) },
        seconds: (result.duration.as_secs_f64() * 1_000.0).round() / 1_000.0,
        fresh: result.run.fresh,
        emptied: result.emptied.clone(),
        with: result.run.brought.clone(),
        output,
        shown: result.tail.len() - cut,
        of: result.lines,
        void: result.void.clone(),
        changed: changes.collect(),
        processes_ended: (left_behind > 0).then_some(left_behind),
        out_of_memory: (result.out_of_memory > 0).then_some(result.out_of_memory),
        notes: result.notes.clone(),
    }
}

/// The last lines that fit the budget, as one text, and how many were left out before them.
fn last(tail: &[String], budget: usize) -> (String, usize) {
    let mut bytes = 0;
    let fits = tail.iter().rev().take_while(|line| {
        bytes += page::json_bytes(line) + 2;
        bytes <= budget
    });
    let kept = fits.count();
    let cut = tail.len() - kept;
    if kept == 0 && cut > 0 {
        let line = &tail[tail.len() - 1];
        let start = line.ceil_char_boundary(line.len().saturating_sub(budget / 6));
        return (format!("... {}\n", &line[start..]), cut - 1);
    }
    (lines(tail[cut..].iter().map(String::as_str)), cut)
}

pub(super) fn lines<'a>(all: impl Iterator<Item = &'a str>) -> String {
    all.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t15_the_tail_is_cut_between_characters() {
        let tail: Vec<String> = (0..100).map(|n| format!("{n}{}", "\u{1f600}".repeat(40))).collect();
        let (text, cut) = last(&tail, 2_000);
        assert!(text.len() <= 2_000 && cut > 80 && text.ends_with("\u{1f600}\n"));
        let (text, cut) = last(&["\u{1f600}".repeat(5_000)], 2_000);
        assert!(text.len() < 2_000 && cut == 0 && text.starts_with("... \u{1f600}"));
    }
}
