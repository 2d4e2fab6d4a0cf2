//! What a checkout gets beside the files that Fossil's own code writes into it.
//!
//! Fossil's code knows the settings of the tree and of the repository here, but not those that a user has for all
//! repositories.

use super::open::Checkout;
use crate::error::{Kind, Result};
use crate::format::FILE_MAX;
use crate::name::{Hash, TreePath};
use crate::tree::FileKind;

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
