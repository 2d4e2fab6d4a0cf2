//! Making a bundle: which check-ins, what they need, and the file.
//!
//! Rows are copied as they are stored wherever their basis goes along; the few others are written whole.

mod select;

use std::collections::HashSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::types::{ToSqlOutput, Value};
use rusqlite::{Connection, OptionalExtension};
use tempfile::NamedTempFile;

use super::Progress;
use crate::bundle::file::SCHEMA;
use crate::error::{Error, Kind, Result};
use crate::format::packed::pack;
use crate::name::{Branch, Hash};
use crate::repo::Repository;
use crate::repo::store::{connect, expand};
use select::Selected;

/// What a bundle is to hold.
#[derive(Clone)]
pub struct Selection {
    which: Which,
    have: Option<Hash>,
    progress: Option<Progress>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Which {
    Branch(Branch),
    Range(Hash, Hash),
    One(Hash),
    Descendants(Hash),
}

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

impl Selection {
    fn new(which: Which) -> Self {
        Self { which, have: None, progress: None }
    }

    /// All check-ins on a branch.
    #[must_use]
    pub fn branch(branch: Branch) -> Self {
        Self::new(Which::Branch(branch))
    }

    /// Everything on the way from one check-in to another, with both.
    #[must_use]
    pub fn range(from: Hash, to: Hash) -> Self {
        Self::new(Which::Range(from, to))
    }

    /// One check-in.
    #[must_use]
    pub fn one(check_in: Hash) -> Self {
        Self::new(Which::One(check_in))
    }

    /// All descendants of a check-in, without itself.
    #[must_use]
    pub fn descendants(check_in: Hash) -> Self {
        Self::new(Which::Descendants(check_in))
    }

    /// For a receiver who holds this check-in: what it and its ancestors hold is left out, and deltas may
    /// build on it. Without it, the bundle stands alone.
    #[must_use]
    pub fn for_one_who_has(mut self, check_in: Hash) -> Self {
        self.have = Some(check_in);
        self
    }

    /// Tells of every artifact.
    #[must_use]
    pub fn with_progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection")
            .field("which", &self.which)
            .field("have", &self.have)
            .finish_non_exhaustive()
    }
}

impl Repository {
    /// Writes check-ins with their files and tags into a new bundle file at `path`. What is private or shunned
    /// is left out.
    ///
    /// # Errors
    /// [`Kind::Exists`] when there is something at `path`, which stays as it is; [`Kind::NotFound`] for an unknown
    /// check-in or branch, a missing content, and a folder that is not there; [`Kind::Denied`] when all that is asked for is private;
    /// [`Kind::Invalid`] when a range leads nowhere; [`Kind::Corrupt`], [`Kind::Busy`], [`Kind::DiskFull`].
    pub fn export_bundle(&self, path: &Path, selection: &Selection) -> Result<Exported> {
        let file = new_file(path)?;
        let exported = self.fill(file.path(), selection)?;
        Ok(Exported { size: finish(file, path)?, ..exported })
    }

    fn fill(&self, path: &Path, selection: &Selection) -> Result<Exported> {
        let db = connect(self.path())?;
        let unchanging = db.unchecked_transaction()?;
        let selected = select::select(&unchanging, selection)?;
        let bundle = new_bundle(path)?;
        bundle.execute_batch("BEGIN")?;
        config(&db, &bundle)?;
        let all = selected.rids.len() as u64;
        {
            let mut writer = Writer::new(&db, &bundle, &selected)?;
            for (done, &rid) in (1..).zip(&selected.rids) {
                writer.copy(rid)?;
                if let Some(progress) = &selection.progress {
                    progress(done, all);
                }
            }
        }
        bundle.execute_batch("COMMIT")?;
        bundle.close().map_err(|(_, e)| e)?;
        Ok(Exported { artifacts: selected.rids.len(), check_ins: selected.check_ins, size: 0 })
    }
}

fn exists(path: &Path) -> Error {
    Error::new(Kind::Exists, format!("`{}` is there already", path.display()))
        .with_hint("Name a file that does not exist yet.")
}

/// A file beside `path`, where there must be nothing, that is to become it.
pub(super) fn new_file(path: &Path) -> Result<NamedTempFile> {
    if path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new();
    file.prefix(".ocx-bundle").permissions(Permissions::from_mode(0o666));
    file.tempfile_in(folder).map_err(|e| cannot_write(path, e))
}

