//! The check-in of every change of the checkout, as `ocx_save` and `ocx_commit_and_sync` make it: the same four lines,
//! the same gate, the same words. What becomes of the check-in then is theirs.

use serde_json::{Map, Value, json};

use super::answer::Refusal;
use super::call::Call;
use super::context::changed;
use super::declare::Field;
use super::input::Input;
use super::plan::Permit;
use crate::error::{Error, Kind, Result};
use crate::work::{Comment, Ready, Saving, Untested, Way, settings_changed};

/// How many names of each list are shown.
const NAMES_MAX: usize = 40;

/// The most bytes of a part, before its line breaks are read as spaces; the rule for the line is the comment's.
const PART_BYTES_MAX: usize = 4_000;

/// The four lines of the comment.
pub(super) const PARTS: [Field; 4] = [
    part("title", "what the check-in does, in one line"),
    part("intent", "why, in one line"),
    part("expression", "what changed and where, in one line"),
    part("demonstrates", "the test that shows it works, in one line"),
];

const fn part(name: &'static str, doc: &'static str) -> Field {
    Field::text(name, PART_BYTES_MAX).required().doc(doc)
}

/// The comment of these four lines.
pub(super) fn comment(input: &Input) -> Result<Comment> {
    let part = |name| input.required(name);
    Comment::new(part("title")?, part("intent")?, part("expression")?, part("demonstrates")?)
}

/// The input that was probably meant: a whole comment in `title` is its four parts.
pub(super) fn repair(mut fields: Map<String, Value>) -> Value {
    let whole = fields.get("title").and_then(Value::as_str).unwrap_or_default().to_owned();
    for line in whole.lines() {
        let part = line
            .split_once(':')
            .and_then(|(label, _)| PARTS.iter().find(|f| f.name.eq_ignore_ascii_case(label)));
        match part {
            Some(part) if !fields.contains_key(part.name) => {
                fields.insert(part.name.into(), line.into());
                fields.insert("title".into(), whole.lines().next().unwrap_or_default().into());
            }
            _ => {}
        }
    }
    Value::Object(fields)
}

/// What would be committed now, or what is committed and not sent yet.
///
/// # Errors
/// Whatever forbids the check-in, with the call that brings it nearer.
pub(super) fn prepare(call: &Call<'_>, way: Way) -> Result<Saving, Refusal> {
    call.workspace()?.saving(call.user(), way, call.control().handle()).map_err(explained)
}

/// What is known of it before anything is done.
pub(super) fn known(saving: &Saving) -> Value {
    match saving {
        Saving::Make(ready) => {
            let mut known = described(ready);
            known["committed"] = false.into();
            known["would_commit"] = true.into();
            known
        }
        Saving::Send(unsent) => json!({"committed": true, "checkin": unsent.last(), "not_pushed": unsent}),
    }
}

/// Makes the check-in, where there is one to make.
pub(super) fn perform(
    call: &Call<'_>,
    permit: &Permit<'_>,
    saving: &Saving,
    comment: &Comment,
) -> Result<Value, Refusal> {
    // Others may write from here on: the check-in refuses files that are no longer those that were looked at.
    permit.end_turn();
    let ready = match saving {
        Saving::Make(ready) => ready,
        Saving::Send(unsent) => {
            return Ok(json!({"checkin": unsent.last(), "committed": true, "pushed": false}));
        }
    };
    call.control().progress("making the check-in");
    if call.workspace()?.catch_up(ready, call.control().handle()) {
        permit.did("pull");
    }
    let hash = call.workspace()?.make(ready, comment, call.control().handle())?;
    permit.did("check_in");
    let mut result = json!({"checkin": hash, "committed": true, "pushed": false});
    if let (Value::Object(into), Value::Object(from)) = (&mut result, described(ready)) {
        into.extend(from);
    }
    Ok(result)
}

/// What the check-in takes in, and what a reader of it should look at.
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

/// The refusal of a check-in, with the call that brings it nearer.
fn explained(error: Error) -> Refusal {
    let untested = std::error::Error::source(&error).and_then(|s| s.downcast_ref::<Untested>());
    let next = match (error.kind(), untested.map(|u| u.0.as_slice())) {
        (Kind::Untested, Some([only])) => Some(("ocx_test", json!({"name": only}))),
        (Kind::Untested, _) => Some(("ocx_test", json!({}))),
        (Kind::Unchanged | Kind::Changed, _) => Some(("ocx_context", json!({}))),
        _ => None,
    };
    let stop = Refusal::from(error);
    match next {
        Some((tool, arguments)) => stop.next(tool, arguments),
        None => stop,
    }
}
