//! Read-only connections to a repository file.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::Error;

/// How long a read waits for a lock that another process holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Tells a file from another one of the same name: its device and its number there.
pub(crate) type FileId = (u64, u64);

/// Returns which file is at `path` now, if any.
pub(crate) fn file_id(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Opens a connection that cannot write. A write-ahead log or a hot journal may need a connection that could write.
/// Then it opens such a one and switches writing off.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let base = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
    let open = |mode| {
        let db = Connection::open_with_flags(path, base | mode)?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        db.execute_batch("PRAGMA trusted_schema=0; PRAGMA query_only=1; PRAGMA foreign_keys=0;")?;
        db.set_prepared_statement_cache_capacity(64);
        db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(db)
    };
    match open(OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Err(e) if needs_writing(&e) => open(OpenFlags::SQLITE_OPEN_READ_WRITE),
        other => other,
    }
}

/// Opens and closes a connection that can write. If it is the last one, SQLite folds the write-ahead log in.
pub(super) fn fold(path: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_READ_WRITE;
    let db = Connection::open_with_flags(path, flags)?;
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

pub(super) fn needs_writing(e: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
    matches!(e.sqlite_error_code(), Some(CannotOpen | ReadOnly))
}

pub(super) fn cannot_read(path: &Path, e: rusqlite::Error) -> Error {
    let below = Error::from(e);
    let what = format!("cannot read repository `{}`: {below}", path.display());
    Error::new(below.kind(), what).caused_by(below)
}

/// Whether the database has a table of this name.
pub(crate) fn has_table(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM sqlite_schema WHERE name=?1 AND type='table'")?.exists([name])
}
