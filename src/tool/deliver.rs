//! Sending what a tool wrote to the server. What is written stays written: a refusal here says so, and the same call
//! again only sends.

use serde_json::{Value, json};

use super::answer::Refusal;
use super::call::Call;
use super::plan::Permit;
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::sync::{SyncOptions, Synced};

/// What was written, and how to say it.
pub(super) struct Written<'a> {
    /// What it is: `check-in`.
    pub noun: &'static str,
    /// What has been done with it: `committed`.
    pub done: &'static str,
    /// How it is named; a hash in short.
    pub name: String,
    /// The artifact that its page on the server shows.
    pub artifact: Option<Hash>,
    /// The tool that wrote it.
    pub tool: &'static str,
    /// The call that sends it, should sending fail.
    pub again: &'a Value,
}

/// Sends what is unsent and says in `result` how it went.
pub(super) fn deliver(
    call: &Call<'_>,
    permit: &Permit<'_>,
    result: &mut Value,
    written: &Written<'_>,
    options: &SyncOptions,
) -> Result<(), Refusal> {
    result["pushed"] = false.into();
    if call.control().cancelled() {
        let error = Error::new(Kind::Cancelled, "cancelled before the push");
        return Err(not_pushed(error, result, written));
    }
    call.control().progress("pushing to the server");
    match call.send(&options.clone().until(call.control().handle())) {
        Ok(None) => {
            result["push"] =
                format!("There is no remote: the {} is in this repository only.", written.noun).into();
            Ok(())
        }
        Ok(Some(synced)) => {
            permit.did("push");
            Ok(pushed(call, &synced, result, written)?)
        }
        Err(e) => Err(not_pushed(e, result, written)),
    }
}

/// What is not for everyone yet is sent nowhere.
pub(super) fn held_back(result: &mut Value) {
    result["pushed"] = false.into();
    result["push"] = "It waits for a moderator's approval, and is sent nowhere until then.".into();
}

fn pushed(call: &Call<'_>, synced: &Synced, result: &mut Value, written: &Written<'_>) -> Result<()> {
    result["pushed"] = true.into();
    result["push"] = synced.to_string().into();
    if let Some(hash) = &written.artifact {
        result["link"] = call.link(hash)?.into();
    }
    result["receipt"] = Value::Null;
    result["no_receipt"] =
        format!("The server's sync says that it holds the {}, not which user it recorded.", written.noun)
            .into();
    Ok(())
}

fn not_pushed(cause: Error, result: &Value, written: &Written<'_>) -> Refusal {
    let Written { noun, done, name, tool, again, .. } = written;
    let mut reached = result.clone();
    reached["push"] = json!({"outcome": cause.kind().code(), "words": cause.to_string()});
    let hint = match cause.hint() {
        Some(hint) => format!("{hint} Then make the same call again: only the push is repeated."),
        None => format!("The {noun} is kept here. Make the same call again: only the push is repeated."),
    };
    let error = Error::new(Kind::NotPushed, format!("{noun} {name} is {done} but not pushed: {cause}"))
        .with_hint(hint)
        .caused_by(cause);
    Refusal::from(error).reached(reached).next(tool, (*again).clone())
}
