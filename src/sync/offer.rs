//! What is sent to a server: what it surely lacks, what it might lack, and what it asks for.

use std::collections::{HashSet, VecDeque};

use crate::error::{Kind, Result};
use crate::format::sync_message::Card;
use crate::name::Hash;
use crate::repo::Repository;

/// The bytes of a request after which nothing more is added, where the setting `max-upload` says nothing.
const REQUEST_BYTES: usize = 250_000;

/// What is sent.
pub(super) struct Offer<'a> {
    repository: &'a Repository,
    private: bool,
    request_bytes: usize,
    /// What is to be sent.
    queue: VecDeque<Hash>,
    /// What is to be named, so that the server can ask for it.
    named: VecDeque<(Hash, bool)>,
    /// What was sent or is to be sent.
    offered: HashSet<Hash>,
    pub sent: Vec<Hash>,
    is_asked: bool,
}

impl<'a> Offer<'a> {
    /// Begins with what is `unsent`, and names what no cluster names yet.
    pub fn new(repository: &'a Repository, unsent: &[Hash], private: bool) -> Result<Self> {
        let store = repository.store();
        let request_bytes = store.setting("max-upload")?.and_then(|bytes| bytes.trim().parse().ok());
        let offered: HashSet<Hash> = unsent.iter().copied().collect();
        let mut named: VecDeque<_> = store
            .unclustered()?
            .into_iter()
            .filter(|hash| !offered.contains(hash))
            .map(|hash| (hash, false))
            .collect();
        if private {
            named.extend(store.private()?.into_iter().map(|hash| (hash, true)));
        }
        Ok(Self {
            repository,
            private,
            request_bytes: request_bytes.unwrap_or(REQUEST_BYTES),
            queue: unsent.iter().copied().collect(),
            named,
            offered,
            sent: Vec::new(),
            is_asked: false,
        })
    }

    /// Whether there is nothing more to send or to name.
    pub fn is_done(&self) -> bool {
        self.queue.is_empty() && self.named.is_empty()
    }

    /// The cards of the next request.
    pub fn cards(&mut self) -> Result<Vec<u8>> {
        let mut cards = Vec::new();
        while cards.len() < self.request_bytes
            && let Some(hash) = self.queue.pop_front()
        {
            self.file(&hash, &mut cards)?;
        }
        while cards.len() < self.request_bytes
            && let Some((hash, private)) = self.named.pop_front()
        {
            cards.extend_from_slice(format!("igot {hash}{}\n", if private { " 1" } else { "" }).as_bytes());
        }
        Ok(cards)
    }

    fn file(&mut self, hash: &Hash, cards: &mut Vec<u8>) -> Result<()> {
        let store = self.repository.store();
        let is_private = store.is_private(hash)?;
        if is_private && !self.private {
            // The server need not ask for it again.
            cards.extend_from_slice(format!("igot {hash} 1\n").as_bytes());
            return Ok(());
        }
        let content = match store.content(hash) {
            Ok(content) => content,
            // What is shunned here, or not wholly here, is not sent.
            Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Denied) => return Ok(()),
            Err(e) => return Err(e),
        };
        if is_private {
            cards.extend_from_slice(b"private\n");
        }
        cards.extend_from_slice(format!("file {hash} {}\n", content.len()).as_bytes());
        cards.extend_from_slice(&content);
        self.sent.push(*hash);
        Ok(())
    }

    /// Takes a card of the reply. Returns whether the server asks for something new that is here.
    pub fn take(&mut self, card: &Card<'_>) -> Result<bool> {
        let Card::Want(hash) = card else { return Ok(false) };
        if !self.repository.store().holds(hash)? || !self.offered.insert(*hash) {
            return Ok(false);
        }
        self.queue.push_back(*hash);
        if !self.is_asked {
            // A server that lacks one lacks many: each cluster names hundreds.
            self.named.extend(self.repository.store().clusters()?.into_iter().map(|hash| (hash, false)));
            self.is_asked = true;
        }
        Ok(true)
    }
}
