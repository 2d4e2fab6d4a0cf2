//! Opening a checkout, and what everything else in this module works on.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::Connection;

use super::database::{self, var};
use super::manifest_files::ManifestFiles;
use super::outside::refuse_folders_outside;
use super::stat_cache::StatCache;
use crate::engine;
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, User};
use crate::repo::Repository;
use crate::repo::setting::GlobalSettings;
use crate::repo::setting::Settings;
use crate::repo::store::{FileId, file_id, no_user};
use crate::tree::Tree;

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
    pub(super) root: PathBuf,
    pub(super) database: PathBuf,
    file: Option<FileId>,
    pub(super) tree: Tree,
    pub(super) repository: Repository,
    pub(super) global: Option<GlobalSettings>,
    pub(super) state: Mutex<Connection>,
    stats: Mutex<StatCache>,
    recovered: Option<Hash>,
    pub(super) finished: Mutex<Option<String>>,
    /// Whether the id is known to be stored.
    has_id: AtomicBool,
}

impl Checkout {
    /// Opens a version of a repository in an empty folder. The folder is made if it does not exist. The default
    /// version is the tip of the main branch. `user` is who acts here from now on.
    ///
    /// # Errors
    /// [`Kind::Exists`] when the folder is not empty or is a checkout, [`Kind::NotFound`] or [`Kind::Ambiguous`] for the
    /// version or an unknown user, [`Kind::DiskFull`], [`Kind::Denied`], also for a setting `empty-dirs` that names a
    /// folder outside the tree.
    pub fn open(
        repository: &Repository,
        dir: &Path,
        version: Option<&str>,
        user: Option<&User>,
    ) -> Result<Self> {
        let store = repository.store();
        let hash = match version {
            Some(version) => store.resolve(version)?,
            None => store.resolve(&store.main_branch()?)?,
        };
        store.check_in(&hash)?;
        refuse_folders_outside(store, &hash)?;
        if let Some(user) = user
            && store.user(user)?.is_none()
        {
            return Err(no_user(user));
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
        let checkout = Self::at_with(&root, store.user_settings().map(GlobalSettings::path))?;
        checkout.state(|db| {
            db.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(()))?;
            database::relax(db)
        })?;
        if let Some(user) = user {
            checkout.set_var("default-user", user.as_str())?;
        }
        checkout.lay_as_the_user_wants(&hash)?;
        checkout.keep_id()?;
        Ok(checkout)
    }

    /// Finds the checkout that `dir` is in: its own folder or one above it.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when there is none, or its repository is gone; [`Kind::Foreign`], [`Kind::Corrupt`].
    pub fn at(dir: &Path) -> Result<Self> {
        Self::at_with(dir, None)
    }

    /// As [`at`](Self::at), for a program whose user has settings for all repositories: the path of Fossil's file of
    /// those, such as `~/.config/fossil.db`. They count where neither the tree nor the repository says otherwise.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn at_with(dir: &Path, global_settings: Option<&Path>) -> Result<Self> {
        let dir =
            std::path::absolute(dir).map_err(|e| Error::io(format!("cannot find `{}`", dir.display()), e))?;
        let found = dir.ancestors().find_map(|folder| {
            let name = database::NAMES.iter().find(|name| database::is_there(&folder.join(name)))?;
            Some((folder, folder.join(name)))
        });
        let Some((root, database)) = found else {
            return Err(Error::new(Kind::NotFound, format!("`{}` is not in a checkout", dir.display()))
                .with_hint("Open a version of a repository there, or name the folder of a checkout."));
        };
        let state = database::connect(&database)?;
        let file: String = var(&state, "repository")?.ok_or_else(|| no_parent(root))?;
        let repository = Repository::open_with(&root.join(file), global_settings)?;
        let tree = Tree::open(root)?.keeping_out(repository.path());
        let global = repository.store().user_settings().cloned();
        let manifest = ManifestFiles::of(&Settings::of(repository.store(), &tree))?;
        let tree = manifest.left_out_of(tree)?;
        let mut checkout = Self {
            root: root.to_owned(),
            file: file_id(&database),
            database,
            tree,
            repository,
            global,
            state: Mutex::new(state),
            stats: Mutex::default(),
            recovered: None,
            finished: Mutex::default(),
            has_id: AtomicBool::new(false),
        };
        checkout.recovered = checkout.recover()?;
        Ok(checkout)
    }

    /// Whether `folder` is the root of a checkout.
    pub(crate) fn is_root(folder: &Path) -> bool {
        database::NAMES.iter().any(|name| database::is_there(&folder.join(name)))
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

    /// Whether the checkout that was opened still exists, and its repository. Either may have been closed, moved or
    /// made anew since.
    #[must_use]
    pub fn is_there(&self) -> bool {
        file_id(&self.database) == self.file && self.repository.store().is_there()
    }

    /// A check-in that an earlier process stored without moving the checkout to it. Opening this checkout has moved
    /// it.
    #[must_use]
    pub fn recovered(&self) -> Option<Hash> {
        self.recovered
    }

    /// What this checkout has finished, or taken back, for an earlier process that was cut short, in words: an update, a
    /// merge or an undo.
    #[must_use]
    pub fn finished(&self) -> Option<String> {
        self.finished.lock().clone()
    }

    /// Who acts here: the checkout's own user, else the repository's default user.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when none of them is set.
    pub fn user(&self) -> Result<User> {
        if let Some(own) = self.state(|db| var(db, "default-user"))? {
            return User::parse(&own);
        }
        self.repository.store().default_user()?.ok_or_else(|| {
            Error::new(Kind::NotFound, "nobody is named as the user of this checkout")
                .with_hint("Name the default user of the checkout, or of the repository.")
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

    /// Stores the id, unless that was done before.
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

    /// Runs `act` on the checkout's database, where the modules above keep tables named `ocx_...`.
    ///
    /// # Errors
    /// Those of `act`.
    pub fn state<T>(&self, act: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        act(&self.state.lock())
    }

    pub(crate) fn allows_symlinks(&self) -> Result<bool> {
        self.settings().is_on("allow-symlinks")
    }

    pub(crate) fn settings(&self) -> Settings<'_> {
        Settings::of(self.repository.store(), &self.tree)
    }

    pub(crate) fn stat_cache(&self) -> MutexGuard<'_, StatCache> {
        self.stats.lock()
    }

    /// As `stat_cache`, but returns nothing while another thread has it.
    pub(crate) fn free_stat_cache(&self) -> Option<MutexGuard<'_, StatCache>> {
        self.stats.try_lock()
    }

    /// The name that the repository's hash policy gives to new content.
    pub(crate) fn hash_of(&self, content: &[u8]) -> Result<Hash> {
        self.repository.store().name_for(content)
    }

    /// Sets a variable of the checkout.
    fn set_var(&self, name: &str, value: &str) -> Result<()> {
        self.state(|db| {
            Ok(db.execute("REPLACE INTO vvar(name,value) VALUES(?1,?2)", [name, value]).map(drop)?)
        })
    }
}

/// The error for a path that Fossil's code cannot be given.
pub(super) fn not_utf8(path: &Path) -> Error {
    Error::new(Kind::Invalid, format!("the path `{}` is not UTF-8", path.display()))
        .with_hint("Choose another folder.")
}

/// The error for a checkout whose check-in the repository no longer has.
pub(super) fn no_parent(root: &Path) -> Error {
    Error::new(Kind::NotFound, format!("the checkout `{}` stands on no check-in", root.display()))
        .with_hint("Open a version of the repository here.")
}
