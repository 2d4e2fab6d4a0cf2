//! Writing one file. The old bytes or the new ones are there at every moment, also after a crash.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::aside::sync_folder;
use super::entry::{Entry, FileKind, id, not_a_file};
use super::root::{FOLDER, Tree};
use super::temp::{Temp, lock};
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TreePath};

impl Tree {
    /// Replaces the content of a regular file. Its mode stays. With `if_hash`, only while the file has that content.
    ///
    /// # Errors
    /// Those of [`read`](Self::read); `Changed` if the content is not `if_hash`; `Denied` for a symbolic link, a file
    /// with further hard links, a read-only file and a file of another checkout; `Busy` while another process writes
    /// in the folder; `DiskFull`. After an error the old content is there.
    pub fn replace(&self, path: &TreePath, content: &[u8], if_hash: Option<&Hash>) -> Result<Entry> {
        self.refuse_other_checkouts(path)?;
        if self.stat(path)?.kind == FileKind::Symlink {
            return Err(self.is_link(path));
        }
        let io = |e| self.explain("write", path, e);
        let (folder, name) = self.open_writing_folder(path.as_str()).map_err(io)?;
        let locked = lock(&folder, path)?;
        let old = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io)?;
        self.check_replaceable(path, &old)?;
        rustix::fs::accessat(&folder, name, Access::WRITE_OK, AtFlags::empty()).map_err(io)?;
        if let Some(expected) = if_hash {
            let mut found = Vec::new();
            self.read_into(path.as_str(), u64::MAX, &mut found).map_err(io)?;
            check_hash(path, &found, expected)?;
        }
        let temp = Temp::write(folder.as_fd(), locked, content, Some(&old)).map_err(io)?;
        let now = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io)?;
        if (id(&now), now.st_ctime, now.st_ctime_nsec) != (id(&old), old.st_ctime, old.st_ctime_nsec) {
            return Err(Error::new(
                Kind::Changed,
                format!("`{}` changed while it was being written", path.shown()),
            )
            .with_hint("Read the file again and repeat the edit on what is there now."));
        }
        temp.put(name).map_err(io)?;
        self.stat(path)
    }

    /// Makes a file with this content, and the folders that lead to it.
    ///
    /// # Errors
    /// `Exists` if the name, or one that looks equal, is there; `Denied` under a symbolic link or in another checkout;
    /// `Busy`; `DiskFull`. After an error there is no such file.
    pub fn create(&self, path: &TreePath, content: &[u8]) -> Result<Entry> {
        self.refuse_other_checkouts(path)?;
        let io = |e| self.explain("write", path, e);
        match self.lstat(path.as_str()) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                return Err(self.is_link(path));
            }
            Ok(_) => return Err(exists(path)),
            Err(Errno::NOENT) => {}
            Err(e) => return Err(io(e)),
        }
        if self.kept_out.iter().any(|k| k == path.as_str()) {
            return Err(Self::belongs_to_repository(path));
        }
        if let Some(found) = self.lookalike(path).filter(|found| found.is_twin) {
            return Err(Error::new(
                Kind::Exists,
                format!("cannot make `{}`: {}", path.shown(), found.described()),
            )
            .with_hint(format!("Use the name as it is on disk, `{}`.", found.name)));
        }
        self.make_folders(path.as_str()).map_err(io)?;
        let (folder, name) = self.open_writing_folder(path.as_str()).map_err(io)?;
        let locked = lock(&folder, path)?;
        let temp = Temp::write(folder.as_fd(), locked, content, None).map_err(io)?;
        match temp.put_new(name) {
            Err(Errno::EXIST) => Err(exists(path)),
            done => done.map_err(io),
        }?;
        self.stat(path)
    }

    /// Refuses a path that lies in a checkout nested in this one.
    fn refuse_other_checkouts(&self, path: &TreePath) -> Result<()> {
        for (at, _) in path.as_str().match_indices('/') {
            let folder = &path.as_str()[..at];
            match self.is_checkout(folder) {
                Ok(false) => {}
                Ok(true) => {
                    let what =
                        format!("`{}` belongs to another checkout, the one in `{folder}`", path.shown());
                    return Err(Error::new(Kind::Denied, what)
                        .with_hint("Work on it from a session in that checkout."));
                }
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    fn check_replaceable(&self, path: &TreePath, stat: &Stat) -> Result<()> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => Err(self.is_link(path)),
            FileType::RegularFile if stat.st_nlink > 1 => {
                let what =
                    format!("`{}` has {} hard links, which writing would part", path.shown(), stat.st_nlink);
                Err(Error::new(Kind::Denied, what)
                    .with_hint("Make it a file of its own first, by copying it."))
            }
            FileType::RegularFile => Ok(()),
            _ => Err(not_a_file(path, stat)),
        }
    }

    /// Opens the folder of `path` with a descriptor of its own, so that it can hold a lock.
    pub(super) fn open_writing_folder<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str), Errno> {
        let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
        let fd = match folder {
            "." => rustix::fs::openat(&self.root, ".", FOLDER | OFlags::CLOEXEC, Mode::empty())?,
            _ => self.open_beneath(folder, FOLDER)?,
        };
        Ok((fd, name))
    }

    /// Makes the folder at `path`, and those that it is in. What stands there already stays as it is.
    ///
    /// # Errors
    /// `Denied` for a part that is a link, `NotFound` for one that is a file; `DiskFull`, `Io`.
    pub(crate) fn make_folder(&self, path: &TreePath) -> Result<()> {
        self.make_folders(&format!("{path}/")).map_err(|e| self.explain("make the folder", path, e))
    }

    pub(super) fn make_folders(&self, path: &str) -> Result<(), Errno> {
        for (at, _) in path.match_indices('/') {
            let (folder, name) = self.open_folder_of(&path[..at])?;
            match rustix::fs::mkdirat(folder.as_fd(), name, Mode::from_raw_mode(0o777)) {
                Err(Errno::EXIST) => {}
                Ok(()) => sync_folder(folder.as_fd())?,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// Refuses an edit that was made for other content than is there.
fn check_hash(path: &TreePath, content: &[u8], expected: &Hash) -> Result<()> {
    if expected.names(content) {
        return Ok(());
    }
    let found = Hash::of(content);
    Err(Error::new(
        Kind::Changed,
        format!("`{}` changed: it is now {}, not {}", path.shown(), found.short(), expected.short()),
    )
    .with_hint("Read the file again and repeat the edit on what is there now."))
}

fn exists(path: &TreePath) -> Error {
    Error::new(Kind::Exists, format!("`{}` exists", path.shown())).with_hint("Edit the file that is there.")
}
