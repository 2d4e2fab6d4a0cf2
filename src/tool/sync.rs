//! `ocx_sync`: check-ins that were made in another clone, from a bundle into this repository and on to the server; and
//! back, the check-ins after one that the caller holds. The checkout's files are not touched.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::deliver::{Delivery, Written, deliver};
use super::encoded::{self, decoded};
use super::encoded_bundle::{BundleSummary, EncodedBundle, Form, GIVEN_TEXT_MAX};
use super::incoming_bundle::{HAVE, IncomingBundle, LandedReceipt, Landing, is_here};
use super::input::Input;
use super::interface::Tool;
use super::page::counted;
use super::plan::{Permit, Plan};
use super::result::{ToolResult, schema_of_either};
use crate::bundle::Selection;
use crate::bundle::{Bundle, Import};
use crate::error::{Error, Kind, Result};
use crate::name::{Branch, Hash};
use crate::sync::{Outcome, SyncOptions};

/// The tool.
pub struct Sync;

static DECLARATION: Declaration = Declaration {
    name: "ocx_sync",
    title: "Publish a bundle",
    summary: "Import a bundle of another clone's branch here, all of it or nothing, and push it through this clone's \
              remote; `have` asks for newer check-ins in return. Does not route to a remote MCP.",
    needs: Capability::CheckIn,
    acts: Acts::OnRecords,
    writes: true,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
    fields: &[
        Field::text("branch", 120).required().positional().doc("the branch of the bundled check-ins, never trunk"),
        Field::text("bundle", GIVEN_TEXT_MAX).doc("the bundle of at most 9437184 bytes as standard base64 with padding and no line breaks; leave out only \
                  where `have` is given"),
        Field::hash("have").doc("the full hash of a check-in that you hold: its descendants come back as a bundle"),
        Field::word("form", Form::WORDS).doc("how that bundle is written: `fossil` for plain Fossil, `wire` is smaller and only OCX reads it; by \
                  default as the bundle that you give, or else `wire`"),
    ],
    result: schema_of_either::<SyncResult, Landed>,
};

/// What would land, or what the caller lacks.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum SyncResult {
    /// What is judged only after a pull.
    Unjudged {
        branch: String,
        before_the_pull: String,
    },
    Landing(Landing),
    Asked {
        descendants: Descendants,
    },
}

/// What has landed, how it was sent, and what the caller lacks.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Landed {
    #[serde(flatten)]
    landing: Landing,
    #[serde(flatten)]
    delivery: Delivery,
    #[serde(skip_serializing_if = "Option::is_none")]
    descendants: Option<Descendants>,
}

/// What comes after the check-in that the caller holds.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum Descendants {
    Some {
        have: Hash,
        #[serde(flatten)]
        summary: BundleSummary,
        bundle: String,
    },
    None {
        have: Hash,
        check_ins: [Hash; 0],
        of: usize,
        bundle: Option<String>,
    },
}

impl ToolResult for SyncResult {}

impl ToolResult for Landed {}

impl Tool for Sync {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn judge(&self, input: &Input) -> Result<()> {
        if input.text("bundle").or(input.text("have")).is_none() {
            return Err(nothing_asked());
        }
        Ok(())
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let branch = working(call, input.required("branch")?)?;
        let have = input.text("have").map(|text| full(call, input, text)).transpose()?;
        let Some(text) = input.text("bundle") else {
            let have = have.ok_or_else(nothing_asked)?;
            is_here(call, have)?;
            let descendants = after(call, have, form(input, None))?;
            let result = SyncResult::Asked { descendants };
            return Ok(Plan::looked(vec![Operation::reads("export_bundle")], result));
        };
        let bytes = decoded("bundle", text).map_err(|e| {
            let meant = encoded::repair(text).filter(|meant| meant != text);
            Refusal::from(e).or_next(meant.map(|meant| call.again(input.with("bundle", meant))))
        })?;
        let back = have.map(|have| (have, form(input, Some(&bytes))));
        let bundle = Bundle::from_bytes(&bytes)?;
        let remote = call.has_remote()?;
        let import = Import::of_agent(call.store(), call.user().clone(), branch.clone())?;
        let first = match IncomingBundle::of(call, &bundle, &import, &branch, have) {
            Err(e) if !(remote && may_be_news(&e)) => return Err(e.into()),
            first => first,
        };
        let pulls = remote && first.as_ref().map_or(true, |given| given.continues);
        let (preview, imports) = match &first {
            Ok(given) => (SyncResult::Landing(given.landing(None)), given.new_ones() > 0),
            Err(e) => {
                let (branch, before_the_pull) = (branch.to_string(), e.to_string());
                (SyncResult::Unjudged { branch, before_the_pull }, true)
            }
        };
        let mut log = vec![Operation::reads("read_bundle")];
        log.extend(pulls.then(|| Operation::changes("pull")));
        log.extend(imports.then(|| Operation::changes("import_bundle")));
        log.extend(remote.then(|| Operation::changes("push")));
        Ok(Plan::change(log, preview, move |permit| {
            let given = if pulls {
                caught_up(call, permit, first, || IncomingBundle::of(call, &bundle, &import, &branch, have))?
            } else {
                first?
            };
            perform(call, permit, &given, back, &input.again())
        }))
    }
}

