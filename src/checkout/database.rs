//! The database of a checkout: Fossil's `.fslckout`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::error::{Error, Kind, Result};
use crate::name::Hash;

/// How long to wait for a lock that another process holds.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The names that Fossil gives it.
pub(super) const NAMES: [&str; 2] = [".fslckout", "_FOSSIL_"];

/// Whether there is one at `path`.
pub(super) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() >= 1024)
}

/// Sets how writes are synced. With a write-ahead log, a power failure may undo the last writes but cannot damage the
/// database, and all of those writes can be made again. With a rollback journal, each write is synced.
pub(super) fn relax(db: &Connection) -> Result<()> {
    let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    Ok(db.execute_batch(if mode == "wal" {
        // Each check-in writes the same pages again. A longer log writes most of them to the file only once.
        "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=4000"
    } else {
        "PRAGMA synchronous=FULL"
    })?)
}

/// Opens the database at `path`.
pub(super) fn connect(path: &Path) -> Result<Connection> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.set_prepared_statement_cache_capacity(64);
    // Each check-in writes Fossil's table of files. In a large tree, that table is larger than the usual cache.
    db.execute_batch("PRAGMA trusted_schema=0; PRAGMA foreign_keys=0; PRAGMA cache_size=-16384")?;
    let known: bool =
        db.query_row("SELECT count(*)=2 FROM sqlite_schema WHERE name IN ('vvar','vfile')", [], |r| {
            r.get(0)
        })?;
    if known {
        relax(&db)?;
        return Ok(db);
    }
    Err(Error::new(Kind::Foreign, format!("`{}` is not the database of a checkout", path.display()))
        .with_hint("Remove the file, or open the checkout anew."))
}

/// Reads a variable of the checkout.
pub(super) fn var(db: &Connection, name: &str) -> Result<Option<String>> {
    let sql = "SELECT CAST(value AS TEXT) FROM vvar WHERE name=?1";
    Ok(db.prepare_cached(sql)?.query_row([name], |row| row.get(0)).optional()?)
}

/// Tells a database from its copies and its earlier states. Returns nothing if the file system does not know when a
/// file was made.
pub(super) fn place(path: &Path) -> Option<String> {
    let meta = path.symlink_metadata().ok()?;
    let made = meta.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{:x}-{:x}-{:x}", meta.dev(), meta.ino(), made.as_nanos()))
}

/// The id of a checkout for which none is stored. It follows from where and when the database was made. So it is the
/// same each time, and differs from that of a checkout in the same folder of another machine.
pub(super) fn id(path: &Path) -> Result<String> {
    let meta =
        path.symlink_metadata().map_err(|e| Error::io(format!("cannot look at `{}`", path.display()), e))?;
    let machine = rustix::system::uname();
    let place = format!(
        "{} {} {} {} {:?}",
        machine.nodename().to_string_lossy(),
        path.display(),
        meta.dev(),
        meta.ino(),
        meta.created().ok()
    );
    Ok(Hash::of(place.as_bytes()).as_str()[..8].to_owned())
}
