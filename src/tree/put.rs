//! Putting a file into a folder that belongs to this program alone, where programs of others have run since.
//!
//! Whatever stands in the way goes: a link, a pipe, a folder. No link is followed, so nothing outside is touched.
//! Nothing waits for the disk: what a crash spoils is made anew.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::clear::clear;
use super::entry::{FileKind, Stamp};
use super::root::{FOLDER, Tree};
use crate::error::{Error, Result};
use crate::name::TreePath;

impl Tree {
    /// Makes the file or link at `path` with this content and this time of change, in place of what is there. Returns
    /// what tells later that it is still the same.
    ///
    /// # Errors
    /// `Denied`, `DiskFull` or `Io`, naming the path.
    pub(crate) fn put(
        &self,
        path: &TreePath,
        content: &[u8],
        kind: FileKind,
        mtime_ns: i64,
    ) -> Result<Stamp> {
        self.put_at(path.as_str(), content, kind, mtime_ns).map_err(|e| {
            Error::io(format!("cannot write `{}` in `{}`", path.shown(), self.root().display()), e.into())
        })
    }

    fn put_at(&self, path: &str, content: &[u8], kind: FileKind, mtime_ns: i64) -> Result<Stamp, Errno> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = self.forced_folder(folders)?;
        make_way(folder.as_fd(), name)?;
        let times = Timestamps { last_access: timespec(mtime_ns), last_modification: timespec(mtime_ns) };
        if kind == FileKind::Symlink {
            rustix::fs::symlinkat(content, &folder, name)?;
            rustix::fs::utimensat(&folder, name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            return Ok(Stamp::of(&rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?));
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&folder, name, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(content).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
        let mode = if kind == FileKind::Executable { 0o755 } else { 0o644 };
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        rustix::fs::futimens(&file, &times)?;
        Ok(Stamp::of(&rustix::fs::fstat(&file)?))
    }

    /// Makes the folder at `path`, in place of whatever else is there.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    pub(crate) fn put_folder(&self, path: &str) -> Result<()> {
        let made = self.forced_folder(path);
        made.map(drop)
            .map_err(|e| Error::io(format!("cannot make `{path}` in `{}`", self.root().display()), e.into()))
    }

    /// Makes the folder at `path`, new and empty, in place of whatever is there.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    pub(crate) fn put_new_folder(&self, path: &TreePath) -> Result<()> {
        let (folders, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        let way = self.forced_folder(folders).and_then(|folder| make_way(folder.as_fd(), name));
        way.map_err(|e| {
            Error::io(format!("cannot remove `{}` in `{}`", path.shown(), self.root().display()), e.into())
        })?;
        self.put_folder(path.as_str())
    }

    /// Opens a folder below the root. A part of its path that is no folder becomes one.
    fn forced_folder(&self, path: &str) -> Result<OwnedFd, Errno> {
        let step = FOLDER | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if path.is_empty() {
            return rustix::fs::openat(&self.root, ".", step, Mode::empty());
        }
        if let Ok(folder) = self.open_beneath(path, FOLDER) {
            return Ok(folder);
        }
        let mut folder = rustix::fs::openat(&self.root, ".", step, Mode::empty())?;
        for part in path.split('/') {
            match rustix::fs::statat(&folder, part, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777) | Mode::RWXU;
                    // Only a folder whose permissions were taken away needs them back, and fails below if it cannot.
                    let _ = rustix::fs::chmodat(&folder, part, mode, AtFlags::empty());
                }
                Ok(_) => rustix::fs::unlinkat(&folder, part, AtFlags::empty())?,
                Err(Errno::NOENT) => {}
                Err(e) => return Err(e),
            }
            match rustix::fs::mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(e),
            }
            folder = rustix::fs::openat(&folder, part, step, Mode::empty())?;
        }
        Ok(folder)
    }

    /// What tells that the file or link at `path` is the same as before; nothing where there is none.
    pub(crate) fn stamp(&self, path: &TreePath) -> Option<Stamp> {
        self.lstat(path.as_str()).ok().map(|stat| Stamp::of(&stat))
    }
}

/// Removes whatever has this name.
fn make_way(folder: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(e) => return Err(e),
    }
    let _ = rustix::fs::chmodat(folder, name, Mode::RWXU, AtFlags::empty());
    let flags = FOLDER | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    clear(inner.as_fd()).map_err(|(_, e)| e)?;
    rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
}

fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns.div_euclid(1_000_000_000), tv_nsec: ns.rem_euclid(1_000_000_000) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_takes_the_place_of_whatever_stands_there() {
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("tree"), place.path().join("outside"));
        fs::create_dir_all(root.join("folder/full/of")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("f"), "theirs").unwrap();
        symlink(&outside, root.join("link")).unwrap();
        symlink(outside.join("f"), root.join("file")).unwrap();
        fs::write(root.join("part"), "a file").unwrap();
        fs::hard_link(outside.join("f"), root.join("hard")).unwrap();
        let tree = Tree::open(&root).unwrap();
        for path in ["folder", "link/f", "file", "part/below", "hard", "new/a/b"] {
            let at = TreePath::parse(path).unwrap();
            let stamp = tree.put(&at, b"ours", FileKind::Executable, 1_700_000_000_500_000_000).unwrap();
            let made = fs::symlink_metadata(root.join(path)).unwrap();
            assert_eq!((made.mtime(), made.mtime_nsec()), (1_700_000_000, 500_000_000));
            assert_eq!((made.permissions().mode() & 0o777, made.ino()), (0o755, stamp.inode));
            assert_eq!(tree.stamp(&at), Some(stamp));
        }
        assert_eq!(fs::read(outside.join("f")).unwrap(), b"theirs");
        let link = TreePath::parse("new/link").unwrap();
        tree.put(&link, b"../part", FileKind::Symlink, 0).unwrap();
        assert_eq!(fs::read_link(root.join("new/link")).unwrap(), std::path::Path::new("../part"));
    }
}
