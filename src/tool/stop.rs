//! `ocx_stop`: the end of an agent's run, named by its record. Only where a node runs agents.

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::Refusal;
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::input::Input;
use super::interface::Tool;
use super::plan::Plan;
use super::result::{ToolResult, schema_of};
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::record::AgentRecord;
use crate::record::{Forum, Post};

/// The tool.
pub struct Stop;

static DECLARATION: Declaration = Declaration {
    name: "ocx_stop",
    title: "Stop an agent",
    summary: "End an agent's run, on the server that runs it, by its record's hash, which ocx_create gave. What the agent \
              had not saved is dropped, and its response says `stopped`.",
    needs: Capability::Admin,
    acts: Acts::OnRecords,
    writes: false,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: true },
    fields: &[Field::hash("record")
        .required()
        .positional()
        .doc("the full hash of the agent's record, all 40 or 64 hex digits")],
    result: schema_of::<StopResult>,
};

/// The run that is meant.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct StopResult {
    record: Hash,
    login: String,
    runner: String,
    user: String,
}

impl ToolResult for StopResult {}

impl Tool for Stop {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let post = post(call, input.required("record")?)?;
        let record = AgentRecord::in_post(&post.text).map_err(|e| {
            let what = format!("post {} is no record: {e}", post.first.short());
            Error::new(Kind::Invalid, what).with_hint(
                "Give the hash that ocx_create gave: that of the first post of the agent's thread.",
            )
        })?;
        let error = Error::new(
            Kind::Unavailable,
            format!("no node runs here, so the run of `{}` cannot be ended from here", record.login),
        )
        .with_hint(
            "Nothing was changed. Ask whoever runs the project's server to stop it where its node runs.",
        );
        Err(Refusal::from(error).reached(StopResult {
            record: post.first,
            login: record.login.to_string(),
            runner: record.runner,
            user: call.user().to_string(),
        }))
    }
}

/// The post of that full hash, where it stands for everyone to see.
fn post(call: &Call<'_>, text: &str) -> Result<Post> {
    let hint = "Give the full hash of the record, all 40 or 64 lower-case hex digits.";
    let hash = Hash::parse(text)
        .map_err(|e| Error::new(Kind::Invalid, format!("field `record`: {e}")).with_hint(hint))?;
    let post = Forum::of(call.repository()).post(&hash).map_err(|e| match e.kind() {
        Kind::NotFound => e.with_hint(
            "Take the hash from what ocx_create gave; one that another clone made is here after ocx pull.",
        ),
        _ => e,
    })?;
    if post.deleted || post.pending {
        let what = format!("post {} was taken back or waits for a moderator", post.first.short());
        return Err(Error::new(Kind::NotFound, what).with_hint("Name a record that stands."));
    }
    Ok(post)
}
