//! Emptying a folder, whatever lies in it: folders without permissions, names of any bytes, nests of any depth.
//!
//! Each nested folder is first moved up to the top, so the stack and the number of open folders do not grow with the
//! depth. No link is followed, and nothing is opened but folders.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::root::FOLDER;

const OWN: Mode = Mode::RWXU;

/// Removes all that lies in `top`. The folder itself stays.
///
/// # Errors
/// The first thing that cannot be removed, and why.
pub(crate) fn clear(top: BorrowedFd<'_>) -> Result<(), (String, Errno)> {
    let mut moved = 0;
    loop {
        let names = list(top).map_err(|e| (".".to_owned(), e))?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            remove(top, &name, &mut moved).map_err(|e| (name.to_string_lossy().into_owned(), e))?;
        }
    }
}

/// Removes `name` in `top`. Folders in it move up to `top`.
fn remove(top: BorrowedFd<'_>, name: &CString, moved: &mut u64) -> Result<(), Errno> {
    if !is_folder(top, name)? {
        return unlink(top, name);
    }
    let folder = open(top, name)?;
    for inner in list(folder.as_fd())? {
        if is_folder(folder.as_fd(), &inner)? {
            // Moving a folder changes its `..`, which needs the right to write in it.
            let _ = rustix::fs::chmodat(&folder, &*inner, OWN, AtFlags::empty());
            move_up(&folder, &inner, top, moved)?;
        } else {
            unlink(folder.as_fd(), &inner)?;
        }
    }
    ignore_missing(rustix::fs::unlinkat(top, &**name, AtFlags::REMOVEDIR))
}

fn move_up(folder: &OwnedFd, inner: &CString, top: BorrowedFd<'_>, moved: &mut u64) -> Result<(), Errno> {
    loop {
        *moved += 1;
        let name = format!(".ocx-clear-{moved}");
        match rustix::fs::renameat_with(folder, &**inner, top, &*name, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            done => return ignore_missing(done),
        }
    }
}

fn open(top: BorrowedFd<'_>, name: &CString) -> Result<OwnedFd, Errno> {
    let flags = FOLDER | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Its own permissions may forbid what the removal needs.
    let _ = rustix::fs::chmodat(top, &**name, OWN, AtFlags::empty());
    rustix::fs::openat(top, &**name, flags, Mode::empty())
}

fn is_folder(at: BorrowedFd<'_>, name: &CString) -> Result<bool, Errno> {
    match rustix::fs::statat(at, &**name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(e),
    }
}

fn unlink(at: BorrowedFd<'_>, name: &CString) -> Result<(), Errno> {
    ignore_missing(rustix::fs::unlinkat(at, &**name, AtFlags::empty()))
}

fn ignore_missing(done: Result<(), Errno>) -> Result<(), Errno> {
    match done {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}

fn list(folder: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for item in Dir::read_from(folder)? {
        let name = item?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn n19_whatever_a_test_left_can_be_removed() {
        let place = tempfile::tempdir().unwrap();
        let kept = place.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "stays").unwrap();
        let top = place.path().join("top");
        fs::create_dir_all(top.join("t/ro/x")).unwrap();
        symlink(&kept, top.join("t/link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, top.join("t/pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        fs::write(top.join("t").join("n".repeat(255)), "").unwrap();
        fs::write(top.join("t").join(std::ffi::OsStr::from_bytes(b"\xff\n")), "").unwrap();
        let mut deep = fs::File::open(&top).map(OwnedFd::from).unwrap();
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&deep, "d", OWN).unwrap();
            deep = rustix::fs::openat(&deep, "d", FOLDER, Mode::empty()).unwrap();
        }
        drop(deep);
        for folder in ["t/ro/x", "t/ro", "t"] {
            fs::set_permissions(top.join(folder), fs::Permissions::from_mode(0o000)).unwrap();
        }
        clear(fs::File::open(&top).unwrap().as_fd()).unwrap();
        assert_eq!(fs::read_dir(&top).unwrap().count(), 0);
        assert_eq!(fs::read(kept.join("file")).unwrap(), b"stays");
    }
}
