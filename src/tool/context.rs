//! `ocx_context`: what the run is for, where it stands, and what it may do next.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::answer::{NextCall, Operation, Refusal};
use super::binding::Guidance;
use super::call::Call;
use super::changes::ChangedFile;
use super::declare::{Acts, Capability, Declaration, Hints};
use super::facts::{self, CallerReport, ServerFacts};
use super::files::{entries, shortened};
use super::input::Input;
use super::interface::Tool;
use super::left_out::LeftOutFiles;
use super::plan::Plan;
use super::publication;
use super::result::{ToolResult, schema_of};
use crate::checkout::Status;
use crate::error::{Error, Result};
use crate::name::Hash;
use crate::testing::DECLARED_FILE;
use crate::work::Standing;

/// How many entries of each list are shown.
const ENTRIES_MAX: usize = 30;

/// The tool.
pub struct Context;

static DECLARATION: Declaration = Declaration {
    name: "ocx_context",
    title: "Where the work stands",
    summary: "Start here. This local checkout's objective, working branch, files changed and not saved, check-ins not \
              pushed, and declared tests with their standing.",
    needs: Capability::Read,
    acts: Acts::LooksAtCheckout,
    writes: false,
    hints: Hints::LOOKS,
    fields: &facts::CALLER,
    result: schema_of::<ContextResult>,
};

/// Where the work stands.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ContextResult {
    objective: Option<String>,
    branch: String,
    user: String,
    parent: ParentCheckIn,
    top: Vec<String>,
    changed: List<ChangedFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cannot_be_saved: Option<List<RefusedFile>>,
    #[serde(flatten)]
    left_out: LeftOutFiles,
    not_pushed: List<Hash>,
    tests: Tests,
    /// What was left of a save, or of an update, that was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    recovered: Option<String>,
    server_facts: ServerFacts,
    caller_report: CallerReport,
    guidance: Guidance,
    next_call: Option<NextCall>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ParentCheckIn {
    checkin: Hash,
    branch: String,
    time: String,
    comment: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct RefusedFile {
    name: String,
    why: String,
}

/// A list, with how much of it is shown where that is not all.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum List<T> {
    Whole(Vec<T>),
    Cut { shown: usize, of: usize, first: Vec<T> },
}

/// The declared tests and how each stands on these files.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum Tests {
    Broken { broken: String, next_step: Option<String> },
    None(String),
    Declared(Vec<DeclaredTest>),
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct DeclaredTest {
    name: String,
    command: String,
    standing: String,
}

impl ToolResult for ContextResult {}

impl Tool for Context {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let run = call.workspace()?;
        let checkout = run.checkout();
        let status = checkout.status()?;
        let parent = call.store().check_in(&checkout.parent()?)?;
        let unsent = run.unsent()?;
        let standings = run.standings(&status);
        let refused = status.refused.iter();
        let refused = refused.map(|(name, why)| RefusedFile { name: name.clone(), why: why.clone() });
        let result = ContextResult {
            objective: run.objective()?,
            branch: run.branch()?.to_string(),
            user: call.user().to_string(),
            parent: ParentCheckIn {
                checkin: parent.hash,
                branch: parent.branch,
                time: parent.time,
                comment: crate::text::cut(&parent.comment, 600).to_owned(),
            },
            top: shortened(entries(status.files.keys(), None)),
            changed: List::of(changed(&status)),
            cannot_be_saved: (!status.refused.is_empty()).then(|| List::of(refused.collect())),
            left_out: LeftOutFiles::of(&status.left_out),
            not_pushed: List::of(unsent),
            tests: tests(&standings),
            recovered: run.recovered()?,
            server_facts: facts::server_facts(call, publication::not_asked())?,
            caller_report: facts::caller_report(input),
            guidance: facts::guidance(call, input),
            next_call: facts::next_call(call, input, next_call(call, &status, &standings)),
        };
        Ok(Plan::looked(vec![Operation::reads("read_status")], result))
    }
}

impl<T> List<T> {
    fn of(mut entries: Vec<T>) -> Self {
        let of = entries.len();
        entries.truncate(ENTRIES_MAX);
        if entries.len() == of {
            Self::Whole(entries)
        } else {
            Self::Cut { shown: entries.len(), of, first: entries }
        }
    }
}

pub(super) fn changed(status: &Status) -> Vec<ChangedFile> {
    let changes = status.changes.iter();
    changes.map(|c| ChangedFile { path: c.path.shown(), how: c.how.to_string() }).collect()
}

fn tests(standings: &Result<Vec<Standing>>) -> Tests {
    match standings {
        Err(e) => Tests::Broken { broken: e.to_string(), next_step: e.hint().map(str::to_owned) },
        Ok(none) if none.is_empty() => {
            Tests::None(format!("none declared: there is no test in {DECLARED_FILE}"))
        }
        Ok(some) => {
            let declared = |s: &Standing| DeclaredTest {
                name: s.name.clone(),
                command: s.command.clone(),
                standing: s.word.clone(),
            };
            Tests::Declared(some.iter().map(declared).collect())
        }
    }
}

/// What to do next in this checkout.
fn next_call(call: &Call<'_>, status: &Status, standings: &Result<Vec<Standing>, Error>) -> Option<NextCall> {
    let untested = standings.as_ref().is_ok_and(|all| all.iter().any(|s| !s.passed()));
    if call.owns_checkout() && !status.changes.is_empty() && untested {
        return Some(NextCall::new("ocx_test", json!({})));
    }
    let readme = |name: &&str| status.files.keys().any(|p| p.as_str() == *name);
    let path = ["README.md", "README", "README.txt"].into_iter().find(readme)?;
    Some(NextCall::new("ocx_read", json!({"path": path})))
}
