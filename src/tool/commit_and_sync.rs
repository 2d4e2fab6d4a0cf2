//! `ocx_commit_and_sync`: the check-in of `ocx_save`, made where the caller's files are, and as a bundle for an `ocx_sync`
//! elsewhere. Nothing is pushed.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::answer::{NextCall, Refusal};
use super::call::Call;
use super::commit::{self, CommitPreview, Committed, FIELDS, Taken, TestsPassed};
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::encoded_bundle::{BundleSummary, EncodedBundle, Form};
use super::input::Input;
use super::interface::Tool;
use super::plan::{Permit, Plan};
use super::result::{ToolResult, schema_of_either};
use crate::bundle::Selection;
use crate::error::{Error, Kind, Result};
use crate::name::{Branch, Hash};
use crate::work::{Comment, Delivery, SavePlan};

/// The tool.
pub struct CommitAndSync;

static DECLARATION: Declaration = Declaration {
    name: "ocx_commit_and_sync",
    title: "Commit here, publish elsewhere",
    summary: "Commit every change of this checkout as ocx_save does, push nothing, and get the branch as a bundle with \
              the ocx_sync call that publishes it on your remote OCX connection.",
    needs: Capability::CheckIn,
    acts: Acts::OnCallersFiles,
    writes: true,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: false },
    fields: &[
        FIELDS[0],
        FIELDS[1],
        FIELDS[2],
        FIELDS[3],
        FIELDS[4],
        Field::hash("have").doc("the full hash of a check-in that the remote holds too: the bundle then leaves out what is before it"),
    ],
    result: schema_of_either::<CommitPreview, CommitAndSyncResult>,
};

/// The check-in, and the bundle that takes it elsewhere.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct CommitAndSyncResult {
    checkin: Option<Hash>,
    committed: bool,
    pushed: bool,
    #[serde(flatten)]
    taken: Option<Taken>,
    /// What is known of the tests if the check-in was made before.
    #[serde(rename = "tests", skip_serializing_if = "Option::is_none")]
    evidence: Option<TestsPassed>,
    note: &'static str,
    /// The branch that is sent, where `taken` does not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(flatten)]
    bundled: Option<Bundled>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Bundled {
    #[serde(rename = "bundled")]
    summary: BundleSummary,
    size: usize,
    /// The bundle as base64.
    bundle: String,
    next_call: RemoteCall,
}

/// The call that publishes the bundle, on another connection.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct RemoteCall {
    connection: &'static str,
    tool: &'static str,
    #[schemars(with = "Map<String, Value>")]
    arguments: SyncInput,
}

#[derive(Debug, Clone, Serialize)]
struct SyncInput {
    branch: String,
    bundle: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    have: Option<Hash>,
}

impl ToolResult for CommitAndSyncResult {}

impl Tool for CommitAndSync {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn repair(&self, _call: &Call<'_>, fields: Map<String, Value>) -> NextCall {
        NextCall::new(DECLARATION.name, commit::repair(fields))
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let comment = commit::comment(input)?;
        let have = input.text("have").map(|text| held(call, text)).transpose()?;
        let saving = commit::prepare(call, input, Delivery::Bundle)?;
        let log = commit::operations(call, &saving)?;
        Ok(Plan::change(log, commit::preview(&saving), move |permit| {
            perform(call, permit, &saving, &comment, have)
        }))
    }
}

fn perform(
    call: &Call<'_>,
    permit: &Permit<'_>,
    saving: &SavePlan,
    comment: &Comment,
    have: Option<Hash>,
) -> Result<CommitAndSyncResult, Refusal> {
    let Committed { checkin, taken, tests } = commit::perform(call, permit, saving, comment)?;
    let note = if matches!(saving, SavePlan::Send(_)) {
        "Nothing has changed since, and no new check-in was made: the bundle holds what was committed before. An \
         ocx_save here would push it."
    } else {
        "Nothing was pushed: make `next_call` on your remote connection. An ocx_save here would push this check-in."
    };
    let result = CommitAndSyncResult {
        checkin,
        committed: true,
        pushed: false,
        taken,
        evidence: tests,
        note,
        branch: None,
        bundled: None,
    };
    permit.looked("export_bundle");
    let branch = match branch(call, saving) {
        Ok(branch) => branch,
        Err(e) => return Err(Refusal::from(e).reached(result)),
    };
    let named = result.taken.is_none().then(|| branch.to_string());
    let result = CommitAndSyncResult { branch: named, ..result };
    match bundle(call, &branch, have) {
        Ok(bundled) => Ok(CommitAndSyncResult { bundled: Some(bundled), ..result }),
        Err(e) => Err(Refusal::from(e).reached(result)),
    }
}

/// The bundle, and the call that publishes it.
fn bundle(call: &Call<'_>, branch: &Branch, have: Option<Hash>) -> Result<Bundled> {
    let mut selection = Selection::branch(branch.clone());
    if let Some(have) = have {
        selection = selection.for_one_who_has(have);
    }
    let Some(encoded) = EncodedBundle::of(call.repository(), &selection, Form::Wire)? else {
        let what = "whoever holds `have` holds every check-in of the branch";
        return Err(
            Error::new(Kind::Unchanged, what).with_hint("Nothing is to be sent; go on with the next task.")
        );
    };
    let encoded = encoded.fitting(&format!(
        "The check-in is made and stays. Export it by command, `ocx bundle export push.bundle --branch {branch} --wire`, \
         and send that file's base64 as `bundle` of ocx_sync; or give in `have` a newer check-in that the remote holds."
    ))?;
    let (summary, text) = (encoded.summary(), encoded.text());
    Ok(Bundled {
        size: summary.size,
        summary,
        bundle: text.clone(),
        next_call: RemoteCall {
            connection: "configured_remote_ocx",
            tool: "ocx_sync",
            arguments: SyncInput { branch: branch.to_string(), bundle: text, have },
        },
    })
}

/// The branch that is sent: the one of the check-in.
fn branch(call: &Call<'_>, saving: &SavePlan) -> Result<Branch> {
    match saving {
        SavePlan::Make(ready) => Ok(ready.branch.clone()),
        SavePlan::Send(unsent) => match unsent.check_ins.last() {
            Some(last) => Branch::parse(&call.store().check_in(last)?.branch),
            None => call.workspace()?.branch(),
        },
        SavePlan::Include(_) => call.workspace()?.branch(),
    }
}

fn held(call: &Call<'_>, text: &str) -> Result<Hash> {
    let hint = "Give in `have` the full hash of a check-in that this clone and the remote hold, all 40 or 64 hex digits.";
    let hash = Hash::parse(text)
        .map_err(|e| Error::new(Kind::Invalid, format!("field `have`: {e}")).with_hint(hint))?;
    match call.store().check_in(&hash) {
        Ok(info) if !info.private => Ok(hash),
        Ok(_) => {
            Err(Error::new(Kind::NotFound, format!("field `have`: check-in `{hash}` is private"))
                .with_hint(hint))
        }
        Err(e) => Err(Error::new(e.kind(), format!("field `have`: {e}")).with_hint(hint).caused_by(e)),
    }
}
