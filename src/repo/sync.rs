//! Push, pull and clone: Fossil's own sync code over our own HTTP.
//!
//! Fossil's result and exit status say "fine" for most failures. What happened is read from the cards that
//! pass by, and after a push the server is asked whether it holds what was sent.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sha1::{Digest, Sha1};

use super::cards::{Reply, sent_artifacts};
use super::http::{Cancel, Exchange};
use super::remote::{Password, Remote};
use super::repository::Repository;
use crate::engine::{self, SyncRequest, Transport};
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, User};

/// The most round trips of one sync: a server that always asks for one more is not followed for ever.
const ROUND_TRIPS_MAX: u32 = 10_000;

/// Without this, servers take a client for one that knows no SHA3 hashes.
const CLIENT: &str = "pragma client-version 22800 20260311 113146\n";

/// What a push or pull did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The server holds these now.
    Sent {
        /// Check-ins that it did not hold before.
        check_ins: usize,
        /// All artifacts sent.
        artifacts: usize,
    },
    /// The server held everything already.
    NothingToSend,
    /// These are here now.
    Received {
        /// All artifacts received.
        artifacts: usize,
    },
    /// The server had nothing new.
    NothingToReceive,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sent { check_ins, artifacts } => {
                write!(f, "sent {check_ins} check-ins, {artifacts} artifacts")
            }
            Self::NothingToSend => f.write_str("nothing to send"),
            Self::Received { artifacts } => write!(f, "received {artifacts} artifacts"),
            Self::NothingToReceive => f.write_str("nothing to receive"),
        }
    }
}

impl Repository {
    /// Sends what the server lacks, and makes sure that it holds it.
    ///
    /// # Errors
    /// [`Kind::LoginFailed`], [`Kind::Denied`] when the login may not write, [`Kind::Foreign`] for another project,
    /// [`Kind::Refused`] with the server's words, [`Kind::Unreachable`], [`Kind::TimedOut`], [`Kind::TooLarge`]; [`Kind::NotPushed`] when the
    /// server says nothing wrong and still lacks a check-in; [`Kind::Busy`], [`Kind::DiskFull`] on this side. What was not taken
    /// stays marked as unsent.
    pub fn push(&self, remote: &Remote) -> Result<Outcome> {
        let unsent = self.store().unsent()?;
        let check_ins = self.store().check_ins_of(&unsent)?;
        let tips = self.last_of(&check_ins)?;
        let (log, result) = self.exchange(remote, true)?;
        let failed = log.failure(true).or_else(|| result.err());
        if let Some(e) = failed {
            // A reply that was lost may hide a push that arrived.
            let lost = matches!(e.kind(), Kind::Unreachable | Kind::TimedOut);
            if !(lost && !tips.is_empty() && self.server_holds_all(remote, &tips).unwrap_or(false)) {
                return Err(self.another_project(remote, e));
            }
        } else if !tips.is_empty() && self.server_holds_all(remote, &tips).is_ok_and(|holds| !holds) {
            return Err(Error::new(
                Kind::NotPushed,
                format!("the server at {remote} does not hold what was sent"),
            )
            .hint("Push again; if that does not help, ask who runs the server."));
        }
        self.forget_unsent(&unsent)?;
        Ok(match (log.sent, check_ins.len()) {
            (0, 0) => Outcome::NothingToSend,
            (artifacts, check_ins) => Outcome::Sent { check_ins, artifacts },
        })
    }

    /// Fetches what the server has and this repository lacks.
    ///
    /// # Errors
    /// As for [`push`](Self::push), [`Kind::Denied`] when the login may not read.
    pub fn pull(&self, remote: &Remote) -> Result<Outcome> {
        let (log, result) = self.exchange(remote, false)?;
        if let Some(e) = log.failure(false).or_else(|| result.err()) {
            return Err(self.another_project(remote, e));
        }
        Ok(match log.received {
            0 => Outcome::NothingToReceive,
            artifacts => Outcome::Received { artifacts },
        })
    }

    /// Asks the server whether it holds an artifact that this login may read.
    ///
    /// # Errors
    /// As for [`pull`](Self::pull).
    pub fn server_holds(&self, remote: &Remote, hash: &Hash) -> Result<bool> {
        let project = self.store().project_code()?;
        let body = format!("{CLIENT}pull {} {project}\ngimme {hash}\n# {}\n", self.server_code()?, once());
        let card = remote.login().map(|(user, password)| login_card(user, password, &project, &body));
        let reply = Exchange::new(remote, &Cancel::new())
            .exchange(card.as_deref().map(str::as_bytes), body.as_bytes())?;
        let reply = Reply::read(&reply);
        match reply.error() {
            Some(e) => Err(e),
            None => Ok(reply.files.contains(hash)),
        }
    }

    /// Those check-ins that are no parent of another of them: a server that holds these holds all.
    fn last_of(&self, check_ins: &[Hash]) -> Result<Vec<Hash>> {
        let mut parents = BTreeSet::new();
        for hash in check_ins {
            parents.extend(self.store().check_in(hash)?.parents);
        }
        Ok(check_ins.iter().filter(|hash| !parents.contains(hash)).copied().collect())
    }

