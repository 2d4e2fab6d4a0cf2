//! A server, as one call talks to it: one request at a time, with the login.

use std::collections::BTreeSet;
use std::fmt;

use sha1::{Digest, Sha1};

use super::client::Exchange;
use super::remote::Remote;
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};
use crate::format::sync_message::Reply;
use crate::name::{Hash, Password, User, time};
use crate::repo::Repository;

/// The client's version. Without it, servers take a client for one that knows no SHA3 hashes.
const CLIENT: &str = "pragma client-version 22800 20260311 113146\n";

/// What stands for the code of a repository that has none.
const NO_CODE: &str = "x";

/// The most artifacts that one request asks for by name. A reply has its limit.
const ASKED_MAX: usize = 100;

/// The hash that no set of unversioned files has.
const NO_SUCH_SET: &str = "0000000000000000000000000000000000000000";

/// A server of a project, as one call talks to it.
pub(super) struct Peer<'a> {
    remote: &'a Remote,
    exchange: Exchange,
    code: String,
    project: String,
}

impl<'a> Peer<'a> {
    /// The server as one of the repository's project.
    pub fn new(repository: &Repository, remote: &'a Remote, cancel: &Cancel) -> Result<Self> {
        let store = repository.store();
        Ok(Self {
            code: store.variable("server-code")?.unwrap_or_else(|| NO_CODE.to_owned()),
            project: store.project_code()?,
            ..Self::stranger(remote, cancel)
        })
    }

    /// A server of whose project nothing is known yet.
    pub fn stranger(remote: &'a Remote, cancel: &Cancel) -> Self {
        let exchange = Exchange::new(remote, cancel);
        Self { remote, exchange, code: NO_CODE.to_owned(), project: String::new() }
    }

    /// The code of the project; empty while it is not known.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// Notes which project it is. A login proves itself by it, too.
    pub fn is_of(&mut self, project: &str) {
        project.clone_into(&mut self.project);
    }

    pub fn remote(&self) -> &Remote {
        self.remote
    }

    /// Those of the artifacts that the server holds and this login may read. Each that the server does not list anyway,
    /// among what it has put in no cluster yet, is asked for by name.
    pub fn held_of(&self, hashes: &[Hash], private: bool) -> Result<BTreeSet<Hash>> {
        // To answer this the server writes nothing, while Fossil 2.21 commits a row of its own for each `gimme`.
        let mut held = self.ask(&self.pull_cards(private))?.listed;
        let rest: Vec<Hash> = hashes.iter().filter(|hash| !held.contains(hash)).copied().collect();
        for some in rest.chunks(ASKED_MAX) {
            let wanted =
                some.iter().fold(String::new(), |cards, hash| cards + "gimme " + hash.as_str() + "\n");
            let reply = self.ask(&format!("{}{wanted}", self.pull_cards(private)))?;
            // What does not fit into the reply is listed.
            held.extend(reply.files.into_iter().chain(reply.listed));
        }
        let asked: BTreeSet<&Hash> = hashes.iter().collect();
        held.retain(|hash| asked.contains(hash));
        Ok(held)
    }

    /// Whether the server holds all of these, which this login may read.
    pub fn holds(&self, hashes: &[Hash], private: bool) -> Result<bool> {
        let held = self.held_of(hashes, private)?;
        Ok(hashes.iter().all(|hash| held.contains(hash)))
    }

    /// The server's unversioned files, deleted ones too.
    pub fn unversioned(&self) -> Result<Reply> {
        self.ask(&format!("{}pragma uv-hash {NO_SUCH_SET}\n", self.pull_card()))
    }

    /// Sends cards in one request. A reply that reports a failure is an error.
    pub fn ask(&self, cards: &str) -> Result<Reply> {
        let reply = self.send(cards.as_bytes())?;
        reply.error().map_or(Ok(reply), Err)
    }

    /// Sends cards in one request, with the login. Returns what the reply says.
    pub fn send(&self, cards: &[u8]) -> Result<Reply> {
        let bytes = self.talk(cards, true)?;
        Reply::read(&bytes).map_err(|e| self.blame(e))
    }

    /// Sends cards in one request, with the login or without. Returns the reply.
    pub fn talk(&self, cards: &[u8], with_login: bool) -> Result<Vec<u8>> {
        let body = [CLIENT.as_bytes(), cards, format!("# {}\n", once()).as_bytes()].concat();
        let login = self.remote.login().filter(|_| with_login);
        let card = login.map(|(user, password)| login_card(user, password, &self.project, &body));
        self.exchange.exchange(card.as_deref().map(str::as_bytes), &body)
    }

    /// Finds out whether a failed login means a wrong project, since the secret includes the project's code. Asks
    /// without a login.
    pub fn another_project(&self, e: Error) -> Error {
        if e.kind() != Kind::LoginFailed {
            return e;
        }
        let asked = self.talk(self.pull_card().as_bytes(), false).and_then(|reply| Reply::read(&reply));
        match asked.map(|reply| reply.error()) {
            Ok(Some(other)) if other.kind() == Kind::Foreign => other,
            _ => e,
        }
    }

    pub fn pull_card(&self) -> String {
        format!("pull {} {}\n", self.code, self.project)
    }

    pub fn push_card(&self) -> String {
        format!("push {} {}\n", self.code, self.project)
    }

    fn pull_cards(&self, private: bool) -> String {
        format!("{}{}", private_card(private), self.pull_card())
    }

    /// Names the server in an error about what it sent.
    pub fn blame(&self, e: Error) -> Error {
        if !matches!(e.kind(), Kind::Internal | Kind::Corrupt | Kind::Invalid | Kind::Refused) {
            return e;
        }
        Error::new(Kind::Refused, format!("what {self} sent cannot be used: {e}"))
            .with_hint("Try another server, or have that one checked for damage.")
            .caused_by(e)
    }
}

impl fmt::Display for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.remote.fmt(f)
    }
}

/// The card that asks for private artifacts too, or none.
pub(super) fn private_card(private: bool) -> &'static str {
    if private { "pragma send-private\n" } else { "" }
}

/// Refuses a user without a password, before anything is asked.
pub(super) fn check_login(remote: &Remote) -> Result<()> {
    match (remote.user(), remote.password()) {
        (Some(user), None) => {
            Err(Error::new(Kind::LoginFailed, format!("no password is known for `{user}` at {remote}"))
                .with_hint("Give the password, or remember it with the remote."))
        }
        _ => Ok(()),
    }
}

/// The card by which a request proves its login, as Fossil's client makes it.
fn login_card(user: &User, password: &Password, project: &str, body: &[u8]) -> String {
    let sha1 = |bytes: &[u8]| Hash::from_digest(&Sha1::digest(bytes)).to_string();
    let nonce = sha1(body);
    let secret = password.reveal();
    let is_hash = secret.len() == 40 && secret.bytes().all(|b| b.is_ascii_hexdigit());
    let secret = if is_hash { secret.to_owned() } else { password.secret(project, user) };
    format!("login {user} {nonce} {}", sha1(format!("{nonce}{secret}").as_bytes()))
}

/// A text that no other request has, so that its nonce is new.
fn once() -> String {
    format!("{}-{}", std::process::id(), time::since_epoch().as_nanos())
}
