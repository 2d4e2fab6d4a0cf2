//! Changing files so that a process may end at any moment.
//!
//! What is to be done is written to the checkout's database first, together with every old file and with Fossil's tables
//! as they will be. Then the files are changed, each in one step. If the process ends in between, the next call finishes.
//! If something fails, the files and the tables are put back.

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::change::{Change, Content};
use super::room::no_room;
use crate::cancel::Cancel;
use crate::checkout::beside::note_beside;
use crate::checkout::database::{relax, var};
use crate::checkout::lock::CheckoutLock;
use crate::checkout::open::Checkout;
use crate::error::{Error, Kind, Result};
use crate::format::FILE_MAX;
use crate::format::artifact::FileKind;
use crate::merge::beside;
use crate::name::{Hash, TreePath};
use crate::repo::store::{FileEntry, has_table};

/// What is still to be done, one file a row.
const TABLE: &str = "CREATE TABLE ocx_unfinished(path TEXT PRIMARY KEY, act TEXT, old TEXT, old_kind INT,
    new TEXT, new_kind INT, content BLOB)";

/// How many names are tried for what somebody wrote while an update was unfinished.
const NAMES_MAX: u32 = 10_000;

/// What to do where something lies that nobody foresaw.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unforeseen {
    /// Give up.
    Refuse,
    /// Give it another name.
    MoveAside,
}

impl Checkout {
    /// Makes changes to files and to Fossil's tables. Either all of it is done or nothing. `act` says in words what is
    /// done; `tables` writes the tables.
    ///
    /// # Errors
    /// [`Kind::Changed`] if somebody changed a file meanwhile, [`Kind::Denied`], [`Kind::DiskFull`], and those of
    /// `tables`. Everything is then as before.
    pub(super) fn perform(
        &self,
        _lock: &CheckoutLock,
        act: &str,
        changes: &[Change],
        tables: impl FnOnce(&Connection) -> Result<()>,
    ) -> Result<()> {
        let room = self.room(changes)?;
        self.begin(act, changes, tables).map_err(|e| match e.kind() {
            Kind::DiskFull => no_room(act, e),
            _ => e,
        })?;
        if let Err(e) = self.change_files(Unforeseen::Refuse) {
            // What is put back finds the room that was kept for it.
            drop(room);
            return Err(match self.put_back() {
                Ok(()) => e,
                Err(back) => neither(act, &e, back),
            });
        }
        self.tree.sync_all();
        self.state(|db| Ok(db.execute_batch("DROP TABLE ocx_unfinished")?))
    }

    /// Finishes what a process that ended has begun. Returns what that was, in words.
    ///
    /// # Errors
    /// [`Kind::DiskFull`], [`Kind::Denied`]. The next call tries again.
    pub(crate) fn finish(&self, _lock: &CheckoutLock) -> Result<Option<String>> {
        let Some(act) = self.state(unfinished)? else { return Ok(None) };
        if !self.state(|db| is_still_to_do(db, &act))? {
            self.state(|db| Ok(db.execute_batch("DROP TABLE ocx_unfinished")?))?;
            return Ok(None);
        }
        let done = self.remove_leftovers().and_then(|()| self.change_files(Unforeseen::MoveAside));
        let how = match done {
            Ok(()) => {
                self.tree.sync_all();
                self.state(|db| Ok(db.execute_batch("DROP TABLE ocx_unfinished")?))?;
                "finished"
            }
            Err(e) => {
                self.put_back().map_err(|back| neither(&act, &e, back))?;
                "taken back"
            }
        };
        tracing::warn!(target: "ocx::finished", "the {act} that was cut short is {how} now");
        let said = format!("the {act} of a process that ended in the middle was {how}");
        *self.finished.lock() = Some(said.clone());
        Ok(Some(said))
    }

    fn remove_leftovers(&self) -> Result<()> {
        let mut last = None;
        for change in self.state(noted)? {
            let folder = change.path.parent();
            if last.as_ref() != Some(&folder) {
                self.tree.remove_leftovers_beside(&change.path)?;
            }
            last = Some(folder);
        }
        Ok(())
    }

