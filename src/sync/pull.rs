//! A pull: what the server has and the repository lacks comes, is judged, and is linked in: all of it or nothing.

use super::fetch::{Fetch, Fetched};
use super::options::SyncOptions;
use super::peer::{Peer, private_card};
use super::rounds::Rounds;
use crate::engine;
use crate::error::Result;
use crate::name::{Hash, User};
use crate::repo::Repository;
use crate::transfer::{Origin, Received, make_public, receive};

/// What a pull brought.
pub(super) struct Pulled {
    /// How many artifacts are new here.
    pub artifacts: usize,
    /// What is named here and nobody has.
    pub gaps: Vec<Hash>,
    /// Why some artifacts were stored and not linked in.
    pub not_linked: Vec<String>,
}

/// Fetches what the repository lacks, as its login `user`.
pub(super) fn pull(
    repository: &Repository,
    peer: Peer<'_>,
    user: &User,
    options: &SyncOptions,
) -> Result<Pulled> {
    let mut rounds = Rounds::new(peer);
    let progress = options.progress.clone();
    let mut fetch = Fetch::into(repository.path(), &rounds.limits(), options.private, progress)?;
    let Fetched { staged, gaps } = complete(&mut rounds, &mut fetch, options.private)?;
    let published = fetch.published;
    if staged.rows().is_empty() && published.is_empty() {
        return Ok(Pulled { artifacts: 0, gaps, not_linked: Vec::new() });
    }
    let received = engine::transaction(repository.path(), user.as_str(), move |transaction| {
        make_public(transaction.connection(), &published)?;
        receive(transaction, &staged, Origin::Server, None)
    });
    let Received { imported, not_linked } = received.map_err(|e| rounds.peer.blame(e))?;
    Ok(Pulled { artifacts: imported.artifacts, gaps, not_linked })
}

/// Exchanges with the server until it has nothing more to give.
pub(super) fn complete(rounds: &mut Rounds<'_>, fetch: &mut Fetch, private: bool) -> Result<Fetched> {
    ask(rounds, fetch, private)?;
    fetch.want_whole()?;
    loop {
        if fetch.is_wanting() {
            ask(rounds, fetch, private)?;
        }
        if let Some(fetched) = fetch.finish().map_err(|e| rounds.peer.blame(e))? {
            return Ok(fetched);
        }
    }
}

/// Asks until everything that is wanted was asked for, once at least.
fn ask(rounds: &mut Rounds<'_>, fetch: &mut Fetch, private: bool) -> Result<()> {
    loop {
        // By now the server's clusters are of use: each names hundreds of others.
        let also = if rounds.done() == 2 && fetch.is_wanting() { "pragma req-clusters\n" } else { "" };
        let cards = [private_card(private), &rounds.peer.pull_card(), also, &fetch.cards()].concat();
        let reply = rounds.exchange(cards.as_bytes(), true, |card| fetch.take(card))?;
        if let Some(e) = reply.error() {
            return Err(rounds.peer.another_project(e));
        }
        if !fetch.is_wanting() {
            return Ok(());
        }
    }
}
