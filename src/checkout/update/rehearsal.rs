//! A copy of a checkout in which something is tried. Nothing of it stays.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::backups::in_the_way;
use super::obstacle::refuse_obstacles;
use crate::checkout::database;
use crate::checkout::open::{Checkout, not_utf8};
use crate::checkout::settings::{GlobalSettings, VERSIONABLE};
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
        let in_the_way = in_the_way(self, &status, versions)?;
        let rules = self.rule_files(&in_the_way);
        let rules =
            rules.iter().filter(|path| !status.files.contains_key(*path) && !in_the_way.contains(*path));
        for path in status.files.keys().chain(&in_the_way).chain(rules) {
            self.copy_file(path, folder.path())?;
        }
        act(&Self::at_with(folder.path(), self.global.as_ref().map(GlobalSettings::path))?)
    }

    /// The files, tracked or not, that say which of these paths are left out.
    fn rule_files(&self, paths: &BTreeSet<TreePath>) -> BTreeSet<TreePath> {
        let folders = paths
            .iter()
            .flat_map(|path| path.as_str().match_indices('/').map(|(at, _)| &path.as_str()[..=at]));
        let gitignores = folders.chain([""]).map(|folder| format!("{folder}.gitignore"));
        let settings = VERSIONABLE.iter().map(|name| format!(".fossil-settings/{name}"));
        let named = gitignores.chain(settings).filter_map(|name| TreePath::parse_stored(&name).ok());
        named.filter(|path| self.tree.stat(path).is_ok()).collect()
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
