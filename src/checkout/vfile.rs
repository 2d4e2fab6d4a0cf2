//! Fossil's table of the files in a checkout: what people told Fossil of files, and what OCX tells it.
//!
//! `follow` moves a checkout to a check-in that was made here, `update` to another version.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, params};

use super::database::var;
use super::open::Checkout;
use crate::error::Result;
use crate::name::TreePath;
use crate::repo::store::has_table;

/// Enters a file that is to be added, as `fossil add` does.
const ADD: &str = "INSERT OR IGNORE INTO vfile(vid,chnged,deleted,isexe,islink,rid,mrid,mtime,pathname)
                   VALUES(?1,0,0,0,0,0,0,0,?2)";

/// What people told Fossil of files since the parent check-in.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    /// Paths to add.
    pub added: BTreeSet<TreePath>,
    /// New paths of renamed files, with the old ones.
    pub renamed: BTreeMap<TreePath, TreePath>,
    /// Files that are still there, and no longer to be tracked.
    pub removed: BTreeSet<TreePath>,
}

/// The files that Fossil was told to remove, also by check-ins of the past. A file that was added since is none, and one that
/// a merge removed (`ocx_told`) may come back.
const REMOVED: &str = "SELECT pathname FROM vfile WHERE deleted";
const REMOVED_BY_OTHERS: &str =
    "SELECT pathname FROM vfile WHERE deleted AND pathname NOT IN (SELECT path FROM ocx_told)";
const REMOVED_BEFORE: &str =
    "SELECT path FROM ocx_removed WHERE path NOT IN (SELECT pathname FROM vfile WHERE NOT deleted)";

impl Checkout {
    /// Reads what `fossil add`, `fossil mv` and `fossil rm` left.
    pub(crate) fn known_files(&self) -> Result<KnownFiles> {
        self.state(|db| {
            let mut known = KnownFiles { removed: self.removed(db)?, ..KnownFiles::default() };
            let mut query = db.prepare_cached(
                "SELECT pathname, origname, rid FROM vfile
                 WHERE NOT deleted AND (rid=0 OR chnged IN (3, 5) OR origname!=pathname)",
            )?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                let path: String = row.get(0)?;
                let Ok(path) = TreePath::parse_stored(&path) else { continue };
                let old: Option<String> = row.get(1)?;
                match old.and_then(|old| TreePath::parse_stored(&old).ok()).filter(|old| *old != path) {
                    Some(old) if row.get::<_, i64>(2)? != 0 => {
                        known.renamed.insert(path.clone(), old);
                    }
                    _ => {}
                }
                known.added.insert(path);
            }
            Ok(known)
        })
    }

    /// The files that Fossil was told to remove and that are there all the same.
    pub(super) fn removed(&self, db: &Connection) -> Result<BTreeSet<TreePath>> {
        let mut paths: Vec<String> = Vec::new();
        let before = has_table(db, "ocx_removed")?.then_some(REMOVED_BEFORE);
        let now = if has_table(db, "ocx_told")? { REMOVED_BY_OTHERS } else { REMOVED };
        for sql in [now].into_iter().chain(before) {
            let mut query = db.prepare_cached(sql)?;
            for path in query.query_map([], |row| row.get(0))? {
                paths.push(path?);
            }
        }
        let paths = paths.iter().filter_map(|path| TreePath::parse_stored(path).ok());
        Ok(paths.filter(|path| self.tree.stat(path).is_ok()).collect())
    }

    /// Keeps in mind that these files were removed, and no others. They stay where they are after the check-in that
    /// removes them, and would look new.
    pub(super) fn keep_removed(db: &Connection, removed: &BTreeSet<TreePath>) -> Result<()> {
        if has_table(db, "ocx_told")? {
            db.prepare_cached("DELETE FROM ocx_told")?.execute([])?;
        }
        let there = has_table(db, "ocx_removed")?;
        if removed.is_empty() && !there {
            return Ok(());
        }
        db.execute_batch("CREATE TABLE IF NOT EXISTS ocx_removed(path TEXT PRIMARY KEY) WITHOUT ROWID")?;
        db.prepare_cached("DELETE FROM ocx_removed")?.execute([])?;
        for path in removed {
            db.prepare_cached("INSERT INTO ocx_removed VALUES(?1)")?.execute([path.as_str()])?;
        }
        Ok(())
    }

    /// Has the next check-ins take these files, whatever rule leaves them out. This is what `fossil add` does, so plain
    /// Fossil agrees.
    ///
    /// # Errors
    /// [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::DiskFull`](crate::error::Kind::DiskFull).
    pub fn include(&self, files: &[TreePath]) -> Result<()> {
        self.state(|db| {
            let vid: i64 = var(db, "checkout")?.and_then(|v| v.parse().ok()).unwrap_or(0);
            let done = db.unchecked_transaction()?;
            for path in files {
                done.prepare_cached(ADD)?.execute(params![vid, path.as_str()])?;
                let keep = "UPDATE vfile SET deleted=0, mtime=0 WHERE pathname=?1 AND deleted";
                done.prepare_cached(keep)?.execute([path.as_str()])?;
            }
            Ok(done.commit()?)
        })
    }
}
