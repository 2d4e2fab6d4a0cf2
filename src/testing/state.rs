//! OCX's state folder: what OCX keeps of the tests of each checkout, out of reach of the tests and of the tools.
//!
//! ```text
//! STATE/<digits>/  root      the checkout's folder, for whoever cleans up
//!                  lock      held by the process that runs tests
//!                  state.db  evidence, logs, what the test tree holds
//!                  tree/     the test tree
//!                  home/     the tests' HOME
//!                  layers/   what tests wrote over what was brought along
//! ```

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::checkout::Checkout;
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::tree::{clear, replace_file};

/// The folders of a checkout's state that tests write in.
pub(super) const WRITTEN: [&str; 3] = ["tree", "home", "layers"];

const BUSY_WAIT: Duration = Duration::from_secs(5);

/// The folder in which OCX keeps its state, for all checkouts.
///
/// ```
/// let state = ocx::testing::StateFolder::beside("/srv/project.fossil".as_ref());
/// assert_eq!(state.path(), std::path::Path::new("/srv/.ocx-state"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// The state folder at `path`. It is made when it is first needed.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The state folder beside a repository file, for a host that names none.
    #[must_use]
    pub fn beside(repository: &Path) -> Self {
        Self(repository.parent().unwrap_or(Path::new(".")).join(".ocx-state"))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The state of one checkout, if there is any yet.
    pub(super) fn existing(&self, checkout: &Checkout) -> Result<Option<CheckoutState>> {
        let folder = self.folder_of(checkout)?;
        if folder.join("state.db").exists() { CheckoutState::open(folder).map(Some) } else { Ok(None) }
    }

    /// The state of one checkout, made if there is none.
    pub(super) fn made(&self, checkout: &Checkout) -> Result<CheckoutState> {
        let folder = self.folder_of(checkout)?;
        let make = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            // What a test run by root leaves must be out of reach of other users.
            fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
            let (note, root) = (folder.join("root"), root_of(checkout));
            // Whoever cleans up must never find half of it.
            if note.exists() { Ok(()) } else { replace_file(&note, root.as_os_str().as_bytes(), 0o600) }
        };
        make().map_err(|e| {
            Error::io(format!("cannot keep the state of tests in `{}`", self.0.display()), e)
                .with_hint("Name a folder that can be written to, in OCX_STATE.")
        })?;
        match CheckoutState::open(folder.clone()) {
            // What tests have left may fill the disk, so that not even the database can be opened.
            Err(e) if e.kind() == Kind::DiskFull => {
                let Some(_lock) = lock(&folder)? else { return Err(e) };
                WRITTEN.iter().try_for_each(|name| renew(&folder, name))?;
                CheckoutState::open(folder)
            }
            opened => opened,
        }
    }

    /// The folder as an absolute path, which must not lie in the checkout: its tools could write evidence there.
    fn outside(&self, checkout: &Checkout) -> Result<PathBuf> {
        let base = std::path::absolute(&self.0)
            .map_err(|e| Error::io(format!("cannot find `{}`", self.0.display()), e))?;
        let real = base.ancestors().find_map(|folder| folder.canonicalize().ok()).unwrap_or_default();
        if base.starts_with(checkout.root()) || real.starts_with(root_of(checkout)) {
            let what =
                format!("the state of tests would lie in the checkout itself, in `{}`", base.display());
            return Err(Error::new(Kind::Unavailable, what).with_hint(
                "Name a folder elsewhere, in OCX_STATE: what the checkout holds is no evidence.",
            ));
        }
        Ok(base)
    }

    /// A folder of its own for each checkout and each place where that stands: a copy shares nothing with it.
    fn folder_of(&self, checkout: &Checkout) -> Result<PathBuf> {
        let mut key = checkout.id()?.into_bytes();
        key.push(b'\n');
        key.extend(root_of(checkout).as_os_str().as_bytes());
        Ok(self.outside(checkout)?.join(&Hash::of(&key).as_str()[..16]))
    }
}

fn root_of(checkout: &Checkout) -> PathBuf {
    checkout.root().canonicalize().unwrap_or_else(|_| checkout.root().to_owned())
}

/// What OCX keeps of the tests of one checkout.
pub(super) struct CheckoutState {
    folder: PathBuf,
    database: Mutex<Connection>,
}

/// The right to run the tests of one checkout, given back when dropped or when its process ends.
#[derive(Debug)]
pub(super) struct TestLock {
    _file: File,
}

impl CheckoutState {
    pub fn open(folder: PathBuf) -> Result<Self> {
        let database = Connection::open(folder.join("state.db"))?;
        database.busy_timeout(BUSY_WAIT)?;
        database.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(()))?;
        // After a power loss the last passes may be missing. Then the tests run again.
        database.execute_batch("PRAGMA synchronous=NORMAL")?;
        Ok(Self { folder, database: Mutex::new(database) })
    }

    /// Whether the folder is still there.
    pub fn is_there(&self) -> bool {
        self.path("state.db").exists()
    }

    /// Runs `act` on the database.
    pub fn with<T>(&self, act: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        act(&self.database.lock())
    }

    /// A place in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Takes the lock on the tests. Returns nothing while another owner has it.
    pub fn lock(&self) -> Result<Option<TestLock>> {
        lock(&self.folder)
    }

    /// The folder of the checkout, as it was when this was made.
    pub fn root(folder: &Path) -> Option<PathBuf> {
        let root = fs::read(folder.join("root")).ok().filter(|root| !root.is_empty())?;
        Some(OsString::from_vec(root).into())
    }

    /// Makes a folder here, if it is not there.
    pub fn make(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        // A test may have taken away the permissions of a folder that it sees.
        let own = || fs::set_permissions(&path, Permissions::from_mode(0o755));
        fs::create_dir_all(&path)
            .and_then(|()| own())
            .map_err(|e| Error::io(format!("cannot make `{}`", path.display()), e))?;
        Ok(path)
    }

    /// Whether layers can lie here. A file system that is one of layers itself, as in a container, holds none.
    pub fn holds_layers(&self) -> bool {
        const NONE: [i64; 4] = [0x794c_7630, 0x6969, 0x6573_5546, 0xff53_4d42];
        rustix::fs::statfs(&self.folder).is_ok_and(|system| !NONE.contains(&system.f_type))
    }

    /// Makes a folder here that is new and empty. What cannot go is named, and moved aside.
    pub fn empty(&self, name: &str) -> Result<PathBuf> {
        renew(&self.folder, name)?;
        self.make(name)
    }
}

fn lock(folder: &Path) -> Result<Option<TestLock>> {
    let refused = |e: io::Error| Error::io("cannot lock the tests of this checkout", e);
    let path = folder.join("lock");
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(refused)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(TestLock { _file: file })),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
        Err(e) => Err(refused(e.into())),
    }
}

/// Removes a folder of a checkout's state. It goes itself too, since a test may have given it rules for what is made in it.
fn renew(state: &Path, name: &str) -> Result<()> {
    let path = state.join(name);
    let failed = |e: io::Error| Error::io(format!("cannot empty `{}`", path.display()), e);
    if !path.exists() {
        return Ok(());
    }
    fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(failed)?;
    let gone = clear(File::open(&path).map_err(failed)?.as_fd());
    let Err((what, why)) = gone else { return fs::remove_dir(&path).map_err(failed) };
    tracing::warn!("cannot remove `{what}` in `{}`: {why}", path.display());
    let aside = tempfile::Builder::new().prefix("stuck-").tempdir_in(state).map_err(failed)?;
    fs::rename(&path, aside.keep().join(name.replace('/', "-"))).map_err(failed)
}
