//! Fossil's tables as they are after an update or a merge, so that plain Fossil sees what OCX sees.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension, params};

use crate::checkout::beside::note_beside;
use crate::checkout::database::var;
use crate::checkout::open::{Checkout, no_parent};
use crate::checkout::status::{How, Status};
use crate::error::{Error, Kind, Result};
use crate::format::artifact::FileKind;
use crate::merge::{FileOutcome, MergeHow, Owner, Placed, Plan, Source, Step};
use crate::name::{Hash, TreePath};
use crate::repo::store::{FileEntry, Files};

/// A row of Fossil's table of files.
#[derive(Debug, Clone, Default)]
struct VFile {
    chnged: i64,
    deleted: bool,
    isexe: bool,
    islink: bool,
    rid: i64,
    mrid: i64,
    path: String,
    origname: Option<String>,
    mhash: Option<String>,
}

impl VFile {
    /// A file of a check-in.
    fn of(path: &TreePath, entry: &FileEntry, rid: i64) -> Self {
        Self {
            isexe: entry.kind == FileKind::Executable,
            islink: entry.kind == FileKind::Symlink,
            rid,
            mrid: rid,
            path: path.to_string(),
            ..Self::default()
        }
    }

    /// A file that is no part of the check-in.
    fn added(path: &TreePath) -> Self {
        Self { path: path.to_string(), ..Self::default() }
    }

    /// Writes the row. Its time is none, so that Fossil looks into the file.
    fn put(&self, db: &Connection, vid: i64) -> Result<()> {
        let sql = "INSERT INTO vfile(vid,chnged,deleted,isexe,islink,rid,mrid,mtime,pathname,origname,mhash)
                   VALUES(?1,?2,?3,?4,?5,?6,?7,0,?8,?9,?10) ON CONFLICT(pathname,vid) DO NOTHING";
        db.prepare_cached(sql)?.execute(params![
            vid,
            self.chnged,
            self.deleted,
            self.isexe,
            self.islink,
            self.rid,
            self.mrid,
            self.path,
            self.origname,
            self.mhash,
        ])?;
        Ok(())
    }

    /// Takes the row of a path out.
    fn take(db: &Connection, vid: i64, path: &TreePath) -> Result<Option<Self>> {
        let sql = "DELETE FROM vfile WHERE vid=?1 AND pathname=?2
                   RETURNING chnged, deleted, isexe, islink, rid, coalesce(mrid, 0), pathname, origname, mhash";
        let mut query = db.prepare_cached(sql)?;
        let row = query.query_row(params![vid, path.as_str()], |row| {
            Ok(Self {
                chnged: row.get(0)?,
                deleted: row.get(1)?,
                isexe: row.get::<_, Option<bool>>(2)?.unwrap_or_default(),
                islink: row.get::<_, Option<bool>>(3)?.unwrap_or_default(),
                rid: row.get(4)?,
                mrid: row.get(5)?,
                path: row.get(6)?,
                origname: row.get(7)?,
                mhash: row.get(8)?,
            })
        });
        Ok(row.optional()?)
    }
}

impl Checkout {
    /// Writes the tables for an update from the check-in of `status` to `to`.
    pub(super) fn tables_of_update(
        &self,
        db: &Connection,
        status: &Status,
        plan: &Plan,
        to: &Hash,
    ) -> Result<()> {
        let store = self.repository.store();
        let vid = self.rid(to)?;
        let files = store.files(to)?;
        let mut removed = BTreeSet::new();
        let mut affected = differing(&*store.files(&status.parent)?, &files);
        affected.extend(status.changes.iter().map(|change| change.path.clone()));
        affected.extend(status.renamed.iter().flat_map(|(new, old)| [new.clone(), old.clone()]));
        for step in plan.steps.values() {
            affected.extend([&step.base, &step.here, &step.there].into_iter().flatten().cloned());
            affected.insert(step.path.clone());
        }
        for (path, deleted) in marked(db)? {
            if deleted {
                removed.insert(path.clone());
            }
            affected.insert(path);
        }
        let mut known = BTreeSet::new();
        for path in &affected {
            if db.prepare_cached("DELETE FROM vfile WHERE pathname=?1")?.execute([path.as_str()])? > 0 {
                known.insert(path);
            }
        }
        db.prepare_cached("UPDATE OR ROLLBACK vfile SET vid=?1, mrid=rid, mhash=NULL WHERE vid!=?1")?
            .execute([vid])?;
        let mut placed: BTreeMap<&TreePath, &TreePath> = BTreeMap::new();
        for (path, Placed { there, here, .. }) in &plan.tree {
            match there {
                Some(there) => drop(placed.insert(there, path)),
                // What nobody told Fossil of stays so.
                None if here.as_ref().is_some_and(|here| known.contains(here)) => {
                    VFile::added(path).put(db, vid)?;
                }
                None => {}
            }
        }
        for (there, path) in affected.iter().filter_map(|there| Some((there, *placed.get(there)?))) {
            let row = VFile::of(path, &files[there], self.rid(&files[there].hash)?);
            VFile { origname: (path != there).then(|| there.to_string()), ..row }.put(db, vid)?;
        }
        for gone in affected.iter().filter(|path| !placed.contains_key(path)) {
            if let Some(entry) = files.get(gone) {
                let row = VFile::of(gone, entry, self.rid(&entry.hash)?);
                VFile { deleted: removed.contains(gone), ..row }.put(db, vid)?;
            }
        }
        self.forget_merged(db, to)?;
        note_beside(db, beside(plan))?;
        self.write_position(db, vid, to)?;
        Ok(db.execute_batch("REPLACE INTO vvar(name, value) VALUES('undo_available', 1)")?)
    }

