//! `ocx_context`: what the run is for, where it stands, and what it may do next.

use serde_json::{Map, Value, json};

use super::answer::{NextCall, Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Hints};
use super::files::{entries, shortened};
use super::input::Input;
use super::interface::Tool;
use super::plan::Plan;
use super::{facts, publication};
use crate::checkout::Status;
use crate::error::{Error, Result};
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
};

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
        let mut result = Map::new();
        result.insert("objective".into(), json!(run.objective()?));
        result.insert("branch".into(), run.branch()?.to_string().into());
        result.insert("user".into(), call.user().as_str().into());
        result.insert(
            "parent".into(),
            json!({
                "checkin": parent.hash, "branch": parent.branch, "time": parent.time,
                "comment": crate::text::cut(&parent.comment, 600),
            }),
        );
        result.insert("top".into(), json!(shortened(entries(status.files.keys(), None))));
        result.insert("changed".into(), list(changed(&status)));
        if !status.refused.is_empty() {
            let refused = status.refused.iter().map(|(name, why)| json!({"name": name, "why": why}));
            result.insert("cannot_be_saved".into(), list(refused.collect()));
        }
        result.insert("ignored".into(), list(status.ignored.iter().cloned().map(Value::from).collect()));
        result.insert("not_pushed".into(), list(unsent.iter().map(|h| h.as_str().into()).collect()));
        result.insert("tests".into(), tests(&standings));
        if let Some(found) = run.recovered()? {
            result.insert("recovered".into(), found.into());
        }
        result.insert("server_facts".into(), facts::server_facts(call, &publication::not_asked())?);
        result.insert("caller_report".into(), facts::caller_report(input));
        result.insert("guidance".into(), facts::guidance(call, input));
        let next = facts::next_call(call, input, next_call(call, &status, &standings));
        result.insert("next_call".into(), next.map_or(Value::Null, |n| n.to_json()));
        Ok(Plan::looked(vec![Operation::reads("read_status")], Value::Object(result)))
    }
}

/// A list with how much of it is shown.
fn list(mut entries: Vec<Value>) -> Value {
    let of = entries.len();
    entries.truncate(ENTRIES_MAX);
    if entries.len() == of {
        Value::Array(entries)
    } else {
        json!({"shown": entries.len(), "of": of, "first": entries})
    }
}

pub(super) fn changed(status: &Status) -> Vec<Value> {
    status.changes.iter().map(|c| json!({"path": c.path.shown(), "how": c.how.to_string()})).collect()
}

fn tests(standings: &Result<Vec<Standing>>) -> Value {
    match standings {
        Err(e) => json!({"broken": e.to_string(), "next_step": e.hint()}),
        Ok(none) if none.is_empty() => format!("none declared: there is no test in {DECLARED_FILE}").into(),
        Ok(some) => {
            some.iter().map(|s| json!({"name": s.name, "command": s.command, "standing": s.word})).collect()
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
