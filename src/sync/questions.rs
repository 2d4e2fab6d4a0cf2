//! What a server is asked beside a sync: whether it holds an artifact, takes check-ins, lets anyone in.

use super::connection::Limits;
use super::peer::{Peer, check_login};
use super::remote::Remote;
use crate::cancel::Cancel;
use crate::error::{Kind, Result};
use crate::name::Hash;
use crate::repo::Repository;

impl Repository {
    /// Asks the server whether it holds an artifact that this login may read.
    ///
    /// # Errors
    /// As for [`pull`](Self::pull).
    pub fn server_holds(&self, remote: &Remote, hash: &Hash) -> Result<bool> {
        Peer::new(self, remote, &Cancel::new())?.holds(&[*hash], false)
    }

    /// Asks the server whether it takes check-ins from this login. Nothing but the question is sent.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync), but for [`Kind::Denied`], which is the answer `false`.
    pub fn may_push(&self, remote: &Remote, cancel: &Cancel) -> Result<bool> {
        check_login(remote)?;
        let peer = Peer::new(self, remote, cancel)?;
        match peer.ask(&peer.push_card()) {
            Ok(reply) => Ok(!reply.pull_only),
            Err(e) if e.kind() == Kind::Denied => Ok(false),
            Err(e) => Err(peer.another_project(e)),
        }
    }

    /// Asks the server whether anyone, without a login, may clone from it and finds an artifact there.
    ///
    /// # Errors
    /// As for [`pull`](Self::pull); [`Kind::Denied`] where reading or cloning takes a login.
    pub fn anyone_finds(&self, remote: &Remote, hash: &Hash, limits: Limits) -> Result<bool> {
        let anyone = Remote::parse(&remote.url())?.over(remote.connection().within(limits));
        let peer = Peer::new(self, &anyone, &Cancel::new())?;
        if !peer.holds(&[*hash], false)? {
            return Ok(false);
        }
        // The rest of a clone that is complete: nothing is sent, unless it is a refusal.
        peer.ask(&format!("clone 2 {}\n", i32::MAX))?;
        Ok(true)
    }
}
