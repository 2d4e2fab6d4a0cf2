//! Read-only connections to a repository file.

use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
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

/// The size of a file and when it last changed.
pub(super) type Version = (u64, i64, i64);

/// Opens a connection that cannot write. A write-ahead log or a hot journal may need a connection that could write.
/// Then it opens such a one and switches writing off.
///
/// Where nobody here may write to the folder, SQLite cannot keep beside the file what it needs to share it. Then the
/// connection takes the file for one that nobody changes.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    connect_to_version(path).map(|(db, _)| db)
}

/// As [`connect`]. Returns the version of the file if the connection takes it for one that nobody changes: it must not
/// be used once the file is another.
pub(super) fn connect_to_version(path: &Path) -> rusqlite::Result<(Connection, Option<Version>)> {
    match connect_shared(path) {
        Err(e) if needs_writing(&e) && is_alone(path) => {
            let now = version(path);
            Ok((
                connect_at(unchanging(path), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?,
                now,
            ))
        }
        shared => Ok((shared?, None)),
    }
}

/// The version of the file that is at `path` now.
pub(super) fn version(path: &Path) -> Option<Version> {
    std::fs::metadata(path).ok().map(|meta| (meta.size(), meta.mtime(), meta.mtime_nsec()))
}

/// Whether the file is all there is: nothing stands in a log beside it, and the folder takes no file.
fn is_alone(path: &Path) -> bool {
    let is_empty = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        std::fs::metadata(name).map_or_else(|e| e.kind() == io::ErrorKind::NotFound, |meta| meta.len() == 0)
    };
    is_empty("-wal") && is_empty("-journal") && access(folder_of(path), Access::WRITE_OK).is_err()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The name by which SQLite opens a file without locks and logs.
fn unchanging(path: &Path) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~".contains(&b);
    let bytes = path.as_os_str().as_bytes().iter();
    let name: String =
        bytes.map(|&b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect();
    format!("file:{name}?immutable=1")
}

fn connect_at(name: impl AsRef<Path>, mode: OpenFlags) -> rusqlite::Result<Connection> {
    let base = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
    let db = Connection::open_with_flags(name, base | mode)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.execute_batch("PRAGMA trusted_schema=0; PRAGMA query_only=1; PRAGMA foreign_keys=0;")?;
    db.set_prepared_statement_cache_capacity(64);
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(db)
}

fn connect_shared(path: &Path) -> rusqlite::Result<Connection> {
    match connect_at(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Err(e) if needs_writing(&e) => connect_at(path, OpenFlags::SQLITE_OPEN_READ_WRITE),
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
    let folder = folder_of(path);
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
