//! `ocx_test`: runs the tests that the checkout declares, waits a while, and records what passed on which tree.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::input::Input;
use super::interface::Tool;
use super::page::{self, BYTES_MAX, counted};
use super::plan::Plan;
use super::ran_tests::{RanTests, lines, ran_tests, why};
use super::result::{ToolResult, schema_of};
use super::suggest;
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::testing::{Activity, DECLARED_FILE, Declared, Outcome, TestReport, TestResult, Waiter, Which};

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