/// Gives the file its name once it is on the disk, and tells its size in bytes.
pub(super) fn finish(file: NamedTempFile, path: &Path) -> Result<u64> {
    file.as_file().sync_all().map_err(|e| cannot_write(path, e))?;
    let size = file.as_file().metadata().map_err(|e| cannot_write(path, e))?.len();
    match file.persist_noclobber(path) {
        Ok(_) => Ok(size),
        Err(e) if e.error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(e) => Err(cannot_write(path, e.error)),
    }
}

fn cannot_write(path: &Path, e: std::io::Error) -> Error {
    Error::io(format!("cannot write bundle `{}`", path.display()), e)
        .with_hint("Check the folder of the bundle.")
}

/// An empty bundle in a file that nobody else knows of yet.
pub(super) fn new_bundle(path: &Path) -> Result<Connection> {
    let db = Connection::open(path)?;
    db.execute_batch("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;")?;
    db.execute_batch(SCHEMA)?;
    Ok(db)
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

/// Copies artifacts from the repository to the bundle.
struct Writer<'a> {
    from: &'a Connection,
    read: rusqlite::Statement<'a>,
    write: rusqlite::Statement<'a>,
    inside: HashSet<i64>,
    selected: &'a Selected,
}

impl<'a> Writer<'a> {
    fn new(from: &'a Connection, to: &'a Connection, selected: &'a Selected) -> Result<Self> {
        let sql = "SELECT uuid, size, content, srcid FROM blob LEFT JOIN delta USING(rid) WHERE blob.rid=?1";
        let read = from.prepare(sql)?;
        let sql = "INSERT INTO bblob(blobid,uuid,sz,delta,notes,data) VALUES(?1,?2,?3,?4,?5,?6)";
        let write = to.prepare(sql)?;
        let inside = selected.rids.iter().copied().collect();
        Ok(Self { from, read, write, inside, selected })
    }

    fn copy(&mut self, rid: i64) -> Result<()> {
        let mut rows = self.read.query([rid])?;
        let Some(row) = rows.next()? else { return Ok(()) };
        let (hash, size) = (Hash::parse(&row.get::<_, String>(0)?)?, row.get::<_, i64>(1)?);
        if size < 0 {
            let what = format!("the content of the artifact `{hash}` is not here");
            return Err(
                Error::new(Kind::NotFound, what).with_hint("Pull it first from a repository that holds it.")
            );
        }
        let as_stored = ToSqlOutput::Borrowed(row.get_ref(2)?);
        let (basis, data) = match row.get::<_, Option<i64>>(3)? {
            None => (Value::Null, as_stored),
            Some(source) if self.inside.contains(&source) => (Value::Integer(source), as_stored),
            Some(source) => match external(self.from, self.selected, source)? {
                Some(basis) => (Value::Text(basis.to_string()), as_stored),
                None => (Value::Null, ToSqlOutput::Owned(Value::Blob(whole(self.from, rid, &hash)?))),
            },
        };
        self.write.execute((rid, hash.as_str(), size, basis, self.selected.notes.get(&rid), data))?;
        Ok(())
    }
}

/// The hash of a basis that the receiver holds.
fn external(db: &Connection, selected: &Selected, source: i64) -> Result<Option<Hash>> {
    if !selected.held.contains(&source) {
        return Ok(None);
    }
    let sql = "SELECT uuid FROM blob WHERE rid=?1 AND size>=0";
    let hash: Option<String> = db.prepare_cached(sql)?.query_row([source], |row| row.get(0)).optional()?;
    let hash = hash.map(|hash| Hash::parse(&hash)).transpose()?;
    Ok(hash.filter(|hash| !reads_as_number(hash)))
}

/// Whether SQLite would keep the hash as a number in the column `delta`, which has no type of its own.
fn reads_as_number(hash: &Hash) -> bool {
    let text = hash.as_str();
    let mut parts = text.splitn(2, 'e');
    parts.all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

fn whole(db: &Connection, rid: i64, hash: &Hash) -> Result<Vec<u8>> {
    let content = expand(db, rid)?.ok_or_else(|| {
        Error::new(Kind::NotFound, format!("a part of the artifact `{hash}` is not here"))
            .with_hint("Pull it first from a repository that holds it.")
    })?;
    if !hash.names(&content) {
        let what = format!("artifact `{hash}` is damaged: its bytes have another hash");
        return Err(Error::new(Kind::Corrupt, what).with_hint("Pull it anew from a clone that holds it."));
    }
    pack(&content)
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
