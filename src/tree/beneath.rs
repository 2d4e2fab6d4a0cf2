//! Opening below the root folder, following no symbolic link.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Tree;

/// A folder that is open: the root itself, or one opened below it.
pub(super) enum Folder<'a> {
    Root(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl Folder<'_> {
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(fd) => *fd,
            Self::Below(fd) => fd.as_fd(),
        }
    }
}

/// How a folder is opened.
pub(super) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

impl Tree {
    /// Opens `path` below the root; no part of it may be a symbolic link.
    pub(super) fn open_beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        #[cfg(target_os = "linux")]
        match by_openat2(self.root.as_fd(), path, flags) {
            // Old kernels lack the call; some containers forbid it.
            Err(Errno::NOSYS | Errno::PERM) => {}
            done => return done,
        }
        part_by_part(self.root.as_fd(), path, flags)
    }

    /// Opens the folder at `path`, the root for an empty one.
    pub(super) fn open_folder(&self, path: &str) -> Result<Folder<'_>, Errno> {
        match path {
            "" => Ok(Folder::Root(self.root.as_fd())),
            _ => self.open_beneath(path, FOLDER).map(Folder::Below),
        }
    }

    /// Opens the folder that holds `path`, and gives the last part.
    pub(super) fn open_folder_of<'p>(&self, path: &'p str) -> Result<(Folder<'_>, &'p str), Errno> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.open_folder(folder)?, name))
    }
}

#[cfg(target_os = "linux")]
fn by_openat2(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // The kernel gives AGAIN when a rename elsewhere kept it from being sure that it stayed beneath.
    for _ in 0..16 {
        match openat2(root, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            done => return done,
        }
    }
    part_by_part(root, path, flags)
}

/// Opens each part of `path` from the one before.
fn part_by_part(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let step = FOLDER | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut folder: Option<OwnedFd> = None;
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    for part in folders.split('/').filter(|part| !part.is_empty()) {
        let from = folder.as_ref().map_or(root, AsFd::as_fd);
        folder = Some(rustix::fs::openat(from, part, step, Mode::empty())?);
    }
    rustix::fs::openat(folder.as_ref().map_or(root, AsFd::as_fd), name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_open_the_same_and_follow_no_link() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::write(folder.path().join("a/b/f"), "x").unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("b/f", folder.path().join("a/last")).unwrap();
        let tree = Tree::open(folder.path()).unwrap();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        for path in ["link/b/f", "a/last", "link", "a/none", "a/b/f"] {
            let (one, two) =
                (by_openat2(tree.root.as_fd(), path, flags), part_by_part(tree.root.as_fd(), path, flags));
            for opened in [one, two] {
                match path {
                    "a/b/f" => assert!(opened.is_ok()),
                    "a/none" => assert_eq!(opened.unwrap_err(), Errno::NOENT),
                    _ => assert!(matches!(opened, Err(Errno::LOOP | Errno::NOTDIR)), "{path}: {opened:?}"),
                }
            }
        }
    }
}
