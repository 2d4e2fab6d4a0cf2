//! The root folder of a tree, and opening what lies below it without following a symbolic link.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use super::entry::id;
use crate::error::{Error, Result};
use crate::name::TreePath;

/// The folder of a checkout.
///
/// ```
/// use ocx::{name::TreePath, tree::Tree};
/// let folder = tempfile::tempdir()?;
/// let tree = Tree::open(folder.path())?;
/// let path = TreePath::parse("src/main.rs")?;
/// tree.create(&path, b"fn main() {}\n")?;
/// assert_eq!(tree.read(&path, 1_000)?, b"fn main() {}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tree {
    pub(super) root: OwnedFd,
    path: PathBuf,
    /// Paths below the root that belong to the repository, not to the tree.
    pub(super) kept_out: Vec<String>,
    /// Databases, under whatever name. Closing a descriptor of one would drop SQLite's locks on it.
    databases: Vec<(u64, u64)>,
}

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
    /// Opens the folder at `root`.
    ///
    /// # Errors
    /// `NotFound`, `Denied` or `Io` if it cannot be opened or is no folder.
    pub fn open(root: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(root, flags, Mode::empty())
            .map_err(|e| Error::io(format!("cannot open folder `{}`", root.display()), e.into()))?;
        let mut tree = Self { root: fd, path: root.to_owned(), kept_out: Vec::new(), databases: Vec::new() };
        for name in [".fslckout", "_FOSSIL_"] {
            tree.databases.extend(tree.lstat(name).ok().map(|s| id(&s)));
        }
        Ok(tree)
    }

    /// Keeps a database out of reach of every method. It is not listed, read or written, under any name it has in the
    /// tree. Neither are the files that SQLite makes beside it.
    #[must_use]
    pub fn keeping_out(mut self, database: &Path) -> Self {
        if let Ok(stat) = rustix::fs::stat(database) {
            self.databases.push(id(&stat));
        }
        let real = |path: &Path| path.canonicalize().ok();
        let folder = database.parent().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
        if let (Some(folder), Some(name), Some(root)) =
            (folder.and_then(real), database.file_name(), real(&self.path))
            && let Ok(below) = folder.join(name).strip_prefix(root)
            && let Some(below) = below.to_str()
        {
            self.kept_out.extend(["", "-wal", "-shm", "-journal"].map(|end| format!("{below}{end}")));
        }
        self
    }

    /// Leaves a file that Fossil itself writes, such as `manifest.uuid`, out of every listing.
    #[must_use]
    pub fn leaving_out(mut self, path: &TreePath) -> Self {
        self.kept_out.push(path.as_str().to_owned());
        self
    }

    /// The folder, as it was given.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.path
    }

    /// Whether what `stat` describes at `path` is kept out of the tree.
    pub(super) fn is_kept_out(&self, path: &str, stat: &Stat) -> bool {
        self.databases.contains(&id(stat)) || self.kept_out.iter().any(|k| k == path)
    }

    /// Opens `path` below the root. No part of it may be a symbolic link.
    pub(super) fn open_beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        #[cfg(target_os = "linux")]
        match by_openat2(self.root.as_fd(), path, flags) {
            // Old kernels lack the call, and some containers forbid it.
            Err(Errno::NOSYS | Errno::PERM) => {}
            done => return done,
        }
        part_by_part(self.root.as_fd(), path, flags)
    }

    /// Opens the folder at `path`. An empty path is the root.
    pub(super) fn open_folder(&self, path: &str) -> Result<Folder<'_>, Errno> {
        match path {
            "" => Ok(Folder::Root(self.root.as_fd())),
            _ => self.open_beneath(path, FOLDER).map(Folder::Below),
        }
    }

    /// Opens the folder that holds `path`. Returns it with the last part of the path.
    pub(super) fn open_folder_of<'p>(&self, path: &'p str) -> Result<(Folder<'_>, &'p str), Errno> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.open_folder(folder)?, name))
    }
}

#[cfg(target_os = "linux")]
fn by_openat2(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // The kernel returns AGAIN if a rename elsewhere kept it from being sure that it stayed beneath.
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
