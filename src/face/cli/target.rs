//! Where commands act, and as which user: a checkout or a repository, and a login.

use std::path::{Path, PathBuf};

use clap::ArgMatches;

use crate::checkout::Checkout;
use crate::error::{Error, Kind, Result};
use crate::name::User;
use crate::repo::Repository;
use crate::tool::Service;

/// Where tools act, and as which user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The folder of the checkout.
    pub folder: PathBuf,
    /// The repository file, if calls act on it without a checkout.
    pub repository: Option<PathBuf>,
    /// The login to act as, if it is not the checkout's or the repository's own user.
    pub login: Option<User>,
}

/// What helps if the folder to act in is not there.
const NO_FOLDER: &str = "Name a folder that exists with `-C DIR`.";

impl Target {
    /// Reads the options that every command has.
    ///
    /// # Errors
    /// [`Kind::Invalid`] if the user is not a login; [`Kind::NotFound`] without the folder.
    pub fn of(given: &ArgMatches) -> Result<Self> {
        let folder = given.get_one::<PathBuf>("folder").cloned().unwrap_or_else(|| PathBuf::from("."));
        let meta = folder
            .metadata()
            .map_err(|e| Error::io(format!("cannot act in the folder `{}`", folder.display()), e));
        if !meta.map_err(|e| e.with_hint(NO_FOLDER))?.is_dir() {
            let what = format!("`{}` is no folder", folder.display());
            return Err(Error::new(Kind::NotFound, what).with_hint(NO_FOLDER));
        }
        let repository = given.get_one::<PathBuf>("repository").map(|path| folder.join(path));
        let login = given.get_one::<String>("user").map(|name| login(name)).transpose()?;
        Ok(Self { folder, repository, login })
    }

    /// The repository, and who acts on it: the named login, else the checkout's user, else the repository's default
    /// user.
    ///
    /// # Errors
    /// [`Kind::NotFound`] without a repository or such a user, and those of reading.
    pub fn acting(&self, global_settings: Option<&Path>) -> Result<(Repository, User)> {
        let (repository, own) = if let Some(path) = &self.repository {
            let repository = open_repository(path, global_settings)?;
            let own = repository.store().default_user()?;
            (repository, own)
        } else {
            let checkout = checkout(&self.folder, global_settings)?;
            let own = Some(checkout.user()?);
            (checkout.repository().clone(), own)
        };
        let user = self.login.clone().or(own).ok_or_else(|| {
            Error::new(Kind::NotFound, "the repository has no default user, and none who may do everything")
                .with_hint("Name the login to act as with `--user LOGIN`.")
        })?;
        Ok((repository, user))
    }

    /// The beginning of a command line that acts there too: `ocx` with its options.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = vec!["ocx".to_owned()];
        match &self.repository {
            Some(path) => {
                let path = path.strip_prefix(".").unwrap_or(path);
                words.extend(["-R".to_owned(), path.display().to_string()]);
            }
            None if self.folder == Path::new(".") => {}
            None => words.extend(["-C".to_owned(), self.folder.display().to_string()]),
        }
        if let Some(login) = &self.login {
            words.extend(["--user".to_owned(), login.to_string()]);
        }
        words
    }

    /// The service that acts there, and keeps what is known of tests in the folder `state`.
    #[must_use]
    pub fn service(self, state: Option<PathBuf>) -> Service {
        let service = match self.repository {
            Some(path) => Service::of_repository(path),
            None => Service::at(self.folder),
        };
        let service = match state {
            Some(folder) => service.keeping_state_in(folder),
            None => service,
        };
        match self.login {
            Some(login) => service.acting_as(login),
            None => service,
        }
    }
}

/// Reads a login that can make saves.
pub fn login(name: &str) -> Result<User> {
    let user = User::parse(name)?;
    if user.is_group() {
        let what = format!("`{user}` is one of Fossil's groups, and nobody's login");
        return Err(Error::new(Kind::Invalid, what).with_hint("Name the login of a person or an agent."));
    }
    Ok(user)
}

/// The checkout that holds `folder`, for a user with settings of their own in a file of Fossil's.
pub fn checkout(folder: &Path, global_settings: Option<&Path>) -> Result<Checkout> {
    let hint = "Open one with `ocx open REPO DIR`, or name its folder with `ocx -C DIR`.";
    Checkout::at_with(folder, global_settings)
        .map_err(|e| if e.kind() == Kind::NotFound { e.with_hint(hint) } else { e })
}

/// The repository file that the command line names. If it names none: the file of the checkout that holds `folder`.
pub fn repository(given: &ArgMatches, folder: &Path, global_settings: Option<&Path>) -> Result<Repository> {
    match given.get_one::<PathBuf>("repository") {
        Some(path) => open_repository(&folder.join(path), global_settings),
        None => Ok(checkout(folder, global_settings)?.repository().clone()),
    }
}

/// The repository file at `path`.
pub fn open_repository(path: &Path, global_settings: Option<&Path>) -> Result<Repository> {
    let hint = "Check the path, or make one with `ocx init`.";
    Repository::open_with(path, global_settings)
        .map_err(|e| if e.kind() == Kind::NotFound { e.with_hint(hint) } else { e })
}
