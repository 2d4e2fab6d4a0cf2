//! Read-only connections to a repository file.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{Access, access};

use crate::error::{Error, Kind};

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
    let denied = needs_writing(&e).then(|| denied_by_disk(path)).flatten();
    let below = Error::from(e);
    if let Some(why) = denied {
        return Error::new(Kind::Denied, why).with_hint(Error::ON_DISK).caused_by(below);
    }
    let what = format!("cannot read repository `{}`: {below}", path.display());
    Error::new(below.kind(), what).caused_by(below)
}

/// Why the disk lets nobody work with the file that is at `path`. The log beside it makes even a read write to its
/// folder. The file is asked for and not opened: closing it would drop SQLite's locks.
fn denied_by_disk(path: &Path) -> Option<String> {
    path.metadata().ok().filter(Metadata::is_file)?;
    let shown = path.display();
    if let Err(e) = access(path, Access::READ_OK) {
        return Some(format!("repository `{shown}` cannot be read: {}", io::Error::from(e)));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    [("it", path), ("its folder", folder)].into_iter().find_map(|(what, place)| {
        let e = access(place, Access::WRITE_OK).err()?;
        let why = io::Error::from(e);
        Some(format!("repository `{shown}` can be read but not written: {what} is not writable: {why}"))
    })
}

/// Whether the database has a table of this name.
pub(crate) fn has_table(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM sqlite_schema WHERE name=?1 AND type='table'")?.exists([name])
}
