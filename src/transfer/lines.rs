//! Packing anew what cannot be sent as it is stored. Such an artifact is sent as a delta from a newer version of the
//! same file, if one is sent that is like it, and else whole.

use std::collections::HashMap;

use rusqlite::Connection;

use super::row::Basis;
use super::select::Selected;
use crate::error::{Error, Kind, Result};
use crate::format::{delta, packed};
use crate::name::Hash;
use crate::repo::store::expand;

/// How many versions are expanded and hashed at a time, and at most how many bytes, unless one has more.
const BATCH: usize = 32;
const BATCH_BYTES: usize = 8 << 20;

/// The artifacts that are sent and are deltas from none that is, by the file of which they are versions.
pub(super) struct Lines<'a> {
    db: &'a Connection,
    selected: &'a Selected,
    /// The line of each of them that must be looked into, by its index.
    line_of: HashMap<usize, usize>,
    /// The artifacts of each line, the oldest first.
    roots: Vec<Vec<Root>>,
    packed: HashMap<usize, Anew>,
}

/// An artifact that is a delta from none that is sent.
#[derive(Clone, Copy)]
pub(super) struct Root {
    /// Its index among what is sent.
    pub at: usize,
    /// Whether it is stored whole.
    pub is_whole: bool,
}

/// One artifact, packed anew.
pub(super) struct Anew {
    pub basis: Basis,
    pub data: Vec<u8>,
}

/// A version of a file with its content.
struct Version {
    root: Root,
    hash: Hash,
    content: Vec<u8>,
}

impl<'a> Lines<'a> {
    /// Takes the roots, those with a low number first.
    pub fn of(db: &'a Connection, selected: &'a Selected, roots: Vec<Root>) -> Self {
        let mut by_file: HashMap<i64, usize> = HashMap::new();
        let mut lines: Vec<Vec<Root>> = Vec::new();
        for root in roots {
            let rid = selected.rids[root.at];
            let line = selected.files.get(&rid).map(|file| *by_file.entry(*file).or_insert(lines.len()));
            match line.and_then(|line| lines.get_mut(line)) {
                Some(line) => line.push(root),
                None => lines.push(vec![root]),
            }
        }
        lines.retain(|line| line.len() > 1 || line.iter().any(|root| !root.is_whole));
        let line_of =
            (0..).zip(&lines).flat_map(|(line, roots)| roots.iter().map(move |root| (root.at, line)));
        Self { db, selected, line_of: line_of.collect(), roots: lines, packed: HashMap::new() }
    }

    /// The artifact with that index, if it is not sent as it is stored.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when a content is not here, [`Kind::Corrupt`] when it does not have its hash.
    pub fn take(&mut self, at: usize) -> Result<Option<Anew>> {
        if let Some(&line) = self.line_of.get(&at) {
            let roots = std::mem::take(&mut self.roots[line]);
            self.pack(&roots)?;
        }
        Ok(self.packed.remove(&at))
    }

    /// Packs a line, from the newest version to the oldest.
    fn pack(&mut self, roots: &[Root]) -> Result<()> {
        let (mut newer, mut batch, mut bytes) = (None, Vec::new(), 0);
        for &root in roots.iter().rev() {
            let version = self.version(root)?;
            bytes += version.content.len();
            batch.push(version);
            if batch.len() == BATCH || bytes > BATCH_BYTES {
                newer = self.pack_batch(newer, std::mem::take(&mut batch))?;
                bytes = 0;
            }
        }
        self.pack_batch(newer, batch).map(drop)
    }

    /// Packs some versions, the first as a delta from `newer`. Returns the last.
    fn pack_batch(&mut self, mut newer: Option<Version>, batch: Vec<Version>) -> Result<Option<Version>> {
        let named: Vec<_> = batch.iter().map(|version| (version.hash, &version.content[..])).collect();
        if let Some(wrong) = Hash::name_all(&named).iter().position(|names| !names) {
            let what = format!("artifact `{}` is damaged: its bytes have another hash", named[wrong].0);
            return Err(Error::new(Kind::Corrupt, what).with_hint("Pull it anew from a clone that holds it."));
        }
        for version in batch {
            if let Some(anew) = anew(newer.as_ref(), &version)? {
                self.packed.insert(version.root.at, anew);
            }
            newer = Some(version);
        }
        Ok(newer)
    }

    fn version(&self, root: Root) -> Result<Version> {
        let rid = self.selected.rids[root.at];
        let mut query = self.db.prepare_cached("SELECT uuid FROM blob WHERE rid=?1")?;
        let hash = Hash::parse(&query.query_row([rid], |row| row.get::<_, String>(0))?)?;
        let missing = || not_here(format!("a part of the artifact `{hash}` is not here"));
        Ok(Version { root, hash, content: expand(self.db, rid)?.ok_or_else(missing)? })
    }
}

/// How a version is sent, if it is not sent as it is stored.
fn anew(newer: Option<&Version>, version: &Version) -> Result<Option<Anew>> {
    let content = &version.content;
    if let Some(newer) = newer {
        let delta = delta::create(&newer.content, content);
        if delta.len() < content.len() / 2 {
            return Ok(Some(Anew { basis: Basis::Row(newer.root.at), data: packed::pack(&delta)? }));
        }
    }
    if version.root.is_whole {
        return Ok(None);
    }
    Ok(Some(Anew { basis: Basis::None, data: packed::pack(content)? }))
}

/// The refusal to send what is not here.
pub(super) fn not_here(what: String) -> Error {
    Error::new(Kind::NotFound, what).with_hint("Pull it first from a repository that holds it.")
}
