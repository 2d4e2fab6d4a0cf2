//! What a repository file holds, read directly: content, check-ins, branches, users, settings.
//!
//! A [`Store`] reads through its own SQLite connection that cannot write, beside whatever Fossil's C code
//! does in the same or another process, and never opens the file in any other way: closing a second
//! descriptor would drop SQLite's locks. Nothing is written here.

mod check_in;
mod content;
mod names;
mod rows;
mod user;
mod whole;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row};

pub use check_in::{CheckInInfo, Receipt};
pub(crate) use content::expand;
pub use content::{FileEntry, Files, MAX_CONTENT};
pub use user::{Capabilities, UserInfo};

use crate::error::{Error, Kind, Result};
use crate::name::Hash;

/// How long a read waits for a lock that another process holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Tables that every repository has, and by which it is told from other databases.
const TABLES: [&str; 14] = [
    "blob", "config", "delta", "event", "leaf", "mlink", "plink", "private", "rcvfrom", "shun", "tag",
    "tagxref", "unsent", "user",
];

/// A repository file, open for reading; safe to share between threads.
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
    db: Mutex<Connection>,
    manifests: Mutex<content::Cache>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the repository file at `path`, which must exist.
    ///
    /// # Errors
    /// [`Kind::NotFound`] without such a file, [`Kind::Foreign`] for a file that is no Fossil repository,
    /// [`Kind::Corrupt`] for a damaged one, [`Kind::Busy`] when it stays locked for 5 seconds.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let meta = std::fs::metadata(path)
            .map_err(|e| Error::io(format!("cannot open repository `{}`", path.display()), e))?;
        if !meta.is_file() || meta.len() == 0 {
            return Err(foreign(path, "it is no file with content"));
        }
        let db = connect(path).map_err(|e| cannot_read(path, e))?;
        check_kind(&db, path)?;
        let file = Some((meta.dev(), meta.ino()));
        let store = Self { path: path.to_owned(), file, db: Mutex::new(db), manifests: Mutex::default() };
        store.project_code()?;
        Ok(store)
    }

    /// Whether the file that was opened still stands at its path: it may have been moved, removed or replaced since.
    #[must_use]
    pub fn is_there(&self) -> bool {
        file_id(&self.path) == self.file
    }

    /// The repository file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The project's code: the same in all its clones, different in any other project.
    ///
    /// # Errors
    /// [`Kind::Foreign`] when the file has none.
    pub fn project_code(&self) -> Result<String> {
        self.setting("project-code")?.ok_or_else(|| foreign(&self.path, "it has no project code"))
    }

    /// The project's name, where one was given.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn project_name(&self) -> Result<Option<String>> {
        self.setting("project-name")
    }

    /// The URL that was last synced with, without password.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn remote(&self) -> Result<Option<String>> {
        let url = self.setting("last-sync-url")?;
        Ok(url.filter(|url| !url.is_empty() && url != "off"))
    }

    /// A setting's value in this repository; the user's global settings are not looked at.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn setting(&self, name: &str) -> Result<Option<String>> {
        self.first("SELECT value FROM config WHERE name=?1", [name], |row| text(row, 0))
    }

    /// Copies the whole repository into a new file, whatever is written to it meanwhile.
    pub(super) fn copy_to(&self, path: &str) -> Result<()> {
        let copied = connect(&self.path).and_then(|db| {
            // The copy counts as writing.
            db.execute_batch("PRAGMA query_only=0")?;
            db.execute("VACUUM INTO ?1", [path])
        });
        copied.map(drop).map_err(|e| cannot_read(&self.path, e))
    }

    fn db(&self) -> MutexGuard<'_, Connection> {
        // A panic while it was held cannot have left a read half done.
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Whether a setting of this repository is on.
    pub(crate) fn is_on(&self, name: &str) -> Result<bool> {
        let value = self.setting(name)?.unwrap_or_default();
        Ok(matches!(value.trim().to_ascii_lowercase().as_str(), "1" | "on" | "yes" | "true"))
    }

    /// Whether the hash policy names new content by SHA1.
    pub(crate) fn names_by_sha1(&self) -> Result<bool> {
        if let Some(policy) = self.setting("hash-policy")? {
            // `sha1`, and `auto`, which is that until the first SHA3 name.
            return Ok(matches!(policy.as_str(), "0" | "1"));
        }
        // Fossil has not opened it since it knows of SHA3: it will choose by what it finds.
        let sql = "SELECT max(length(uuid))=40 FROM blob";
        Ok(self.first(sql, [], |row| row.get::<_, Option<bool>>(0))?.flatten().unwrap_or(false))
    }

    /// Reads, on a new connection when the old one would have to roll back what a crashed process left.
    pub(crate) fn ask<T>(&self, read: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut db = self.db();
        let answer = match read(&db) {
            Err(e) if needs_writing(&e) => connect(&self.path).and_then(|new| {
                *db = new;
                read(&db)
            }),
            answer => answer,
        };
        answer.map_err(|e| cannot_read(&self.path, e))
    }
}

/// Opens a connection that cannot write. A write-ahead log or a hot journal may need a connection that
/// could: then one that may, with writing switched off.
/// By what a file is told from another of the same name: its device and its number there.
pub(crate) type FileId = (u64, u64);

/// The file that stands at `path` now, if one does.
pub(crate) fn file_id(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

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

fn needs_writing(e: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
    matches!(e.sqlite_error_code(), Some(CannotOpen | ReadOnly))
}

/// Tells a repository from Fossil's other databases and from everything else.
fn check_kind(db: &Connection, path: &Path) -> Result<()> {
    let is_table = |name: &str| -> Result<bool> {
        let sql = "SELECT 1 FROM sqlite_schema WHERE name=?1 AND type='table'";
        let found = db.prepare_cached(sql).and_then(|mut q| q.exists([name]));
        found.map_err(|e| cannot_read(path, e))
    };
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

fn cannot_read(path: &Path, e: rusqlite::Error) -> Error {
    let below = Error::from(e);
    let what = format!("cannot read repository `{}`: {below}", path.display());
    Error::new(below.kind(), what).caused_by(below)
}

/// A column as text, whatever type it was stored with; bytes that are not UTF-8 are replaced.
pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(optional_text(row, column)?.unwrap_or_default())
}

pub(crate) fn optional_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    })
}

/// A column with an artifact's hash.
pub(crate) fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<Hash> {
    Hash::parse(&text(row, column)?)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(e)))
}

/// A column with an artifact's hash, or with nothing.
pub(crate) fn optional_hash(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Hash>> {
    if row.get_ref(column)? == ValueRef::Null { Ok(None) } else { hash(row, column).map(Some) }
}

#[cfg(test)]
pub(crate) mod tests;
