//! The files of a checkout, and how they differ from the check-in it stands on.
//!
//! A file is judged by its content. Its size and times only say that it need not be read again, and only if they are
//! older than the moment at which it was read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use super::open::Checkout;
use super::stat_cache::StatCache;
use super::tracked::TrackedPaths;
use crate::error::{Kind, Result};
use crate::format::FILE_MAX;
use crate::name::{Hash, TreePath, time};
use crate::repo::store::{FileEntry, Files};
use crate::tree::{Entry, FileKind, LeftOut, Rules, Tree};

/// The files of a checkout and their changes.
#[derive(Debug, Clone)]
pub struct Status {
    /// The check-in that the changes are against.
    pub parent: Hash,
    /// What differs, by path.
    pub changes: Vec<Change>,
    /// What is not tracked and left out by a rule.
    pub left_out: Vec<LeftOut>,
    /// Files that a rule would leave out, had this status not been asked for them.
    pub included: Vec<TreePath>,
    /// Names, shown on one line, that no check-in can hold, each with the reason.
    pub refused: Vec<(String, String)>,
    /// All files that a check-in would hold.
    pub files: Arc<Files>,
    /// Files that were renamed by Fossil's `mv`: the new path, and the one in the parent.
    pub renamed: BTreeMap<TreePath, TreePath>,
}

/// A file that differs from the parent check-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub path: TreePath,
    /// How it differs.
    pub how: How,
}

/// How a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The parent has no such file.
    Added,
    /// Other content.
    Edited,
    /// Gone.
    Deleted,
    /// The same content, but executable or no longer so.
    Mode,
    /// A symbolic link instead of a file, or the reverse.
    Kind,
}

impl std::fmt::Display for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Edited => "edited",
            Self::Deleted => "deleted",
            Self::Mode => "mode changed",
            Self::Kind => "kind changed",
        })
    }
}

impl Status {
    /// Returns a hash over the names, kinds and contents of all files. Equal trees have equal hashes, and different
    /// trees have different ones.
    #[must_use]
    pub fn tree_hash(&self) -> Hash {
        let mut text = String::with_capacity(self.files.len() * 110);
        for (path, file) in self.files.iter() {
            let kind = match file.kind {
                FileKind::Regular => '-',
                FileKind::Executable => 'x',
                FileKind::Symlink => 'l',
            };
            text.extend([kind.to_string().as_str(), " ", file.hash.as_str(), " ", path.as_str(), "\n"]);
        }
        Hash::of(text.as_bytes())
    }

    /// Returns how the files differ from those of an earlier status, by path.
    #[must_use]
    pub fn changes_since(&self, earlier: &Self) -> Vec<Change> {
        changes_between(&earlier.files, &self.files)
    }
}

