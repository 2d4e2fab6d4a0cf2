//! What a checkout gets beside the files that Fossil's own code writes into it.
//!
//! Fossil's code knows the settings of the tree and of the repository here, but not those that a user has for all
//! repositories.

use super::open::Checkout;
use crate::error::{Error, Kind, Result};
use crate::format::FILE_MAX;
use crate::name::{Hash, TreePath};
use crate::repo::Store;
use crate::repo::setting::Settings;
use crate::repo::store::Files;
use crate::tree::FileKind;

/// Refuses a check-in whose setting `empty-dirs`, or the repository's, names a folder that is not in the tree.
pub(super) fn refuse_folders_outside(store: &Store, hash: &Hash) -> Result<()> {
    let files = store.files(hash)?;
    let folders = Settings::of_check_in(store, &files).empty_dirs()?;
    match folders.iter().find_map(|folder| link_on(&files, folder).map(|link| (folder, link))) {
        None => Ok(()),
        Some((folder, link)) => {
            let what = format!(
                "the setting `empty-dirs` names `{}`, and `{link}` is a symbolic link in the tree",
                folder.shown()
            );
            Err(Error::new(Kind::Denied, what)
                .with_hint("Nothing was made. Have the setting name only folders in the tree."))
        }
    }
}

/// The symbolic link among the files that lies on the way to `folder`, or in its place.
fn link_on<'a>(files: &Files, folder: &'a TreePath) -> Option<&'a str> {
    let path = folder.as_str();
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.map(|end| &path[..end])
        .find(|part| files.get(*part).is_some_and(|file| file.kind == FileKind::Symlink))
}

impl Checkout {
    /// Heeds what the user has set for all repositories, after Fossil's code has laid out the files of `hash`.
    pub(super) fn lay_as_the_user_wants(&self, hash: &Hash) -> Result<()> {
        if self.global.is_none() {
            return Ok(());
        }
        if self.allows_symlinks()? {
            let files = self.repository.store().files(hash)?;
            let links = files.iter().filter(|(_, file)| file.kind == FileKind::Symlink);
            for (path, _) in links {
                self.make_link(path)?;
            }
        }
        self.make_empty_dirs()?;
        self.write_manifest(hash)
    }

    /// Makes the folders that the setting `empty-dirs` names, beneath the descriptor of the tree. Where a file stands in
    /// the way, none is made, as with Fossil.
    ///
    /// # Errors
    /// [`Kind::Denied`] for a name or a link that leads out of the tree.
    pub(super) fn make_empty_dirs(&self) -> Result<()> {
        for folder in self.settings().empty_dirs()? {
            match self.tree.make_folder(&folder) {
                Err(e) if e.kind() != Kind::NotFound => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes a link of a file that holds the target of one.
    fn make_link(&self, path: &TreePath) -> Result<()> {
        let entry = self.tree.stat(path)?;
        if entry.kind != FileKind::Symlink {
            let target = self.tree.read(path, FILE_MAX)?;
            self.tree.put(path, &target, FileKind::Symlink, entry.stamp.mtime_ns)?;
        }
        Ok(())
    }
}
