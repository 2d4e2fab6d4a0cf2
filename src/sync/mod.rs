//! Push, pull, sync and clone: Fossil's own sync code over our own HTTP.
//!
//! Fossil's result and exit status say "fine" for most failures. What happened is read from the cards that
//! pass by, and after a push the server is asked whether it holds what was sent.

mod ask;
pub mod client;
mod clone;
mod quick;
pub mod remote;
mod turn;
mod unversioned;
mod wire;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use self::ask::Server;
pub use self::client::{Connection, Limits, Reach};
use self::clone::clone;
pub use self::remote::Remote;
use self::turn::Turn;
pub use self::unversioned::UnversionedChanges;
use self::wire::{Log, Wire};
use crate::cancel::Cancel;
use crate::engine::{self, SyncRequest};
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, Password, User};
use crate::repo::{Repository, make_aside, new_file, remove_unless};

/// What a sync is to do.
///
/// ```
/// use ocx::{cancel::Cancel, sync::SyncOptions};
/// let cancel = Cancel::new();
/// let options = SyncOptions::both().with_unversioned().until(&cancel);
/// assert!(options.push && options.pull && options.unversioned && !options.private);
/// ```
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own, as it is in the protocol")]
pub struct SyncOptions {
    /// Send what the server lacks.
    pub push: bool,
    /// Fetch what is lacking here.
    pub pull: bool,
    /// Take private check-ins along, in the same directions; the login needs the capability `x`.
    pub private: bool,
    /// Make the unversioned files the same on both sides: of each, the newer one stays.
    pub unversioned: bool,
    /// Ends it from another thread.
    pub cancel: Cancel,
}

impl SyncOptions {
    /// Sends only.
    #[must_use]
    pub fn push() -> Self {
        Self { push: true, ..Self::default() }
    }

    /// Fetches only.
    #[must_use]
    pub fn pull() -> Self {
        Self { pull: true, ..Self::default() }
    }

    /// Sends and fetches.
    #[must_use]
    pub fn both() -> Self {
        Self { push: true, pull: true, ..Self::default() }
    }

    /// Private check-ins too.
    #[must_use]
    pub fn with_private(self) -> Self {
        Self { private: true, ..self }
    }

    /// Unversioned files too.
    #[must_use]
    pub fn with_unversioned(self) -> Self {
        Self { unversioned: true, ..self }
    }

    /// The handle that may end it.
    #[must_use]
    pub fn until(self, cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), ..self }
    }
}

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

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// What a sync did, for each thing that it was to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Synced {
    /// What was sent, where that was asked for.
    pub sent: Option<Outcome>,
    /// What was received, likewise.
    pub received: Option<Outcome>,
    /// What became of unversioned files, likewise.
    pub unversioned: Option<UnversionedChanges>,
}

impl fmt::Display for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.sent, &self.received].into_iter().flatten().map(ToString::to_string);
        let parts: Vec<_> = parts.chain(self.unversioned.iter().map(ToString::to_string)).collect();
        f.write_str(&parts.join("; "))
    }
}

impl Repository {
    /// Clones the repository of a server into a new file; `user` may do everything in it. Each artifact is
    /// checked against its hash. The server is remembered without the password.
    ///
    /// # Errors
    /// Those of [`create`](Self::create) and of [`pull`](Self::pull); [`Kind::Refused`] also when an artifact is
    /// not what its hash says. Nothing is left at `path`.
    pub fn clone_from(remote: &Remote, path: &Path, user: &User) -> Result<Self> {
        Self::clone_with(remote, path, user, &SyncOptions::default())
    }

    /// As [`clone_from`](Self::clone_from), with private check-ins, unversioned files or a handle that cancels, as
    /// the options say; which direction they name does not matter.
    ///
    /// # Errors
    /// Those of [`clone_from`](Self::clone_from), and [`Kind::Cancelled`].
    pub fn clone_with(remote: &Remote, path: &Path, user: &User, options: &SyncOptions) -> Result<Self> {
        let path = new_file(path)?;
        make_aside(&path, |aside| clone(remote, aside, user, options))?;
        let made = Self::open(&path).and_then(|repository| {
            repository.set_remote(Some(remote), false)?;
            if options.private {
                // The first request of a clone has no login, so what it brings is public alone.
                repository.sync(remote, &SyncOptions { push: false, pull: true, ..options.clone() })?;
            }
            Ok(repository)
        });
        remove_unless(made, &path)
    }

