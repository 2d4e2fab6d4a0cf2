//! The push of a few new artifacts in one request, without Fossil's sync and its second round trip.
//!
//! It sends what is marked as unsent and names what else is new here. When the server is content with that,
//! the push is done; when it wants more, Fossil's own sync does the whole.

use super::fossil_client::Log;
use super::peer::{Peer, login};
use crate::error::{Kind, Result};
use crate::name::Hash;
use crate::repo::Repository;

/// How many bytes of content one request may hold: servers take at least as much.
const CONTENT_MAX: u64 = 200_000;

/// How many artifacts are sent or named in one request.
const ARTIFACTS_MAX: u32 = 2_000;

/// Sends the unsent artifacts. Returns nothing if that takes Fossil's own sync.
pub(super) fn push(repository: &Repository, peer: &Peer<'_>, unsent: &[(i64, Hash)]) -> Result<Option<Log>> {
    let Some(named) = fitting(repository, unsent)? else { return Ok(None) };
    login(peer.remote())?;
    let mut cards = peer.push_card().into_bytes();
    for (_, hash) in unsent {
        let content = repository.store().content(hash)?;
        cards.extend_from_slice(format!("file {hash} {}\n", content.len()).as_bytes());
        cards.extend_from_slice(&content);
    }
    for hash in named.iter().filter(|hash| !unsent.iter().any(|(_, sent)| sent == *hash)) {
        cards.extend_from_slice(format!("igot {hash}\n").as_bytes());
    }
    let mut log = Log::default();
    log.note_request(&cards);
    match peer.send(&cards) {
        // The full sync tells what a login that may only read can do.
        Ok(reply) if reply.error().is_some_and(|e| e.kind() == Kind::Denied) => return Ok(None),
        Ok(reply) => {
            for hash in &reply.wanted {
                if repository.store().holds(hash)? {
                    return Ok(None);
                }
            }
            log.note_reply(&reply);
        }
        Err(e) => log.note(e),
    }
    Ok(Some(log))
}

/// What is new here. Returns nothing if it does not fit in one request.
fn fitting(repository: &Repository, unsent: &[(i64, Hash)]) -> Result<Option<Vec<Hash>>> {
    let store = repository.store();
    let max = ARTIFACTS_MAX as usize;
    if unsent.is_empty() || unsent.len() > max || store.is_on("dont-push")? {
        return Ok(None);
    }
    let mut size = 0;
    for (_, hash) in unsent {
        // Fossil judges what is shunned or not wholly here.
        let Ok(content) = store.content_size(hash) else { return Ok(None) };
        size += content;
        if size > CONTENT_MAX {
            return Ok(None);
        }
    }
    let named = store.unclustered(ARTIFACTS_MAX + 1)?;
    Ok((named.len() <= max).then_some(named))
}
