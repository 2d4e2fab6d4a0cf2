//! The bytes of a file exactly as a check-in would hold them.

use super::open::Checkout;
use crate::error::{Error, Kind, Result};
use crate::format::FILE_MAX;
use crate::name::TreePath;
use crate::repo::store::FileEntry;
use crate::tree::FileKind;

impl Checkout {
    /// The content that a status found at `path`: from the working folder, or from the repository if the folder no
    /// longer has it.
    ///
    /// # Errors
    /// [`Kind::Changed`] if neither has it.
    pub(crate) fn stored_content(&self, path: &TreePath, file: &FileEntry) -> Result<Vec<u8>> {
        let read = match self.kind_on_disk(file.kind)? {
            FileKind::Symlink => self.tree().read_link(path),
            FileKind::Regular | FileKind::Executable => self.tree().read(path, FILE_MAX),
        };
        match read {
            Ok(content) if file.hash.names(&content) => Ok(content),
            _ => self.repository().store().content(&file.hash).map_err(|e| {
                Error::new(Kind::Changed, format!("`{}` changed while it was looked at", path.shown()))
                    .with_hint("Look at the changes again.")
                    .caused_by(e)
            }),
        }
    }

    /// How a file of this kind lies on the disk: a stored link is a file where links are off.
    pub(crate) fn kind_on_disk(&self, kind: FileKind) -> Result<FileKind> {
        Ok(if kind == FileKind::Symlink && !self.allows_symlinks()? { FileKind::Regular } else { kind })
    }
}
