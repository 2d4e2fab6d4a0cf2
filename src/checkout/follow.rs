//! Following a check-in: the checkout moves to a check-in that was made of its files. It also does so if the process
//! that made the check-in ended, or the power failed, before the move.
//!
//! A caller waits only for the repository's commit. The repository keeps a note with each check-in that says which
//! checkout made it. So a checkout whose own database is behind can be moved later. This module writes Fossil's own
//! tables as `fossil commit` would leave them. `update` moves to another version, which changes files.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::MutexGuard;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::database::{self, BUSY_TIMEOUT, var};
use super::manifest_files::ManifestFiles;
use super::open::Checkout;
use super::status::Status;
use crate::error::{Error, Kind, Result};
use crate::format::FILE_MAX;
use crate::name::{Hash, TreePath, time};
use crate::repo::store::Files;
use crate::tree::FileKind;

/// A file that changed within this many seconds may change again within the same second. Fossil looks at whole seconds
/// and would not see that.
const UNSETTLED_S: i64 = 2;

/// The checkout's database in an open transaction. It is moved to a check-in that is being stored, except for what is
/// known only when the check-in is stored.
pub(crate) struct Moving<'a> {
    done: Transaction<'a>,
    vid: i64,
}

impl Checkout {
    /// The note that the repository keeps with the check-in `hash`. It says which checkout made the check-in, how much
    /// of the repository that checkout knew when it last moved, and where its database lies.
    pub(crate) fn note(&self, hash: &Hash) -> Result<String> {
        let seen = self.state(seen)?;
        let place = database::place(&self.database).unwrap_or_else(|| "-".to_owned());
        Ok(format!("{}{seen:016x} {place} {hash}", self.note_stem()?))
    }

    fn note_stem(&self) -> Result<String> {
        Ok(format!("ocx {} ", self.id()?))
    }

    /// Waits until no other process writes to the checkout's database. Otherwise the checkout could not follow.
    ///
    /// # Errors
    /// [`Kind::Busy`].
    pub(crate) fn wait_for_turn(&self) -> Result<()> {
        self.state(|db| Ok(Transaction::new_unchecked(db, TransactionBehavior::Immediate)?.rollback()?))
    }

