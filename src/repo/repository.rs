//! A repository file: made, opened and copied.
//!
//! Its [`Store`] reads what is in it. What changes it goes through the engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags};

use super::store::Store;
use crate::engine;
use crate::error::{Error, Kind, Result};
use crate::name::{User, time};
use crate::tree::name_new;

/// What a new repository starts with.
#[derive(Debug, Clone)]
pub struct NewRepository {
    /// Its first user, who may do everything.
    pub user: User,
}

/// A repository file. Cheap to clone; may be used from several threads at once.
///
/// ```
/// use ocx::{name::User, repo::{NewRepository, Repository}};
/// let folder = tempfile::tempdir()?;
/// let user = User::parse("ann")?;
/// let repository = Repository::create(&folder.path().join("r.fossil"), &NewRepository { user })?;
/// let tip = repository.store().resolve("trunk")?;
/// assert_eq!(repository.store().check_in(&tip)?.comment, "initial empty check-in");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Repository {
    store: Arc<Store>,
}

impl Repository {
    /// Makes a repository file with one empty check-in on `trunk`. The file keeps a write-ahead log, so that readers
    /// and a writer do not wait for each other.
    ///
    /// # Errors
    /// [`Kind::Exists`] when there is something at `path`, [`Kind::NotFound`] when its folder is not there,
    /// [`Kind::DiskFull`], [`Kind::Denied`].
    pub fn create(path: &Path, new: &NewRepository) -> Result<Self> {
        let path = new_file(path)?;
        let made = engine::command(Path::new("/"), &["init", "-A", new.user.as_str(), text(&path)?], None)
            .and_then(|_| write_ahead(&path))
            .and_then(|()| Self::open(&path));
        remove_unless(made, &path)
    }

    /// Opens a repository file.
    ///
    /// # Errors
    /// [`Kind::NotFound`], [`Kind::Foreign`] for a file that is no repository, [`Kind::Corrupt`], [`Kind::Busy`].
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, None)
    }

    /// As [`open`](Self::open), for a program whose user has settings for all repositories: the path of Fossil's file of
    /// those, such as `~/.config/fossil.db`. They count where neither the tree nor the repository says otherwise.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: &Path, user_settings: Option<&Path>) -> Result<Self> {
        let path = std::path::absolute(path)
            .map_err(|e| Error::io(format!("cannot find `{}`", path.display()), e))?;
        Ok(Self { store: Arc::new(Store::open_with(&path, user_settings)?) })
    }

    /// Clones a repository file into a new one, without what is private. `user` may do everything in the clone.
    ///
    /// # Errors
    /// Those of [`create`](Self::create) and of [`open`](Self::open) for `source`. Nothing is left at `path`.
    pub fn clone_file(source: &Path, path: &Path, user: &User) -> Result<Self> {
        let source = Self::open(source)?;
        let path = new_file(path)?;
        make_aside(&path, |aside| {
            source.store().copy_to(text(aside)?)?;
            engine::adopt_copy(aside, user.as_str())
        })?;
        remove_unless(Self::open(&path), &path)
    }

    /// The repository file, as an absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// What is in the repository.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Derives all tables anew from the artifacts.
    ///
    /// # Errors
    /// [`Kind::Busy`], [`Kind::DiskFull`], [`Kind::Corrupt`].
    pub fn rebuild(&self) -> Result<()> {
        engine::close(self.path())?;
        engine::command(Path::new("/"), &["rebuild", text(self.path())?], None).map(drop)
    }

    /// Checks that each artifact can be read and fits its hash, and that the database is whole.
    ///
    /// # Errors
    /// [`Kind::Corrupt`] with the first of Fossil's findings; [`Kind::Busy`].
    pub fn verify(&self) -> Result<()> {
        let args = ["test-integrity", "-R", text(self.path())?];
        let out = engine::command(Path::new("/"), &args, None)?;
        if out.out.contains(" 0 errors") && out.out.contains("integrity-check: ok") {
            return Ok(());
        }
        let is_finding = |line: &&str| {
            ["size mismatch", "wrong hash", "manifest_parse failed", "integrity-check", "_check failed"]
                .iter()
                .any(|words| line.contains(words))
        };
        // Fossil overwrites its progress by carriage returns.
        let finding = out.out.split(['\n', '\r']).find(is_finding).unwrap_or("damage").trim();
        Err(Error::new(Kind::Corrupt, format!("repository `{}`: {finding}", self.path().display()))
            .with_hint("Clone the repository anew from a server that has it whole."))
    }

    /// A connection that may write, for tables that Fossil does not guard.
    pub(crate) fn writer(&self) -> Result<Connection> {
        writer(self.path())
    }
}

fn writer(path: &Path) -> Result<Connection> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.busy_timeout(std::time::Duration::from_secs(5))?;
    db.execute_batch("PRAGMA foreign_keys=0; PRAGMA trusted_schema=0")?;
    Ok(db)
}

/// Returns the absolute path of a file that is to be made. Nothing may be there yet, and its folder must exist.
pub(crate) fn new_file(path: &Path) -> Result<PathBuf> {
    let path =
        std::path::absolute(path).map_err(|e| Error::io(format!("cannot find `{}`", path.display()), e))?;
    if path.symlink_metadata().is_ok() {
        return Err(Error::new(Kind::Exists, format!("`{}` is there already", path.display()))
            .with_hint("Name a file that does not exist yet."));
    }
    match path.parent().map(Path::metadata) {
        Some(Ok(meta)) if meta.is_dir() => Ok(path),
        _ => Err(Error::new(Kind::NotFound, format!("no folder for `{}`", path.display()))
            .with_hint("Make the folder first.")),
    }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| {
        Error::new(Kind::Invalid, format!("the path `{}` is not UTF-8", path.display()))
            .with_hint("Rename the file.")
    })
}

/// From so many bytes on, a repository takes less space in larger pages.
const LARGE: i64 = 4 << 20;

/// Gives the pages of a new repository back that nothing uses, which must not have a write-ahead log yet.
pub(crate) fn vacuum(path: &Path) -> Result<()> {
    let db = writer(path)?;
    let size: i64 =
        db.query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |row| {
            row.get(0)
        })?;
    if size >= LARGE {
        db.execute_batch("PRAGMA page_size=8192")?;
    }
    Ok(db.execute_batch("VACUUM")?)
}

fn write_ahead(path: &Path) -> Result<()> {
    writer(path)?.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(()))?;
    Ok(())
}

/// Makes a repository under a name of its own, and gives it `path` when it is whole. So a process that ends in between
/// leaves nothing at `path`.
pub(crate) fn make_aside(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let now = time::since_epoch().as_nanos();
    let aside = path.with_file_name(format!(".{name}.{}-{now}", std::process::id()));
    let done = make(&aside).and_then(|()| write_ahead(&aside)).and_then(|()| {
        name_new(&aside, path).map_err(|e| Error::io(format!("cannot make `{}`", path.display()), e))
    });
    remove_unless(done, &aside)
}

/// Removes what a failed attempt to make a repository has left at `path`.
pub(crate) fn remove_unless<T>(made: Result<T>, path: &Path) -> Result<T> {
    if made.is_err() {
        // The engine may hold it open. What cannot be removed was never made.
        let _ = engine::close(path);
        for end in ["", "-wal", "-shm", "-journal"] {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            let _ = std::fs::remove_file(name);
        }
    }
    made
}
