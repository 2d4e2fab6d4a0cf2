//! A clone: Fossil's own, then a check of every artifact that came.

use std::path::Path;
use std::sync::Arc;

use super::client::Exchange;
use super::fossil_client::{LoggedTransport, SyncLock, take_log};
use super::options::SyncOptions;
use super::peer::{blame, login};
use super::remote::Remote;
use crate::engine::{self, SyncRequest};
use crate::error::Result;
use crate::name::User;
use crate::repo::store::Store;
use crate::repo::{Repository, make_aside, new_file, remove_unless};

impl Repository {
    /// Clones the repository of a server into a new file, in which `user` may do everything. Compares each artifact
    /// with its hash. Remembers the server without the password.
    ///
    /// # Errors
    /// Those of [`create`](Self::create) and of [`pull`](Self::pull); `Kind::Refused` also when an artifact is
    /// not what its hash says. Nothing is left at `path`.
    pub fn clone_from(remote: &Remote, path: &Path, user: &User) -> Result<Self> {
        Self::clone_with(remote, path, user, &SyncOptions::default())
    }

    /// As [`clone_from`](Self::clone_from), with private check-ins, unversioned files or a handle that cancels, as
    /// the options say. Their direction does not matter.
    ///
    /// # Errors
    /// Those of [`clone_from`](Self::clone_from), and `Kind::Cancelled`.
    pub fn clone_with(remote: &Remote, path: &Path, user: &User, options: &SyncOptions) -> Result<Self> {
        let path = new_file(path)?;
        make_aside(&path, |aside| clone_aside(remote, aside, user, options))?;
        let made = Self::open(&path).and_then(|repository| {
            repository.set_remote(Some(remote), false)?;
            if options.private {
                // The first request of a clone has no login, so it brings only what is public.
                repository.sync(remote, &SyncOptions { push: false, pull: true, ..options.clone() })?;
            }
            Ok(repository)
        });
        remove_unless(made, &path)
    }
}

/// Clones a server's repository into a new file. Fossil does not look into what came, so every artifact is compared
/// with its hash here before anything is derived from it.
fn clone_aside(remote: &Remote, path: &Path, user: &User, options: &SyncOptions) -> Result<()> {
    let transport = LoggedTransport::new(Arc::new(Exchange::new(remote, &options.cancel)));
    let log = transport.log();
    let request = SyncRequest {
        url: remote.url(),
        login: login(remote)?,
        local_user: user.to_string(),
        push: false,
        pull: true,
        private: options.private,
        unversioned: options.unversioned,
        transport: Box::new(transport),
    };
    let result = {
        let _alone = SyncLock::take(&options.cancel)?;
        engine::with_cancel(&options.cancel, || engine::clone(path, request))
    };
    // The first reply of a clone may complain of a login for a project that the client did not know yet.
    result.map_err(|e| take_log(&log).last_failure().unwrap_or_else(|| blame(remote, e)))?;
    Store::open(path)?.check_all().map_err(|e| blame(remote, e))?;
    engine::finish_clone(path, user.as_str())
}
