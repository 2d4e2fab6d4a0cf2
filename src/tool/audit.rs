//! `ocx_audit`: the caller's verdict on another's check-in, as tags on it; then to the server.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::deliver::{Delivery, Written, deliver};
use super::input::Input;
use super::interface::Tool;
use super::plan::{Permit, Plan};
use super::result::{ToolResult, schema_of};
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::record::{Audits, Verdict};
use crate::sync::SyncOptions;

/// The tool.
pub struct Audit;

static DECLARATION: Declaration = Declaration {
    name: "ocx_audit",
    title: "Judge a check-in",
    summary: "Give your verdict on a check-in that you had no part in: the tag `audited`, kept for each login, then the \
              push. Read its changes first with ocx_read's `checkin`.",
    needs: Capability::CheckIn,
    acts: Acts::OnRecords,
    writes: true,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
    fields: &[
        Field::hash("checkin")
            .required()
            .positional()
            .doc("the full hash of the check-in, all 40 or 64 hex digits"),
        Field::word("verdict", &["pass", "fail"]).required().doc("whether it does what it says, and well"),
        Field::text("note", 1_000).required().doc("why, in one line"),
    ],
    result: schema_of::<AuditResult>,
};

/// The verdict.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct AuditResult {
    checkin: Hash,
    verdict: String,
    note: String,
    user: String,
    tags: Vec<String>,
    /// The artifact that holds it, once it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<Hash>,
    #[serde(flatten)]
    delivery: Option<Delivery>,
}

impl ToolResult for AuditResult {}

impl Tool for Audit {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let check_in = full(call, input)?;
        let verdict =
            Verdict { pass: input.required("verdict")? == "pass", note: one_line(input.required("note")?)? };
        let audits = Audits::of(call.repository());
        let remote = call.has_remote()?;
        let made = match audits.check(&check_in, &verdict, call.user()) {
            Ok(()) => None,
            Err(e) if e.kind() == Kind::Unchanged && remote => {
                let standing = audits.verdict(&check_in, call.user())?.map(|(_, artifact)| artifact);
                match standing {
                    Some(artifact) if call.store().is_unsent(&artifact)? => Some(artifact),
                    _ => return Err(e.into()),
                }
            }
            Err(e) => return Err(e.into()),
        };
        let preview = AuditResult {
            checkin: check_in,
            verdict: input.required("verdict")?.to_owned(),
            note: verdict.note.clone(),
            user: call.user().to_string(),
            tags: vec!["audited".to_owned(), format!("audited-{}", call.user())],
            artifact: None,
            delivery: None,
        };
        let mut log = vec![Operation::reads("read_check_in")];
        log.extend(made.is_none().then(|| Operation::changes("add_tag")));
        log.extend(remote.then(|| Operation::changes("push")));
        Ok(Plan::change(log, preview.clone(), move |permit| {
            let artifact = if let Some(artifact) = made {
                artifact
            } else {
                let artifact = audits.give(&check_in, &verdict, call.user())?;
                permit.did("add_tag");
                artifact
            };
            send(call, permit, AuditResult { artifact: Some(artifact), ..preview }, &input.again())
        }))
    }
}

fn send(
    call: &Call<'_>,
    permit: &Permit<'_>,
    result: AuditResult,
    again: &Value,
) -> Result<AuditResult, Refusal> {
    permit.end_turn();
    let written = Written {
        noun: "verdict",
        done: "given",
        name: format!("on check-in {}", result.checkin.short()),
        artifact: Some(result.checkin),
        tool: DECLARATION.name,
        again,
    };
    deliver(call, permit, &written, &SyncOptions::push(), |delivery| AuditResult {
        delivery: Some(delivery),
        ..result
    })
}

/// The check-in that a full hash names. Of a short one, the same call with the full one is the next; what else it may
/// stand for is to be read first.
fn full(call: &Call<'_>, input: &Input) -> Result<Hash, Refusal> {
    let text = input.required("checkin")?;
    let hash = Hash::parse(text).map_err(|e| {
        let hint = "Give the full hash of the check-in, all 40 or 64 lower-case hex digits.";
        let stop = Refusal::from(Error::new(Kind::Invalid, format!("field `checkin`: {e}")).with_hint(hint));
        let Ok(meant) = call.store().resolve(text) else { return stop };
        if !meant.as_str().starts_with(&text.to_ascii_lowercase()) {
            return stop.next("ocx_read", json!({"checkin": meant}));
        }
        let mut again = input.again();
        again["checkin"] = meant.as_str().into();
        stop.next(DECLARATION.name, again)
    })?;
    call.store().check_in(&hash).map_err(|e| {
        Refusal::from(e.with_hint("Take the full hash from ocx_read's `checkin`; one that another clone made is here after ocx pull."))
    })?;
    Ok(hash)
}

/// The note as one line: its line breaks are read as spaces.
fn one_line(text: &str) -> Result<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() || line.contains(char::is_control) {
        return Err(Error::new(Kind::Invalid, "field `note` is blank or holds a control character")
            .with_hint("Say in one line of text why."));
    }
    Ok(line)
}