    /// As [`finish`](Self::finish), for who has no lock.
    pub(in crate::checkout) fn finish_if_unfinished(&self) -> Result<Option<String>> {
        if self.state(unfinished)?.is_none() {
            return Ok(None);
        }
        self.finish(&CheckoutLock::of_folder(&self.root, &Cancel::new())?)
    }

    /// Writes what is to be done, and everything by which it can be undone, to the database.
    fn begin(
        &self,
        act: &str,
        changes: &[Change],
        tables: impl FnOnce(&Connection) -> Result<()>,
    ) -> Result<()> {
        self.state(|db| {
            // The old files must be on the disk before the first one is replaced.
            db.execute_batch("PRAGMA synchronous=FULL")?;
            let begun = (|| {
                let done = rusqlite::Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
                keep_tables(&done, act)?;
                done.execute_batch(TABLE)?;
                for change in changes {
                    self.keep_file(&done, change)?;
                    self.note_change(&done, act, change)?;
                }
                tables(&done)?;
                Ok(done.commit()?)
            })();
            relax(db)?;
            begun
        })
    }

    /// Keeps an old file where plain Fossil's `undo` finds it.
    fn keep_file(&self, db: &Connection, change: &Change) -> Result<()> {
        let content = self.read_old(change)?;
        let kind = change.old.map(|old| old.kind);
        let sql = "INSERT INTO undo(pathname, redoflag, existsflag, isExe, isLink, content) VALUES(?1,0,?2,?3,?4,?5)";
        db.prepare_cached(sql)?.execute(params![
            change.path.as_str(),
            change.old.is_some(),
            kind == Some(FileKind::Executable),
            kind == Some(FileKind::Symlink),
            content.unwrap_or_default(),
        ])?;
        Ok(())
    }

