//! A clone: Fossil's own, then a look at every artifact that came.

use std::path::Path;
use std::sync::Arc;

use super::SyncOptions;
use super::ask::{blame, login};
use super::turn::Turn;
use super::wire::{self, Wire};
use crate::engine::{self, SyncRequest};
use crate::error::Result;
use crate::name::User;
use crate::repo::store::Store;
use crate::sync::client::Exchange;
use crate::sync::remote::Remote;

/// Clones a server's repository into a new file. Fossil looks into nothing that came; here it is looked at before
/// anything is derived from it.
pub(crate) fn clone(remote: &Remote, path: &Path, user: &User, options: &SyncOptions) -> Result<()> {
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
    let result = {
        let _turn = Turn::take(&options.cancel)?;
        engine::with_cancel(&options.cancel, || engine::clone(path, request))
    };
    // The first reply of a clone may complain of a login for a project that the client did not know yet.
    result.map_err(|e| wire::take(&log).last_failure().unwrap_or_else(|| blame(remote, e)))?;
    Store::open(path)?.check_all().map_err(|e| blame(remote, e))?;
    engine::finish_clone(path, user.as_str())
}
