//! `ocx_test`: runs the tests that the checkout declares, waits a while, and records what passed on which tree.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::changes::ChangedFile;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::input::Input;
use super::interface::Tool;
use super::page::{self, BYTES_MAX, counted};
use super::plan::Plan;
use super::result::{ToolResult, schema_of};
use super::suggest;
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::testing::{DECLARED_FILE, Declared, Outcome, Progress, TestReport, TestResult, Waiter, Which};

/// The tool.
pub struct Test;

static DECLARATION: Declaration = Declaration {
    name: "ocx_test",
    title: "Run the tests",
    summary: "Run the tests that ocx-tests.json declares, or the one called `name`, on the files as they are. A pass \
              counts for exactly these files. If it still runs, the same call goes on waiting.",
    needs: Capability::CheckIn,
    acts: Acts::OnCheckout,
    writes: false,
    hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: true },
    fields: &[
        Field::text("name", 200)
            .positional()
            .doc("one of the tests that ocx_context lists; without it, every test"),
        Field::place("log_from")
            .doc("run nothing; give the last run's full log from this line on (needs `name`)"),
    ],
    result: schema_of::<RunResult>,
};

/// What the tests did or would do, or a log.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum RunResult {
    Planned { would_run: Vec<PlannedTest> },
    Ran(RanTests),
    Log(LogPage),
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct PlannedTest {
    name: String,
    command: String,
    timeout: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct RanTests {
    tests: Vec<RanTest>,
    /// The test that still runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<RunningTest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_run: Option<Vec<String>>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct RanTest {
    name: String,
    passed: bool,
    outcome: String,
    seconds: f64,
    tree: Hash,
    /// The last lines that it printed.
    output: String,
    shown: usize,
    of: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_meanwhile: Option<Vec<ChangedFile>>,
    /// How many processes it left, which were ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    processes_ended: Option<usize>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct RunningTest {
    name: String,
    seconds: u64,
    lines: u64,
    last: String,
}

/// A page of the last run's whole log.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct LogPage {
    name: String,
    outcome: Option<String>,
    started: String,
    tree: Hash,
    first_line: u64,
    last_line: u64,
    lines: u64,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl ToolResult for RunResult {}

impl Tool for Test {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let name = input.text("name");
        if let Some(from) = input.number("log_from") {
            return logged(call, name, from);
        }
        let tests = call.workspace()?.declared()?;
        let wanted: Vec<_> = match name {
            Some(name) => vec![tests.test(name).map_err(|e| not_declared(call, &tests, name, e))?],
            None => tests.tests().iter().collect(),
        };
        if wanted.is_empty() {
            return Err(Error::new(Kind::NotFound, format!("no test is declared in `{DECLARED_FILE}`"))
                .with_hint("Nothing has to pass: save as it is, or declare a test in ocx-tests.json.")
                .into());
        }
        let planned = wanted.iter().map(|t| PlannedTest {
            name: t.name.clone(),
            command: t.command.clone(),
            timeout: t.limit.to_string(),
        });
        let planned = RunResult::Planned { would_run: planned.collect() };
        let log = wanted.iter().map(|_| Operation::changes("run_test")).collect();
        Ok(Plan::change(log, planned, move |permit| {
            let report = run(call, &tests, name)?;
            for _ in &report.results {
                permit.did("run_test");
            }
            judged(&report, name)
        }))
    }
}

/// A name that is not declared comes with the nearest one that is, else with all tests.
fn not_declared(call: &Call<'_>, tests: &Declared, name: &str, error: Error) -> Refusal {
    let near = suggest::nearest(name, tests.tests().iter().map(|t| t.name.as_str()));
    let next = near.map_or_else(|| json!({}), |name| json!({"name": name}));
    Refusal::from(error).or_next((!tests.tests().is_empty()).then(|| call.again(next)))
}

/// Runs the tests and waits; the answer stands for all of them.
fn run(call: &Call<'_>, declared: &Declared, name: Option<&str>) -> Result<TestReport> {
    let which = name.map_or(Which::All, |n| Which::Named(n.to_owned()));
    let mut progress = |now: &Progress| call.control().progress(progress_line(now));
    let mut waiter =
        Waiter { limit: call.control().patience(), cancel: call.control().handle(), progress: &mut progress };
    call.workspace()?.test(declared, &which, &mut waiter)
}

fn progress_line(now: &Progress) -> String {
    let lines = counted(usize::try_from(now.lines).unwrap_or(usize::MAX), "line");
    format!("`{}` has run for {} s and printed {lines}", now.test, now.elapsed.as_secs())
}