    /// Forgets merged check-ins that are part of `to`.
    fn forget_merged(&self, db: &Connection, to: &Hash) -> Result<()> {
        let mut query = db.prepare("SELECT mhash FROM vmerge WHERE id IN (0, -4)")?;
        let merged = query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
        for hash in merged {
            let merged = Hash::parse(&hash)?;
            if merged == *to || self.repository.store().descends(to, &merged)? {
                db.execute("DELETE FROM vmerge WHERE mhash=?1 AND id IN (0, -4)", [hash])?;
            }
        }
        Ok(())
    }

    /// Writes the tables for a merge of `incoming` into the check-in of `status`.
    pub(super) fn tables_of_merge(
        &self,
        db: &Connection,
        status: &Status,
        plan: &Plan,
        (incoming, there, how): (&Hash, &Files, MergeHow),
    ) -> Result<()> {
        let vid: i64 = var(db, "checkout")?.and_then(|vid| vid.parse().ok()).unwrap_or(0);
        tell(db, status, vid)?;
        let mut taken: BTreeMap<TreePath, VFile> = BTreeMap::new();
        let paths: BTreeSet<&TreePath> =
            plan.steps.values().flat_map(|step| step.here.iter().chain([&step.path])).collect();
        for path in paths {
            if let Some(row) = VFile::take(db, vid, path)? {
                taken.insert(path.clone(), row);
            }
        }
        for step in plan.steps.values().filter(|step| step.result.is_some()) {
            if let Some(row) = self.row_of_step(step, there, how, &mut taken)? {
                row.put(db, vid)?;
            }
        }
        db.execute_batch("CREATE TABLE IF NOT EXISTS ocx_told(path TEXT PRIMARY KEY) WITHOUT ROWID")?;
        for (path, mut row) in taken {
            if !row.deleted && !plan.tree.contains_key(&path) {
                row.deleted = true;
                db.execute("INSERT OR IGNORE INTO ocx_told VALUES(?1)", [path.as_str()])?;
            }
            if row.rid != 0 || !row.deleted {
                row.put(db, vid)?;
            }
        }
        let sql = "INSERT OR IGNORE INTO vmerge(id, merge, mhash) VALUES(?1, ?2, ?3)";
        db.execute(sql, params![id_of(how), self.rid(incoming)?, incoming.as_str()])?;
        note_beside(db, beside(plan))?;
        statistics(db, plan)
    }

    /// The row of a file that a merge has touched. It takes the rows of its old places from `taken`. A file that nobody
    /// told Fossil of, and that the other side does not have, has none.
    fn row_of_step(
        &self,
        step: &Step,
        there: &Files,
        how: MergeHow,
        taken: &mut BTreeMap<TreePath, VFile>,
    ) -> Result<Option<VFile>> {
        let theirs = step.there.as_ref().and_then(|path| there.get(path));
        let by_integration = i64::from(how == MergeHow::Integrate) * 2;
        let own = step.here.as_ref().and_then(|here| taken.remove(here));
        // A file that was removed here has a row as well.
        let own = own.or_else(|| taken.remove(&step.path).filter(|row| row.rid != 0));
        let Some(mut row) = own else {
            let Some(theirs) = theirs else { return Ok(None) };
            let row = VFile::of(&step.path, theirs, self.rid(&theirs.hash)?);
            return Ok(Some(VFile { chnged: 3 + by_integration, ..row }));
        };
        let before = row.origname.take().unwrap_or_else(|| std::mem::take(&mut row.path));
        row.path = step.path.to_string();
        row.origname = Some(before).filter(|before| *before != row.path && row.rid != 0);
        row.deleted = false;
        if let Some(theirs) = theirs.filter(|_| !matches!(step.source, Source::Here | Source::Nothing)) {
            row.chnged = 2 + by_integration;
            row.mrid = self.rid(&theirs.hash)?;
            row.mhash = (row.mrid != row.rid).then(|| theirs.hash.to_string());
        }
        Ok(Some(row))
    }