/// How the descendants are written.
fn form(input: &Input, given: Option<&[u8]>) -> Form {
    input.text("form").map_or_else(|| given.map_or(Form::Wire, Form::of), Form::named)
}

fn nothing_asked() -> Error {
    Error::new(Kind::Invalid, "neither `bundle` nor `have` is given")
        .with_hint("Give the bundle of your branch in `bundle`, or in `have` a check-in that you hold.")
}

/// Whether the server may know what makes this refusal none.
fn may_be_news(refusal: &Error) -> bool {
    matches!(refusal.kind(), Kind::NotFound | Kind::Denied)
}

/// Judges the bundle by what the server has now. One that cannot be asked is no reason to refuse.
fn caught_up(
    call: &Call<'_>,
    permit: &Permit<'_>,
    first: Result<IncomingBundle>,
    again: impl FnOnce() -> Result<IncomingBundle>,
) -> Result<IncomingBundle> {
    call.control().progress("fetching from the server");
    let Some(remote) = call.remote()? else { return first };
    match call.repository().pull(remote) {
        Ok(Outcome::Received { .. }) => {
            permit.did("pull");
            again()
        }
        _ => first,
    }
}

fn perform(
    call: &Call<'_>,
    permit: &Permit<'_>,
    given: &IncomingBundle,
    back: Option<(Hash, Form)>,
    again: &Value,
) -> Result<Landed, Refusal> {
    call.control().progress("importing the bundle");
    let imported = call.repository().import_bundle(&given.bundle, &given.import)?;
    if imported.artifacts > 0 {
        permit.did("import_bundle");
    }
    permit.end_turn();
    let landing = given.landing(Some(&imported));
    let tip = given.landed.last().map(|(check_in, _)| check_in.hash.short().to_owned()).unwrap_or_default();
    let written = Written {
        noun: "bundle",
        done: "imported",
        name: format!("of {} up to {tip}", counted(given.landed.len(), "check-in")),
        artifact: None,
        tool: DECLARATION.name,
        again,
    };
    let options = SyncOptions::push();
    let mut result = deliver(call, permit, &written, &options, |delivery| Landed {
        landing,
        delivery,
        descendants: None,
    })?;
    acknowledge(call, &mut result)?;
    let Some((have, form)) = back else { return Ok(result) };
    permit.looked("export_bundle");
    match after(call, have, form) {
        Ok(descendants) => Ok(Landed { descendants: Some(descendants), ..result }),
        Err(stop) => Err(stop.reached(result)),
    }
}

/// A branch that may be published in this way.
fn working(call: &Call<'_>, text: &str) -> Result<Branch> {
    let branch = Branch::parse(text)?;
    if call.store().is_main_branch(branch.as_str())? {
        return Err(Error::new(
            Kind::Denied,
            format!("nothing is published on `{branch}` in this way: it is the main branch here"),
        )
        .with_hint("Commit on a working branch (`fossil commit --branch NAME`), and bundle that."));
    }
    Ok(branch)
}

/// The hash in `have`. Of a short one, the same call with the full one is the next.
fn full(call: &Call<'_>, input: &Input, text: &str) -> Result<Hash, Refusal> {
    Hash::parse(text).map_err(|e| {
        let stop = Refusal::from(Error::new(Kind::Invalid, format!("field `have`: {e}")).with_hint(HAVE));
        match call.store().resolve(text) {
            Ok(meant) if meant.as_str().starts_with(&text.to_ascii_lowercase()) => {
                stop.or_next(Some(call.again(input.with("have", meant.as_str()))))
            }
            _ => stop,
        }
    })
}

/// The descendants of a check-in, as a bundle for one who holds it.
fn after(call: &Call<'_>, have: Hash, form: Form) -> Result<Descendants, Refusal> {
    let selection = Selection::descendants(have).for_one_who_has(have);
    let Some(encoded) = EncodedBundle::of(call.repository(), &selection, form)? else {
        return Ok(Descendants::None { have, check_ins: [], of: 0, bundle: None });
    };
    let encoded = encoded.fitting(
        "Give as `have` a newer check-in that you hold, or fetch by command in your clone: `fossil pull URL`.",
    )?;
    Ok(Descendants::Some { have, summary: encoded.summary(), bundle: encoded.text() })
}

/// Says of each check-in where it is to be seen, and who the last repository says it came from.
fn acknowledge(call: &Call<'_>, result: &mut Landed) -> Result<()> {
    for entry in &mut result.landing.landed {
        if result.delivery.pushed {
            entry.link = call.link(&entry.checkin)?;
            entry.receipt = Some(LandedReceipt::Unknown(()));
        } else {
            let receipt = call.store().receipt(&entry.checkin)?;
            entry.receipt = Some(match receipt {
                Some(r) => LandedReceipt::Of { user: r.user, time: r.time },
                None => LandedReceipt::Unknown(()),
            });
        }
    }
    Ok(())
}
