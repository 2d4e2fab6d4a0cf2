//! A clone: Fossil's own, then a look at every artifact that came.

use std::path::Path;
use std::sync::Arc;

use super::SyncOptions;
use super::ask::login;
use super::wire::{self, Wire};
use crate::engine::{self, SyncRequest};
use crate::error::{Error, Kind, Result};
use crate::name::User;
use crate::repo::http::Exchange;
use crate::repo::remote::Remote;
use crate::repo::store::Store;

/// Clones a server's repository into a new file. What Fossil stores of a clone it does not look into.
pub(in crate::repo) fn clone(remote: &Remote, path: &Path, user: &User, options: &SyncOptions) -> Result<()> {
    let wire = Wire::new(Arc::new(Exchange::new(remote, &options.cancel)));
    let log = wire.log();
    let request = SyncRequest {
        url: remote.url(),
        login: login(remote)?,
        local_user: user.to_string(),
        push: false,
        pull: true,
        private: options.private,
        unversioned: options.unversioned,
        transport: Box::new(wire),
    };
    let result = engine::clone(path, request);
    // The first reply of a clone may complain of a login for a project that the client did not know yet.
    result.map_err(|e| wire::take(&log).last_failure().unwrap_or(e))?;
    Store::open(path)?.check_all().map_err(|e| {
        let kind = if e.kind() == Kind::Corrupt { Kind::Refused } else { e.kind() };
        Error::new(kind, format!("the clone from {remote} is not what the server said: {e}"))
            .hint("Clone from another server, or have that one checked with `fossil test-integrity`.")
    })
}