/// What a report says: an answer that is ok only when every test passed.
fn judged(report: &TestReport, name: Option<&str>) -> Result<RunResult, Refusal> {
    let again = name.map_or_else(|| json!({}), |n| json!({"name": n}));
    let budget = BYTES_MAX / report.results.len().max(1);
    let result = RunResult::Ran(RanTests {
        tests: report.results.iter().map(|r| ran(r, budget)).collect(),
        running: report.running.as_ref().map(|now| RunningTest {
            name: now.test.clone(),
            seconds: now.elapsed.as_secs(),
            lines: now.lines,
            last: last(&now.tail, 2_000).0,
        }),
        not_run: (!report.not_run.is_empty()).then(|| report.not_run.clone()),
    });
    if report.passed() {
        return Ok(result);
    }
    if let Some(now) = &report.running {
        let what = format!("test `{}` still runs after {} s", now.test, now.elapsed.as_secs());
        let error =
            Error::new(Kind::TimedOut, what).with_hint("Make the same call again: it goes on waiting.");
        return Err(Refusal::from(error).reached(result).next(DECLARATION.name, again));
    }
    let failed: Vec<&TestResult> = report.results.iter().filter(|r| !r.passed()).collect();
    let names: Vec<String> = failed.iter().map(|r| format!("`{}` {}", r.test.name, why(r))).collect();
    let error = Error::new(Kind::Untested, names.join("; ")).with_hint(next_step(&failed));
    let mut stop = Refusal::from(error).reached(result);
    if failed.iter().all(|r| !r.changes.is_empty()) {
        stop = stop.next(DECLARATION.name, again);
    }
    Err(stop)
}

fn why(result: &TestResult) -> String {
    if let Some(unreadable) = &result.unreadable {
        return format!("left files that cannot be saved: {unreadable}");
    }
    if result.changes.is_empty() || result.outcome != Outcome::Passed {
        return result.outcome.to_string();
    }
    let changed: Vec<String> =
        result.changes.iter().take(5).map(|c| format!("`{}` {}", c.path.shown(), c.how)).collect();
    format!("passed while files changed ({}), so the pass counts for no files", changed.join(", "))
}

fn next_step(failed: &[&TestResult]) -> &'static str {
    if failed.iter().all(|r| r.outcome == Outcome::Passed) {
        "Run the tests again on the files as they are now; a test that changes files every time has to ignore them."
    } else {
        "Read what the test printed, edit, and run ocx_test again; `log_from` pages through the whole log."
    }
}

fn ran(result: &TestResult, budget: usize) -> RanTest {
    let (output, cut) = last(&result.tail, budget);
    let changes = result.changes.iter().take(20);
    let changes = changes.map(|c| ChangedFile { path: c.path.shown(), how: c.how.to_string() });
    let left_behind = result.left_behind.len();
    RanTest {
        name: result.test.name.clone(),
        passed: result.passed(),
        outcome: result.outcome.to_string(),
        seconds: (result.duration.as_secs_f64() * 1_000.0).round() / 1_000.0,
        tree: result.tree,
        output,
        shown: result.tail.len() - cut,
        of: result.lines,
        changed_meanwhile: (!result.changes.is_empty()).then(|| changes.collect()),
        processes_ended: (left_behind > 0).then_some(left_behind),
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

fn lines<'a>(all: impl Iterator<Item = &'a str>) -> String {
    all.flat_map(|line| [line, "\n"]).collect()
}

/// A page of the last run's whole log.
fn logged<'a>(call: &Call<'_>, name: Option<&str>, from: u64) -> Result<Plan<'a>, Refusal> {
    let name = name.ok_or_else(|| {
        Error::new(Kind::Invalid, "field `log_from` needs `name`")
            .with_hint("Name the test whose log is wanted.")
    })?;
    let part = call.workspace()?.log(name, from, page::LINES_MAX)?;
    let mut bytes = 0;
    let shown = part.lines.iter().take_while(|(_, line)| {
        bytes += page::json_bytes(line) + 2;
        bytes <= BYTES_MAX
    });
    let shown = &part.lines[..shown.count().max(1).min(part.lines.len())];
    let last_line = shown.last().map_or(from, |(n, _)| *n);
    let (lines_all, left_out) = (part.entry.lines(), part.entry.left_out());
    let page = LogPage {
        name: name.to_owned(),
        outcome: part.entry.outcome.as_ref().map(ToString::to_string),
        text: lines(shown.iter().map(|(_, line)| line.as_str())),
        started: part.entry.started,
        tree: part.entry.tree,
        first_line: from,
        last_line,
        lines: lines_all,
        next_from: (last_line < lines_all).then_some(last_line + 1),
        note: (left_out > 0).then(|| format!("{left_out} bytes in the middle of the log were not kept.")),
    };
    Ok(Plan::looked(vec![Operation::reads("read_log")], RunResult::Log(page)))
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
