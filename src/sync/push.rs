//! A push: what the server lacks goes there, and then each artifact that was sent is asked for.

use super::offer::Offer;
use super::options::SyncOptions;
use super::outcome::Outcome;
use super::peer::{Peer, check_login, private_card};
use super::rounds::Rounds;
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::repo::Repository;

/// How many artifacts an error names.
const NAMED_MAX: usize = 5;

/// Sends what the server lacks, and makes sure that it holds it.
pub(super) fn push(repository: &Repository, peer: Peer<'_>, options: &SyncOptions) -> Result<Outcome> {
    check_login(peer.remote())?;
    if repository.store().is_on("dont-push")? {
        return Err(Error::new(Kind::Refused, "the setting `dont-push` is on here, so nothing is pushed")
            .with_hint("Turn that setting off if pushing is wanted."));
    }
    let unsent = repository.store().unsent()?;
    let hashes: Vec<Hash> = unsent.iter().map(|(_, hash)| *hash).collect();
    let mut rounds = Rounds::new(peer);
    let mut offer = Offer::new(repository, &hashes, options.private)?;
    let sending = send(&mut rounds, &mut offer, options.private);
    let (peer, sent) = (rounds.peer, offer.sent);
    match sending {
        Ok(()) => {}
        // A reply that was lost may hide a push that arrived.
        Err(e) if matches!(e.kind(), Kind::Unreachable | Kind::TimedOut) && !sent.is_empty() => {
            if !peer.holds(&sent, options.private).unwrap_or(false) {
                return Err(e);
            }
        }
        Err(e) => return Err(peer.another_project(e)),
    }
    let lacking = lacking(&peer, &sent, options.private)?;
    if !lacking.is_empty() && lacking.len() == sent.len() {
        return Err(not_pushed(format!("the server at {peer} does not hold what was sent")));
    }
    repository.forget_unsent(&unsent)?;
    if !lacking.is_empty() {
        // What a server lets fall it lets fall again, so it is said once.
        return Err(not_whole(repository, &peer, &lacking)?);
    }
    let check_ins = repository.store().check_ins_among(&sent)?.len();
    Ok(match sent.len() {
        0 => Outcome::NothingToSend,
        artifacts => Outcome::Sent { check_ins, artifacts },
    })
}

fn send(rounds: &mut Rounds<'_>, offer: &mut Offer<'_>, private: bool) -> Result<()> {
    loop {
        let card = rounds.peer.push_card();
        let cards = [private_card(private).as_bytes(), card.as_bytes(), &offer.cards()?].concat();
        let reply = rounds.exchange(&cards, true, |card| offer.take(card))?;
        if let Some(e) = reply.error() {
            return Err(e);
        }
        if reply.pull_only {
            return Err(Error::new(Kind::Denied, "the server does not let this login push")
                .with_hint("Ask for the check-in capability (`i`) on the server."));
        }
        if offer.is_done() {
            return Ok(());
        }
    }
}

/// Those of the artifacts that the server does not hold. It said nothing against them when they were sent.
///
/// It takes a request of its own, after the one that sent them: in the same request Fossil neither lists what was
/// just sent nor gives it back (its table `onremote`), and the absence of a `gimme` proves nothing, since it
/// drops shunned artifacts without a word.
fn lacking(peer: &Peer<'_>, sent: &[Hash], private: bool) -> Result<Vec<Hash>> {
    if sent.is_empty() {
        return Ok(Vec::new());
    }
    let ask = || peer.held_of(sent, private);
    // A question that got no answer is asked once more: it changes nothing there.
    match ask().or_else(|e| if e.kind() == Kind::Unreachable { ask() } else { Err(e) }) {
        Ok(held) => Ok(sent.iter().filter(|hash| !held.contains(hash)).copied().collect()),
        // A login may be allowed to write and not to read: then there is nothing better than the server's silence.
        Err(e) if e.kind() == Kind::Denied => Ok(Vec::new()),
        Err(e) if e.kind() == Kind::Cancelled => Err(e),
        Err(e) => {
            Err(not_pushed(format!("it is not known whether the server at {peer} holds what was sent: {e}")))
        }
    }
}

fn not_pushed(what: String) -> Error {
    Error::new(Kind::NotPushed, what).with_hint("Push again; if that does not help, ask who runs the server.")
}

fn not_whole(repository: &Repository, peer: &Peer<'_>, lacking: &[Hash]) -> Result<Error> {
    let mut names = Vec::new();
    for hash in lacking.iter().take(NAMED_MAX) {
        names.push(match repository.store().a_path_of(hash)? {
            Some(path) => format!("`{path}` (`{}`)", hash.short()),
            None => format!("the artifact `{}`", hash.short()),
        });
    }
    let more = lacking.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let what = format!("the server at {peer} took the rest, but not {}{more}", names.join(", "));
    Ok(Error::new(Kind::NotPushed, what).with_hint(
        "It may be shunned there: ask who runs the server, or make a check-in without that content.",
    ))
}
