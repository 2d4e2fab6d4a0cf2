//! `ocx_sync`: check-ins that were made in another clone, from a bundle into this repository and on to the server; and
//! back, the check-ins after one that the caller holds. The checkout's files are not touched.

use serde_json::{Value, json};

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::deliver::{Written, deliver};
use super::encoded::{self, decoded};
use super::encoded_bundle::{EncodedBundle, Form, GIVEN_TEXT_MAX};
use super::incoming_bundle::{HAVE, IncomingBundle, is_here};
use super::input::Input;
use super::interface::Tool;
use super::page::counted;
use super::plan::{Permit, Plan};
use crate::bundle::Bundle;
use crate::bundle::Selection;
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
};

impl Tool for Sync {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let branch = working(input.required("branch")?)?;
        let have = input.text("have").map(|text| full(call, input, text)).transpose()?;
        let Some(text) = input.text("bundle") else {
            let have = have.ok_or_else(nothing_asked)?;
            is_here(call, have)?;
            let after = after(call, have, form(input, None))?;
            return Ok(Plan::looked(vec![Operation::reads("export_bundle")], json!({"descendants": after})));
        };
        let bytes = decoded("bundle", text).map_err(|e| {
            let meant = encoded::repair(text).filter(|meant| meant != text);
            Refusal::from(e).or_next(meant.map(|meant| call.again(input.with("bundle", meant))))
        })?;
        let back = have.map(|have| (have, form(input, Some(&bytes))));
        let bundle = Bundle::from_bytes(&bytes)?;
        let remote = call.has_remote()?;
        let first = IncomingBundle::of(call, &bundle, &branch, have);
        let pulls = remote && first.as_ref().map_or_else(may_be_news, |given| given.continues);
        let (known, imports) = match &first {
            Ok(given) => (given.told(None), given.new_ones() > 0),
            Err(e) if pulls => (json!({"branch": branch.as_str(), "before_the_pull": e.to_string()}), true),
            Err(_) => (Value::Null, false),
        };
        let given = match first {
            Err(e) if !pulls => return Err(e.into()),
            given => given,
        };
        let mut log = vec![Operation::reads("read_bundle")];
        log.extend(pulls.then(|| Operation::changes("pull")));
        log.extend(imports.then(|| Operation::changes("import_bundle")));
        log.extend(remote.then(|| Operation::changes("push")));
        Ok(Plan::change(log, known, move |permit| {
            let given = if pulls { caught_up(call, permit, given, &bundle, &branch, have)? } else { given? };
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
    bundle: &Bundle,
    branch: &Branch,
    have: Option<Hash>,
) -> Result<IncomingBundle> {
    call.control().progress("fetching from the server");
    let Some(remote) = call.remote()? else { return first };
    match call.repository().pull(remote) {
        Ok(Outcome::Received { .. }) => {
            permit.did("pull");
            IncomingBundle::of(call, bundle, branch, have)
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
) -> Result<Value, Refusal> {
    call.control().progress("importing the bundle");
    let imported = call.repository().import_bundle(&given.bundle, &given.import)?;
    if imported.artifacts > 0 {
        permit.did("import_bundle");
    }
    permit.end_turn();
    let mut result = given.told(Some(&imported));
    let tip = given.landed.last().map(|(check_in, _)| check_in.hash.short().to_owned()).unwrap_or_default();
    let written = Written {
        noun: "bundle",
        done: "imported",
        name: format!("of {} up to {tip}", counted(given.landed.len(), "check-in")),
        artifact: None,
        tool: DECLARATION.name,
        again,
    };
    deliver(call, permit, &mut result, &written, &SyncOptions::push())?;
    acknowledge(call, &mut result)?;
    if let Some((have, form)) = back {
        permit.looked("export_bundle");
        match after(call, have, form) {
            Ok(after) => result["descendants"] = after,
            Err(stop) => return Err(stop.reached(result)),
        }
    }
    Ok(result)
}

/// A branch that may be published in this way.
fn working(text: &str) -> Result<Branch> {
    let branch = Branch::parse(text)?;
    if branch.is_trunk() {
        return Err(Error::new(Kind::Denied, "nothing is published on `trunk` in this way")
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
fn after(call: &Call<'_>, have: Hash, form: Form) -> Result<Value, Refusal> {
    let selection = Selection::descendants(have).for_one_who_has(have);
    let mut told = json!({"have": have});
    let Some(parcel) = EncodedBundle::of(call.repository(), &selection, form)? else {
        told["check_ins"] = json!([]);
        told["of"] = 0.into();
        told["bundle"] = Value::Null;
        return Ok(told);
    };
    let parcel = parcel.fitting(
        "Give as `have` a newer check-in that you hold, or fetch by command in your clone: `fossil pull URL`.",
    )?;
    if let (Value::Object(told), Value::Object(described)) = (&mut told, parcel.described()) {
        told.extend(described);
    }
    told["bundle"] = parcel.text().into();
    Ok(told)
}

/// Says of each check-in where it is to be seen, and who the last repository says it came from.
fn acknowledge(call: &Call<'_>, result: &mut Value) -> Result<()> {
    let pushed = result["pushed"] == true;
    let Some(landed) = result["landed"].as_array_mut() else { return Ok(()) };
    for entry in landed {
        let Some(hash) = entry["checkin"].as_str().map(Hash::parse).transpose()? else { continue };
        if pushed {
            entry["link"] = call.link(&hash)?.into();
            entry["receipt"] = Value::Null;
        } else {
            let receipt = call.store().receipt(&hash)?;
            entry["receipt"] = receipt.map_or(Value::Null, |r| json!({"user": r.user, "time": r.time}));
        }
    }
    Ok(())
}