    /// The checkout's database, for [`begin_move`](Self::begin_move). Everything else of this checkout that needs the
    /// database waits until the guard is dropped.
    pub(crate) fn state_to_move(&self) -> MutexGuard<'_, Connection> {
        self.state.lock()
    }

    /// Begins to move the checkout to the check-in `hash`, which is being stored after the contents `new`. The
    /// check-in holds exactly the files of `status`. Call this only where nobody else can write to the repository.
    ///
    /// # Errors
    /// Any. [`follow`](Self::follow) then does the whole move.
    pub(crate) fn begin_move<'a>(
        &self,
        state: &'a Connection,
        hash: &Hash,
        status: &Status,
        new: &[Hash],
    ) -> Result<Moving<'a>> {
        let store = self.repository.store();
        let numbers = store.next_rids(new.iter().chain([hash]))?;
        let vid = numbers[hash];
        if self.is_renumbered(state)? {
            return Err(Error::new(Kind::Changed, "the repository is another file"));
        }
        // Others may hold this lock and wait for the repository's.
        state.busy_timeout(Duration::ZERO)?;
        let done = Transaction::new_unchecked(state, TransactionBehavior::Immediate);
        state.busy_timeout(BUSY_TIMEOUT)?;
        let done = done?;
        let rid = |hash: &Hash| numbers.get(hash).map_or_else(|| store.rid(hash), |&rid| Ok(Some(rid)));
        self.write_files(&done, vid, &status.files, Some(changed(status)), rid)?;
        Ok(Moving { done, vid })
    }

    /// Moves the checkout to the check-in `hash`, which is stored now and holds exactly the files of `status`. Uses
    /// what was begun if the row numbers came out as foreseen.
    pub(crate) fn follow(
        &self,
        state: &Connection,
        moving: Option<Moving<'_>>,
        hash: &Hash,
        status: &Status,
    ) -> Result<()> {
        match moving {
            Some(Moving { done, vid }) if self.repository.store().rid(hash)? == Some(vid) => {
                self.write_position(&done, vid, hash)?;
                Ok(done.commit()?)
            }
            other => {
                drop(other);
                self.stand_on(state, hash, &status.files, Some(changed(status)))
            }
        }
    }

    /// Repairs what an ended process or a power failure has left: the checkout moves to the last of the check-ins that
    /// it has made and not followed. If its database may be a copy or an old state, it moves only if the files are
    /// those of that check-in.
    pub(crate) fn recover(&self) -> Result<Option<Hash>> {
        self.finish_if_unfinished()?;
        let seen = self.state(seen)?;
        let stem = self.note_stem()?;
        let store = self.repository.store();
        let notes = store.notes(&format!("{stem}{seen:016x}"), &format!("{stem}g"), seen)?;
        if notes.is_empty() {
            return Ok(None);
        }
        let here = database::place(&self.database);
        let parent = self.parent()?;
        let (mut last, mut is_here) = (parent, true);
        for note in notes {
            let mut words = note[stem.len()..].split(' ').skip(1);
            let (Some(place), Some(Ok(hash))) = (words.next(), words.next().map(Hash::parse)) else {
                continue;
            };
            if store.holds(&hash)? && store.check_in(&hash)?.parents.first() == Some(&last) {
                last = hash;
                is_here &= here.as_deref() == Some(place);
            }
        }
        if last == parent {
            return Ok(None);
        }
        let files = store.files(&last)?;
        if !is_here && !self.has_become(&files, &*store.files(&parent)?)? {
            return Ok(None);
        }
        self.stand_on(&self.state_to_move(), &last, &files, None)?;
        self.write_manifest(&last)?;
        Ok(Some(last))
    }

    /// Whether the disk has what `later` has, wherever the two check-ins differ.
    fn has_become(&self, later: &Files, earlier: &Files) -> Result<bool> {
        let paths = later.keys().chain(earlier.keys());
        for path in paths.filter(|path| later.get(*path) != earlier.get(*path)) {
            let same = match (later.get(path), self.tree.stat(path)) {
                (None, Err(e)) => e.kind() == Kind::NotFound,
                (Some(file), Ok(entry)) => {
                    entry.kind == file.kind && file.hash.names(&self.tree.content(&entry, FILE_MAX)?)
                }
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes Fossil's view of the checkout: it stands on `hash` with `files`. If `changed` is given, only those paths
    /// have other rows than before.
    fn stand_on(
        &self,
        state: &Connection,
        hash: &Hash,
        files: &Files,
        changed: Option<BTreeSet<&TreePath>>,
    ) -> Result<()> {
        let store = self.repository.store();
        let vid = store.rid(hash)?.ok_or_else(|| not_whole(hash))?;
        let changed = if self.is_renumbered(state)? { None } else { changed };
        let done = state.unchecked_transaction()?;
        self.write_files(&done, vid, files, changed, |hash| store.rid(hash))?;
        self.write_position(&done, vid, hash)?;
        Ok(done.commit()?)
    }

    /// Writes `manifest` and its companions if the setting asks for them.
    pub(super) fn write_manifest(&self, hash: &Hash) -> Result<()> {
        let wanted = ManifestFiles::of(&self.settings())?;
        for stranger in wanted.strangers(&self.root) {
            self.put_aside(&TreePath::parse(stranger)?)?;
        }
        wanted.write(&self.root, self.repository.store(), hash)
    }

    fn write_files(
        &self,
        db: &Connection,
        vid: i64,
        files: &Files,
        changed: Option<BTreeSet<&TreePath>>,
        rid: impl Fn(&Hash) -> Result<Option<i64>>,
    ) -> Result<()> {
        Self::keep_removed(db, &self.removed(db)?)?;
        db.prepare_cached("DELETE FROM vmerge")?.execute([])?;
        let known = forget_known_files(db)?;
        self.forget_gone_beside(db)?;
        let changed = changed.map(|mut changed| {
            changed.extend(known.iter());
            changed
        });
        for name in gone(db, files, changed.as_ref())? {
            db.prepare_cached("DELETE FROM vfile WHERE pathname=?1")?.execute([name])?;
        }
        // ROLLBACK saves time: to undo only this statement, SQLite would first copy each page.
        db.prepare_cached(
            "UPDATE OR ROLLBACK vfile SET vid=?1, mrid=rid, mhash=NULL, chnged=0, deleted=0, origname=NULL
             WHERE vid!=?1 OR chnged OR deleted OR origname IS NOT NULL",
        )?
        .execute([vid])?;
        let changed: Vec<_> = match changed {
            Some(changed) => changed.into_iter().filter_map(|path| files.get_key_value(path)).collect(),
            None => files.iter().collect(),
        };
        let mut put = db.prepare_cached(
            "INSERT INTO vfile(vid,chnged,deleted,isexe,islink,rid,mrid,mtime,pathname)
             VALUES(?1,0,0,?2,?3,?4,?4,?5,?6)
             ON CONFLICT(pathname,vid) DO UPDATE SET isexe=excluded.isexe, islink=excluded.islink,
               rid=excluded.rid, mrid=excluded.mrid, mtime=excluded.mtime",
        )?;
        for (path, file) in changed {
            let rid = rid(&file.hash)?.ok_or_else(|| not_whole(&file.hash))?;
            let mtime = self.tree.stat(path).map_or(0, |entry| settled(entry.stamp.mtime_ns));
            let (isexe, islink) = (file.kind == FileKind::Executable, file.kind == FileKind::Symlink);
            put.execute(params![vid, isexe, islink, rid, mtime, path.as_str()])?;
        }
        Ok(())
    }

    pub(super) fn write_position(&self, db: &Connection, vid: i64, hash: &Hash) -> Result<()> {
        let mut put = db.prepare_cached("REPLACE INTO vvar(name,value) VALUES(?1,?2)")?;
        put.execute(params!["checkout", vid])?;
        put.execute(params!["checkout-hash", hash.as_str()])?;
        put.execute(params!["fingerprint", self.repository.store().fingerprint(None)?])?;
        let sql = "DELETE FROM vvar WHERE name IN ('ci-comment','undo_available','redo_available')";
        db.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    /// Whether a clone has replaced the repository, so that the row numbers in the checkout's database mean other
    /// artifacts. Fossil numbers the rows anew when it sees that.
    pub(super) fn is_renumbered(&self, db: &Connection) -> Result<bool> {
        let Some(known) = var(db, "fingerprint")? else { return Ok(false) };
        let rcvid = reception(&known);
        Ok(rcvid.is_none() || self.repository.store().fingerprint(rcvid)? != Some(known))
    }
}

fn changed(status: &Status) -> BTreeSet<&TreePath> {
    status.changes.iter().map(|c| &c.path).chain(status.renamed.keys()).collect()
}

/// The number of the repository's last reception when the checkout last moved.
fn seen(db: &Connection) -> Result<i64> {
    Ok(var(db, "fingerprint")?.as_deref().and_then(reception).unwrap_or(0))
}

fn reception(fingerprint: &str) -> Option<i64> {
    fingerprint.split('/').next().and_then(|n| n.parse().ok())
}

fn not_whole(hash: &Hash) -> Error {
    Error::new(Kind::Corrupt, format!("artifact `{}` is not in the repository", hash.short()))
}

/// Drops the rows of files that Fossil was told to add or to rename. Returns their paths, new and old.
fn forget_known_files(db: &Connection) -> Result<Vec<TreePath>> {
    let mut query = db.prepare_cached(
        "DELETE FROM vfile WHERE rid=0 OR chnged IN (3, 5) OR origname!=pathname RETURNING pathname, coalesce(origname, '')",
    )?;
    let mut rows = query.query([])?;
    let mut paths = Vec::new();
    while let Some(row) = rows.next()? {
        for column in 0..2 {
            paths.extend(TreePath::parse_stored(row.get_ref(column)?.as_str().unwrap_or_default()).ok());
        }
    }
    Ok(paths)
}

/// The paths that are not in `files`, among `changed` or else among all in Fossil's table.
fn gone(db: &Connection, files: &Files, changed: Option<&BTreeSet<&TreePath>>) -> Result<Vec<String>> {
    if let Some(changed) = changed {
        let gone = changed.iter().filter(|path| !files.contains_key(**path));
        return Ok(gone.map(ToString::to_string).collect());
    }
    let mut query = db.prepare_cached("SELECT pathname FROM vfile")?;
    let names = query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let is_gone = |name: &String| TreePath::parse_stored(name).is_ok_and(|path| !files.contains_key(&path));
    Ok(names.into_iter().filter(is_gone).collect())
}

/// The time in whole seconds that Fossil may take as a sign that a file is unchanged. It is 0, no such sign, for a
/// file that changed just now.
fn settled(mtime_ns: i64) -> i64 {
    let (mtime, now) = (mtime_ns.div_euclid(1_000_000_000), time::since_epoch().as_secs().cast_signed());
    if mtime + UNSETTLED_S < now { mtime } else { 0 }
}