impl Checkout {
    /// Compares the files with the parent check-in, by content. Writes nothing: [`remember`](Self::remember) stores
    /// what this learns.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the checkout or its check-in is gone, [`Kind::Io`] for a file that cannot be read,
    /// [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn status(&self) -> Result<Status> {
        self.status_including(&[])
    }

    /// As [`status`](Self::status), as if these paths were [included](Self::include) already.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn status_including(&self, paths: &[TreePath]) -> Result<Status> {
        self.recover()?;
        let parent = self.parent()?;
        let before = self.repository().store().files(&parent)?;
        let known = self.known_files()?;
        let tracked = TrackedPaths { before: Arc::clone(&before), added: known.added };
        let rules = Rules { included: paths.iter().cloned().collect(), ..self.rules()? };
        let mut cache = self.stat_cache();
        self.state(|db| cache.load(db))?;
        cache.compare_with(&before);
        let walk = self.tree().walk_past(&*cache, &rules, &tracked)?;
        let mut refused = walk.refused;
        let entries = self.storable(walk.entries, &before, &mut refused)?;
        let looked = self.hashed(&mut cache, &entries, &before, &known.renamed, &mut refused)?;
        let gone = cache.gone(&before, &walk.known, &looked);
        let mut changes: Vec<_> = looked
            .iter()
            .filter_map(|(path, file)| Some((path, difference(before.get(path), file)?)))
            .chain(gone.iter().map(|path| (path, How::Deleted)))
            .map(|(path, how)| Change { path: path.clone(), how })
            .collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        let files = with(&before, &changes, &looked);
        // Where the old name is a new file's, it is not known which of the two is the old one. Where it is another renamed
        // file's, as in a swap, it is.
        let is_left = |old: &TreePath| !files.contains_key(old) || known.renamed.contains_key(old);
        let renamed = known.renamed.iter().filter(|(new, old)| files.contains_key(*new) && is_left(old));
        let renamed = renamed.map(|(new, old)| (new.clone(), old.clone())).collect();
        let (left_out, included) = (walk.left_out, walk.included);
        Ok(Status { parent, changes, left_out, included, refused, files, renamed })
    }

    /// Reads a file of the checkout of at most `max` bytes. Returns its content and the SHA3-256 of that. A file that
    /// is unchanged since a [`status`](Self::status) has hashed it is not hashed again.
    ///
    /// # Errors
    /// As [`Tree::read`].
    pub fn read_file(&self, path: &TreePath, max: u64) -> Result<(Vec<u8>, Hash)> {
        let known = self.known_hash(path);
        let content = self.tree().read(path, max)?;
        // Unchanged before and after the reading, so unchanged while it was read.
        let same = known.filter(|_| self.known_hash(path) == known);
        let hash = same.unwrap_or_else(|| Hash::of(&content));
        Ok((content, hash))
    }

    /// The SHA3-256 of a file as it is on the disk now, if it is known.
    fn known_hash(&self, path: &TreePath) -> Option<Hash> {
        let entry = self.tree().stat(path).ok()?;
        let mut cache = self.free_stat_cache()?;
        self.state(|db| cache.load(db)).ok()?;
        cache.hash(&entry).filter(Hash::is_sha3)
    }

    /// Stores what looking at the files has shown, so that the next process need not read them again. Stores the
    /// checkout's [`id`](Self::id) too.
    ///
    /// # Errors
    /// [`Kind::Busy`], [`Kind::DiskFull`]. Only time is lost then.
    pub fn remember(&self) -> Result<()> {
        self.keep_id()?;
        let mut cache = self.stat_cache();
        self.state(|db| cache.write(db))
    }

    /// Leaves out what the repository's settings or the limit of size forbid, and names it in `refused`.
    fn storable(
        &self,
        entries: Vec<Entry>,
        before: &Files,
        refused: &mut Vec<(String, String)>,
    ) -> Result<Vec<Entry>> {
        let links = self.allows_symlinks()?;
        let mut storable = Vec::with_capacity(entries.len());
        for mut entry in entries {
            let was_link = before.get(&entry.path).is_some_and(|f| f.kind == FileKind::Symlink);
            if entry.kind == FileKind::Symlink && !links {
                refused.push((
                    entry.path.shown(),
                    "it is a symbolic link, and the setting `allow-symlinks` is off".to_owned(),
                ));
                continue;
            }
            if entry.stamp.size > FILE_MAX {
                refused.push((
                    entry.path.shown(),
                    format!("it has {} bytes, more than the limit of {FILE_MAX}", entry.stamp.size),
                ));
                continue;
            }
            if was_link && !links && entry.kind == FileKind::Regular {
                // Fossil writes a stored link as a file where links are off.
                entry.kind = FileKind::Symlink;
            }
            storable.push(entry);
        }
        Ok(storable)
    }

    /// Returns the files of `entries` with their hashes. Fails for a file that is neither cached nor readable.
    fn hashed(
        &self,
        cache: &mut StatCache,
        entries: &[Entry],
        before: &Files,
        renamed: &BTreeMap<TreePath, TreePath>,
        refused: &mut Vec<(String, String)>,
    ) -> Result<Files> {
        let started_ns = now_ns();
        let (mut files, mut fresh, mut unseen) = (Files::new(), Vec::new(), Vec::new());
        for entry in entries {
            match cache.hash(entry) {
                Some(hash) => drop(files.insert(entry.path.clone(), FileEntry { hash, kind: entry.kind })),
                None => unseen.push(entry),
            }
        }
        let hashes = in_two_threads(&unseen, |entry| {
            let old = before.get(renamed.get(&entry.path).unwrap_or(&entry.path));
            self.hash_file(entry, old.map(|f| f.hash))
        });
        for (entry, hash) in unseen.into_iter().zip(hashes) {
            match hash {
                Ok(hash) => {
                    files.insert(entry.path.clone(), FileEntry { hash, kind: entry.kind });
                    fresh.push((entry, hash));
                }
                Err(e) if e.kind() == Kind::NotFound => {
                    refused.push((entry.path.shown(), "it went while it was read".to_owned()));
                }
                Err(e) => return Err(e),
            }
        }
        cache.keep(&fresh, started_ns, before);
        Ok(files)
    }

    /// Hashes a file. Uses the kind of hash that the repository has for this content, or else the one of its policy.
    fn hash_file(&self, entry: &Entry, old: Option<Hash>) -> Result<Hash> {
        let content = self.file_content(self.tree(), entry)?;
        match old {
            Some(old) if old.names(&content) => Ok(old),
            _ => self.hash_of(&content),
        }
    }

    fn file_content(&self, tree: &Tree, entry: &Entry) -> Result<Vec<u8>> {
        if entry.kind == FileKind::Symlink && !self.allows_symlinks()? {
            return tree.read(&entry.path, FILE_MAX);
        }
        tree.content(entry, FILE_MAX)
    }
}

