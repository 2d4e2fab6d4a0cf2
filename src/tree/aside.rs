//! Files that are made under another name first, so that at each moment, also after a crash, the name they are for
//! stands for the old bytes, for the new ones, or for nothing.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::name::TEMP_PREFIX;

/// Writes a file with this content and these permission bits, in place of any that has the name.
pub(crate) fn replace_file(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = tempfile::Builder::new()
        .prefix(TEMP_PREFIX)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder_of(path))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(sync_folder(File::open(folder_of(path))?.as_fd())?)
}

/// Gives the file at `from` the name `to` in the same folder, unless that is taken.
pub(crate) fn name_new(from: &Path, to: &Path) -> io::Result<()> {
    let names = from.file_name().zip(to.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(name_new_at(File::open(folder_of(to))?.as_fd(), names.0, names.1)?)
}

/// Gives the file `from` in `folder` the name `to`, unless that is taken.
pub(super) fn name_new_at(
    folder: BorrowedFd<'_>,
    from: impl Arg + Copy,
    to: impl Arg + Copy,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        // Not every file system can do this. A second name, and then none of the first, does the same.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
            rustix::fs::unlinkat(folder, from, AtFlags::empty())?;
        }
        Err(e) => return Err(e),
    }
    sync_folder(folder)
}

/// Puts a folder's names on the disk, where the file system can.
pub(super) fn sync_folder(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    match rustix::fs::fsync(folder) {
        Err(Errno::INVAL | Errno::NOTSUP | Errno::BADF) => Ok(()),
        done => done,
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
