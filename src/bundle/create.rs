//! A new bundle file: its tables, and how it comes to stand at its path.

use std::path::Path;

use rusqlite::Connection;
use tempfile::NamedTempFile;

use crate::error::{Error, Kind, Result};
use crate::tree::{new_beside, persist_new};

/// The columns of the two tables, in order.
pub(super) const COLUMNS: [(&str, &[&str]); 2] =
    [("bblob", &["blobid", "uuid", "sz", "delta", "notes", "data"]), ("bconfig", &["bcname", "bcvalue"])];

/// The tables of a new bundle, as Fossil makes them.
const SCHEMA: &str = "
CREATE TABLE bconfig(bcname TEXT, bcvalue ANY);
CREATE TABLE bblob(
  blobid INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL,
  sz INT NOT NULL,
  delta ANY,
  notes TEXT,
  data BLOB
);";

fn exists(path: &Path) -> Error {
    Error::new(Kind::Exists, format!("`{}` is there already", path.display()))
        .with_hint("Name a file that does not exist yet.")
}

/// Makes a temporary file beside `path`, to be renamed to it. Refuses a `path` where there is something.
pub(super) fn new_file(path: &Path) -> Result<NamedTempFile> {
    if path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    new_beside(path, 0o666).map_err(|e| cannot_write(path, e))
}

/// Gives the file its name once it is on the disk. Returns its size in bytes.
pub(super) fn finish(file: NamedTempFile, path: &Path) -> Result<u64> {
    let size = file.as_file().metadata().map_err(|e| cannot_write(path, e))?.len();
    match persist_new(file, path) {
        Ok(()) => Ok(size),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(e) => Err(cannot_write(path, e)),
    }
}

fn cannot_write(path: &Path, e: std::io::Error) -> Error {
    Error::io(format!("cannot write bundle `{}`", path.display()), e)
        .with_hint("Check the folder of the bundle.")
}

/// Makes an empty bundle in a file that nobody else knows of yet.
pub(super) fn new_bundle(path: &Path) -> Result<Connection> {
    let db = Connection::open(path)?;
    db.execute_batch("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;")?;
    db.execute_batch(SCHEMA)?;
    Ok(db)
}
