//! Fossil's table of the files in a checkout: what people told Fossil of files, and what OCX tells it.
//!
//! `follow` moves a checkout to a check-in that was made here. Fossil's own code moves it to another version.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::params;

use super::database::var;
use super::open::Checkout;
use crate::error::Result;
use crate::name::TreePath;

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
}

impl Checkout {
    /// Reads what `fossil add` and `fossil mv` left.
    pub(crate) fn known_files(&self) -> Result<KnownFiles> {
        self.state(|db| {
            let mut known = KnownFiles::default();
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
            }
            Ok(done.commit()?)
        })
    }
}
