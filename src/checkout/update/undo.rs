//! Taking the last update or merge back. Fossil's own tables say what was there before.

use rusqlite::Connection;

use super::change::{Change, Content};
use super::outcome::{Updated, UpdatedFile};
use crate::cancel::Cancel;
use crate::checkout::database::var;
use crate::checkout::lock::CheckoutLock;
use crate::checkout::open::{Checkout, no_parent};
use crate::error::{Error, Kind, Result};
use crate::format::FILE_MAX;
use crate::format::artifact::FileKind;
use crate::merge::FileOutcome;
use crate::name::{Hash, TreePath};
use crate::repo::store::{FileEntry, has_table};
use crate::tree::Lies;

/// A file as it was before.
struct Kept {
    path: TreePath,
    content: Option<(Vec<u8>, FileKind)>,
}

impl Checkout {
    /// Takes the last update or merge back, as long as no check-in followed. Edits that were made to its files since come
    /// back by plain Fossil's `redo`, or by another `undo`.
    ///
    /// # Errors
    /// [`Kind::NotFound`] if there is nothing to take back; [`Kind::Changed`], [`Kind::Busy`], [`Kind::DiskFull`].
    pub fn undo(&self) -> Result<Updated> {
        let lock = CheckoutLock::take(self, &Cancel::new())?;
        let available = self.state(|db| Ok((var(db, "undo_available")?, has_table(db, "undo")?)))?;
        if available != (Some("1".to_owned()), true) {
            return Err(Error::new(Kind::NotFound, "there is no update or merge to take back")
                .with_hint("Only the last one can be, and none before a check-in."));
        }
        let hash = self.before()?;
        let kept = self.state(kept)?;
        let changes = kept.into_iter().map(|kept| self.change_back(kept)).collect::<Result<Vec<_>>>()?;
        let changes: Vec<Change> = changes.into_iter().filter(|change| change.old != change.new).collect();
        let before = self.state(Saved::take)?;
        self.perform(&lock, "undo", &changes, |db| before.put(db))?;
        self.write_manifest(&hash)?;
        Ok(Updated::with(changes.iter().map(told).collect(), hash))
    }

    /// The check-in that the checkout stood on before.
    fn before(&self) -> Result<Hash> {
        let rid = self.state(|db| var(db, "undo_checkout"))?.and_then(|rid| rid.parse().ok()).unwrap_or(0);
        self.repository.store().hash_of_rid(rid)?.ok_or_else(|| no_parent(&self.root))
    }

    fn change_back(&self, Kept { path, content }: Kept) -> Result<Change> {
        let old = match self.tree.lies(path.as_str())? {
            Lies::File(kind) => {
                let hash = Hash::of(&self.tree.content(&self.tree.stat(&path)?, FILE_MAX)?);
                Some(FileEntry { hash, kind })
            }
            _ => None,
        };
        let new = content.as_ref().map(|(content, kind)| FileEntry { hash: Hash::of(content), kind: *kind });
        Ok(Change {
            path,
            old,
            new,
            content: content.map_or(Content::Stored, |(content, _)| Content::Made(content)),
        })
    }
}

/// Fossil's tables as they were before, while those are written anew.
struct Saved {
    checkout: Option<String>,
}

impl Saved {
    fn take(db: &Connection) -> Result<Self> {
        db.execute_batch(
            "DROP TABLE IF EXISTS temp.vfile_before; DROP TABLE IF EXISTS temp.vmerge_before;
             CREATE TEMP TABLE vfile_before AS SELECT * FROM undo_vfile;
             CREATE TEMP TABLE vmerge_before AS SELECT * FROM undo_vmerge",
        )?;
        Ok(Self { checkout: var(db, "undo_checkout")? })
    }

    /// Writes them. What can be undone now is the undo.
    fn put(&self, db: &Connection) -> Result<()> {
        db.execute_batch(
            "DELETE FROM vfile; INSERT INTO vfile SELECT * FROM temp.vfile_before;
             DELETE FROM vmerge; INSERT INTO vmerge SELECT * FROM temp.vmerge_before;
             DROP TABLE temp.vfile_before; DROP TABLE temp.vmerge_before; DROP TABLE IF EXISTS mergestat;
             UPDATE undo SET redoflag=1; UPDATE vfile SET mtime=0;
             DELETE FROM vvar WHERE name='checkout-hash';
             REPLACE INTO vvar(name, value) VALUES('undo_available', 2)",
        )?;
        db.execute("REPLACE INTO vvar(name, value) VALUES('checkout', ?1)", [&self.checkout])?;
        Ok(())
    }
}

/// The files before the last update or merge.
fn kept(db: &Connection) -> Result<Vec<Kept>> {
    let mut query =
        db.prepare("SELECT pathname, existsflag, isExe, isLink, content FROM undo WHERE NOT redoflag")?;
    let mut rows = query.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let Ok(path) = TreePath::parse_stored(&row.get::<_, String>(0)?) else { continue };
        let kind = match (row.get(2)?, row.get(3)?) {
            (_, true) => FileKind::Symlink,
            (true, false) => FileKind::Executable,
            (false, false) => FileKind::Regular,
        };
        let content: Option<Vec<u8>> = row.get(4)?;
        let content = row.get::<_, bool>(1)?.then(|| (content.unwrap_or_default(), kind));
        all.push(Kept { path, content });
    }
    Ok(all)
}

fn told(change: &Change) -> UpdatedFile {
    let (what, why) = match (change.old, change.new) {
        (None, _) => (FileOutcome::Added, "it is back"),
        (_, None) => (FileOutcome::Removed, "it had come by what is taken back"),
        _ => (FileOutcome::Updated, "it is as it was before"),
    };
    let path = change.path.to_string();
    UpdatedFile { path, what, why: why.to_owned(), from: None, backup: None, theirs: None }
}