    fn rid(&self, hash: &Hash) -> Result<i64> {
        self.repository.store().rid(hash)?.ok_or_else(|| {
            Error::new(Kind::NotFound, format!("the content `{}` is not here", hash.short()))
                .with_hint("Pull it from a repository that holds it.")
        })
    }

    /// Has Fossil number the rows anew if another file is the repository now.
    pub(super) fn follow_renumbering(&self) -> Result<()> {
        if self.state(|db| self.is_renumbered(db))? {
            crate::engine::command(&self.root, &["status"], Some(self.user()?.as_str()))?;
        }
        if self.repository.store().rid(&self.parent()?)?.is_none() {
            return Err(no_parent(&self.root));
        }
        Ok(())
    }
}

/// What a plan puts beside, and whether it is the other side's.
fn beside(plan: &Plan) -> impl Iterator<Item = (&TreePath, bool)> {
    plan.backups().map(|backup| (&backup.path, backup.of == Owner::There))
}

/// The paths of which two trees hold different files.
fn differing(one: &Files, other: &Files) -> BTreeSet<TreePath> {
    let differs = |path: &&TreePath| one.get(*path) != other.get(*path);
    one.keys().filter(differs).chain(other.keys().filter(differs)).cloned().collect()
}

/// The paths of rows that say more than that a file is part of the check-in, and whether they say that it was removed.
fn marked(db: &Connection) -> Result<Vec<(TreePath, bool)>> {
    let mut query = db.prepare_cached(
        "SELECT pathname, deleted FROM vfile WHERE chnged OR deleted OR rid=0 OR origname IS NOT NULL
         UNION ALL SELECT origname, 0 FROM vfile WHERE origname IS NOT NULL",
    )?;
    let mut rows = query.query([])?;
    let mut paths = Vec::new();
    while let Some(row) = rows.next()? {
        if let Ok(path) = TreePath::parse_stored(&row.get::<_, String>(0)?) {
            paths.push((path, row.get(1)?));
        }
    }
    Ok(paths)
}

/// Has Fossil look into files that changed.
fn tell(db: &Connection, status: &Status, vid: i64) -> Result<()> {
    for change in &status.changes {
        match change.how {
            How::Added | How::Deleted => {}
            How::Edited | How::Mode | How::Kind => {
                let sql = "UPDATE vfile SET mtime=0 WHERE vid=?1 AND pathname=?2";
                db.prepare_cached(sql)?.execute(params![vid, change.path.as_str()])?;
            }
        }
    }
    Ok(())
}

fn id_of(how: MergeHow) -> i64 {
    match how {
        MergeHow::Whole => 0,
        MergeHow::Cherrypick => -1,
        MergeHow::Backout => -2,
        MergeHow::Integrate => -4,
    }
}

/// Writes what Fossil's `merge-info` tells of the merge.
fn statistics(db: &Connection, plan: &Plan) -> Result<()> {
    db.execute_batch(
        "DROP TABLE IF EXISTS mergestat;
         CREATE TABLE mergestat(op TEXT, fnp TEXT, ridp INT, fn TEXT, ridv INT, sz INT, fnm TEXT, ridm INT, fnr TEXT,
           nc INT DEFAULT 0, msg TEXT)",
    )?;
    let mut put = db.prepare(
        "INSERT INTO mergestat(op, fnp, fn, fnm, fnr, nc, msg) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for step in plan.steps.values() {
        let op = match step.what {
            FileOutcome::Added => "ADDED",
            FileOutcome::Updated => "UPDATE",
            FileOutcome::Merged => "MERGE",
            FileOutcome::Renamed => "RENAME",
            FileOutcome::Removed => "DELETE",
            _ => "CONFLICT",
        };
        let name = |path: &Option<TreePath>| path.as_ref().map(ToString::to_string);
        let conflicts = i64::from(step.what.is_conflict());
        let message = step.what.is_conflict().then_some(&step.why);
        let result = step.result.map(|_| step.path.to_string());
        put.execute(params![
            op,
            name(&step.base),
            name(&step.here),
            name(&step.there),
            result,
            conflicts,
            message
        ])?;
    }
    Ok(())
}
