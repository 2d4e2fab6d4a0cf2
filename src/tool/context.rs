//! `ocx_context`: what the run is for, where it stands, and what it may do next.

use serde_json::{Map, Value, json};

use super::answer::{NextCall, Operation, Stop};
use super::catalogue::{TOOLS, Tool};
use super::declare::{Capability, Declaration, Field, FieldKind, Hints};
use super::input::Input;
use super::plan::Plan;
use super::session::{Call, entries, shortened};
use crate::error::{Error, Result};
use crate::repo::Status;
use crate::run::{DECLARED_FILE, Standing};

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
    hints: Hints::LOOKS,
    fields: &[
        Field {
            name: "caller",
            kind: FieldKind::Word(&["clone_available", "setup_feasible", "unknown_or_unavailable"]),
            required: false,
            positional: false,
            doc: "what you know of a clone of your own, apart from this checkout; leave out if you did not look",
        },
        Field {
            name: "caller_reason",
            kind: FieldKind::Text { bytes_max: 500, empty: false },
            required: false,
            positional: false,
            doc: "why you say so in `caller`",
        },
    ],
};

impl Tool for Context {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Stop> {
        let run = call.run();
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
                "comment": crate::repo::text::cut(&parent.comment, 600),
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
        result.insert("server_facts".into(), server_facts(call, &parent.hash)?);
        result.insert("caller_report".into(), caller_report(input));
        let next = next_call(&status, &standings);
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
        Err(e) => json!({"broken": e.to_string(), "next_step": e.next_step()}),
        Ok(none) if none.is_empty() => format!("none declared: there is no test in {DECLARED_FILE}").into(),
        Ok(some) => {
            some.iter().map(|s| json!({"name": s.name, "command": s.command, "standing": s.word})).collect()
        }
    }
}

fn server_facts(call: &Call<'_>, base: &crate::name::Hash) -> Result<Value> {
    let checkout = call.run().checkout();
    let remote = checkout.repository().remote()?;
    Ok(json!({
        "scope": "current_connection",
        "provenance": "endpoint",
        "execution_location": "local_checkout",
        "release": env!("CARGO_PKG_VERSION"),
        "tools": TOOLS.iter().map(|t| t.declaration().name).collect::<Vec<_>>(),
        "login": call.user().as_str(),
        "capabilities": call.store().capabilities(call.user())?.to_string(),
        "capabilities_source": "local_repository",
        "checkout_id": checkout.id()?,
        "base": base,
        "remote": remote.map(|r| r.to_string()),
    }))
}

fn caller_report(input: &Input) -> Value {
    let checked = input.text("caller").is_some();
    json!({
        "scope": "current_caller_environment",
        "provenance": "client",
        "state": input.text("caller").unwrap_or("unknown_or_unavailable"),
        "bounded_check": if checked { "reported" } else { "not_attempted" },
        "reason": input.text("caller_reason").unwrap_or(if checked { "not given" } else { "not checked" }),
    })
}

/// The work is in this checkout whatever the caller has elsewhere, so the next call is one here.
fn next_call(status: &Status, standings: &Result<Vec<Standing>, Error>) -> Option<NextCall> {
    let untested = standings.as_ref().is_ok_and(|all| all.iter().any(|s| !s.passed()));
    if !status.changes.is_empty() && untested {
        return Some(NextCall::new("ocx_test", json!({})));
    }
    let readme = |name: &&str| status.files.keys().any(|p| p.as_str() == *name);
    let path = ["README.md", "README", "README.txt"].into_iter().find(readme)?;
    Some(NextCall::new("ocx_read", json!({"path": path})))
}
