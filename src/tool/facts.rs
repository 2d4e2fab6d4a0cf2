//! Who and where a call is: what this connection knows of itself, and what the caller says of its own place. The two
//! are kept apart, since neither can look at the other.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::answer::NextCall;
use super::binding::{Binding, Guidance, Situation};
use super::call::Call;
use super::declare::Field;
use super::input::Input;
use super::publication::Publication;
use crate::checkout::Checkout;
use crate::error::Result;
use crate::name::{Hash, User};
use crate::work::Workspace;

/// The fields in which a caller says what it has of its own.
pub(super) const CALLER: [Field; 2] = [
    Field::word("caller", &["clone_available", "setup_feasible", "unknown_or_unavailable"])
        .doc("what you know of a clone of your own, apart from this checkout; leave out if you did not look"),
    Field::text("caller_reason", 500).doc("why you say so in `caller`"),
];

/// What this connection knows of itself.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct ServerFacts {
    scope: &'static str,
    provenance: &'static str,
    execution_location: &'static str,
    release: &'static str,
    tools: Vec<&'static str>,
    login: String,
    capabilities: String,
    capabilities_source: &'static str,
    checkout_id: Option<String>,
    checkout_user: Option<String>,
    branch: Option<String>,
    base: Option<Hash>,
    remote: Option<String>,
    pub publication: Publication,
}

/// What the caller says of its own place.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct CallerReport {
    scope: &'static str,
    provenance: &'static str,
    state: String,
    bounded_check: &'static str,
    reason: String,
}

/// What this connection knows of itself. Rights are those in the repository here; `publication` says what is known of
/// those on the server.
pub(super) fn server_facts(call: &Call<'_>, publication: Publication) -> Result<ServerFacts> {
    let workspace = call.workspace_if_any();
    let checkout = workspace.map(Workspace::checkout);
    Ok(ServerFacts {
        scope: "current_connection",
        provenance: "endpoint",
        execution_location: call.binding().location(workspace.is_some()),
        release: env!("CARGO_PKG_VERSION"),
        tools: call.declarations().all().map(|tool| tool.name).collect(),
        login: call.user().to_string(),
        capabilities: call.store().capabilities(call.user())?.to_string(),
        capabilities_source: "local_repository",
        checkout_id: checkout.map(Checkout::id).transpose()?,
        checkout_user: call.owner().map(User::to_string),
        branch: workspace.map(|w| w.branch().map(|b| b.to_string())).transpose()?,
        base: checkout.map(Checkout::parent).transpose()?,
        remote: call.server()?.map(ToString::to_string),
        publication,
    })
}

/// What the caller said of its own place, as it said it.
pub(super) fn caller_report(input: &Input) -> CallerReport {
    let checked = input.text("caller").is_some();
    let unsaid = if checked { "not given" } else { "not checked" };
    CallerReport {
        scope: "current_caller_environment",
        provenance: "client",
        state: input.text("caller").unwrap_or("unknown_or_unavailable").to_owned(),
        bounded_check: if checked { "reported" } else { "not_attempted" },
        reason: input.text("caller_reason").unwrap_or(unsaid).to_owned(),
    }
}

/// What the tools that matter most do in the situation that the caller reported.
pub(super) fn guidance(call: &Call<'_>, input: &Input) -> Guidance {
    call.binding().guidance(call.declarations(), situation(input))
}

/// The next call in the situation that the caller reported. The work is done here, unless this connection is remote and
/// the caller has a clone or can make one.
pub(super) fn next_call(call: &Call<'_>, input: &Input, here: Option<NextCall>) -> Option<NextCall> {
    if call.binding() == Binding::Local || situation(input) == Situation::Unknown {
        return here;
    }
    Some(NextCall::new("ocx_commit_and_sync_guide", caller_fields(input)))
}

/// The fields in which the caller spoke of itself, so that the next tool hears them too.
pub(super) fn caller_fields(input: &Input) -> Value {
    let field = |name: &'static str| Some((name.to_owned(), Value::from(input.text(name)?)));
    Value::Object(CALLER.iter().filter_map(|f| field(f.name)).collect())
}

fn situation(input: &Input) -> Situation {
    match input.text("caller") {
        Some("clone_available") => Situation::Clone,
        Some("setup_feasible") => Situation::Setup,
        _ => Situation::Unknown,
    }
}
