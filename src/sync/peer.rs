//! A server, as one call talks to it: what it is asked in a few cards, beside Fossil's own sync.

use std::fmt;
use std::sync::Arc;

use sha1::{Digest, Sha1};

use super::client::Exchange;
use super::remote::Remote;
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};
use crate::format::sync_message::{Reply, UnversionedEntry};
use crate::name::{Hash, Password, User, time};
use crate::repo::Repository;

/// The client's version. Without it, servers take a client for one that knows no SHA3 hashes.
const CLIENT: &str = "pragma client-version 22800 20260311 113146\n";

/// The hash that no set of unversioned files has.
const NO_SUCH_SET: &str = "0000000000000000000000000000000000000000";

/// A server of a repository's project, as one call talks to it.
pub(super) struct Peer<'a> {
    remote: &'a Remote,
    exchange: Arc<Exchange>,
    code: String,
    project: String,
}

impl<'a> Peer<'a> {
    pub fn new(repository: &Repository, remote: &'a Remote, cancel: &Cancel) -> Result<Self> {
        let store = repository.store();
        Ok(Self {
            remote,
            exchange: Arc::new(Exchange::new(remote, cancel)),
            code: store.setting("server-code")?.unwrap_or_else(|| "x".to_owned()),
            project: store.project_code()?,
        })
    }

    pub fn remote(&self) -> &Remote {
        self.remote
    }

    pub fn exchange(&self) -> Arc<Exchange> {
        Arc::clone(&self.exchange)
    }

    /// Whether the server holds all of these, which this login may read.
    pub fn holds(&self, hashes: &[Hash], private: bool) -> Result<bool> {
        let mut held = std::collections::BTreeSet::new();
        // A reply has its limit. Most often there are few tips.
        for some in hashes.chunks(100) {
            let wanted =
                some.iter().fold(String::new(), |cards, hash| cards + "gimme " + hash.as_str() + "\n");
            held.extend(self.ask(&format!("{}{wanted}", self.pull_cards(private)))?.files);
        }
        Ok(hashes.iter().all(|hash| held.contains(hash)))
    }

    /// Whether the server lists all of these among what it holds and has put in no cluster yet. New artifacts are
    /// there. To answer this the server writes nothing, while Fossil 2.21 commits a row of its own for each `gimme`.
    fn lists(&self, hashes: &[Hash], private: bool) -> Result<bool> {
        let listed = self.ask(&self.pull_cards(private))?.listed;
        Ok(hashes.iter().all(|hash| listed.contains(hash)))
    }

    /// Makes sure that the server holds these. It said nothing against them when they were sent.
    ///
    /// It takes a request of its own, after the one that sent them: in the same request Fossil neither lists what was
    /// just sent nor gives it back (its table `onremote`), and the absence of a `gimme` proves nothing, since it
    /// drops shunned artifacts without a word.
    pub fn make_sure(&self, hashes: &[Hash], private: bool) -> Result<()> {
        let held = match self.lists(hashes, private) {
            Ok(false) | Err(_) => self.holds(hashes, private),
            listed => listed,
        };
        let why = match held {
            Ok(true) => return Ok(()),
            // A login may be allowed to write and not to read: then there is nothing better than the server's silence.
            Err(e) if e.kind() == Kind::Denied => return Ok(()),
            Err(e) if e.kind() == Kind::Cancelled => return Err(e),
            Ok(false) => format!("the server at {self} does not hold what was sent"),
            Err(e) => format!("it is not known whether the server at {self} holds what was sent: {e}"),
        };
        Err(Error::new(Kind::NotPushed, why)
            .with_hint("Push again; if that does not help, ask who runs the server."))
    }

    /// The server's unversioned files, deleted ones too.
    pub fn unversioned(&self) -> Result<Vec<UnversionedEntry>> {
        let reply = self.ask(&format!("{}pragma uv-hash {NO_SUCH_SET}\n", self.pull_card()))?;
        Ok(reply.unversioned)
    }

    /// Sends cards in one request. A reply that reports a failure is an error.
    pub fn ask(&self, cards: &str) -> Result<Reply> {
        let reply = self.send(cards.as_bytes())?;
        reply.error().map_or(Ok(reply), Err)
    }

    /// Sends cards in one request, with the login.
    pub fn send(&self, cards: &[u8]) -> Result<Reply> {
        let body = [CLIENT.as_bytes(), cards, format!("# {}\n", once()).as_bytes()].concat();
        let login = self.remote.login();
        let card = login.map(|(user, password)| login_card(user, password, &self.project, &body));
        let reply = self.exchange.exchange(card.as_deref().map(str::as_bytes), &body)?;
        Ok(Reply::read(&reply))
    }

    /// Finds out whether a failed login means a wrong project, since the secret includes the project's code. Asks
    /// without a login.
    pub fn another_project(&self, e: Error) -> Error {
        if e.kind() != Kind::LoginFailed {
            return e;
        }
        let body = format!("{CLIENT}{}", self.pull_card());
        match self.exchange.exchange(None, body.as_bytes()).map(|reply| Reply::read(&reply).error()) {
            Ok(Some(other)) if other.kind() == Kind::Foreign => other,
            _ => e,
        }
    }

    pub fn pull_card(&self) -> String {
        format!("pull {} {}\n", self.code, self.project)
    }

    fn pull_cards(&self, private: bool) -> String {
        let pragma = if private { "pragma send-private\n" } else { "" };
        format!("{pragma}{}", self.pull_card())
    }

    pub fn push_card(&self) -> String {
        format!("push {} {}\n", self.code, self.project)
    }
}

impl fmt::Display for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.remote.fmt(f)
    }
}

/// Names the server in an error of Fossil's code about what the server sent.
pub(super) fn blame(remote: &Remote, e: Error) -> Error {
    if !matches!(e.kind(), Kind::Internal | Kind::Corrupt) {
        return e;
    }
    Error::new(Kind::Refused, format!("what {remote} sent cannot be used: {e}"))
        .with_hint("Try another server, or have that one checked for damage.")
}

/// The login for Fossil's own code. Refuses a user without a password, for whom that code would end the process.
pub(super) fn login(remote: &Remote) -> Result<Option<(String, String)>> {
    match (remote.user(), remote.password()) {
        (None, _) => Ok(None),
        (Some(user), Some(password)) => Ok(Some((user.to_string(), password.reveal().to_owned()))),
        (Some(user), None) => {
            Err(Error::new(Kind::LoginFailed, format!("no password is known for `{user}` at {remote}"))
                .with_hint("Give the password, or remember it with the remote."))
        }
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