/// Returns the files of `before` with `changes` applied. The new content is in `looked`.
fn with(before: &Arc<Files>, changes: &[Change], looked: &Files) -> Arc<Files> {
    if changes.is_empty() {
        return Arc::clone(before);
    }
    let mut files = Files::clone(before);
    for Change { path, .. } in changes {
        match looked.get(path) {
            Some(file) => files.insert(path.clone(), *file),
            None => files.remove(path),
        };
    }
    Arc::new(files)
}

fn changes_between(old: &Files, new: &Files) -> Vec<Change> {
    let now = new.iter().filter_map(|(path, file)| Some((path, difference(old.get(path), file)?)));
    let gone = old.keys().filter(|path| !new.contains_key(*path)).map(|path| (path, How::Deleted));
    let mut changes: Vec<_> = now.chain(gone).map(|(path, how)| Change { path: path.clone(), how }).collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

fn difference(old: Option<&FileEntry>, new: &FileEntry) -> Option<How> {
    let Some(old) = old else { return Some(How::Added) };
    let is_link = |f: &FileEntry| f.kind == FileKind::Symlink;
    if is_link(old) != is_link(new) {
        Some(How::Kind)
    } else if old.hash != new.hash {
        Some(How::Edited)
    } else if old.kind != new.kind {
        Some(How::Mode)
    } else {
        None
    }
}

/// Does `work` on each item, in two threads if there are many. The results are in the order of the items.
fn in_two_threads<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    const WORTH_A_THREAD: usize = 16;
    if items.len() < WORTH_A_THREAD {
        return items.iter().map(work).collect();
    }
    let (first, second) = items.split_at(items.len() / 2);
    thread::scope(|scope| {
        let other = scope.spawn(|| second.iter().map(&work).collect::<Vec<_>>());
        let mut done: Vec<R> = first.iter().map(&work).collect();
        match other.join() {
            Ok(rest) => done.extend(rest),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        done
    })
}

fn now_ns() -> i64 {
    i64::try_from(time::since_epoch().as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(all: &[(&str, &str, FileKind)]) -> Files {
        let entry = |(path, content, kind): &(&str, &str, FileKind)| {
            (TreePath::parse(path).unwrap(), FileEntry { hash: Hash::of(content.as_bytes()), kind: *kind })
        };
        all.iter().map(entry).collect()
    }

    #[test]
    fn each_kind_of_difference_is_named() {
        use FileKind::{Executable, Regular};
        let old =
            files(&[("a", "1", Regular), ("b", "1", Regular), ("c", "1", Regular), ("d", "1", Regular)]);
        let new = files(&[
            ("a", "2", Executable),
            ("c", "1", Executable),
            ("d", "1", Regular),
            ("e", "1", Regular),
        ]);
        let shown: Vec<_> =
            changes_between(&old, &new).iter().map(|c| format!("{} {}", c.path, c.how)).collect();
        assert_eq!(shown, ["a edited", "b deleted", "c mode changed", "e added"]);
        assert!(changes_between(&old, &old).is_empty());
    }
}