    /// The remembered server, with its login where a password was kept.
    ///
    /// # Errors
    /// [`Kind::Busy`], [`Kind::Corrupt`], and [`Kind::Invalid`] when what is remembered is no URL that OCX can use.
    pub fn remote(&self) -> Result<Option<Remote>> {
        if !self.has_remote()? {
            return Ok(None);
        }
        let (url, password) = engine::remote(self.path())?;
        let remote = Remote::parse(&url)?;
        Ok(Some(match remote.user().cloned() {
            Some(user) if !password.is_empty() => remote.with_login(user, Password::parse(&password)?),
            _ => remote,
        }))
    }

    /// Remembers a server, or none. Its password is kept only when `keep_password` says so, in the form
    /// in which Fossil keeps it: obscured, not encrypted.
    ///
    /// # Errors
    /// [`Kind::Busy`], [`Kind::DiskFull`], [`Kind::Denied`].
    pub fn set_remote(&self, remote: Option<&Remote>, keep_password: bool) -> Result<()> {
        let url = remote.map(Remote::url_with_user);
        let password = remote.filter(|_| keep_password).and_then(Remote::password).map(Password::reveal);
        engine::set_remote(self.path(), url.as_deref(), password)
    }

    /// Sends what the server lacks, and makes sure that it holds it.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync).
    pub fn push(&self, remote: &Remote) -> Result<Outcome> {
        self.sync(remote, &SyncOptions::push()).map(|synced| synced.sent.unwrap_or(Outcome::NothingToSend))
    }

    /// Fetches what the server has and this repository lacks.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync).
    pub fn pull(&self, remote: &Remote) -> Result<Outcome> {
        let synced = self.sync(remote, &SyncOptions::pull())?;
        Ok(synced.received.unwrap_or(Outcome::NothingToReceive))
    }

    /// Sends and fetches as the options say, and makes sure that the server holds what was sent. While a server
    /// is waited for, no lock is held on the repository.
    ///
    /// # Errors
    /// [`Kind::LoginFailed`], [`Kind::Denied`] when the login may not do that, [`Kind::Foreign`] for another project,
    /// [`Kind::Refused`] with the server's words, [`Kind::Unreachable`], [`Kind::Untrusted`], [`Kind::TimedOut`],
    /// [`Kind::TooLarge`], [`Kind::Cancelled`]; [`Kind::NotPushed`] when the server says nothing wrong and still lacks
    /// something; [`Kind::Busy`], [`Kind::DiskFull`] on this side. What was not taken stays marked as unsent, and
    /// what was received by then stays.
    pub fn sync(&self, remote: &Remote, options: &SyncOptions) -> Result<Synced> {
        let server = Server::new(self, remote, &options.cancel)?;
        let before = options.unversioned.then(|| self.store().unversioned()).transpose()?;
        let (sent, log) = if options.push {
            let done = self.send(&server, options);
            let (outcome, log) = done.map_err(|e| self.receive_at_least(&server, options, e))?;
            (Some(outcome), log)
        } else {
            (None, self.receive(&server, options)?)
        };
        let received = options.pull.then_some(match log.received {
            0 => Outcome::NothingToReceive,
            artifacts => Outcome::Received { artifacts },
        });
        let unversioned =
            before.map(|before| unversioned::changes(&server, self, &before, &log)).transpose()?;
        Ok(Synced { sent, received, unversioned })
    }

    /// Asks the server whether it holds an artifact that this login may read.
    ///
    /// # Errors
    /// As for [`pull`](Self::pull).
    pub fn server_holds(&self, remote: &Remote, hash: &Hash) -> Result<bool> {
        Server::new(self, remote, &Cancel::new())?.holds(&[*hash], false)
    }

    /// Asks the server whether it takes check-ins from this login. Nothing but the question is sent.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync), but for [`Kind::Denied`], which is the answer `false`.
    pub fn may_push(&self, remote: &Remote, cancel: &Cancel) -> Result<bool> {
        ask::login(remote)?;
        let server = Server::new(self, remote, cancel)?;
        match server.ask(&server.push_card()) {
            Ok(reply) => Ok(!reply.pull_only),
            Err(e) if e.kind() == Kind::Denied => Ok(false),
            Err(e) => Err(server.another_project(e)),
        }
    }

