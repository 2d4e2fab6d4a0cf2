//! A checkout: a folder with the files of a check-in, and Fossil's database beside them.
//!
//! The database is Fossil's own (`.fslckout`), so plain `fossil` works in the same folder. OCX keeps a
//! few tables of its own there, all named `ocx_...`, which Fossil leaves alone.

mod check_in;
mod database;
mod follow;
mod position;
mod status;
mod update;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use check_in::{CheckIn, CheckedIn};
use database::var;
use position::ManifestFiles;
use rusqlite::Connection;
pub use status::{Change, How, Status};
pub use update::{Happened, MergeHow, Updated, UpdatedFile};

use crate::checkout::check_in::Merged;
use crate::checkout::status::{StatCache, no_parent};
use crate::engine;
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TreePath, User};
use crate::repo::Repository;
use crate::repo::store::{FileId, file_id};
use crate::tree::Tree;
use crate::tree::ignore::Ignore;

/// The most bytes of a file under `.fossil-settings`.
const SETTING_MAX: u64 = 1 << 20;

/// A folder with the files of a check-in.
///
/// ```
/// use ocx::{name::{Branch, User}, checkout::{CheckIn, Checkout}, repo::{NewRepository, Repository}};
/// let folder = tempfile::tempdir()?;
/// let user = User::parse("ann")?;
/// let repository = Repository::create(&folder.path().join("r.fossil"), &NewRepository { user: user.clone() })?;
/// let checkout = Checkout::open(&repository, &folder.path().join("work"), None, Some(&user))?;
/// std::fs::write(checkout.root().join("a.txt"), "one\n")?;
/// let status = checkout.status()?;
/// assert_eq!(status.changes[0].path.as_str(), "a.txt");
/// let made = checkout.check_in(&CheckIn { comment: "add a".into(), branch: None, user, time: None }, &status)?;
/// assert_eq!(checkout.parent()?, made.hash);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Checkout {
    root: PathBuf,
    database: PathBuf,
    file: Option<FileId>,
    tree: Tree,
    repository: Repository,
    state: Mutex<Connection>,
    stats: Mutex<StatCache>,
    recovered: Option<Hash>,
    /// Whether the id is known to be written down.
    has_id: AtomicBool,
}

/// What Fossil was told of files since the parent check-in.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    /// Paths to be added.
    pub added: BTreeSet<TreePath>,
    /// New paths of renamed files, with the old ones.
    pub renamed: BTreeMap<TreePath, TreePath>,
}

