//! Whether the server takes what is saved here. The server itself is asked, because rights in this repository say nothing
//! of rights there.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::call::Call;
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};
use crate::name::User;
use crate::sync::{Limits, Remote};

/// The longest that the question may take, so that `ocx_status` stays quick.
const ASK_MAX: Duration = Duration::from_secs(5);

/// Whether the server takes what is saved here, within a result.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Publication {
    state: &'static str,
    /// The login that the server would be asked with.
    login: Option<String>,
    reason: String,
    /// How it is known.
    source: &'static str,
}

/// The question before it is asked: which server, and what is known without asking it.
pub(super) struct Asking {
    /// The server, if there is one that can be asked.
    pub remote: Option<Remote>,
    why_not: Option<Publication>,
}

impl Asking {
    pub fn of(call: &Call<'_>) -> Result<Self> {
        let not = |why: String| Ok(Self { remote: None, why_not: Some(unknown(None, &why, "not_asked")) });
        let Some(remote) = call.remote()?.cloned() else {
            return not("there is no remote: what is saved stays in this repository".into());
        };
        match (remote.user(), remote.password()) {
            (Some(user), None) => not(format!("no password is known for `{user}` at {remote}")),
            _ => Ok(Self { remote: Some(remote), why_not: None }),
        }
    }

    /// What is known if the server is not asked.
    pub fn unasked(&self) -> Publication {
        self.why_not
            .clone()
            .unwrap_or_else(|| unknown(self.remote.as_ref(), "the server was not asked", "not_asked"))
    }
}

/// What the tools say that do not ask.
pub(super) fn not_asked() -> Publication {
    unknown(None, "not asked here: ocx_status asks the server", "not_asked")
}

/// Asks the server in one bounded exchange, which sends nothing but the question.
pub(super) fn asked(call: &Call<'_>, remote: &Remote) -> Publication {
    let limits = Limits { connect: ASK_MAX, whole: ASK_MAX, stall: ASK_MAX, ..Limits::default() };
    let near = remote.clone().over(remote.connection().within(limits));
    match call.repository().may_push(&near, &Cancel::new()) {
        Ok(true) => publication(
            Some(remote),
            "granted",
            "the server takes check-ins from this login",
            "remote_server",
        ),
        Ok(false) => {
            publication(Some(remote), "denied", "the server does not let this login push", "remote_server")
        }
        Err(e) if e.kind() == Kind::LoginFailed => {
            publication(Some(remote), "denied", &shown(&e, remote), "remote_server")
        }
        Err(e) => {
            let silent = matches!(e.kind(), Kind::Unreachable | Kind::TimedOut | Kind::Untrusted | Kind::Io);
            let source = if silent { "no_answer" } else { "remote_server" };
            unknown(Some(remote), &shown(&e, remote), source)
        }
    }
}

fn unknown(remote: Option<&Remote>, reason: &str, source: &'static str) -> Publication {
    publication(remote, "unknown", reason, source)
}

fn publication(
    remote: Option<&Remote>,
    state: &'static str,
    reason: &str,
    source: &'static str,
) -> Publication {
    let login = remote.and_then(Remote::user).map(User::to_string);
    Publication { state, login, reason: reason.to_owned(), source }
}

/// The words of a failure. A password that the server repeats is wiped out.
fn shown(e: &Error, remote: &Remote) -> String {
    let words = e.to_string();
    remote.password().map_or_else(|| words.clone(), |password| password.wiped_from(&words))
}
