//! Where calls act: a checkout, or a repository alone. It is opened when first needed and kept open between calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::checkout::Checkout;
use crate::error::{Error, Kind, Result};
use crate::name::Password;
use crate::process::Supervisor;
use crate::repo::Repository;
use crate::testing::StateFolder;
use crate::work::Workspace;

/// Where calls act. Clones share what is open.
#[derive(Clone)]
pub(super) struct Place {
    at: At,
    password: Option<Password>,
    global_settings: Option<PathBuf>,
    shared: Arc<Shared>,
}

#[derive(Clone)]
enum At {
    /// In the checkout that holds the folder.
    Folder { folder: PathBuf, supervisor: Supervisor, state: Option<StateFolder> },
    /// In the repository file, without a checkout.
    Repository(PathBuf),
}

#[derive(Default)]
struct Shared {
    open: Mutex<Option<Open>>,
    /// Held by the one call that writes.
    writing: Mutex<()>,
}

/// What is open at a place.
#[derive(Clone)]
pub(super) enum Open {
    Checkout(Arc<Workspace>),
    Repository(Repository),
}

impl Open {
    pub fn repository(&self) -> &Repository {
        match self {
            Self::Checkout(workspace) => workspace.checkout().repository(),
            Self::Repository(repository) => repository,
        }
    }

    /// Whether what was opened is still what lies there.
    fn is_there(&self) -> bool {
        match self {
            Self::Checkout(workspace) => workspace.checkout().is_there(),
            Self::Repository(repository) => repository.store().is_there(),
        }
    }
}

impl Place {
    pub fn of_folder(folder: PathBuf, supervisor: Supervisor) -> Self {
        Self {
            at: At::Folder { folder, supervisor, state: None },
            password: None,
            global_settings: None,
            shared: Arc::default(),
        }
    }

    pub fn of_repository(path: PathBuf) -> Self {
        Self { at: At::Repository(path), password: None, global_settings: None, shared: Arc::default() }
    }

    /// The same with the password for the server, where the repository keeps none.
    pub fn with_password(self, password: Option<Password>) -> Self {
        Self { password, ..self }
    }

    /// The same with the folder that keeps what is known of tests; without one it lies beside the repository.
    pub fn keeping_state_in(self, folder: StateFolder) -> Self {
        let at = match self.at {
            At::Folder { folder: checkout, supervisor, .. } => {
                At::Folder { folder: checkout, supervisor, state: Some(folder) }
            }
            repository @ At::Repository(_) => repository,
        };
        Self { at, ..self }
    }

    /// The same with Fossil's file of the settings that a user has for all repositories.
    pub fn with_global_settings(self, path: Option<PathBuf>) -> Self {
        Self { global_settings: path, ..self }
    }

    /// Whether calls act in a checkout, whether or not there is one yet.
    pub fn is_checkout(&self) -> bool {
        matches!(self.at, At::Folder { .. })
    }

    /// What is there. It is opened again when it was closed or replaced meanwhile.
    pub fn open(&self) -> Result<Open> {
        let mut open = self.shared.open.lock();
        if let Some(open) = open.as_ref().filter(|open| open.is_there()) {
            return Ok(open.clone());
        }
        let opened = match &self.at {
            At::Repository(path) => Open::Repository(
                Repository::open_with(path, self.global_settings.as_deref()).map_err(no_repository)?,
            ),
            At::Folder { folder, supervisor, state } => {
                let checkout = Checkout::at_with(folder, self.global_settings.as_deref())
                    .map_err(|e| no_checkout(folder, e))?;
                let beside = || StateFolder::beside(checkout.repository().path());
                let state = state.clone().unwrap_or_else(beside);
                let workspace =
                    Workspace::open(checkout, supervisor.clone(), state).with_password(self.password.clone());
                Open::Checkout(Arc::new(workspace))
            }
        };
        *open = Some(opened.clone());
        Ok(opened)
    }

    /// The password for the server, used where the repository keeps none.
    pub fn password(&self) -> Option<&Password> {
        self.password.as_ref()
    }

    /// Lets go of what is open. The next call opens it anew.
    pub fn forget(&self) {
        self.shared.open.lock().take();
    }

    /// Waits until no other call of this process writes here.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.shared.writing.lock()
    }
}

fn no_repository(error: Error) -> Error {
    if error.kind() == Kind::NotFound {
        return error.with_hint("Check the path of the repository file.");
    }
    error
}

fn no_checkout(folder: &Path, error: Error) -> Error {
    if error.kind() != Kind::NotFound {
        return error;
    }
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    Error::new(Kind::NotFound, format!("no Fossil checkout in `{}` or above it: {error}", folder.display()))
        .with_hint(
            "Open one with `ocx open REPO DIR` and start ocx there, or name its folder with `ocx -C DIR`.",
        )
        .caused_by(error)
}