    /// Asks the server whether anyone, without a login, may clone from it and finds an artifact there.
    ///
    /// # Errors
    /// As for [`pull`](Self::pull); [`Kind::Denied`] where reading or cloning takes a login.
    pub fn anyone_finds(&self, remote: &Remote, hash: &Hash, limits: Limits) -> Result<bool> {
        let anyone = Remote::parse(&remote.url())?.over(remote.connection().within(limits));
        let server = Server::new(self, &anyone, &Cancel::new())?;
        if !server.holds(&[*hash], false)? {
            return Ok(false);
        }
        // The rest of a clone that is complete: nothing is sent, unless it is a refusal.
        server.ask(&format!("clone 2 {}\n", i32::MAX))?;
        Ok(true)
    }

    /// A sync that sends, and may fetch too.
    fn send(&self, server: &Server<'_>, options: &SyncOptions) -> Result<(Outcome, Log)> {
        let unsent = self.store().unsent()?;
        let mut check_ins = self.store().check_ins_of(&unsent)?;
        let quick = if options.pull || options.private || options.unversioned {
            None
        } else {
            quick::push(self, server, &unsent)?
        };
        let (log, result) = match quick {
            Some(log) => (log, Ok(true)),
            None => self.exchange(server, options)?,
        };
        let sent = self.store().check_ins_among(&log.sent)?;
        check_ins.extend(sent.into_iter().filter(|hash| !check_ins.contains(hash)).collect::<Vec<_>>());
        let mut tips = self.last_of(&check_ins)?;
        if tips.is_empty() {
            // A page, a post or a tag that was written alone.
            tips.extend(unsent.last().map(|(_, hash)| *hash));
        }
        if let Some(e) = log.failure(true).or_else(|| result.err()) {
            // A reply that was lost may hide a push that arrived.
            let lost = matches!(e.kind(), Kind::Unreachable | Kind::TimedOut);
            if !(lost && !tips.is_empty() && server.holds(&tips, options.private).unwrap_or(false)) {
                return Err(server.another_project(e));
            }
        } else if !tips.is_empty() {
            server.make_sure(&tips, options.private)?;
        }
        self.forget_unsent(&unsent)?;
        let outcome = match (log.sent.len(), check_ins.len()) {
            (0, 0) => Outcome::NothingToSend,
            (artifacts, check_ins) => Outcome::Sent { check_ins, artifacts },
        };
        Ok((outcome, log))
    }

    /// A sync that only fetches.
    fn receive(&self, server: &Server<'_>, options: &SyncOptions) -> Result<Log> {
        let (log, result) = self.exchange(server, options)?;
        match log.failure(false).or_else(|| result.err()) {
            Some(e) => Err(server.another_project(e)),
            None => Ok(log),
        }
    }

    /// A server that takes nothing from a login ends the whole sync: what it would give is fetched then.
    fn receive_at_least(&self, server: &Server<'_>, options: &SyncOptions, e: Error) -> Error {
        if !options.pull || e.kind() != Kind::Denied {
            return e;
        }
        match self.receive(server, &SyncOptions { push: false, ..options.clone() }) {
            Ok(log) => Error::new(Kind::Denied, format!("{e}; {} artifacts were received", log.received))
                .with_hint("Ask for the capability on the server, or pull only."),
            Err(_) => e,
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

    /// Runs Fossil's sync; gives what passed by, and how Fossil's code ended.
    fn exchange(&self, server: &Server<'_>, options: &SyncOptions) -> Result<(Log, Result<bool>)> {
        let wire = Wire::new(server.exchange());
        let log = wire.log();
        let request = SyncRequest {
            url: server.remote().url(),
            login: ask::login(server.remote())?,
            local_user: self.local_user(server.remote())?,
            push: options.push,
            pull: options.pull,
            private: options.private,
            unversioned: options.unversioned,
            transport: Box::new(wire),
        };
        let _turn = Turn::take(&options.cancel)?;
        let result = engine::with_cancel(&options.cancel, || engine::sync(self.path(), request))
            .map_err(|e| ask::blame(server.remote(), e));
        Ok((wire::take(&log), result))
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

    fn forget_unsent(&self, sent: &[(i64, Hash)]) -> Result<()> {
        if sent.is_empty() {
            return Ok(());
        }
        let db = self.writer()?;
        // Lost by a power failure, it costs another question to the server; waiting for the disk costs each push.
        db.execute_batch("PRAGMA synchronous=NORMAL")?;
        let done = db.unchecked_transaction()?;
        for (rid, _) in sent {
            done.execute("DELETE FROM unsent WHERE rid=?1", [rid])?;
        }
        done.commit()?;
        Ok(())
    }
}
