//! Push, pull and both: what is sent and received, and whether the server holds it.

use super::options::SyncOptions;
use super::outcome::{Outcome, Synced};
use super::peer::Peer;
use super::pull::{Pulled, pull};
use super::push::push;
use super::remote::Remote;
use super::unversioned;
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, User};
use crate::repo::Repository;

impl Repository {
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
    /// something; [`Kind::Busy`], [`Kind::DiskFull`] on this side. What was not sent stays marked as unsent. What is
    /// received is taken in whole or not at all.
    pub fn sync(&self, remote: &Remote, options: &SyncOptions) -> Result<Synced> {
        let peer = || Peer::new(self, remote, &options.cancel);
        let user = self.local_user(remote)?;
        let mut synced = Synced::default();
        let mut denied = None;
        if options.push {
            match peer().and_then(|peer| push(self, peer, options)) {
                Ok(sent) => synced.sent = Some(sent),
                // What a login may not send says nothing of what it may fetch.
                Err(e) if options.pull && e.kind() == Kind::Denied => denied = Some(e),
                Err(e) => return Err(e),
            }
        }
        if options.pull {
            let pulled = peer().and_then(|peer| pull(self, peer, &user, options));
            let Pulled { artifacts, gaps, not_linked } = pulled.map_err(|e| after(&synced, e))?;
            let received =
                if artifacts == 0 { Outcome::NothingToReceive } else { Outcome::Received { artifacts } };
            synced = Synced { received: Some(received), gaps, not_linked, ..synced };
        }
        if let Some(e) = denied {
            return Err(after(&synced, e).with_hint("Ask for the capability on the server, or pull only."));
        }
        if options.unversioned {
            let moved = peer().and_then(|peer| unversioned::sync(self, peer, &user));
            synced.unversioned = Some(moved.map_err(|e| after(&synced, e))?);
        }
        Ok(synced)
    }

    /// The local login that stands for the remote one.
    fn local_user(&self, remote: &Remote) -> Result<User> {
        if let Some(name) = remote.user()
            && self.store().user(name)?.is_some()
        {
            return Ok(name.clone());
        }
        let first = self.store().first_user()?;
        first
            .ok_or_else(|| Error::new(Kind::NotFound, "the repository has no user"))
            .and_then(|name| User::parse(&name))
    }

    /// Marks artifacts as sent.
    pub(super) fn forget_unsent(&self, sent: &[(i64, Hash)]) -> Result<()> {
        if sent.is_empty() {
            return Ok(());
        }
        let db = self.writer()?;
        // If a power failure undoes this, the next push asks the server once more. Waiting for the disk would cost each push.
        db.execute_batch("PRAGMA synchronous=NORMAL")?;
        let done = db.unchecked_transaction()?;
        for (rid, _) in sent {
            done.execute("DELETE FROM unsent WHERE rid=?1", [rid])?;
        }
        done.commit()?;
        Ok(())
    }
}

/// An error that says what was done before it.
fn after(done: &Synced, e: Error) -> Error {
    let done = done.to_string();
    if done.is_empty() {
        return e;
    }
    let told = Error::new(e.kind(), format!("{e}; done before that: {done}"));
    match e.hint().map(str::to_owned) {
        Some(hint) => told.with_hint(hint).caused_by(e),
        None => told.caused_by(e),
    }
}
