//! A copy of a checkout in which something is tried. Nothing of it stays.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::backups::in_the_way;
use super::obstacle::refuse_obstacles;
use crate::checkout::database;
use crate::checkout::open::{Checkout, not_utf8};
use crate::error::{Error, Result};
use crate::name::{Hash, TEMP_PREFIX, TreePath};

impl Checkout {
    /// Runs `act` on a copy of this checkout that has every file that bringing in `versions` could touch. Writes
    /// nothing to this checkout.
    pub(super) fn rehearse<T>(&self, versions: &[Hash], act: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let status = self.status()?;
        refuse_obstacles(self, &*self.repository.store().files(&status.parent)?, versions)?;
        let beside = self.repository.path().parent().unwrap_or(&self.root);
        let folder = tempfile::Builder::new()
            .prefix(TEMP_PREFIX)
            .tempdir_in(beside)
            .map_err(|e| Error::io("cannot make a folder to try it in", e))?;
        self.copy_database(folder.path())?;
        for path in status.files.keys().chain(&in_the_way(self, &status, versions)?) {
            self.copy_file(path, folder.path())?;
        }
        act(&Self::at(folder.path())?)
    }

    fn copy_database(&self, folder: &Path) -> Result<()> {
        let copy = folder.join(database::NAMES[0]);
        let not_utf8 = || not_utf8(folder);
        let (to, repository) =
            (copy.to_str().ok_or_else(not_utf8)?, self.repository.path().to_str().ok_or_else(not_utf8)?);
        self.state(|db| Ok(db.execute("VACUUM INTO ?1", [to])?))?;
        let db = database::connect(&copy)?;
        // In this file, the path may be relative to the folder.
        db.execute("REPLACE INTO vvar(name, value) VALUES('repository', ?1)", [repository])?;
        Ok(())
    }

    fn copy_file(&self, path: &TreePath, folder: &Path) -> Result<()> {
        let (from, to) = (self.root.join(path.as_str()), folder.join(path.as_str()));
        let copied = (|| {
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            if from.symlink_metadata()?.is_symlink() {
                return symlink(fs::read_link(&from)?, &to);
            }
            fs::copy(&from, &to).map(drop)
        })();
        copied.map_err(|e| Error::io(format!("cannot copy `{}`", path.shown()), e))
    }
}
