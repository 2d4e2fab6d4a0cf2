//! Which files are tracked, and why others are left out of a check-in.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::open::Checkout;
use crate::error::{Error, Kind, Result};
use crate::name::TreePath;
use crate::repo::store::Files;
use crate::tree::{Tracked, Why};

/// The paths of the parent check-in, and those that somebody told Fossil of since.
#[derive(Debug)]
pub struct TrackedPaths {
    pub(super) before: Arc<Files>,
    pub(super) added: BTreeSet<TreePath>,
}

impl Tracked for TrackedPaths {
    fn holds(&self, path: &str) -> bool {
        self.before.holds(path) || self.added.holds(path)
    }

    fn reaches_into(&self, folder: &str) -> bool {
        self.before.reaches_into(folder) || self.added.reaches_into(folder)
    }
}

impl Checkout {
    /// Which paths are tracked.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn tracked(&self) -> Result<TrackedPaths> {
        let before = self.repository().store().files(&self.parent()?)?;
        Ok(TrackedPaths { before, added: self.known_files()?.added })
    }

    /// Why a check-in would leave this file or folder out. There need not be one yet.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn why_left_out(&self, path: &TreePath) -> Result<Option<Why>> {
        self.tree().why_left_out(path, &self.rules()?, &self.tracked()?)
    }

    /// Refuses a path that [`status_including`](Self::status_including) could not take.
    ///
    /// # Errors
    /// [`Kind::NotFound`] for what is not there, [`Kind::Denied`] for what no check-in holds.
    pub fn check_included(&self, path: &TreePath) -> Result<()> {
        self.tree().is_folder(path)?;
        match self.why_left_out(path)?.filter(|why| !why.can_be_included()) {
            None => Ok(()),
            Some(why) => {
                let what = format!("`{}` is {why}, which no check-in of this one holds", path.shown());
                Err(Error::new(Kind::Denied, what).with_hint("Name only files of this checkout."))
            }
        }
    }
}