    fn note_change(&self, db: &Connection, act: &str, change: &Change) -> Result<()> {
        let content = match (&change.content, change.new) {
            (Content::Made(text), _) => Some(text.clone()),
            (Content::OnDisk(path), Some(new)) if !self.repository.store().holds(&new.hash)? => {
                Some(self.tree.content(&self.tree.stat(path)?, FILE_MAX)?)
            }
            _ => None,
        };
        if let (Some(content), Some(new)) = (&content, change.new)
            && !new.hash.names(content)
        {
            return Err(changed(&change.path));
        }
        let sql = "INSERT INTO ocx_unfinished VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let (old, old_kind) = columns(change.old.as_ref());
        let (new, new_kind) = columns(change.new.as_ref());
        let row = params![change.path.as_str(), act, old, old_kind, new, new_kind, content];
        db.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    /// The old file's content, if it is what the plan was made for.
    fn read_old(&self, change: &Change) -> Result<Option<Vec<u8>>> {
        let Some(old) = change.old else { return Ok(None) };
        let entry = self.tree.stat(&change.path)?;
        if entry.kind == FileKind::Symlink && old.kind != FileKind::Symlink {
            let what =
                format!("`{}` is a symbolic link now, and another file comes there", change.path.shown());
            return Err(Error::new(Kind::Denied, what).with_hint("Put the file back, or move the link away."));
        }
        let content = self.tree.content(&entry, FILE_MAX)?;
        if entry.kind == old.kind && old.hash.names(&content) {
            return Ok(Some(content));
        }
        Err(changed(&change.path))
    }

    /// Changes the files as noted. Those that are changed already stay. What goes comes first, so that folders become free.
    fn change_files(&self, unforeseen: Unforeseen) -> Result<()> {
        let noted = self.state(noted)?;
        for change in noted.iter().rev().filter(|change| change.new.is_none()) {
            self.change_file(change, None, unforeseen)?;
            self.tree.remove_empty_folders(&change.path);
        }
        for change in &noted {
            let Some(new) = change.new else { continue };
            let sql = "SELECT content FROM ocx_unfinished WHERE path=?1";
            let kept: Option<Vec<u8>> =
                self.state(|db| Ok(db.query_row(sql, [change.path.as_str()], |row| row.get(0))?))?;
            let content = kept.map_or_else(|| self.repository.store().content(&new.hash), Ok)?;
            self.change_file(change, Some(&content), unforeseen)?;
        }
        Ok(())
    }

    fn change_file(&self, change: &Change, content: Option<&[u8]>, unforeseen: Unforeseen) -> Result<()> {
        let Change { path, old, new, .. } = change;
        let with = content.zip(*new).map(|(content, new)| (content, new.kind));
        let as_found = |entry: &Option<FileEntry>| entry.map(|entry| (entry.hash, entry.kind));
        let is_at = |entry: &Option<FileEntry>| {
            let found = as_found(entry);
            self.tree.is_at(path, found.as_ref().map(|(hash, kind)| (hash, *kind)))
        };
        let old = as_found(old);
        if self.tree.exchange(path, old.as_ref().map(|(hash, kind)| (hash, *kind)), with)? || is_at(new)? {
            return Ok(());
        }
        if unforeseen == Unforeseen::Refuse {
            return Err(changed(path));
        }
        if !self.tree.is_at(path, None)? {
            self.put_aside(path)?;
        }
        if with.is_none() || self.tree.exchange(path, None, with)? {
            return Ok(());
        }
        Err(changed(path))
    }

    /// Gives what lies at a path another name.
    pub(in crate::checkout) fn put_aside(&self, path: &TreePath) -> Result<()> {
        let aside = self.free_name(path)?;
        self.state(|db| note_beside(db, [(&aside, false)]))?;
        self.tree.move_aside(path, &aside)?;
        let (path, aside) = (path.shown(), aside.shown());
        tracing::warn!(target: "ocx::finished", "`{path}` was changed meanwhile: it is in `{aside}` now");
        Ok(())
    }

    /// A free path beside `path`, named as Fossil names its backups.
    fn free_name(&self, path: &TreePath) -> Result<TreePath> {
        let names = (0..NAMES_MAX).map(|n| if n == 0 { String::new() } else { format!("-{n}") });
        for end in names {
            let name = TreePath::parse_stored(&beside(path.as_str(), &format!("-original{end}")))?;
            if self.tree.is_at(&name, None)? {
                return Ok(name);
            }
        }
        Err(Error::new(Kind::Exists, format!("there are too many backups of `{}`", path.shown()))
            .with_hint("Remove some of them."))
    }

    /// Puts files and tables back. Whatever somebody else has put there meanwhile stays.
    fn put_back(&self) -> Result<()> {
        let noted = self.state(noted)?;
        let back: Vec<Change> =
            noted.into_iter().map(|change| Change { old: change.new, new: change.old, ..change }).collect();
        for change in back.iter().rev().filter(|change| change.new.is_none()) {
            self.put_one_back(change, None)?;
            self.tree.remove_empty_folders(&change.path);
        }
        for change in back.iter().filter(|change| change.new.is_some()) {
            let sql = "SELECT content FROM undo WHERE pathname=?1";
            let content: Vec<u8> =
                self.state(|db| Ok(db.query_row(sql, [change.path.as_str()], |row| row.get(0))?))?;
            self.put_one_back(change, Some(&content))?;
        }
        self.tree.sync_all();
        self.state(|db| Ok(db.execute_batch(TABLES_BACK)?))
    }

    fn put_one_back(&self, change: &Change, content: Option<&[u8]>) -> Result<()> {
        // A file that was not changed yet is as it was, and one that is neither is somebody's.
        if let Err(e) = self.change_file(change, content, Unforeseen::Refuse)
            && e.kind() != Kind::Changed
        {
            return Err(e);
        }
        Ok(())
    }
}

/// Keeps Fossil's tables where its `undo` finds them.
fn keep_tables(db: &Connection, act: &str) -> Result<()> {
    db.execute_batch(
        "DROP TABLE IF EXISTS undo; DROP TABLE IF EXISTS undo_vfile; DROP TABLE IF EXISTS undo_vmerge;
         DROP TABLE IF EXISTS undo_stash; DROP TABLE IF EXISTS undo_stashfile;
         CREATE TABLE undo(pathname TEXT UNIQUE, redoflag BOOLEAN, existsflag BOOLEAN, isExe BOOLEAN, isLink BOOLEAN,
           content BLOB);
         CREATE TABLE undo_vfile AS SELECT * FROM vfile; CREATE TABLE undo_vmerge AS SELECT * FROM vmerge;
         REPLACE INTO vvar(name, value) SELECT 'undo_checkout', value FROM vvar WHERE name='checkout';
         REPLACE INTO vvar(name, value) SELECT 'ocx_undo_hash', value FROM vvar WHERE name='checkout-hash';
         REPLACE INTO vvar(name, value) VALUES('undo_available', 1)",
    )?;
    db.execute("REPLACE INTO vvar(name, value) VALUES('undo_cmdline', ?1)", [act])?;
    Ok(())
}

/// Gives Fossil's tables what they had before.
const TABLES_BACK: &str = "BEGIN;
    DELETE FROM vfile; INSERT INTO vfile SELECT * FROM undo_vfile;
    DELETE FROM vmerge; INSERT INTO vmerge SELECT * FROM undo_vmerge;
    REPLACE INTO vvar(name, value) SELECT 'checkout', value FROM vvar WHERE name='undo_checkout';
    DELETE FROM vvar WHERE name='checkout-hash';
    REPLACE INTO vvar(name, value) SELECT 'checkout-hash', value FROM vvar WHERE name='ocx_undo_hash';
    DELETE FROM vvar WHERE name IN ('undo_available', 'undo_checkout', 'undo_cmdline', 'ocx_undo_hash');
    DROP TABLE undo; DROP TABLE undo_vfile; DROP TABLE undo_vmerge; DROP TABLE IF EXISTS mergestat;
    DROP TABLE ocx_unfinished; COMMIT";

/// What was begun and not finished, in words.
fn unfinished(db: &Connection) -> Result<Option<String>> {
    if !has_table(db, "ocx_unfinished")? {
        return Ok(None);
    }
    let act = db.query_row("SELECT act FROM ocx_unfinished LIMIT 1", [], |row| row.get(0)).optional()?;
    Ok(Some(act.unwrap_or_else(|| "update".to_owned())))
}

/// Whether nobody has done anything else by plain Fossil since: it has taken all back, say, or made a check-in.
fn is_still_to_do(db: &Connection, act: &str) -> Result<bool> {
    let state = if act == "undo" { "2" } else { "1" };
    let is = |name: &str, value: &str| Ok::<_, Error>(var(db, name)?.as_deref() == Some(value));
    Ok(has_table(db, "undo")? && is("undo_available", state)? && is("undo_cmdline", act)?)
}

/// The noted changes, by path, without their contents.
fn noted(db: &Connection) -> Result<Vec<Change>> {
    let mut query =
        db.prepare("SELECT path, old, old_kind, new, new_kind FROM ocx_unfinished ORDER BY path")?;
    let mut rows = query.query([])?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        let path = TreePath::parse_stored(&row.get::<_, String>(0)?)?;
        changes.push(Change { path, old: entry(row, 1)?, new: entry(row, 3)?, content: Content::Stored });
    }
    Ok(changes)
}

