//! The test tree: a folder of OCX's own that is brought to exactly the files that a check-in would hold.
//!
//! Build tools judge by the times of files, so the tree never lies to them:
//! - an unchanged file keeps its inode and its time, and so does its folder;
//! - a changed one gets a time later than anything an earlier run made, in another whole second, never in the future;
//! - after a deletion, a rename, a changed declaration, a clock that was set back or a move of the checkout, the tree
//!   starts empty, since what was built from the old files could pass for new.
//!
//! What tests leave behind stays for the next run. What they did to stored files is undone before it.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::state::{CheckoutState, WRITTEN};
use crate::checkout::{Change, Checkout, How, Status};
use crate::error::Result;
use crate::name::{Hash, TreePath, time};
use crate::repo::store::{FileEntry, Files, has_table};
use crate::tree::{FileKind, Stamp, Tree};

const SCHEMA: &str = "
  CREATE TABLE IF NOT EXISTS tree_fact(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS tree_file(
    path TEXT PRIMARY KEY, kind INTEGER NOT NULL, hash TEXT NOT NULL, size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, is_link INTEGER NOT NULL
  ) WITHOUT ROWID;";

const SECOND_NS: i64 = 1_000_000_000;

/// A file that was written this recently could be written again without a sign of it: the step of the disk's clock.
const CLOCK_STEP: Duration = Duration::from_millis(12);

/// The test tree of one checkout. Whoever uses it holds the lock on the checkout's tests.
pub(super) struct TestTree<'a> {
    state: &'a CheckoutState,
    tree: Tree,
    held: BTreeMap<TreePath, Held>,
}

/// What the tree is to be.
pub(super) struct Wanted<'a> {
    pub checkout: &'a Checkout,
    pub status: &'a Status,
    /// A hash over the declarations of all tests.
    pub declaration: Hash,
    /// Where tests see the tree.
    pub seen_at: &'a Path,
    /// Whether it is to start empty in any case.
    pub empty: bool,
}

/// How a tree was brought to the wanted files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Readiness {
    /// Whether no test has run in it since it was empty.
    pub fresh: bool,
    /// Why it was emptied, if it was.
    pub emptied: Option<String>,
}

/// A stored file as it was put into the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    file: FileEntry,
    stamp: Stamp,
}

impl<'a> TestTree<'a> {
    pub fn open(state: &'a CheckoutState) -> Result<Self> {
        state.with(|db| Ok(db.execute_batch(SCHEMA)?))?;
        let tree = Tree::open(&state.make("tree")?)?;
        Ok(Self { state, tree, held: state.with(held)? })
    }

    /// Makes the tree hold exactly the files of a status, beside what tests have left there.
    ///
    /// # Errors
    /// `Changed` for a file that is no longer what the status says, and what the disk refuses.
    pub fn bring(&mut self, wanted: &Wanted<'_>) -> Result<Readiness> {
        let had_files = !self.held.is_empty();
        let why = if wanted.empty { Some("the test asks for it".to_owned()) } else { self.stale(wanted)? };
        if why.is_some() {
            self.empty()?;
        }
        let outdated = self.outdated(&wanted.status.files);
        if !outdated.is_empty() {
            self.write(wanted, &outdated)?;
        }
        self.state.with(|db| {
            let facts = db.unchecked_transaction()?;
            set(&facts, "declaration", wanted.declaration.as_str())?;
            set(&facts, "seen_at", wanted.seen_at.as_os_str().as_bytes())?;
            Ok(facts.commit()?)
        })?;
        let fresh = self.fact::<i64>("used")?.is_none();
        // A first run throws nothing away.
        let emptied = why.filter(|_| had_files);
        Ok(Readiness { fresh, emptied })
    }

    /// Notes that a test is about to run in the tree: none that follows runs as in a fresh checkout.
    pub fn note_use(&self) -> Result<()> {
        self.state.with(|db| set(db, "used", 1))
    }

    /// Notes that a command has ended in the tree. What it made is not newer than this.
    pub fn ended(&self) -> Result<()> {
        self.state.with(|db| set(db, "ended", time::now_ns()))
    }

