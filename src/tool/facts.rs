//! Who and where a call is: what this connection knows of itself, and what the caller says of its own place. The two
//! are kept apart, since neither can look at the other.

use serde_json::{Value, json};

use super::catalogue::TOOLS;
use super::declare::{Field, FieldKind};
use super::input::Input;
use super::session::Call;
use crate::error::Result;

/// The fields in which a caller says what it has of its own.
pub(super) const CALLER: [Field; 2] = [
    Field {
        name: "caller",
        kind: FieldKind::Word(&["clone_available", "setup_feasible", "unknown_or_unavailable"]),
        required: false,
        positional: false,
        doc: "what you know of a clone of your own, apart from this checkout; leave out if you did not look",
    },
    Field {
        name: "caller_reason",
        kind: FieldKind::Text { bytes_max: 500, empty: false },
        required: false,
        positional: false,
        doc: "why you say so in `caller`",
    },
];

/// What this connection knows of itself.
pub(super) fn server_facts(call: &Call<'_>) -> Result<Value> {
    let checkout = call.run().checkout();
    let remote = checkout.repository().remote()?;
    Ok(json!({
        "scope": "current_connection",
        "provenance": "endpoint",
        "execution_location": "local_checkout",
        "release": env!("CARGO_PKG_VERSION"),
        "tools": TOOLS.iter().map(|t| t.declaration().name).collect::<Vec<_>>(),
        "login": call.user().as_str(),
        "capabilities": call.store().capabilities(call.user())?.to_string(),
        "capabilities_source": "local_repository",
        "checkout_id": checkout.id()?,
        "base": checkout.parent()?,
        "remote": remote.map(|r| r.to_string()),
    }))
}

/// What the caller said of its own place, as it said it.
pub(super) fn caller_report(input: &Input) -> Value {
    let checked = input.text("caller").is_some();
    json!({
        "scope": "current_caller_environment",
        "provenance": "client",
        "state": input.text("caller").unwrap_or("unknown_or_unavailable"),
        "bounded_check": if checked { "reported" } else { "not_attempted" },
        "reason": input.text("caller_reason").unwrap_or(if checked { "not given" } else { "not checked" }),
    })
}