const KINDS: [FileKind; 3] = [FileKind::Regular, FileKind::Executable, FileKind::Symlink];

fn columns(entry: Option<&FileEntry>) -> (Option<String>, Option<u8>) {
    let kind = |entry: &FileEntry| (0..).zip(KINDS).find(|(_, kind)| *kind == entry.kind).map(|(at, _)| at);
    (entry.map(|entry| entry.hash.to_string()), entry.and_then(kind))
}

fn entry(row: &Row<'_>, at: usize) -> Result<Option<FileEntry>> {
    let Some(hash) = row.get::<_, Option<String>>(at)? else { return Ok(None) };
    let kind = row.get::<_, Option<u8>>(at + 1)?.and_then(|kind| KINDS.get(usize::from(kind)).copied());
    Ok(Some(FileEntry { hash: Hash::parse(&hash)?, kind: kind.unwrap_or_default() }))
}

fn neither(act: &str, e: &Error, back: Error) -> Error {
    let what = format!("the {act} could not be done ({e}), nor taken back ({back})");
    Error::new(back.kind(), what).caused_by(back).with_hint(
        "Remove the cause, such as a full disk; the next call finishes it. Every old file is kept until then.",
    )
}

fn changed(path: &TreePath) -> Error {
    Error::new(Kind::Changed, format!("`{}` was changed meanwhile; nothing was done", path.shown()))
        .with_hint("Try again, with what is there now.")
}
