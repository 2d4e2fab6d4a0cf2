//! Files that are made under another name first. So at each moment, also after a crash, the real name stands for the
//! old bytes, for the new ones, or for nothing.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use rustix::path::Arg;
use tempfile::NamedTempFile;

use crate::name::TEMP_PREFIX;

/// Writes a file with this content and these permission bits. It replaces any file that has the name.
pub(crate) fn replace_file(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = new_beside(path, mode)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(sync_folder(File::open(folder_of(path))?.as_fd())?)
}

/// Makes an empty file beside `path` that shall get that name later. Dropping it removes it.
pub(crate) fn new_beside(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(TEMP_PREFIX)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder_of(path))
}

/// Puts a file on the disk and gives it the name `path`, unless something has that name.
pub(crate) fn persist_new(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    Ok(sync_folder(File::open(folder_of(path))?.as_fd())?)
}

/// Gives the file at `from` the name `to` in the same folder, unless something has that name.
pub(crate) fn name_new(from: &Path, to: &Path) -> io::Result<()> {
    let names = from.file_name().zip(to.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(name_new_at(File::open(folder_of(to))?.as_fd(), names.0, names.1)?)
}

/// Gives the file `from` in `folder` the name `to`, unless something has that name.
pub(super) fn name_new_at(
    folder: BorrowedFd<'_>,
    from: impl Arg + Copy,
    to: impl Arg + Copy,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        // Not every file system can do this. Then a second name is given, and the first one removed.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
            rustix::fs::unlinkat(folder, from, AtFlags::empty())?;
        }
        Err(e) => return Err(e),
    }
    sync_folder(folder)
}

/// Puts a folder's names on the disk, if the file system can do that.
pub(super) fn sync_folder(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    match rustix::fs::fsync(folder) {
        Err(Errno::INVAL | Errno::NOTSUP | Errno::BADF) => Ok(()),
        done => done,
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
