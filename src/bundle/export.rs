//! Writing check-ins of a repository into a new bundle file.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;

use super::create::{finish, new_bundle, new_file};
use crate::error::Result;
use crate::name::Hash;
use crate::repo::Repository;
use crate::repo::store::connect;
use crate::transfer::{Basis, Selection, pack, select};

/// What was exported.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Exported {
    /// The check-ins, the oldest first.
    pub check_ins: Vec<Hash>,
    /// How many artifacts there are in all.
    pub artifacts: usize,
    /// Bytes of the file.
    pub size: u64,
}

impl Repository {
    /// Writes check-ins with their files and tags into a new bundle file at `path`. What is private or shunned
    /// is left out.
    ///
    /// # Errors
    /// `Kind::Exists` when there is something at `path`, which stays as it is; `Kind::NotFound` for an unknown
    /// check-in or branch, a missing content, and a folder that is not there; `Kind::Denied` when all that is asked for is private;
    /// `Kind::Invalid` when a range leads nowhere; `Kind::Corrupt`, `Kind::Busy`, `Kind::DiskFull`.
    pub fn export_bundle(&self, path: &Path, selection: &Selection) -> Result<Exported> {
        let file = new_file(path)?;
        let exported = self.fill(file.path(), selection)?;
        Ok(Exported { size: finish(file, path)?, ..exported })
    }

    fn fill(&self, path: &Path, selection: &Selection) -> Result<Exported> {
        let db = connect(self.path())?;
        let unchanging = db.unchecked_transaction()?;
        let selected = select(&unchanging, selection)?;
        let bundle = new_bundle(path)?;
        bundle.execute_batch("BEGIN")?;
        config(&db, &bundle)?;
        let all = selected.rids.len() as u64;
        {
            let sql = "INSERT INTO bblob(blobid,uuid,sz,delta,notes,data) VALUES(?1,?2,?3,?4,?5,?6)";
            let mut write = bundle.prepare(sql)?;
            let mut done = 0;
            pack(
                &db,
                &selected,
                |hash| !reads_as_number(hash),
                |packed| {
                    let row = &packed.row;
                    let basis = match row.basis {
                        Basis::None => Value::Null,
                        Basis::Row(at) => Value::Integer(selected.rids[at]),
                        Basis::External(hash) => Value::Text(hash.to_string()),
                    };
                    let size = i64::try_from(row.size).unwrap_or(i64::MAX);
                    write.execute((row.id, row.hash.as_str(), size, basis, packed.note, &packed.data))?;
                    done += 1;
                    if let Some(progress) = &selection.progress {
                        progress(done, all);
                    }
                    Ok(())
                },
            )?;
        }
        bundle.execute_batch("COMMIT")?;
        bundle.close().map_err(|(_, e)| e)?;
        Ok(Exported { artifacts: selected.rids.len(), check_ins: selected.check_ins, size: 0 })
    }
}

/// What `fossil bundle export` notes of the repository.
fn config(from: &Connection, to: &Connection) -> Result<()> {
    to.execute("INSERT INTO bconfig VALUES('mtime', datetime('now'))", [])?;
    let sql = "SELECT name, value FROM config WHERE name IN ('project-code', 'parent-project-code')";
    let mut query = from.prepare(sql)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        to.execute("INSERT INTO bconfig VALUES(?1, ?2)", (row.get::<_, Value>(0)?, row.get::<_, Value>(1)?))?;
    }
    Ok(())
}

/// Whether SQLite would keep the hash as a number in the column `delta`, which has no type of its own.
fn reads_as_number(hash: &Hash) -> bool {
    let text = hash.as_str();
    let mut parts = text.splitn(2, 'e');
    parts.all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_that_sqlite_takes_for_numbers_are_known() {
        let digits = Hash::parse(&"1234567890".repeat(4)).unwrap();
        let exponent = Hash::parse(&format!("12345678901234567890123456789012345678e{}", 5)).unwrap();
        let letters = Hash::parse(&format!("e{}", "1".repeat(39))).unwrap();
        assert!(reads_as_number(&digits) && reads_as_number(&exponent));
        assert!(!reads_as_number(&letters) && !reads_as_number(&Hash::of(b"x")));
    }
}
