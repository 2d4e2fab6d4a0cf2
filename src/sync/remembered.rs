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
    ///
    /// [`Kind::Busy`]: crate::error::Kind::Busy
    /// [`Kind::Corrupt`]: crate::error::Kind::Corrupt
    /// [`Kind::Invalid`]: crate::error::Kind::Invalid
    pub fn remote(&self) -> Result<Option<Remote>> {
        let Some(remote) = self.remote_without_password()? else { return Ok(None) };
        if self.store().variable("last-sync-pw")?.is_none_or(|password| password.is_empty()) {
            return Ok(Some(remote));
        }
        // Fossil's code keeps it obscured, and reveals it.
        let (_, password) = engine::remote(self.path())?;
        Ok(Some(match remote.user().cloned() {
            Some(user) if !password.is_empty() => remote.with_login(user, Password::parse(&password)?),
            _ => remote,
        }))
    }

    /// The remembered server, read without asking for its password.
    ///
    /// # Errors
    /// As for [`remote`](Self::remote).
    pub fn remote_without_password(&self) -> Result<Option<Remote>> {
        self.store().remote_url()?.map(|url| Remote::parse(&url)).transpose()
    }

    /// Whether a server is remembered.
    ///
    /// # Errors
    /// As for any read: a busy or a damaged repository.
    pub fn has_remote(&self) -> Result<bool> {
        Ok(self.store().remote_url()?.is_some())
    }

    /// Remembers a server, or none. Its password is kept only when `keep_password` says so, in the form
    /// in which Fossil keeps it: obscured, not encrypted.
    ///
    /// # Errors
    /// A busy repository, a full disk, or one that may not be written.
    pub fn set_remote(&self, remote: Option<&Remote>, keep_password: bool) -> Result<()> {
        let url = remote.map(Remote::url_with_user);
        let password = remote.filter(|_| keep_password).and_then(Remote::password).map(Password::reveal);
        engine::set_remote(self.path(), url.as_deref(), password)
    }
}
