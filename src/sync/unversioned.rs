//! Unversioned files: of each name the newest is kept, on both sides, and the result says on which side it was.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use super::peer::Peer;
use super::rounds::Rounds;
use crate::error::{Error, Kind, Result};
use crate::format::sync_message::{Card, UnversionedEntry};
use crate::name::{UnversionedName, User};
use crate::record::Unversioned;
use crate::repo::Repository;

/// The bytes of a request after which nothing more is added.
const REQUEST_BYTES: usize = 250_000;

/// How many files one request asks for. A server answers with as much as fits into its reply.
const ASKED_MAX: usize = 200;

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
    /// The server has files of these names, which no file may have here.
    pub left_out: Vec<String>,
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
            f.write_str("unversioned files are the same")?;
        } else {
            write!(f, "unversioned files: sent {}, received {}", self.sent.len(), self.received.len())?;
        }
        if !self.replaced.is_empty() {
            write!(f, ", of which newer than here: {}", self.replaced.join(", "))?;
        }
        if !self.left_out.is_empty() {
            write!(f, ", left out for their names: {}", self.left_out.join(", "))?;
        }
        Ok(())
    }
}

/// What is to be done about a file, by its dates here and there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Fetch,
    Send,
    /// The content is the same: only the date goes there.
    SendDate,
    Nothing,
}

impl Act {
    /// Compares a file as Fossil does: the later date counts, and of two contents with one date the greater hash.
    fn of(here: Option<&UnversionedEntry>, there: Option<&UnversionedEntry>) -> Self {
        let (here, there) = match (here, there) {
            (None, None) => return Self::Nothing,
            // A side that never had a file need not know that it is gone.
            (None, Some(there)) => return if there.hash.is_some() { Self::Fetch } else { Self::Nothing },
            (Some(here), None) => return if here.hash.is_some() { Self::Send } else { Self::Nothing },
            (Some(here), Some(there)) => (here, there),
        };
        let text =
            |entry: &UnversionedEntry| entry.hash.map_or_else(|| "-".to_owned(), |hash| hash.to_string());
        match (here.mtime.cmp(&there.mtime), text(here).cmp(&text(there))) {
            (Ordering::Equal, Ordering::Equal) => Self::Nothing,
            (Ordering::Less, _) | (Ordering::Equal, Ordering::Less) => Self::Fetch,
            (Ordering::Greater, Ordering::Equal) => Self::SendDate,
            (Ordering::Greater | Ordering::Equal, _) => Self::Send,
        }
    }
}

/// Makes the files the same on both sides, as the repository's login `user`. Asks the server whether it has all then.
pub(super) fn sync(repository: &Repository, peer: Peer<'_>, user: &User) -> Result<UnversionedChanges> {
    let mut rounds = Rounds::new(peer);
    let reply = rounds.peer.unversioned()?;
    let before = repository.store().unversioned()?;
    let here = by_name(&before);
    let (known, left_out): (Vec<_>, Vec<_>) =
        reply.unversioned.iter().partition(|file| UnversionedName::parse(&file.name).is_ok());
    let there: BTreeMap<&str, &UnversionedEntry> =
        known.into_iter().map(|file| (file.name.as_str(), file)).collect();
    let names: std::collections::BTreeSet<&str> = here.keys().chain(there.keys()).copied().collect();
    let (mut fetched, mut sent) = (Vec::new(), Vec::new());
    for name in names {
        match Act::of(here.get(name).copied(), there.get(name).copied()) {
            Act::Fetch => fetched.push(there[name]),
            act @ (Act::Send | Act::SendDate) => sent.push((here[name], act)),
            Act::Nothing => {}
        }
    }
    let mut changes = UnversionedChanges {
        left_out: left_out.into_iter().map(|file| file.name.escape_debug().to_string()).collect(),
        ..UnversionedChanges::default()
    };
    fetch(repository, &mut rounds, user, &fetched, &here, &mut changes)?;
    if reply.unversioned_pull_only || repository.store().is_on("dont-push")? {
        let names: Vec<String> = sent.iter().map(|(file, _)| file.name.clone()).collect();
        return match names.as_slice() {
            [] => Ok(changes),
            names => Err(not_taken(&rounds.peer, names, true, &changes.received)),
        };
    }
    send(repository, &mut rounds, &sent, &mut changes)?;
    if !changes.sent.is_empty() {
        let lacking = lacking(&repository.store().unversioned()?, &rounds.peer.unversioned()?.unversioned);
        if !lacking.is_empty() {
            return Err(not_taken(&rounds.peer, &lacking, false, &changes.received));
        }
    }
    Ok(changes)
}

