//! Copies of the files that Fossil's code could lose: changed files, and files in places where others will come.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::checkout::open::Checkout;
use crate::checkout::status::Status;
use crate::error::{Error, Result};
use crate::format::FILE_MAX;
use crate::name::{Hash, TreePath};
use crate::repo::store::FileEntry;
use crate::tree::FileKind;

/// Copies of files, in a file without a name. So nothing is left of it, whatever happens.
pub(super) struct Backups {
    file: Mutex<File>,
    kept: BTreeMap<TreePath, Kept>,
}

/// A file of which there is a copy.
pub(super) struct Kept {
    pub entry: FileEntry,
    /// Whether it was not part of the checkout.
    pub unmanaged: bool,
    start: u64,
    size: u64,
}

impl Backups {
    /// Holds no file.
    pub fn empty(checkout: &Checkout) -> Result<Self> {
        let folder = checkout.repository().path().parent().unwrap_or(checkout.root());
        let file = tempfile::tempfile_in(folder).map_err(|e| Error::io("cannot make a temporary file", e))?;
        Ok(Self { file: Mutex::new(file), kept: BTreeMap::new() })
    }

    /// Copies each file that differs from the parent check-in, and each that is not part of the checkout and lies
    /// where a file of one of `versions` is.
    pub fn of(checkout: &Checkout, status: &Status, versions: &[Hash]) -> Result<Self> {
        let mut backups = Self::empty(checkout)?;
        for change in &status.changes {
            if let Some(entry) = status.files.get(&change.path) {
                backups.keep(checkout, &change.path, Some(*entry))?;
            }
        }
        for path in in_the_way(checkout, status, versions)? {
            backups.keep(checkout, &path, None)?;
        }
        Ok(backups)
    }

    fn keep(&mut self, checkout: &Checkout, path: &TreePath, known: Option<FileEntry>) -> Result<()> {
        let found = checkout.tree().stat(path)?;
        let bytes = checkout.tree().content(&found, FILE_MAX)?;
        let file = self.file.get_mut();
        let io = |e| Error::io(format!("cannot copy `{}`", path.shown()), e);
        let start = file.seek(SeekFrom::End(0)).map_err(io)?;
        file.write_all(&bytes).map_err(io)?;
        let entry = FileEntry { hash: Hash::of(&bytes), kind: known.map_or(found.kind, |known| known.kind) };
        self.kept.insert(
            path.clone(),
            Kept { entry, unmanaged: known.is_none(), start, size: bytes.len() as u64 },
        );
        Ok(())
    }

    /// The copied files, by path.
    pub fn kept(&self) -> impl Iterator<Item = (&TreePath, &Kept)> {
        self.kept.iter()
    }

    fn bytes(&self, kept: &Kept) -> Result<Vec<u8>> {
        let mut file = self.file.lock();
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(kept.start))
            .and_then(|_| Read::by_ref(&mut *file).take(kept.size).read_to_end(&mut bytes))
            .map_err(|e| Error::io("cannot read a temporary file", e))?;
        Ok(bytes)
    }

    /// Writes a copied file to a path of the checkout.
    pub fn restore(&self, checkout: &Checkout, kept: &Kept, path: &TreePath) -> Result<()> {
        write(checkout, path, kept.entry.kind, &self.bytes(kept)?)
    }

    /// Makes the files what they were at `before`, from the copies and from what the repository holds.
    pub fn put_back(&self, checkout: &Checkout, before: &Status) -> Result<()> {
        let now = checkout.status()?;
        for path in now.files.keys().filter(|path| !before.files.contains_key(*path)) {
            fs::remove_file(checkout.root().join(path.as_str()))
                .map_err(|e| Error::io(format!("cannot remove `{}`", path.shown()), e))?;
        }
        for (path, entry) in before.files.iter().filter(|(path, entry)| now.files.get(*path) != Some(*entry))
        {
            match self.kept.get(path) {
                Some(kept) => self.restore(checkout, kept, path)?,
                None => {
                    write(checkout, path, entry.kind, &checkout.repository().store().content(&entry.hash)?)?;
                }
            }
        }
        for (path, kept) in self.kept.iter().filter(|(_, kept)| kept.unmanaged) {
            self.restore(checkout, kept, path)?;
        }
        Ok(())
    }
}

/// Returns the paths of files that are not part of the checkout and lie where a file of one of `versions` is.
pub(super) fn in_the_way(
    checkout: &Checkout,
    status: &Status,
    versions: &[Hash],
) -> Result<BTreeSet<TreePath>> {
    let mut paths = BTreeSet::new();
    for version in versions {
        for path in checkout.repository().store().files(version)?.keys() {
            if !status.files.contains_key(path) && checkout.tree().stat(path).is_ok() {
                paths.insert(path.clone());
            }
        }
    }
    Ok(paths)
}

fn write(checkout: &Checkout, path: &TreePath, kind: FileKind, bytes: &[u8]) -> Result<()> {
    let place = checkout.root().join(path.as_str());
    let written = (|| {
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        if place.symlink_metadata().is_ok() {
            fs::remove_file(&place)?;
        }
        if kind == FileKind::Symlink && checkout.allows_symlinks().unwrap_or(false) {
            return symlink(std::ffi::OsStr::new(&*String::from_utf8_lossy(bytes)), &place);
        }
        fs::write(&place, bytes)?;
        let mode = if kind == FileKind::Executable { 0o755 } else { 0o644 };
        fs::set_permissions(&place, fs::Permissions::from_mode(mode))
    })();
    written.map_err(|e| Error::io(format!("cannot write `{}`", path.shown()), e))
}
