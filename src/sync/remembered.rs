//! The server that a repository remembers.

use super::remote::Remote;
use crate::engine;
use crate::error::Result;
use crate::name::Password;
use crate::repo::Repository;

impl Repository {
    /// The remembered server, with its login where a password was kept.
    ///
    /// # Errors
    /// [`Kind::Busy`], [`Kind::Corrupt`], and [`Kind::Invalid`] when what is remembered is no URL that OCX can use.
    pub fn remote(&self) -> Result<Option<Remote>> {
        if !self.has_remote()? {
            return Ok(None);
        }
        let (url, password) = engine::remote(self.path())?;
        let remote = Remote::parse(&url)?;
        Ok(Some(match remote.user().cloned() {
            Some(user) if !password.is_empty() => remote.with_login(user, Password::parse(&password)?),
            _ => remote,
        }))
    }

    /// Whether a server is remembered.
    ///
    /// # Errors
    /// [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn has_remote(&self) -> Result<bool> {
        Ok(self.store().remote()?.is_some())
    }

    /// Remembers a server, or none. Its password is kept only when `keep_password` says so, in the form
    /// in which Fossil keeps it: obscured, not encrypted.
    ///
    /// # Errors
    /// [`Kind::Busy`], [`Kind::DiskFull`], [`Kind::Denied`].
    pub fn set_remote(&self, remote: Option<&Remote>, keep_password: bool) -> Result<()> {
        let url = remote.map(Remote::url_with_user);
        let password = remote.filter(|_| keep_password).and_then(Remote::password).map(Password::reveal);
        engine::set_remote(self.path(), url.as_deref(), password)
    }
}
