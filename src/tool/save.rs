//! `ocx_save`: every change as one check-in on the working branch, then to the server.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::answer::{NextCall, Operation, Refusal};
use super::call::Call;
use super::commit::{self, CommitPreview, Committed, Taken, TestsPassed};
use super::declare::{Acts, Capability, Declaration, Hints};
use super::deliver::{DeliveryDetails, Written, deliver};
use super::input::Input;
use super::interface::Tool;
use super::plan::{Permit, Plan};
use super::result::{ToolResult, schema_of_either};
use crate::name::Hash;
use crate::sync::SyncOptions;
use crate::work::{Comment, Delivery, SavePlan};

/// The tool.
pub struct Save;

static DECLARATION: Declaration = Declaration {
    name: "ocx_save",
    title: "Save and push",
    summary: "Commit every change of this local checkout on its working branch, after its tests passed, then push it. \
              After a failed push, save again: with nothing changed it sends what is unsent.",
    needs: Capability::CheckIn,
    acts: Acts::OnCheckout,
    writes: true,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
    fields: &commit::FIELDS,
    result: schema_of_either::<CommitPreview, SaveResult>,
};

/// The check-in, and how it was sent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct SaveResult {
    checkin: Option<Hash>,
    committed: bool,
    pushed: bool,
    #[serde(flatten)]
    taken: Option<Taken>,
    /// What is known of the tests if the check-in was made before.
    #[serde(rename = "tests", skip_serializing_if = "Option::is_none")]
    evidence: Option<TestsPassed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    #[serde(flatten)]
    delivery: DeliveryDetails,
}

impl ToolResult for SaveResult {}

impl Tool for Save {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn repair(&self, _call: &Call<'_>, fields: Map<String, Value>) -> NextCall {
        NextCall::new(DECLARATION.name, commit::repair(fields))
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let comment = commit::comment(input)?;
        let again = input.again();
        let saving = commit::prepare(call, input, Delivery::Push)?;
        let mut log = commit::operations(call, &saving)?;
        let sends = !matches!(saving, SavePlan::Include(_)) && call.has_remote()?;
        log.extend(sends.then(|| Operation::changes("push")));
        Ok(Plan::change(log, commit::preview(&saving), move |permit| {
            perform(call, &saving, &comment, &again, permit)
        }))
    }
}

fn perform(
    call: &Call<'_>,
    saving: &SavePlan,
    comment: &Comment,
    again: &Value,
    permit: &Permit<'_>,
) -> Result<SaveResult, Refusal> {
    let Committed { checkin, taken, tests } = commit::perform(call, permit, saving, comment)?;
    let sent_only = matches!(saving, SavePlan::Send(_))
        .then_some("Nothing has changed since; what was saved before is sent. No new check-in was made.");
    let written = Written {
        noun: "check-in",
        done: "committed",
        name: checkin.map(|hash| hash.short().to_owned()).unwrap_or_default(),
        artifact: checkin,
        tool: DECLARATION.name,
        again,
    };
    deliver(call, permit, &written, &SyncOptions::push(), |delivery| SaveResult {
        checkin,
        committed: true,
        pushed: delivery.pushed,
        taken,
        evidence: tests,
        note: sent_only,
        delivery: delivery.details,
    })
}