    /// Notes how much room tests have taken, and the latest time among what they made.
    pub fn note_room(&self, bytes: u64, newest_ns: i64) -> Result<()> {
        self.state.with(|db| {
            set(db, "newest", newest_ns)?;
            set(db, "bytes", bytes.cast_signed())
        })
    }

    /// How many bytes tests of a checkout were last seen to take, and when they last ran.
    pub fn noted_room(state: &CheckoutState) -> Result<(u64, i64)> {
        let bytes: i64 = fact(state, "bytes")?.unwrap_or(0);
        Ok((bytes.cast_unsigned(), fact(state, "ended")?.unwrap_or(0)))
    }

    /// What tests did to the stored files since the tree was brought to them.
    pub fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (path, held) in &self.held {
            if self.tree.stamp(path).as_ref() != Some(&held.stamp)
                && let Some(how) = self.how(path, held)
            {
                changes.push(Change { path: path.clone(), how });
            }
        }
        changes
    }

    /// A word that was kept for the tree as it has grown since it was empty.
    pub fn word(&self, name: &str) -> Result<Option<String>> {
        self.fact(&format!("word {name}"))
    }

    /// Keeps a word until the tree is emptied.
    pub fn keep_word(&self, name: &str, word: &str) -> Result<()> {
        self.state.with(|db| set(db, &format!("word {name}"), word))
    }

    fn how(&self, path: &TreePath, held: &Held) -> Option<How> {
        let Ok(entry) = self.tree.stat(path) else { return Some(How::Deleted) };
        let is_link = |kind| kind == FileKind::Symlink;
        if is_link(entry.kind) != is_link(held.file.kind) {
            return Some(How::Kind);
        }
        let same = self.tree.content(&entry, u64::MAX).is_ok_and(|content| held.file.hash.names(&content));
        if !same {
            return Some(How::Edited);
        }
        (entry.kind != held.file.kind).then_some(How::Mode)
    }

    /// Why what tests have left may not be trusted with the wanted files; nothing if it may.
    fn stale(&self, wanted: &Wanted<'_>) -> Result<Option<String>> {
        if self.held.is_empty() || self.fact::<i64>("writing")?.is_some() {
            return Ok(Some("it is the first run here".to_owned()));
        }
        if self.fact::<Vec<u8>>("seen_at")?.is_some_and(|at| at != wanted.seen_at.as_os_str().as_bytes()) {
            return Ok(Some(format!("tests now see it at `{}`", wanted.seen_at.display())));
        }
        if self.fact::<String>("declaration")?.is_some_and(|old| old != wanted.declaration.as_str()) {
            return Ok(Some("the declared tests have changed".to_owned()));
        }
        if let Some(gone) = self.held.keys().find(|path| !wanted.status.files.contains_key(*path)) {
            return Ok(Some(format!("`{}` was removed or renamed", gone.shown())));
        }
        let last = self.fact::<i64>("ended")?.unwrap_or(0).max(self.fact("written")?.unwrap_or(0));
        if last > time::now_ns() {
            return Ok(Some("the clock was set back".to_owned()));
        }
        if self.fact::<i64>("newest")?.is_some_and(|newest| newest > time::now_ns()) {
            return Ok(Some("an earlier run made files with a time in the future".to_owned()));
        }
        Ok(None)
    }

    /// Empties all that tests write in.
    pub fn empty(&mut self) -> Result<()> {
        // First the folders: on a full disk, the database can only be written then.
        for folder in WRITTEN {
            self.state.empty(folder)?;
        }
        self.state.with(|db| {
            let emptying = db.unchecked_transaction()?;
            emptying.execute_batch("DELETE FROM tree_file; DELETE FROM tree_fact;")?;
            set(&emptying, "writing", 1)?;
            Ok(emptying.commit()?)
        })?;
        self.tree = Tree::open(&self.state.path("tree"))?;
        self.held.clear();
        Ok(())
    }

    /// The files that are not in the tree as they are wanted.
    fn outdated<'f>(&self, files: &'f Files) -> Vec<(&'f TreePath, &'f FileEntry)> {
        let is_there = |path: &TreePath, file: &FileEntry| {
            self.held
                .get(path)
                .is_some_and(|h| h.file == *file && self.tree.stamp(path).as_ref() == Some(&h.stamp))
        };
        files.iter().filter(|(path, file)| !is_there(path, file)).collect()
    }

    fn write(&mut self, wanted: &Wanted<'_>, outdated: &[(&TreePath, &FileEntry)]) -> Result<()> {
        let last = self.fact::<i64>("ended")?.unwrap_or(0).max(self.fact("written")?.unwrap_or(0));
        let now = in_a_second_after(last);
        self.state.with(|db| set(db, "writing", 1))?;
        for &(path, file) in outdated {
            let content = wanted.checkout.stored_content(path, file)?;
            let kind = wanted.checkout.kind_on_disk(file.kind)?;
            let stamp = self.tree.put(path, &content, kind, now)?;
            self.held.insert(path.clone(), Held { file: *file, stamp });
        }
        self.state.with(|db| {
            let keeping = db.unchecked_transaction()?;
            let mut put = keeping.prepare("REPLACE INTO tree_file VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
            for (path, held) in outdated.iter().filter_map(|(path, _)| self.held.get_key_value(*path)) {
                let Stamp { size, mtime_ns, ctime_ns, inode, is_link } = held.stamp;
                let (kind, hash) = (number(held.file.kind), held.file.hash.as_str());
                let (size, inode) = (size.cast_signed(), inode.cast_signed());
                put.execute(params![path.as_str(), kind, hash, size, mtime_ns, ctime_ns, inode, is_link])?;
            }
            drop(put);
            set(&keeping, "written", now)?;
            keeping.execute("DELETE FROM tree_fact WHERE name='writing'", [])?;
            Ok(keeping.commit()?)
        })?;
        sleep(CLOCK_STEP);
        Ok(())
    }

    fn fact<T: rusqlite::types::FromSql>(&self, name: &str) -> Result<Option<T>> {
        fact(self.state, name)
    }
}

