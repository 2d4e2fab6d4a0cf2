//! What a sync made of unversioned files. The newest wins, and the result says on which side it was.

use std::collections::BTreeMap;
use std::fmt;

use super::fossil_client::Log;
use super::peer::Peer;
use crate::error::{Error, Kind, Result};
use crate::format::sync_message::UnversionedEntry;
use crate::repo::Repository;

/// The unversioned files that a sync moved, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnversionedChanges {
    /// The server has these from here now, or knows now that they are deleted.
    pub sent: Vec<String>,
    /// These came from the server, or were deleted there.
    pub received: Vec<String>,
    /// Those of `received` that had other, older content here, which is gone.
    pub replaced: Vec<String>,
}

impl UnversionedChanges {
    /// Whether no file went either way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.received.is_empty()
    }
}

impl fmt::Display for UnversionedChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("unversioned files are the same");
        }
        write!(f, "unversioned files: sent {}, received {}", self.sent.len(), self.received.len())?;
        if !self.replaced.is_empty() {
            write!(f, ", of which newer than here: {}", self.replaced.join(", "))?;
        }
        Ok(())
    }
}

/// What became of the files that were `before`. Asks the server whether it has all that is here.
pub(super) fn changes(
    peer: &Peer<'_>,
    repository: &Repository,
    before: &[UnversionedEntry],
    log: &Log,
) -> Result<UnversionedChanges> {
    let here = repository.store().unversioned()?;
    let mut changes = UnversionedChanges { sent: log.sent_unversioned.clone(), ..Default::default() };
    changes.sent.sort_unstable();
    changes.sent.dedup();
    let old: BTreeMap<&str, &UnversionedEntry> =
        before.iter().map(|file| (file.name.as_str(), file)).collect();
    for file in here.iter().filter(|file| old.get(file.name.as_str()) != Some(file)) {
        if changes.sent.contains(&file.name) {
            continue;
        }
        let other =
            old.get(file.name.as_str()).is_some_and(|old| old.hash.is_some() && old.hash != file.hash);
        changes.received.push(file.name.clone());
        changes.replaced.extend(other.then(|| file.name.clone()));
    }
    if log.unversioned_differ || !changes.sent.is_empty() {
        let lacking = lacking(&here, &peer.unversioned()?);
        if !lacking.is_empty() {
            return Err(not_taken(peer, &lacking, log.unversioned_pull_only));
        }
    }
    Ok(changes)
}

/// The files that the server lacks or has older.
fn lacking(here: &[UnversionedEntry], there: &[UnversionedEntry]) -> Vec<String> {
    let there: BTreeMap<&str, &UnversionedEntry> =
        there.iter().map(|file| (file.name.as_str(), file)).collect();
    let is_behind = |file: &&UnversionedEntry| match there.get(file.name.as_str()) {
        // A server that never had a file need not know that it is gone.
        None => file.hash.is_some(),
        Some(other) => other.hash != file.hash && other.mtime <= file.mtime,
    };
    here.iter().filter(is_behind).map(|file| file.name.clone()).collect()
}

fn not_taken(peer: &Peer<'_>, names: &[String], pull_only: bool) -> Error {
    let some = names.iter().take(5).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let more = if names.len() > 5 { format!(" and {} more", names.len() - 5) } else { String::new() };
    if pull_only {
        return Error::new(
            Kind::Denied,
            format!("the server does not let this login write unversioned files: {some}{more} stay here"),
        )
        .with_hint("Ask for the capability to write unversioned files (`y`) on the peer.");
    }
    Error::new(Kind::NotPushed, format!("the server at {peer} does not hold unversioned {some}{more}"))
        .with_hint("Sync again; if that does not help, ask who runs the peer.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Hash;

    fn file(name: &str, mtime: i64, content: Option<&[u8]>) -> UnversionedEntry {
        UnversionedEntry { name: name.into(), mtime, hash: content.map(Hash::of) }
    }

    #[test]
    fn a_server_is_behind_only_with_what_is_missing_or_older_there() {
        let here =
            [file("a", 5, Some(b"a")), file("b", 5, Some(b"b")), file("c", 5, None), file("d", 5, None)];
        assert_eq!(lacking(&here, &here), [""; 0]);
        assert_eq!(lacking(&here, &[]), ["a", "b"]);
        let there = [file("a", 6, Some(b"x")), file("b", 4, Some(b"x")), file("c", 4, Some(b"c"))];
        assert_eq!(lacking(&here, &there), ["b", "c"]);
    }

    #[test]
    fn what_happened_is_said_in_a_line() {
        let mut changes = UnversionedChanges::default();
        assert_eq!(changes.to_string(), "unversioned files are the same");
        changes.received = vec!["a".into(), "b".into()];
        changes.replaced = vec!["b".into()];
        let line = "unversioned files: sent 0, received 2, of which newer than here: b";
        assert_eq!(changes.to_string(), line);
    }
}