impl Checkout {
    /// Opens a version of a repository in an empty folder, which is made when it is not there; without a
    /// version, the tip of `trunk`. `user` is who acts here from now on.
    ///
    /// # Errors
    /// [`Kind::Exists`] when the folder is not empty or is a checkout, [`Kind::NotFound`] or [`Kind::Ambiguous`] for the
    /// version or an unknown user, [`Kind::DiskFull`], [`Kind::Denied`].
    pub fn open(
        repository: &Repository,
        dir: &Path,
        version: Option<&str>,
        user: Option<&User>,
    ) -> Result<Self> {
        let store = repository.store();
        let hash = store.resolve(version.unwrap_or("trunk"))?;
        store.check_in(&hash)?;
        if let Some(user) = user
            && store.user(user)?.is_none()
        {
            return Err(Error::new(Kind::NotFound, format!("no user `{user}` in the repository"))
                .with_hint("Name a login of the repository."));
        }
        let root =
            std::path::absolute(dir).map_err(|e| Error::io(format!("cannot find `{}`", dir.display()), e))?;
        let made_folder = !root.exists();
        let path = |p: &Path| p.to_str().map(str::to_owned).ok_or_else(|| not_utf8(p));
        let (work, file) = (path(&root)?, path(repository.path())?);
        let args = ["open", "--nosync", "--nested", "--workdir", &work, &file, hash.as_str()];
        if let Err(e) = engine::command(Path::new("/"), &args, user.map(User::as_str)) {
            if made_folder {
                // Only what Fossil itself put there can be lost.
                let _ = std::fs::remove_dir_all(&root);
            }
            return Err(e);
        }
        let checkout = Self::at(&root)?;
        checkout.state(|db| {
            db.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(()))?;
            database::relax(db)
        })?;
        if let Some(user) = user {
            checkout.set_var("default-user", user.as_str())?;
        }
        checkout.keep_id()?;
        Ok(checkout)
    }

    /// Finds the checkout that `dir` is in: its own folder or one above it.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when there is none, or its repository is gone; [`Kind::Foreign`], [`Kind::Corrupt`].
    pub fn at(dir: &Path) -> Result<Self> {
        let dir =
            std::path::absolute(dir).map_err(|e| Error::io(format!("cannot find `{}`", dir.display()), e))?;
        let found = dir.ancestors().find_map(|folder| {
            let name = database::NAMES.iter().find(|name| database::is_there(&folder.join(name)))?;
            Some((folder, folder.join(name)))
        });
        let Some((root, database)) = found else {
            return Err(Error::new(Kind::NotFound, format!("`{}` is not in a checkout", dir.display()))
                .with_hint("Open one with `ocx open REPOSITORY FOLDER`, or name its folder with -C."));
        };
        let state = database::connect(&database)?;
        let file: String = var(&state, "repository")?.ok_or_else(|| no_parent(root))?;
        let repository = Repository::open(&root.join(file))?;
        let tree = Tree::open(root)?.keeping_out(repository.path());
        let tree = ManifestFiles::of(&repository, &tree)?.left_out_of(tree)?;
        let mut checkout = Self {
            root: root.to_owned(),
            file: file_id(&database),
            database,
            tree,
            repository,
            state: Mutex::new(state),
            stats: Mutex::default(),
            recovered: None,
            has_id: AtomicBool::new(false),
        };
        checkout.recovered = checkout.recover()?;
        Ok(checkout)
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The files, without following links out of the folder.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The repository it is a checkout of.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Whether the checkout that was opened is still there, and its repository: each may have been closed, moved or
    /// made anew since.
    #[must_use]
    pub fn is_there(&self) -> bool {
        file_id(&self.database) == self.file && self.repository.store().is_there()
    }

    /// A check-in that an earlier process stored without moving the checkout to it, which opening this
    /// checkout has made good.
    #[must_use]
    pub fn recovered(&self) -> Option<Hash> {
        self.recovered
    }

    /// Who acts here: the checkout's own user, else the repository's default, else the only one who may do everything.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when none of them is set.
    pub fn user(&self) -> Result<User> {
        let own = self.state(|db| var(db, "default-user"))?;
        let store = self.repository.store();
        let user = match own {
            Some(name) => Some(User::parse(&name)?),
            None => store.default_user()?,
        };
        user.ok_or_else(|| {
            Error::new(Kind::NotFound, "nobody is named as the user of this checkout")
                .with_hint("Run `ocx fossil user default NAME` in it.")
        })
    }

    /// The check-in that the files are compared with.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when there is none.
    pub fn parent(&self) -> Result<Hash> {
        let (rid, hash) = self.state(|db| Ok((var(db, "checkout")?, var(db, "checkout-hash")?)))?;
        match (hash, rid) {
            (Some(hash), _) => Hash::parse(&hash),
            (None, Some(rid)) => self
                .repository
                .store()
                .hash_of_rid(rid.parse().unwrap_or(0))?
                .ok_or_else(|| no_parent(&self.root)),
            (None, None) => Err(no_parent(&self.root)),
        }
    }

    /// Eight hex digits that tell this checkout from others, and stay the same for it.
    ///
    /// # Errors
    /// [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn id(&self) -> Result<String> {
        match self.state(|db| var(db, "ocx-id"))? {
            Some(id) => Ok(id),
            None => database::id(&self.database),
        }
    }

    /// Writes the id down, where that was not done yet.
    pub(crate) fn keep_id(&self) -> Result<()> {
        if self.has_id.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.state(|db| var(db, "ocx-id"))?.is_none() {
            self.set_var("ocx-id", &database::id(&self.database)?)?;
        }
        self.has_id.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The ignore rules: those in the tree, else those of the repository.
    ///
    /// # Errors
    /// [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn ignore(&self) -> Result<Ignore> {
        Ok(Ignore::parse(&self.setting("ignore-glob")?.unwrap_or_default()))
    }

    /// Runs `act` on the checkout's database, where the modules above keep tables named `ocx_...`.
    ///
    /// # Errors
    /// What `act` gives.
    pub fn state<T>(&self, act: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        act(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A setting as Fossil finds it: the file in the tree stands over the repository's value.
    fn setting(&self, name: &str) -> Result<Option<String>> {
        let path = TreePath::parse(&format!(".fossil-settings/{name}"))?;
        match self.tree.read(&path, SETTING_MAX) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(_) => self.repository.store().setting(name),
        }
    }

    pub(crate) fn allows_symlinks(&self) -> Result<bool> {
        self.repository.store().is_on("allow-symlinks")
    }

    pub(crate) fn stat_cache(&self) -> MutexGuard<'_, StatCache> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, unless someone else has it.
    pub(crate) fn free_stat_cache(&self) -> Option<MutexGuard<'_, StatCache>> {
        self.stats.try_lock().ok()
    }

    /// The name that the repository's hash policy gives to new content.
    pub(crate) fn hash_of(&self, content: &[u8]) -> Result<Hash> {
        Ok(Hash::name_for(content, self.repository.store().names_by_sha1()?))
    }

    /// What Fossil was told of files: `fossil add` and `fossil mv`.
    pub(crate) fn known_files(&self) -> Result<KnownFiles> {
        self.state(|db| {
            let mut known = KnownFiles::default();
            let mut query = db.prepare_cached(
                "SELECT pathname, origname, rid FROM vfile
                 WHERE NOT deleted AND (rid=0 OR chnged IN (3, 5) OR origname!=pathname)",
            )?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                let path: String = row.get(0)?;
                let Ok(path) = TreePath::parse_stored(&path) else { continue };
                let old: Option<String> = row.get(1)?;
                match old.and_then(|old| TreePath::parse_stored(&old).ok()).filter(|old| *old != path) {
                    Some(old) if row.get::<_, i64>(2)? != 0 => {
                        known.renamed.insert(path.clone(), old);
                    }
                    _ => {}
                }
                known.added.insert(path);
            }
            Ok(known)
        })
    }

    /// The check-ins that were merged into the files since the parent.
    pub(crate) fn merged(&self) -> Result<Vec<(Hash, Merged)>> {
        self.state(|db| {
            let mut query =
                db.prepare_cached("SELECT id, mhash FROM vmerge WHERE id<=0 ORDER BY id DESC, mhash")?;
            let rows = query.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
            let mut merged = Vec::new();
            for row in rows {
                let (id, hash) = row?;
                let how = match id {
                    -1 => Merged::Cherrypick,
                    -2 => Merged::Backout,
                    -4 => Merged::Integrated,
                    _ => Merged::Whole,
                };
                merged.push((Hash::parse(&hash)?, how));
            }
            Ok(merged)
        })
    }

    fn set_var(&self, name: &str, value: &str) -> Result<()> {
        self.state(|db| {
            Ok(db.execute("REPLACE INTO vvar(name,value) VALUES(?1,?2)", [name, value]).map(drop)?)
        })
    }
}

fn not_utf8(path: &Path) -> Error {
    Error::new(Kind::Invalid, format!("the path `{}` is not UTF-8", path.display()))
        .with_hint("Choose another folder.")
}
