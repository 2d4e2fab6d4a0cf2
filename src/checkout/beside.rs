//! Files that an update or a merge put beside others, so that nothing was lost. No check-in takes them unasked, and the
//! other side's file is an open question until it has gone.

use rusqlite::Connection;

use super::open::Checkout;
use crate::error::Result;
use crate::name::TreePath;
use crate::repo::store::has_table;

/// A file that was put beside another one, and is still there.
pub(super) struct Beside {
    pub path: TreePath,
    /// Whether it is the other side's, which somebody must decide on.
    pub theirs: bool,
}

impl Checkout {
    /// The files that were put beside others and are still there.
    pub(super) fn beside(&self) -> Result<Vec<Beside>> {
        let noted = self.state(noted)?;
        Ok(noted.into_iter().filter(|beside| self.tree.stat(&beside.path).is_ok()).collect())
    }

    /// Forgets those that have gone: a later file of that name is somebody's own.
    pub(super) fn forget_gone_beside(&self, db: &Connection) -> Result<()> {
        for beside in noted(db)?.iter().filter(|beside| self.tree.stat(&beside.path).is_err()) {
            db.execute("DELETE FROM ocx_beside WHERE path=?1", [beside.path.as_str()])?;
        }
        Ok(())
    }
}

/// Notes files that are put beside others, and whether they are the other side's.
pub(super) fn note_beside<'a>(
    db: &Connection,
    files: impl IntoIterator<Item = (&'a TreePath, bool)>,
) -> Result<()> {
    for (path, theirs) in files {
        db.execute_batch(
            "CREATE TABLE IF NOT EXISTS ocx_beside(path TEXT PRIMARY KEY, theirs INT) WITHOUT ROWID",
        )?;
        db.execute("REPLACE INTO ocx_beside VALUES(?1, ?2)", (path.as_str(), theirs))?;
    }
    Ok(())
}

fn noted(db: &Connection) -> Result<Vec<Beside>> {
    if !has_table(db, "ocx_beside")? {
        return Ok(Vec::new());
    }
    let mut query = db.prepare_cached("SELECT path, theirs FROM ocx_beside")?;
    let mut rows = query.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if let Ok(path) = TreePath::parse_stored(&row.get::<_, String>(0)?) {
            found.push(Beside { path, theirs: row.get(1)? });
        }
    }
    Ok(found)
}