    fn server_holds_all(&self, remote: &Remote, tips: &[Hash]) -> Result<bool> {
        for hash in tips {
            if !self.server_holds(remote, hash)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn server_code(&self) -> Result<String> {
        Ok(self.store().setting("server-code")?.unwrap_or_else(|| "x".to_owned()))
    }

    /// Runs Fossil's sync; gives what passed by, and how Fossil's code ended.
    fn exchange(&self, remote: &Remote, push: bool) -> Result<(Log, Result<bool>)> {
        let log = Arc::new(Mutex::new(Log::default()));
        let local_user = self.local_user(remote)?;
        let request = SyncRequest {
            url: remote.url(),
            login: login(remote)?,
            local_user,
            push,
            pull: !push,
            private: false,
            transport: Box::new(Wire {
                exchange: Exchange::new(remote, &Cancel::new()),
                log: Arc::clone(&log),
            }),
        };
        let result = engine::sync(self.path(), request);
        let log = std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((log, result))
    }

    /// The local login that stands for the remote one.
    fn local_user(&self, remote: &Remote) -> Result<String> {
        if let Some(name) = remote.user()
            && self.store().user(name)?.is_some()
        {
            return Ok(name.to_string());
        }
        self.store().first_user()?.ok_or_else(|| Error::new(Kind::NotFound, "the repository has no user"))
    }

    /// A wrong project shows as a failed login, since the secret includes the project's code: ask without a login.
    fn another_project(&self, remote: &Remote, e: Error) -> Error {
        if e.kind() != Kind::LoginFailed {
            return e;
        }
        let asked = || -> Result<Option<Error>> {
            let body = format!("{CLIENT}pull {} {}\n", self.server_code()?, self.store().project_code()?);
            Ok(Reply::read(&Exchange::new(remote, &Cancel::new()).exchange(None, body.as_bytes())?)
                .error())
        };
        match asked() {
            Ok(Some(other)) if other.kind() == Kind::Foreign => other,
            _ => e,
        }
    }

    fn forget_unsent(&self, sent: &[(i64, Hash)]) -> Result<()> {
        if sent.is_empty() {
            return Ok(());
        }
        let db = self.writer()?;
        let done = db.unchecked_transaction()?;
        for (rid, _) in sent {
            done.execute("DELETE FROM unsent WHERE rid=?1", [rid])?;
        }
        done.commit()?;
        Ok(())
    }
}

/// Clones a server's repository into a new file.
pub(super) fn clone(remote: &Remote, path: &Path, user: &User) -> Result<()> {
    let log = Arc::new(Mutex::new(Log::default()));
    let request = SyncRequest {
        url: remote.url(),
        login: login(remote)?,
        local_user: user.to_string(),
        push: false,
        pull: true,
        private: false,
        transport: Box::new(Wire {
            exchange: Exchange::new(remote, &Cancel::new()),
            log: Arc::clone(&log),
        }),
    };
    let result = engine::clone(path, request);
    let log = log.lock().unwrap_or_else(PoisonError::into_inner);
    // The first reply of a clone may complain of a login for a project that the client did not know yet.
    result.map_err(|e| log.last_failure().unwrap_or(e))
}

fn login(remote: &Remote) -> Result<Option<(String, String)>> {
    match (remote.user(), remote.password()) {
        (None, _) => Ok(None),
        (Some(user), Some(password)) => Ok(Some((user.to_string(), password.reveal().to_owned()))),
        (Some(user), None) => {
            Err(Error::new(Kind::LoginFailed, format!("no password is known for `{user}` at {remote}"))
                .hint("Give the password, or remember it with the remote."))
        }
    }
}

/// The card by which a request proves its login, as Fossil's client makes it.
fn login_card(user: &User, password: &Password, project: &str, body: &str) -> String {
    let sha1 = |text: &str| Hash::from_digest(&Sha1::digest(text.as_bytes())).to_string();
    let nonce = sha1(body);
    let secret = password.reveal();
    let is_hash = secret.len() == 40 && secret.bytes().all(|b| b.is_ascii_hexdigit());
    let secret = if is_hash { secret.to_owned() } else { sha1(&format!("{project}/{user}/{secret}")) };
    format!("login {user} {nonce} {}", sha1(&format!("{nonce}{secret}")))
}

/// A text that no other request has, so that its nonce is new.
fn once() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", std::process::id(), now.as_nanos())
}

/// What passed by in a sync.
#[derive(Debug, Default)]
struct Log {
    round_trips: u32,
    sent: usize,
    received: usize,
    pull_only: bool,
    /// The error of each reply that had one, and of the transport.
    errors: Vec<(Kind, String, Option<String>)>,
}

impl Log {
    fn failure(&self, push: bool) -> Option<Error> {
        if let Some(e) = self.last_failure() {
            return Some(e);
        }
        (push && self.pull_only).then(|| {
            Error::new(Kind::Denied, "the server does not let this login push")
                .hint("Ask for the check-in capability (`i`) on the server.")
        })
    }

    fn last_failure(&self) -> Option<Error> {
        let (kind, what, hint) = self.errors.last()?;
        let e = Error::new(*kind, what.clone());
        Some(match hint {
            Some(hint) => e.hint(hint.clone()),
            None => e,
        })
    }

    fn note(&mut self, e: &Error) {
        self.errors.push((e.kind(), e.to_string(), e.next_step().map(str::to_owned)));
    }
}

/// Fossil's round trips over HTTP, noting what passes by.
struct Wire {
    exchange: Exchange,
    log: Arc<Mutex<Log>>,
}

impl Transport for Wire {
    fn exchange(&mut self, login_card: &[u8], body: &[u8]) -> Option<Vec<u8>> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.round_trips += 1;
        if log.round_trips > ROUND_TRIPS_MAX {
            log.note(&Error::new(Kind::Refused, "the server asks for ever more round trips"));
            return None;
        }
        log.sent += sent_artifacts(body);
        match self.exchange.exchange((!login_card.is_empty()).then_some(login_card), body) {
            Ok(bytes) => {
                let reply = Reply::read(&bytes);
                log.received += reply.files.len();
                log.pull_only |= reply.pull_only;
                if let Some(e) = reply.error() {
                    log.note(&e);
                }
                Some(bytes)
            }
            Err(e) => {
                log.note(&e);
                None
            }
        }
    }
}
