//! Sends what a tool wrote to the server. If that fails, what is written stays written: the refusal says so, and the same
//! call again only sends.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::answer::Refusal;
use super::call::Call;
use super::plan::Permit;
use super::result::ToolResult;
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::sync::{SyncOptions, Synced};

/// What was written, and how to say it.
pub(super) struct Written<'a> {
    /// What it is: `check-in`.
    pub noun: &'static str,
    /// What has been done with it: `committed`.
    pub done: &'static str,
    /// Its name, or its hash in short.
    pub name: String,
    /// The artifact that its page on the server shows.
    pub artifact: Option<Hash>,
    /// The tool that wrote it.
    pub tool: &'static str,
    /// The call that sends it if sending fails.
    pub again: &'a Value,
}

/// How sending it went, as fields of a result.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Delivery {
    pub pushed: bool,
    #[serde(flatten)]
    pub details: DeliveryDetails,
}

/// How sending it went, without `pushed`.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct DeliveryDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    push: Option<Push>,
    /// Its page on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    /// Null if it was pushed. `no_receipt` says why.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_receipt: Option<String>,
}

/// What is said of a push.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum Push {
    Words(String),
    Failed { outcome: &'static str, words: String },
}

impl Delivery {
    /// What a moderator has not approved is not sent.
    pub fn held_back() -> Self {
        Self::kept("It waits for a moderator's approval, and is sent nowhere until then.".into())
    }

    fn kept(words: String) -> Self {
        let details = DeliveryDetails { push: Some(Push::Words(words)), ..DeliveryDetails::default() };
        Self { pushed: false, details }
    }

    fn failed(cause: &Error) -> Self {
        let push = Push::Failed { outcome: cause.kind().code(), words: cause.to_string() };
        Self { pushed: false, details: DeliveryDetails { push: Some(push), ..DeliveryDetails::default() } }
    }

    fn pushed(call: &Call<'_>, synced: &Synced, written: &Written<'_>) -> Result<Self> {
        let no_receipt =
            format!("The server's sync says that it holds the {}, not which user it recorded.", written.noun);
        let details = DeliveryDetails {
            push: Some(Push::Words(synced.to_string())),
            link: written.artifact.as_ref().map(|hash| call.link(hash)).transpose()?.flatten(),
            receipt: Some(()),
            no_receipt: Some(no_receipt),
        };
        Ok(Self { pushed: true, details })
    }
}

/// Sends what is unsent. `result` makes the result of how it went. It is called also if sending fails, and the refusal
/// then has that result.
pub(super) fn deliver<R: ToolResult>(
    call: &Call<'_>,
    permit: &Permit<'_>,
    written: &Written<'_>,
    options: &SyncOptions,
    result: impl FnOnce(Delivery) -> R,
) -> Result<R, Refusal> {
    if call.control().cancelled() {
        let error = Error::new(Kind::Cancelled, "cancelled before the push");
        let reached = result(Delivery::failed(&error));
        return Err(not_pushed(error, written).reached(reached));
    }
    call.control().progress("pushing to the server");
    match call.send(&options.clone().until(call.control().handle())) {
        Ok(None) => {
            let words = format!("There is no remote: the {} is in this repository only.", written.noun);
            Ok(result(Delivery::kept(words)))
        }
        Ok(Some(synced)) => {
            permit.did("push");
            Ok(result(Delivery::pushed(call, &synced, written)?))
        }
        Err(e) => {
            let reached = result(Delivery::failed(&e));
            Err(not_pushed(e, written).reached(reached))
        }
    }
}

fn not_pushed(cause: Error, written: &Written<'_>) -> Refusal {
    let Written { noun, done, name, tool, again, .. } = written;
    let hint = match cause.hint() {
        Some(hint) => format!("{hint} Then make the same call again: only the push is repeated."),
        None => format!("The {noun} is kept here. Make the same call again: only the push is repeated."),
    };
    let error = Error::new(Kind::NotPushed, format!("{noun} {name} is {done} but not pushed: {cause}"))
        .with_hint(hint)
        .caused_by(cause);
    Refusal::from(error).next(tool, (*again).clone())
}
