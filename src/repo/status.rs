//! What the files of a checkout are, and how they differ from the check-in it stands on.
//!
//! A file counts by its content: its size and times only tell that it need not be read again, and
//! only when they are older than the moment at which it was read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::thread;

use rusqlite::{Connection, params};

use super::checkout::Checkout;
use super::store::{FileEntry, Files};
use super::tree::{Entry, FileKind, Tracked, Tree};
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TreePath};

/// The most bytes that a file may have: SQLite holds no larger value.
pub const FILE_MAX: u64 = 1_000_000_000 - 64 * 1024;

/// A file whose times are less than this before its reading may have been written again unseen.
const CLOCK_STEP_NS: i64 = 50_000_000;

/// The files of a checkout and their changes.
#[derive(Debug, Clone)]
pub struct Status {
    /// The check-in that the changes are against.
    pub parent: Hash,
    /// What differs, by path.
    pub changes: Vec<Change>,
    /// Paths that an ignore rule leaves out; a folder stands for all in it.
    pub ignored: Vec<String>,
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
    /// A hash over the names, kinds and contents of all files: equal for equal trees, and only for those.
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
}

impl Checkout {
    /// Compares the files with the parent check-in, by content. It writes nothing: what it learns is
    /// written by [`remember`](Self::remember).
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the checkout or its check-in is gone, [`Kind::Io`] for a file that cannot be read,
    /// [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn status(&self) -> Result<Status> {
        self.recover()?;
        let parent = self.parent()?;
        let before = self.repository().store().files(&parent)?;
        let known = self.known_files()?;
        let tracked = KnownPaths { before: &before, added: &known.added };
        let walk = self.tree().walk(&self.ignore()?, &tracked)?;
        let mut refused = walk.refused;
        let entries = self.storable(walk.entries, &before, &mut refused)?;
        let files = self.hashed(&entries, &before, &known.renamed, &mut refused)?;
        let changes = changes(&before, &files);
        let renamed = known
            .renamed
            .into_iter()
            .filter(|(new, old)| files.contains_key(new) && !files.contains_key(old));
        Ok(Status {
            parent,
            changes,
            ignored: walk.ignored,
            refused,
            renamed: renamed.collect(),
            files: Arc::new(files),
        })
    }

    /// Writes down what looking at the files has shown, so that the next process need not read them again, and the
    /// checkout's [`id`](Self::id).
    ///
    /// # Errors
    /// [`Kind::Busy`], [`Kind::DiskFull`]; then only time is lost.
    pub fn remember(&self) -> Result<()> {
        self.keep_id()?;
        let mut cache = self.stat_cache();
        self.state(|db| cache.write(db))
    }

    /// Leaves out what the repository's settings or sizes forbid, naming it in `refused`.
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
            if entry.size > FILE_MAX {
                refused.push((
                    entry.path.shown(),
                    format!("it has {} bytes, more than the limit of {FILE_MAX}", entry.size),
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

    /// The files with their hashes; those that are neither cached nor readable end in an error.
    fn hashed(
        &self,
        entries: &[Entry],
        before: &Files,
        renamed: &BTreeMap<TreePath, TreePath>,
        refused: &mut Vec<(String, String)>,
    ) -> Result<Files> {
        let started_ns = now_ns();
        let mut cache = self.stat_cache();
        self.state(|db| cache.load(db))?;
        let unseen: Vec<&Entry> = entries.iter().filter(|e| cache.hash(e).is_none()).collect();
        let hashes = in_two_threads(&unseen, |entry| {
            let old = before.get(renamed.get(&entry.path).unwrap_or(&entry.path));
            self.hash_file(entry, old.map(|f| f.hash))
        });
        let mut fresh = Vec::new();
        for (entry, hash) in unseen.into_iter().zip(hashes) {
            match hash {
                Ok(hash) => fresh.push((entry, hash)),
                Err(e) if e.kind() == Kind::NotFound => {
                    refused.push((entry.path.shown(), "it went while it was read".to_owned()));
                }
                Err(e) => return Err(e),
            }
        }
        let mut files = Files::new();
        for entry in entries {
            if let Some(hash) = cache.hash(entry) {
                files.insert(entry.path.clone(), FileEntry { hash, kind: entry.kind });
            }
        }
        for (entry, hash) in &fresh {
            files.insert(entry.path.clone(), FileEntry { hash: *hash, kind: entry.kind });
        }
        cache.keep(&fresh, started_ns);
        Ok(files)
    }

    /// The file's hash by the name that the repository has for this content, else by its policy.
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

/// The paths of the parent check-in and those that Fossil was told of since.
struct KnownPaths<'a> {
    before: &'a Files,
    added: &'a BTreeSet<TreePath>,
}

impl Tracked for KnownPaths<'_> {
    fn holds(&self, path: &str) -> bool {
        self.before.holds(path) || self.added.holds(path)
    }

    fn reaches_into(&self, folder: &str) -> bool {
        self.before.reaches_into(folder) || self.added.reaches_into(folder)
    }
}

fn changes(before: &Files, after: &Files) -> Vec<Change> {
    let gone = before.keys().filter(|path| !after.contains_key(*path)).map(|path| (path, How::Deleted));
    let there = after.iter().filter_map(|(path, file)| Some((path, difference(before.get(path), file)?)));
    let mut changes: Vec<_> =
        gone.chain(there).map(|(path, how)| Change { path: path.clone(), how }).collect();
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

/// Does `work` on each item, the halves at the same time; the results are in the items' order.
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

/// Hashes of files by what the disk said of them when they were read.
#[derive(Debug, Default)]
pub(super) struct StatCache {
    loaded: bool,
    seen: HashMap<TreePath, (Stamp, Hash)>,
    /// Which of them are not written down yet.
    unwritten: BTreeSet<TreePath>,
}

/// What must be the same for a file to be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size: u64,
    mtime_ns: i64,
    ctime_ns: i64,
    inode: u64,
    is_link: bool,
}

impl Stamp {
    fn of(entry: &Entry) -> Self {
        Self {
            size: entry.size,
            mtime_ns: entry.mtime_ns,
            ctime_ns: entry.ctime_ns,
            inode: entry.inode,
            is_link: entry.kind == FileKind::Symlink,
        }
    }
}

impl StatCache {
    /// Reads what an earlier process has kept.
    fn load(&mut self, db: &Connection) -> Result<()> {
        if self.loaded {
            return Ok(());
        }
        self.loaded = true;
        let sql = "SELECT count(*) FROM sqlite_schema WHERE name='ocx_stat'";
        if db.query_row(sql, [], |row| row.get::<_, i64>(0))? == 0 {
            return Ok(());
        }
        let mut query =
            db.prepare("SELECT path, size, mtime_ns, ctime_ns, inode, is_link, hash FROM ocx_stat")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let (path, hash): (String, String) = (row.get(0)?, row.get(6)?);
            let (Ok(path), Ok(hash)) = (TreePath::parse_stored(&path), Hash::parse(&hash)) else { continue };
            let stamp = Stamp {
                size: row.get::<_, i64>(1)?.cast_unsigned(),
                mtime_ns: row.get(2)?,
                ctime_ns: row.get(3)?,
                inode: row.get::<_, i64>(4)?.cast_unsigned(),
                is_link: row.get(5)?,
            };
            self.seen.insert(path, (stamp, hash));
        }
        Ok(())
    }

    fn hash(&self, entry: &Entry) -> Option<Hash> {
        let (stamp, hash) = self.seen.get(&entry.path)?;
        (*stamp == Stamp::of(entry)).then_some(*hash)
    }

    /// Keeps the hashes of files that cannot have changed unseen since they were read, after `started_ns`.
    fn keep(&mut self, fresh: &[(&Entry, Hash)], started_ns: i64) {
        let settled = |e: &Entry| e.mtime_ns.max(e.ctime_ns) + CLOCK_STEP_NS < started_ns;
        for (entry, hash) in fresh.iter().filter(|(entry, _)| settled(entry)) {
            self.seen.insert(entry.path.clone(), (Stamp::of(entry), *hash));
            self.unwritten.insert(entry.path.clone());
        }
    }

    /// Writes down what is not written yet.
    fn write(&mut self, db: &Connection) -> Result<()> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        let done = db.unchecked_transaction()?;
        done.execute_batch(
            "CREATE TABLE IF NOT EXISTS ocx_stat(path TEXT PRIMARY KEY, size INT, mtime_ns INT, ctime_ns INT,
               inode INT, is_link INT, hash TEXT) WITHOUT ROWID",
        )?;
        let mut put = done.prepare("REPLACE INTO ocx_stat VALUES(?1,?2,?3,?4,?5,?6,?7)")?;
        for path in &self.unwritten {
            let Some((stamp, hash)) = self.seen.get(path) else { continue };
            put.execute(params![
                path.as_str(),
                stamp.size.cast_signed(),
                stamp.mtime_ns,
                stamp.ctime_ns,
                stamp.inode.cast_signed(),
                stamp.is_link,
                hash.as_str()
            ])?;
        }
        drop(put);
        done.commit()?;
        self.unwritten.clear();
        Ok(())
    }
}

fn now_ns() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// The error for a check-in that is not in the repository any more.
pub(super) fn no_parent(root: &std::path::Path) -> Error {
    Error::new(Kind::NotFound, format!("the checkout `{}` stands on no check-in", root.display()))
        .hint("Open a version with `ocx open`.")
}
