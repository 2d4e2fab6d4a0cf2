//! The exchanges of one sync with a server: how many there may be, and what goes along with each.

use std::time::Instant;

use super::connection::Limits;
use super::peer::Peer;
use crate::error::{Error, Kind, Result};
use crate::format::sync_message::{Card, Cards, Reply};

/// The most exchanges of one sync. A server may always ask for one more.
const ROUNDS_MAX: u32 = 100_000;

/// The most exchanges in a row that bring nothing new to either side.
const IDLE_MAX: u32 = 20;

/// The most bytes of a cookie that are kept.
const COOKIE_MAX: usize = 4096;

/// The exchanges of one sync.
pub(super) struct Rounds<'a> {
    pub peer: Peer<'a>,
    began: Instant,
    done: u32,
    idle: u32,
    /// What the server wants back in the next exchange. It is kept no longer, so no other server can see it.
    cookie: Option<String>,
}

impl<'a> Rounds<'a> {
    pub fn new(peer: Peer<'a>) -> Self {
        Self { peer, began: Instant::now(), done: 0, idle: 0, cookie: None }
    }

    /// How many exchanges there were.
    pub fn done(&self) -> u32 {
        self.done
    }

    pub fn limits(&self) -> Limits {
        *self.peer.remote().connection().limits()
    }

    /// Sends cards and takes each card of the reply. `take` says whether it is news, and the sync goes on. Returns what
    /// the reply says besides.
    ///
    /// # Errors
    /// Those of the exchange and of `take`; [`Kind::Refused`] with a malformed card, or when the exchanges lead nowhere;
    /// [`Kind::TimedOut`] over the limit for all of them.
    pub fn exchange(
        &mut self,
        cards: &[u8],
        with_login: bool,
        mut take: impl FnMut(&Card<'_>) -> Result<bool>,
    ) -> Result<Reply> {
        self.check()?;
        self.done += 1;
        self.idle += 1;
        let mut body = cards.to_vec();
        if let Some(cookie) = &self.cookie {
            body.extend_from_slice(format!("cookie {cookie}\n").as_bytes());
        }
        let bytes = self.peer.talk(&body, with_login)?;
        let mut reply = Reply::default();
        for card in Cards::of(&bytes) {
            let card = card.map_err(|e| self.peer.blame(e))?;
            match card {
                Card::Project(code) if !self.peer.project().is_empty() && code != self.peer.project() => {
                    let what = format!(
                        "{} is of the project `{code}`, and not of `{}`",
                        self.peer,
                        self.peer.project()
                    );
                    return Err(Error::new(Kind::Foreign, what).with_hint("Check the URL."));
                }
                Card::Cookie(cookie) if cookie.len() <= COOKIE_MAX => self.cookie = Some(cookie.to_owned()),
                _ => reply.note(&card),
            }
            if take(&card).map_err(|e| self.peer.blame(e))? {
                self.idle = 0;
            }
        }
        Ok(reply)
    }

    fn check(&self) -> Result<()> {
        let limit = self.limits().sync;
        if self.began.elapsed() > limit {
            let what = format!("the sync with {} took over {} s", self.peer, limit.as_secs());
            return Err(Error::new(Kind::TimedOut, what)
                .with_hint("Allow more time, or look at the server; nothing of it was kept."));
        }
        if self.done > ROUNDS_MAX || self.idle > IDLE_MAX {
            let what = format!("{} asks for ever more exchanges that bring nothing", self.peer);
            return Err(
                Error::new(Kind::Refused, what).with_hint("Have the server checked; nothing of it was kept.")
            );
        }
        Ok(())
    }
}