/// Fetches files and keeps those of each reply before it asks for more.
fn fetch(
    repository: &Repository,
    rounds: &mut Rounds<'_>,
    user: &User,
    files: &[&UnversionedEntry],
    here: &BTreeMap<&str, &UnversionedEntry>,
    changes: &mut UnversionedChanges,
) -> Result<()> {
    let (gone, mut left): (Vec<&UnversionedEntry>, Vec<&UnversionedEntry>) =
        files.iter().partition(|file| file.hash.is_none());
    let mut came: Vec<(UnversionedEntry, Option<Vec<u8>>)> =
        gone.into_iter().map(|file| (file.clone(), None)).collect();
    loop {
        let asked: Vec<&str> = left.iter().take(ASKED_MAX).map(|file| file.name.as_str()).collect();
        if !asked.is_empty() {
            let cards =
                asked.iter().fold(rounds.peer.pull_card(), |cards, name| cards + "uvgimme " + name + "\n");
            let before = came.len();
            let reply = rounds.exchange(cards.as_bytes(), true, |card| {
                if let Card::Unversioned(file, Some(content)) = card
                    && asked.contains(&file.name.as_str())
                {
                    came.push((file.clone(), Some(content.to_vec())));
                    return Ok(true);
                }
                Ok(false)
            })?;
            reply.error().map_or(Ok(()), Err)?;
            if came.len() == before {
                let what = format!(
                    "the server at {} does not give its unversioned file `{}`",
                    rounds.peer, asked[0]
                );
                return Err(Error::new(Kind::Refused, what).with_hint("Ask who runs the server."));
            }
        }
        left.retain(|file| !came.iter().any(|(came, _)| came.name == file.name));
        for (file, _) in &came {
            let old = here.get(file.name.as_str());
            changes.received.push(file.name.clone());
            if old.is_some_and(|old| old.hash.is_some() && old.hash != file.hash) {
                changes.replaced.push(file.name.clone());
            }
        }
        if !came.is_empty() {
            Unversioned::of(repository)
                .receive(std::mem::take(&mut came), user)
                .map_err(|e| rounds.peer.blame(e))?;
        }
        if left.is_empty() {
            return Ok(());
        }
    }
}

/// Sends files, or their dates alone.
fn send(
    repository: &Repository,
    rounds: &mut Rounds<'_>,
    files: &[(&UnversionedEntry, Act)],
    changes: &mut UnversionedChanges,
) -> Result<()> {
    let mut files = files.iter().peekable();
    while files.peek().is_some() {
        let mut cards = rounds.peer.push_card().into_bytes();
        while cards.len() < REQUEST_BYTES
            && let Some((file, act)) = files.next()
        {
            cards.extend_from_slice(&card(repository, file, *act)?);
            changes.sent.push(file.name.clone());
        }
        let reply = rounds.exchange(&cards, true, |_| Ok(true))?;
        reply.error().map_or(Ok(()), Err)?;
    }
    Ok(())
}

fn card(repository: &Repository, file: &UnversionedEntry, act: Act) -> Result<Vec<u8>> {
    let UnversionedEntry { name, mtime, hash } = file;
    let Some(hash) = hash else { return Ok(format!("uvfile {name} {mtime} - 0 1\n").into_bytes()) };
    let files = Unversioned::of(repository);
    let name = UnversionedName::parse(name)?;
    if act == Act::SendDate {
        let size = files.find(&name)?.size;
        return Ok(format!("uvfile {name} {mtime} {hash} {size} 4\n").into_bytes());
    }
    let content = files.get(&name)?;
    Ok([format!("uvfile {name} {mtime} {hash} {} 0\n", content.len()).as_bytes(), &content].concat())
}

fn by_name(files: &[UnversionedEntry]) -> BTreeMap<&str, &UnversionedEntry> {
    files.iter().map(|file| (file.name.as_str(), file)).collect()
}

/// The files that the server lacks or has older.
fn lacking(here: &[UnversionedEntry], there: &[UnversionedEntry]) -> Vec<String> {
    let there = by_name(there);
    let is_behind = |file: &&UnversionedEntry| match there.get(file.name.as_str()) {
        // A server that never had a file need not know that it is gone.
        None => file.hash.is_some(),
        Some(other) => other.hash != file.hash && other.mtime <= file.mtime,
    };
    here.iter().filter(is_behind).map(|file| file.name.clone()).collect()
}

fn not_taken(peer: &Peer<'_>, names: &[String], pull_only: bool, received: &[String]) -> Error {
    let some = names.iter().take(5).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let more = if names.len() > 5 { format!(" and {} more", names.len() - 5) } else { String::new() };
    let received = match received.len() {
        0 => String::new(),
        count => format!("; {count} others were received"),
    };
    if pull_only {
        return Error::new(
            Kind::Denied,
            format!(
                "the server does not let this login write unversioned files: {some}{more} stay here{received}"
            ),
        )
        .with_hint("Ask for the capability to write unversioned files (`y`) on the peer.");
    }
    let what = format!("the server at {peer} does not hold unversioned {some}{more}{received}");
    Error::new(Kind::NotPushed, what).with_hint("Sync again; if that does not help, ask who runs the peer.")
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
    fn each_pair_of_files_has_its_act() {
        let (a, b) =
            if Hash::of(b"a").to_string() < Hash::of(b"b").to_string() { (b"a", b"b") } else { (b"b", b"a") };
        let (old, new) = (file("x", 4, Some(a)), file("x", 5, Some(a)));
        let (other, gone) = (file("x", 5, Some(b)), file("x", 6, None));
        for (here, there, act) in [
            (None, None, Act::Nothing),
            (None, Some(&old), Act::Fetch),
            (None, Some(&gone), Act::Nothing),
            (Some(&old), None, Act::Send),
            (Some(&gone), None, Act::Nothing),
            (Some(&old), Some(&old), Act::Nothing),
            (Some(&old), Some(&new), Act::Fetch),
            (Some(&new), Some(&old), Act::SendDate),
            (Some(&new), Some(&other), Act::Fetch),
            (Some(&other), Some(&new), Act::Send),
            (Some(&other), Some(&gone), Act::Fetch),
            (Some(&gone), Some(&other), Act::Send),
            (Some(&gone), Some(&gone), Act::Nothing),
        ] {
            assert_eq!(Act::of(here, there), act, "{here:?} {there:?}");
        }
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
