//! `ocx_save`: every change as one check-in on the working branch, then to the server.

use serde_json::{Map, Value};

use super::answer::{NextCall, Operation, Refusal};
use super::call::Call;
use super::commit;
use super::declare::{Acts, Capability, Declaration, Hints};
use super::deliver::{Written, deliver};
use super::input::Input;
use super::interface::Tool;
use super::plan::{Permit, Plan};
use crate::name::Hash;
use crate::sync::SyncOptions;
use crate::work::{Comment, Saving, Way};

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
    fields: &commit::PARTS,
};

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
        let saving = commit::prepare(call, Way::Push)?;
        let remote = call.has_remote()?;
        let mut log = vec![Operation::reads("read_status")];
        if let Saving::Make(ready) = &saving {
            log.extend((remote && ready.continues()).then(|| Operation::changes("pull")));
            log.push(Operation::changes("check_in"));
        }
        log.extend(remote.then(|| Operation::changes("push")));
        let known = commit::known(&saving);
        Ok(Plan::change(log, known, move |permit| perform(call, &saving, &comment, &again, permit)))
    }
}

fn perform(
    call: &Call<'_>,
    saving: &Saving,
    comment: &Comment,
    again: &Value,
    permit: &Permit<'_>,
) -> Result<Value, Refusal> {
    let mut result = commit::perform(call, permit, saving, comment)?;
    if matches!(saving, Saving::Send(_)) {
        result["note"] =
            "Nothing has changed since; what was saved before is sent. No new check-in was made.".into();
    }
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
