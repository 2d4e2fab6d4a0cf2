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
use crate::testing::{Activity, DECLARED_FILE, Declared, Outcome, TestReport, TestResult, Waiter, Which};

/// The bytes that the output of passed tests gets beside that of failed ones.
const PASSED_BYTES: usize = 1_500;

/// How many names of withheld variables are shown.
const WITHHELD_MAX: usize = 40;

/// The tool.
pub struct Test;

static DECLARATION: Declaration = Declaration {
    name: "ocx_test",
    title: "Run the tests",
    summary: "Run the tests that ocx-tests.json declares, or the one called `name`, on a copy of what ocx_save would \
              commit. A pass counts for exactly that. If it still runs, the same call goes on waiting.",
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
struct RanTest {
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
            command: t.shown(),
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
    let mut progress = |now: &Activity| call.control().progress(progress_line(now));
    let mut waiter =
        Waiter { limit: call.control().patience(), cancel: call.control().handle(), progress: &mut progress };
    call.workspace()?.test(declared, &which, &mut waiter)
}

fn progress_line(now: &Activity) -> String {
    match now {
        Activity::Waiting { on, elapsed } => format!("waiting for {on} for {} s", elapsed.as_secs()),
        Activity::Running(now) => {
            let lines = counted(usize::try_from(now.lines).unwrap_or(usize::MAX), "line");
            let what = if now.fetching { "the fetch command of " } else { "" };
            format!("{what}`{}` has run for {} s and printed {lines}", now.test, now.elapsed.as_secs())
        }
    }
}

/// What a report says: an answer that is ok only when every test passed.
fn judged(report: &TestReport, name: Option<&str>) -> Result<RunResult, Refusal> {
    let again = name.map_or_else(|| json!({}), |n| json!({"name": n}));
    let result = RunResult::Ran(ran_tests(report));
    if report.passed() {
        return Ok(result);
    }
    if let Some(now) = &report.now {
        let what = match now {
            Activity::Waiting { on, .. } => format!("the tests wait for {on}, which run first"),
            Activity::Running(now) => {
                let (test, tree) = (&now.test, now.tree.short());
                format!("test `{test}` still runs after {} s, on tree {tree}", now.elapsed.as_secs())
            }
        };
        let error =
            Error::new(Kind::TimedOut, what).with_hint("Make the same call again: it goes on waiting.");
        return Err(Refusal::from(error).reached(result).next(DECLARATION.name, again));
    }
    let failed: Vec<&TestResult> = report.results.iter().filter(|r| !r.passed()).collect();
    let names: Vec<String> = failed.iter().map(|r| format!("`{}` {}", r.test.name, why(r))).collect();
    let error = Error::new(Kind::Untested, names.join("; ")).with_hint(next_step(&failed));
    let mut stop = Refusal::from(error).reached(result);
    if !failed.is_empty() && failed.iter().all(|r| r.outcome == Outcome::Passed && !r.in_fetch) {
        stop = stop.next(DECLARATION.name, again);
    }
    Err(stop)
}

/// The tests that ended, those that failed first: they get the room.
fn ran_tests(report: &TestReport) -> RanTests {
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

fn why(result: &TestResult) -> String {
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

fn next_step(failed: &[&TestResult]) -> String {
    if failed.iter().all(|r| r.outcome == Outcome::Passed && r.void.is_some()) {
        return "Run the tests again when nothing else writes there; without `place` a test runs on a copy of its own, \
                which nothing else writes."
            .into();
    }
    if failed.iter().any(|r| r.in_fetch) {
        return "Read what the fetch command printed and mend it, or ask the owner: it may use the network, the tests \
                may not."
            .into();
    }
    if failed.iter().any(|r| r.outcome == Outcome::TimedOut) {
        return format!("Find what takes so long; `timeout` in {DECLARED_FILE} allows more time.");
    }
    if failed.iter().any(|r| !r.test.network && lacks_network(r)) {
        return format!(
            "Tests have no network. What is in no package cache is fetched by a `fetch` command that {DECLARED_FILE} \
             declares for the test, such as \"fetch\": \"npm ci\"."
        );
    }
    "Read what the test printed, edit, and run ocx_test again; `log_from` pages through the whole log.".into()
}

/// Whether a test's last words are those of a program that misses the network.
fn lacks_network(result: &TestResult) -> bool {
    const WORDS: [&str; 12] = [
        "could not resolve host",
        "temporary failure in name resolution",
        "name or service not known",
        "network is unreachable",
        "eai_again",
        "enotfound",
        "unknownhostexception",
        "dial tcp: lookup",
        "failed to download",
        "failed to establish a new connection",
        "no matching distribution found",
        "enetunreach",
    ];
    let heard = result.tail.iter().map(|line| line.to_lowercase());
    heard.into_iter().any(|line| WORDS.iter().any(|word| line.contains(word)))
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
