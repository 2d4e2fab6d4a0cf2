//! What a repository file holds, read directly: content, check-ins, branches, users, settings.
//!
//! A [`Store`] reads through its own SQLite connection that cannot write, while Fossil's C code may work in the same
//! or another process. It never opens the file in any other way, because closing a second descriptor would drop
//! SQLite's locks. It writes nothing, but its end folds the write-ahead log into the file.

mod cache;
mod check_in;
mod column;
mod connection;
mod content;
mod names;
mod rows;
mod setting;
mod user;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use rusqlite::{Connection, OptionalExtension, Params, Row};

pub use cache::{FileEntry, Files};
pub use check_in::{CheckInInfo, Receipt};
pub(crate) use column::{hash, optional_hash, optional_text, text};
pub(crate) use connection::{FileId, connect, file_id, has_table};
pub use content::MAX_CONTENT;
pub(crate) use content::expand;
pub(crate) use user::no_user;
pub use user::{Capabilities, UserInfo};

use crate::error::{Error, Kind, Result};
use crate::repo::setting::GlobalSettings;
use connection::{Version, cannot_read, connect_to_version, needs_writing, version};

/// Tables that every repository has. They tell it from other databases.
const TABLES: [&str; 14] = [
    "blob", "config", "delta", "event", "leaf", "mlink", "plink", "private", "rcvfrom", "shun", "tag",
    "tagxref", "unsent", "user",
];

/// A repository file, open for reading. Threads may share it.
///
/// ```no_run
/// use ocx::repo::store::Store;
/// let store = Store::open("project.fossil")?;
/// let tip = store.resolve("trunk")?;
/// for (path, file) in store.files(&tip)?.iter() {
///     println!("{path} {}", file.hash.short());
/// }
/// # Ok::<(), ocx::error::Error>(())
/// ```
pub struct Store {
    path: PathBuf,
    file: Option<FileId>,
    db: Mutex<Reading>,
    manifests: Mutex<cache::Cache>,
    user_settings: Option<GlobalSettings>,
}

/// A connection, and the version of the file that it is good for, if it is for one only.
struct Reading {
    db: Connection,
    version: Option<Version>,
}

impl Reading {
    fn of(path: &Path) -> rusqlite::Result<Self> {
        connect_to_version(path).map(|(db, version)| Self { db, version })
    }

    fn is_outdated(&self, path: &Path) -> bool {
        self.version.is_some() && self.version != version(path)
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Drop for Store {
    /// Folds the write-ahead log into the file if nobody else has it open. SQLite does so when the last connection ends,
    /// but not if that one could only read, as this one.
    fn drop(&mut self) {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        // An empty one, too: a connection that only reads makes it and leaves it.
        if !Path::new(&log).exists() || !self.is_there() {
            return;
        }
        if let Ok(nothing) = Connection::open_in_memory() {
            drop(std::mem::replace(&mut self.db.get_mut().db, nothing));
        }
        // What cannot be folded now stays valid in the log.
        let _ = connection::fold(&self.path);
    }
}

impl Store {
    /// Opens the repository file at `path`, which must exist.
    ///
    /// # Errors
    /// [`Kind::NotFound`] without such a file, [`Kind::Foreign`] for a file that is no Fossil repository,
    /// [`Kind::Corrupt`] for a damaged one, [`Kind::Busy`] when it stays locked for 5 seconds.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path.as_ref(), None)
    }

    /// As [`open`](Self::open), for a program whose user has settings for all repositories, in this file of Fossil's.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: &Path, user_settings: Option<&Path>) -> Result<Self> {
        let meta = std::fs::metadata(path)
            .map_err(|e| Error::io(format!("cannot open repository `{}`", path.display()), e))?;
        if !meta.is_file() || meta.len() == 0 {
            return Err(foreign(path, "it is no file with content"));
        }
        let reading = Reading::of(path).map_err(|e| cannot_read(path, e))?;
        check_kind(&reading.db, path)?;
        let file = Some((meta.dev(), meta.ino()));
        let store = Self {
            path: path.to_owned(),
            file,
            db: Mutex::new(reading),
            manifests: Mutex::default(),
            user_settings: user_settings.map(GlobalSettings::at),
        };
        store.project_code()?;
        Ok(store)
    }

    /// Whether the file that was opened is still at its path. It may have been moved, removed or replaced since.
    #[must_use]
    pub fn is_there(&self) -> bool {
        file_id(&self.path) == self.file
    }

    /// The repository file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Copies the whole repository into a new file. Others may write to it meanwhile.
    pub(super) fn copy_to(&self, path: &str) -> Result<()> {
        let copied = connect(&self.path).and_then(|db| {
            // SQLite counts the copy as writing.
            db.execute_batch("PRAGMA query_only=0")?;
            db.execute("VACUUM INTO ?1", [path])
        });
        copied.map(drop).map_err(|e| cannot_read(&self.path, e))
    }

    fn db(&self) -> MappedMutexGuard<'_, Connection> {
        MutexGuard::map(self.reading(), |reading| &mut reading.db)
    }

    /// The connection, or a new one if the file is no longer the one that it is good for.
    fn reading(&self) -> MutexGuard<'_, Reading> {
        let mut reading = self.db.lock();
        if reading.is_outdated(&self.path)
            && let Ok(new) = Reading::of(&self.path)
        {
            *reading = new;
        }
        reading
    }

    /// The first row of a query.
    fn first<T>(
        &self,
        sql: &str,
        params: impl Params + Copy,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.ask(|db| db.prepare_cached(sql)?.query_row(params, &read).optional())
    }

    /// All rows of a query.
    fn rows<T>(
        &self,
        sql: &str,
        params: impl Params + Copy,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        self.ask(|db| db.prepare_cached(sql)?.query_map(params, &read)?.collect())
    }

    /// Reads. Uses a new connection if the old one would have to roll back what a crashed process left.
    pub(crate) fn ask<T>(&self, read: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut reading = self.reading();
        let answer = match read(&reading.db) {
            Err(e) if needs_writing(&e) => Reading::of(&self.path).and_then(|new| {
                *reading = new;
                read(&reading.db)
            }),
            answer => answer,
        };
        answer.map_err(|e| cannot_read(&self.path, e))
    }
}

/// Refuses Fossil's other databases and everything else that is no repository.
fn check_kind(db: &Connection, path: &Path) -> Result<()> {
    let is_table = |name: &str| has_table(db, name).map_err(|e| cannot_read(path, e));
    if is_table("vvar")? && is_table("vfile")? {
        return Err(foreign(path, "it is a checkout's database"));
    }
    if is_table("global_config")? {
        return Err(foreign(path, "it is a user's Fossil configuration"));
    }
    for table in TABLES {
        if !is_table(table)? {
            return Err(foreign(path, &format!("it has no table `{table}`")));
        }
    }
    Ok(())
}

fn foreign(path: &Path, why: &str) -> Error {
    Error::new(Kind::Foreign, format!("`{}` is not a Fossil repository: {why}", path.display()))
        .with_hint("Give the path of a repository file.")
}

#[cfg(test)]
pub(crate) mod tests;
