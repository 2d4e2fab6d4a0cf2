//! Which files are tracked, and why others are left out of a check-in.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::open::Checkout;
use crate::error::{Error, Kind, Result};
use crate::name::TreePath;
use crate::repo::store::Files;
use crate::tree::FileKind;
use crate::tree::ignore::Ignore;
use crate::tree::{Known, Rules, Stamp, Tracked, Why};

/// The paths of the parent check-in, and those that somebody told Fossil of since.
#[derive(Debug)]
pub struct TrackedPaths {
    pub(super) before: Arc<Files>,
    pub(super) added: BTreeSet<TreePath>,
    pub(super) removed: BTreeSet<TreePath>,
}

impl Tracked for TrackedPaths {
    fn holds(&self, path: &str) -> bool {
        (self.before.holds(path) && !self.removed.holds(path)) || self.added.holds(path)
    }

    fn reaches_into(&self, folder: &str) -> bool {
        self.before.reaches_into(folder) || self.added.reaches_into(folder)
    }
}

/// What is known of files, except that those to be removed must be looked at.
pub(super) struct KnownBut<'a, K> {
    pub known: &'a K,
    pub removed: &'a BTreeSet<TreePath>,
}

impl<K: Known> Known for KnownBut<'_, K> {
    fn number(&self, path: &str, kind: FileKind, stamp: &Stamp) -> Option<usize> {
        if self.removed.contains(path) {
            return None;
        }
        self.known.number(path, kind, stamp)
    }
}

impl Checkout {
    /// Which paths are tracked.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn tracked(&self) -> Result<TrackedPaths> {
        let before = self.repository().store().files(&self.parent()?)?;
        let known = self.known_files()?;
        Ok(TrackedPaths { before, added: known.added, removed: known.removed })
    }

    /// What leaves untracked files out of a check-in.
    ///
    /// # Errors
    /// [`Kind::Busy`], [`Kind::Corrupt`]; [`Kind::TooLarge`] for a setting in the tree.
    pub fn rules(&self) -> Result<Rules> {
        let removed = self.state(|db| self.removed(db))?;
        Ok(Rules { removed, ..self.rules_set()? })
    }

    /// The same as far as settings say it.
    pub(super) fn rules_set(&self) -> Result<Rules> {
        let settings = self.settings();
        Ok(Rules {
            ignore: Ignore::parse(&settings.value("ignore-glob")?.unwrap_or_default()),
            dotfiles: settings.is_on("dotfiles")?,
            beside: self.beside()?.into_iter().map(|beside| beside.path).collect(),
            ..Rules::default()
        })
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