fn fact<T: rusqlite::types::FromSql>(state: &CheckoutState, name: &str) -> Result<Option<T>> {
    state.with(|db| {
        if !has_table(db, "tree_fact")? {
            return Ok(None);
        }
        let sql = "SELECT value FROM tree_fact WHERE name=?1";
        Ok(db.query_row(sql, [name], |row| row.get(0)).optional()?)
    })
}

/// The stored files as they were put into the tree.
fn held(db: &Connection) -> Result<BTreeMap<TreePath, Held>> {
    let mut rows =
        db.prepare("SELECT path, kind, hash, size, mtime_ns, ctime_ns, inode, is_link FROM tree_file")?;
    let mut rows = rows.query([])?;
    let mut held = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let stamp = Stamp {
            size: row.get::<_, i64>(3)?.cast_unsigned(),
            mtime_ns: row.get(4)?,
            ctime_ns: row.get(5)?,
            inode: row.get::<_, i64>(6)?.cast_unsigned(),
            is_link: row.get(7)?,
        };
        let path = TreePath::parse_stored(row.get_ref(0)?.as_str().unwrap_or_default())?;
        let hash = Hash::parse(row.get_ref(2)?.as_str().unwrap_or_default())?;
        held.insert(path, Held { file: FileEntry { hash, kind: kind(row.get(1)?) }, stamp });
    }
    Ok(held)
}

fn set(db: &Connection, name: &str, value: impl rusqlite::ToSql) -> Result<()> {
    db.execute("REPLACE INTO tree_fact VALUES(?1, ?2)", params![name, value])?;
    Ok(())
}

/// Returns the time now, once it is in a later second than `last`.
fn in_a_second_after(last: i64) -> i64 {
    loop {
        let now = time::now_ns();
        if now.div_euclid(SECOND_NS) > last.div_euclid(SECOND_NS) || now < last {
            return now;
        }
        let left = SECOND_NS - now.rem_euclid(SECOND_NS);
        sleep(Duration::from_nanos(left.unsigned_abs()));
    }
}

fn number(kind: FileKind) -> i64 {
    match kind {
        FileKind::Regular => 0,
        FileKind::Executable => 1,
        FileKind::Symlink => 2,
    }
}

fn kind(number: i64) -> FileKind {
    match number {
        1 => FileKind::Executable,
        2 => FileKind::Symlink,
        _ => FileKind::Regular,
    }
}
