//! `ocx_save`: every change as one check-in on the working branch, then to the server.

use serde_json::{Map, Value, json};

use super::answer::{NextCall, Operation, Stop};
use super::catalogue::{Acts, Tool};
use super::context::changed;
use super::declare::{Capability, Declaration, Field, FieldKind, Hints};
use super::deliver::{Written, deliver};
use super::input::Input;
use super::plan::{Permit, Plan};
use super::session::Call;
use crate::error::{Error, Kind};
use crate::name::Hash;
use crate::repo::SyncOptions;
use crate::run::{Comment, Ready, Saving, Untested, settings_changed};

/// How many names of each list are shown.
const NAMES_MAX: usize = 40;

/// The most bytes of a part, before its line breaks are read as spaces; the rule for the line is the comment's.
const PART: FieldKind = FieldKind::Text { bytes_max: 4_000, empty: false };

/// The tool.
pub struct Save;

static DECLARATION: Declaration = Declaration {
    name: "ocx_save",
    title: "Save and push",
    summary: "Commit every change of this local checkout on its working branch, after its tests passed, then push it. \
              After a failed push, save again: with nothing changed it sends what is unsent.",
    needs: Capability::CheckIn,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
    fields: &[
        part("title", "what the check-in does, in one line"),
        part("intent", "why, in one line"),
        part("expression", "what changed and where, in one line"),
        part("demonstrates", "the test that shows it works, in one line"),
    ],
};

const fn part(name: &'static str, doc: &'static str) -> Field {
    Field { name, kind: PART, required: true, positional: false, doc }
}

impl Tool for Save {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn acts(&self) -> Acts {
        Acts::OnCheckout
    }

    fn writes(&self) -> bool {
        true
    }

    /// A whole comment in `title` is its four parts.
    fn meant(&self, _call: &Call<'_>, mut fields: Map<String, Value>) -> NextCall {
        let whole = fields.get("title").and_then(Value::as_str).unwrap_or_default().to_owned();
        for line in whole.lines() {
            let part = line.split_once(':').and_then(|(label, _)| {
                DECLARATION.fields.iter().find(|f| f.name.eq_ignore_ascii_case(label))
            });
            match part {
                Some(part) if !fields.contains_key(part.name) => {
                    fields.insert(part.name.into(), line.into());
                    fields.insert("title".into(), whole.lines().next().unwrap_or_default().into());
                }
                _ => {}
            }
        }
        NextCall::new(DECLARATION.name, Value::Object(fields))
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Stop> {
        let part = |name| input.required(name);
        let comment =
            Comment::new(part("title")?, part("intent")?, part("expression")?, part("demonstrates")?)?;
        let again = input.again();
        let saving = call.run().saving(call.user(), call.watch().token()).map_err(explained)?;
        let remote = call.run().checkout().repository().remote()?.is_some();
        let mut log = vec![Operation::reads("read_status")];
        let known = match &saving {
            Saving::Make(ready) => {
                if remote && ready.continues() {
                    log.push(Operation::changes("pull"));
                }
                log.push(Operation::changes("check_in"));
                let mut known = described(ready);
                known["committed"] = false.into();
                known["would_commit"] = true.into();
                known
            }
            Saving::Send(unsent) => {
                json!({"committed": true, "checkin": unsent.last(), "not_pushed": unsent})
            }
        };
        if remote {
            log.push(Operation::changes("push"));
        }
        Ok(Plan::change(log, known, move |permit| perform(call, &saving, &comment, &again, permit)))
    }
}

fn perform(
    call: &Call<'_>,
    saving: &Saving,
    comment: &Comment,
    again: &Value,
    permit: &Permit<'_>,
) -> Result<Value, Stop> {
    // Others may write from here on: the check-in refuses files that are no longer those that were looked at.
    permit.end_turn();
    let mut result = match saving {
        Saving::Make(ready) => {
            call.watch().progress("making the check-in");
            if call.run().catch_up(ready) {
                permit.did("pull");
            }
            let hash = call.run().make(ready, comment, call.watch().token())?;
            permit.did("check_in");
            let mut result = json!({"checkin": hash, "committed": true, "pushed": false});
            merge(&mut result, described(ready));
            result
        }
        Saving::Send(unsent) => json!({
            "checkin": unsent.last(),
            "committed": true,
            "pushed": false,
            "note": "Nothing has changed since; what was saved before is sent. No new check-in was made.",
        }),
    };
    let hash = result["checkin"].as_str().map(Hash::parse).transpose()?;
    let written = Written {
        noun: "check-in",
        done: "committed",
        name: hash.map(|h| h.short().to_owned()).unwrap_or_default(),
        artifact: hash,
        tool: DECLARATION.name,
        again,
    };
    deliver(call, permit, &mut result, &written, &SyncOptions::push())?;
    Ok(result)
}

/// What the save takes in, and what a reader of it should look at.
fn described(ready: &Ready) -> Value {
    let mut changes = changed(&ready.status);
    let of = changes.len();
    changes.truncate(NAMES_MAX);
    let mut told = json!({
        "branch": ready.branch.as_str(),
        "parent": ready.parent.hash,
        "user": ready.user.as_str(),
        "tree": ready.tree,
        "changed": changes,
        "shown": changes.len(),
        "of": of,
    });
    told["tests"] = if ready.tests.is_empty() {
        "none declared".into()
    } else {
        ready.tests.iter().map(|t| json!({"name": t.name, "passed": true})).collect()
    };
    if !ready.tests_changed.is_empty() {
        told["tests_changed"] =
            ready.tests_changed.iter().map(|c| json!({"name": c.name, "old": c.old, "new": c.new})).collect();
    }
    let settings = settings_changed(&ready.status);
    if !settings.is_empty() {
        told["settings_changed"] = settings.iter().map(|p| p.shown()).collect();
    }
    if !ready.status.ignored.is_empty() {
        let ignored = &ready.status.ignored;
        told["ignored"] = ignored.iter().take(NAMES_MAX).map(ToString::to_string).collect();
        if ignored.len() > NAMES_MAX {
            told["ignored_of"] = ignored.len().into();
        }
    }
    told
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

/// The refusal of a save, with the call that brings it nearer.
fn explained(error: Error) -> Stop {
    let untested = std::error::Error::source(&error).and_then(|s| s.downcast_ref::<Untested>());
    let next = match (error.kind(), untested.map(|u| u.0.as_slice())) {
        (Kind::Untested, Some([only])) => Some(("ocx_test", json!({"name": only}))),
        (Kind::Untested, _) => Some(("ocx_test", json!({}))),
        (Kind::Unchanged | Kind::Changed, _) => Some(("ocx_context", json!({}))),
        _ => None,
    };
    let stop = Stop::from(error);
    match next {
        Some((tool, arguments)) => stop.next(tool, arguments),
        None => stop,
    }
}
