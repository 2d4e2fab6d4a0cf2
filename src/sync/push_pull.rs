//! Push, pull and both: what is sent and received, and whether the server holds it.

use std::collections::BTreeSet;

use super::fossil_client::{Log, LoggedTransport, SyncLock, take_log};
use super::options::SyncOptions;
use super::outcome::{Outcome, Synced};
use super::peer::{Peer, blame, login};
use super::remote::Remote;
use super::{quick, unversioned};
use crate::engine::{self, SyncRequest};
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
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
    /// something; [`Kind::Busy`], [`Kind::DiskFull`] on this side. What was not taken stays marked as unsent, and
    /// what was received by then stays.
    pub fn sync(&self, remote: &Remote, options: &SyncOptions) -> Result<Synced> {
        let peer = Peer::new(self, remote, &options.cancel)?;
        let before = options.unversioned.then(|| self.store().unversioned()).transpose()?;
        let (sent, log) = if options.push {
            let done = self.send(&peer, options);
            let (outcome, log) = done.map_err(|e| self.receive_at_least(&peer, options, e))?;
            (Some(outcome), log)
        } else {
            (None, self.receive(&peer, options)?)
        };
        let received = options.pull.then_some(match log.received {
            0 => Outcome::NothingToReceive,
            artifacts => Outcome::Received { artifacts },
        });
        let unversioned =
            before.map(|before| unversioned::changes(&peer, self, &before, &log)).transpose()?;
        Ok(Synced { sent, received, unversioned })
    }

    /// A sync that sends, and may fetch too.
    fn send(&self, peer: &Peer<'_>, options: &SyncOptions) -> Result<(Outcome, Log)> {
        let unsent = self.store().unsent()?;
        let mut check_ins = self.store().check_ins_of(&unsent)?;
        let quick = if options.pull || options.private || options.unversioned {
            None
        } else {
            quick::push(self, peer, &unsent)?
        };
        let (log, result) = match quick {
            Some(log) => (log, Ok(true)),
            None => self.exchange(peer, options)?,
        };
        let sent = self.store().check_ins_among(&log.sent)?;
        check_ins.extend(sent.into_iter().filter(|hash| !check_ins.contains(hash)).collect::<Vec<_>>());
        let mut tips = self.last_of(&check_ins)?;
        if tips.is_empty() {
            // There is no check-in among them: a page, a post or a tag was written alone.
            tips.extend(unsent.last().map(|(_, hash)| *hash));
        }
        if let Some(e) = log.failure(true).or_else(|| result.err()) {
            // A reply that was lost may hide a push that arrived.
            let lost = matches!(e.kind(), Kind::Unreachable | Kind::TimedOut);
            if !(lost && !tips.is_empty() && peer.holds(&tips, options.private).unwrap_or(false)) {
                return Err(peer.another_project(e));
            }
        } else if !tips.is_empty() {
            peer.make_sure(&tips, options.private)?;
        }
        self.forget_unsent(&unsent)?;
        let outcome = match (log.sent.len(), check_ins.len()) {
            (0, 0) => Outcome::NothingToSend,
            (artifacts, check_ins) => Outcome::Sent { check_ins, artifacts },
        };
        Ok((outcome, log))
    }

    /// A sync that only fetches.
    fn receive(&self, peer: &Peer<'_>, options: &SyncOptions) -> Result<Log> {
        let (log, result) = self.exchange(peer, options)?;
        match log.failure(false).or_else(|| result.err()) {
            Some(e) => Err(peer.another_project(e)),
            None => Ok(log),
        }
    }

    /// Fetches after a refusal to take anything: by that refusal a server ends the whole sync.
    fn receive_at_least(&self, peer: &Peer<'_>, options: &SyncOptions, e: Error) -> Error {
        if !options.pull || e.kind() != Kind::Denied {
            return e;
        }
        match self.receive(peer, &SyncOptions { push: false, ..options.clone() }) {
            Ok(log) => Error::new(Kind::Denied, format!("{e}; {} artifacts were received", log.received))
                .with_hint("Ask for the capability on the server, or pull only."),
            Err(_) => e,
        }
    }

    /// The check-ins that are no parent of another of them. A server that holds these holds all.
    fn last_of(&self, check_ins: &[Hash]) -> Result<Vec<Hash>> {
        let mut parents = BTreeSet::new();
        for hash in check_ins {
            parents.extend(self.store().check_in(hash)?.parents);
        }
        Ok(check_ins.iter().filter(|hash| !parents.contains(hash)).copied().collect())
    }

    /// Runs Fossil's sync. Returns what passed by, and how Fossil's code ended.
    fn exchange(&self, peer: &Peer<'_>, options: &SyncOptions) -> Result<(Log, Result<bool>)> {
        let transport = LoggedTransport::new(peer.exchange());
        let log = transport.log();
        let request = SyncRequest {
            url: peer.remote().url(),
            login: login(peer.remote())?,
            local_user: self.local_user(peer.remote())?,
            push: options.push,
            pull: options.pull,
            private: options.private,
            unversioned: options.unversioned,
            transport: Box::new(transport),
        };
        let _alone = SyncLock::take(&options.cancel)?;
        let result = engine::sync(self.path(), request).map_err(|e| blame(peer.remote(), e));
        Ok((take_log(&log), result))
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
