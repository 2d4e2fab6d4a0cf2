//! The hashes of files on disk, kept under what must be the same for a file to be the same.
//!
//! A file that is as the parent check-in has it is known by a number. So a look at a large tree only asks the disk for
//! each such file, and does nothing else.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rusqlite::{Connection, params};

use crate::error::Result;
use crate::name::{Hash, TreePath};
use crate::repo::store::{Files, has_table};
use crate::tree::{Entry, FileKind, Known, Stamp};

/// A file that is younger than this when it is read may be written again without any sign of it.
const CLOCK_STEP_NS: i64 = 50_000_000;

/// Hashes of files, kept under what the disk said of the files when they were read.
#[derive(Debug, Default)]
pub(crate) struct StatCache {
    loaded: bool,
    seen: HashMap<TreePath, Seen>,
    /// The files that `same_as` compares with.
    compared: Option<Arc<Files>>,
    /// The number for the next file.
    next: usize,
    /// Which of them are not stored yet.
    unwritten: BTreeSet<TreePath>,
}

/// A file as it was read.
#[derive(Debug)]
struct Seen {
    stamp: Stamp,
    hash: Hash,
    number: usize,
    /// What the compared files have at this path, if that has the same content.
    same_as: Option<FileKind>,
}

impl Known for StatCache {
    fn number(&self, path: &str, kind: FileKind, stamp: &Stamp) -> Option<usize> {
        let seen = self.seen.get(path)?;
        (seen.same_as == Some(kind) && seen.stamp == *stamp).then_some(seen.number)
    }
}

impl StatCache {
    /// Reads what an earlier process has stored.
    pub fn load(&mut self, db: &Connection) -> Result<()> {
        if self.loaded {
            return Ok(());
        }
        self.loaded = true;
        if !has_table(db, "ocx_stat")? {
            return Ok(());
        }
        let mut query =
            db.prepare("SELECT path, size, mtime_ns, ctime_ns, inode, is_link, hash FROM ocx_stat")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let (path, hash) = (row.get_ref(0)?.as_str(), row.get_ref(6)?.as_str());
            let (Ok(path), Ok(hash)) = (path, hash) else { continue };
            let (Ok(path), Ok(hash)) = (TreePath::parse_stored(path), Hash::parse(hash)) else { continue };
            let stamp = Stamp {
                size: row.get::<_, i64>(1)?.cast_unsigned(),
                mtime_ns: row.get(2)?,
                ctime_ns: row.get(3)?,
                inode: row.get::<_, i64>(4)?.cast_unsigned(),
                is_link: row.get(5)?,
            };
            self.put(path, stamp, hash, None);
        }
        self.compared = None;
        Ok(())
    }

    /// Makes each file that is as `files` has it known by its number.
    pub fn compare_with(&mut self, files: &Arc<Files>) {
        if self.compared.as_ref().is_some_and(|compared| Arc::ptr_eq(compared, files)) {
            return;
        }
        for (path, seen) in &mut self.seen {
            seen.same_as = same_as(files, path, &seen.hash);
        }
        self.compared = Some(Arc::clone(files));
    }

    /// As [`compare_with`](Self::compare_with), if the files compared with so far were `before`, and `files` differs
    /// from them only at `changed`.
    pub fn go_on_to<'a>(
        &mut self,
        files: &Arc<Files>,
        before: &Arc<Files>,
        changed: impl Iterator<Item = &'a TreePath>,
    ) {
        if self.compared.as_ref().is_none_or(|compared| !Arc::ptr_eq(compared, before)) {
            return;
        }
        for path in changed {
            if let Some(seen) = self.seen.get_mut(path) {
                seen.same_as = same_as(files, path, &seen.hash);
            }
        }
        self.compared = Some(Arc::clone(files));
    }

    /// Returns the files of `before` that are neither among the numbers `known` nor among the files `looked` at.
    pub fn gone(&self, before: &Files, known: &[usize], looked: &Files) -> Vec<TreePath> {
        let mut there = vec![false; self.next];
        let mut count = looked.keys().filter(|path| before.contains_key(*path)).count();
        for number in known {
            count += usize::from(!std::mem::replace(&mut there[*number], true));
        }
        if count == before.len() {
            return Vec::new();
        }
        let is_known = |path| self.seen.get(path).is_some_and(|seen| there[seen.number]);
        before.keys().filter(|path| !looked.contains_key(*path) && !is_known(*path)).cloned().collect()
    }

    /// Returns the hash of a file that is unchanged since it was read.
    pub fn hash(&self, entry: &Entry) -> Option<Hash> {
        let seen = self.seen.get(&entry.path)?;
        (seen.stamp == entry.stamp).then_some(seen.hash)
    }

    /// Keeps the hashes of files that were read after `started_ns` and cannot have changed unseen since.
    pub fn keep(&mut self, fresh: &[(&Entry, Hash)], started_ns: i64, before: &Files) {
        let settled = |e: &Entry| e.stamp.mtime_ns.max(e.stamp.ctime_ns) + CLOCK_STEP_NS < started_ns;
        for (entry, hash) in fresh.iter().filter(|(entry, _)| settled(entry)) {
            self.put(entry.path.clone(), entry.stamp, *hash, same_as(before, &entry.path, hash));
            self.unwritten.insert(entry.path.clone());
        }
    }

    fn put(&mut self, path: TreePath, stamp: Stamp, hash: Hash, same_as: Option<FileKind>) {
        let number = self.next;
        self.next += 1;
        self.seen.insert(path, Seen { stamp, hash, number, same_as });
    }

    /// Stores what is not stored yet.
    pub fn write(&mut self, db: &Connection) -> Result<()> {
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
            let Some(Seen { stamp, hash, .. }) = self.seen.get(path) else { continue };
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

/// What `files` has at `path`, if that has the content `hash`. A link is never known by number: it is looked at each
/// time.
fn same_as(files: &Files, path: &TreePath, hash: &Hash) -> Option<FileKind> {
    let file = files.get(path).filter(|file| file.hash == *hash)?;
    (file.kind != FileKind::Symlink).then_some(file.kind)
}
