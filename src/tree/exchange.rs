//! Putting a file in the place of another one of which it is known what it is. What anybody else put there meanwhile
//! stays.
//!
//! No link is followed, and at each moment the old file or the new one stands at its place.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::entry::{FileKind, Stamp, id, kind};
use super::root::{FOLDER, Tree};
use super::temp::{Temp, lock, remove_leftovers};
use crate::error::{Error, Kind, Result};
use crate::format::FILE_MAX;
use crate::name::{Hash, TreePath};

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lies {
    /// Nothing, or a part of the path is no folder.
    Nothing,
    /// A file or a link that a check-in can hold.
    File(FileKind),
    /// A folder that is no checkout.
    Folder,
    /// What this program does not touch: a socket, a database, another checkout, a file that is too large.
    Fixed,
}

impl Tree {
    /// What lies at `path`.
    ///
    /// # Errors
    /// `Denied` or `Io` if the disk does not tell.
    pub(crate) fn lies(&self, path: &str) -> Result<Lies> {
        let stat = match self.lstat(path) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Lies::Nothing),
            Err(e) => return Err(Error::io(format!("cannot look at `{path}`"), e.into())),
        };
        if self.is_kept_out(path, &stat) {
            return Ok(Lies::Fixed);
        }
        let is_too_large = u64::try_from(stat.st_size).unwrap_or(0) > FILE_MAX;
        Ok(match (kind(&stat), FileType::from_raw_mode(stat.st_mode)) {
            (Some(FileKind::Symlink), _) => Lies::File(FileKind::Symlink),
            (Some(_), _) if is_too_large => Lies::Fixed,
            (Some(kind), _) => Lies::File(kind),
            (None, FileType::Directory) if !self.is_checkout(path).unwrap_or(true) => Lies::Folder,
            (None, _) => Lies::Fixed,
        })
    }

    /// Everything below a folder that is no plain folder, in no order.
    ///
    /// # Errors
    /// As [`lies`](Self::lies).
    pub(crate) fn below(&self, folder: &str) -> Result<Vec<(String, Lies)>> {
        let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(folder) = folders.pop() {
            let io = |e: Errno| Error::io(format!("cannot list `{folder}`"), e.into());
            let open = self.open_folder(&folder).map_err(io)?;
            for item in Dir::read_from(open.as_fd()).map_err(io)? {
                let item = item.map_err(io)?;
                let name = item.file_name().to_string_lossy();
                if matches!(&*name, "." | "..") {
                    continue;
                }
                let path = format!("{folder}/{name}");
                match self.lies(&path)? {
                    Lies::Folder => folders.push(path),
                    other => found.push((path, other)),
                }
            }
        }
        Ok(found)
    }

    /// Whether exactly this lies at `path`.
    ///
    /// # Errors
    /// Those of reading what lies there.
    pub(crate) fn is_at(&self, path: &TreePath, wanted: Option<(&Hash, FileKind)>) -> Result<bool> {
        Ok(match (self.lies(path.as_str())?, wanted) {
            (Lies::Nothing, None) => true,
            (Lies::File(is), Some((hash, kind))) if is == kind => {
                let entry = self.stat(path)?;
                hash.names(&self.content(&entry, FILE_MAX)?)
            }
            _ => false,
        })
    }

    /// Puts `new` at `path` in place of `old`; nothing stands for no file. Returns false, and leaves what is there, if
    /// that is not `old`. The caller keeps all others of this program from writing in the root folder.
    ///
    /// # Errors
    /// `Denied` under a symbolic link, `DiskFull`, `Io`. What was there is there then.
    pub(crate) fn exchange(
        &self,
        path: &TreePath,
        old: Option<(&Hash, FileKind)>,
        new: Option<(&[u8], FileKind)>,
    ) -> Result<bool> {
        let io = |e| self.explain("write", path, e);
        if new.is_some() {
            self.make_folders(path.as_str()).map_err(io)?;
        }
        let (folder, name) = match self.open_writing_folder(path.as_str()) {
            Ok(opened) => opened,
            Err(Errno::NOENT | Errno::NOTDIR) if new.is_none() => return Ok(old.is_none()),
            Err(e) => return Err(io(e)),
        };
        if path.as_str().contains('/') {
            lock(&folder, path)?;
        }
        if new.is_some() && matches!(self.lies(path.as_str())?, Lies::Folder) {
            // Whatever was in it has gone.
            remove_empty(folder.as_fd(), name, stands()).map_err(|e| match e {
                Errno::BUSY => stands_there(path),
                e => io(e),
            })?;
        }
        let before = stamp(folder.as_fd(), name);
        if !self.is_at(path, old)? {
            return Ok(false);
        }
        let like = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let Some((content, kind)) = new else {
            return take_away(folder.as_fd(), name, before).map_err(io);
        };
        let like = like.filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        let temp = Temp::of_kind(folder.as_fd(), content, kind, like.as_ref()).map_err(io)?;
        if before.is_none() {
            return match temp.put_new(name) {
                Err(Errno::EXIST) => Ok(false),
                done => done.map(|()| true).map_err(io),
            };
        }
        swap(folder.as_fd(), temp, name, before).map_err(io)
    }

    /// Gives the file at `from` the free path `to`, whatever it holds.
    ///
    /// # Errors
    /// `Exists` or an I/O kind. The file is where it was then.
    pub(crate) fn move_aside(&self, from: &TreePath, to: &TreePath) -> Result<()> {
        let io = |e| self.explain("move", from, e);
        self.make_folders(to.as_str()).map_err(io)?;
        let (from_folder, from_name) = self.open_writing_folder(from.as_str()).map_err(io)?;
        let (to_folder, to_name) = self.open_writing_folder(to.as_str()).map_err(io)?;
        let flags = RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(&from_folder, from_name, &to_folder, to_name, flags).map_err(io)
    }

    /// Removes the folders above `path` that nothing is in any more. The folder in which this process stands stays.
    pub(crate) fn remove_empty_folders(&self, path: &TreePath) {
        let stands = stands();
        for (at, _) in path.as_str().rmatch_indices('/') {
            let Ok((folder, name)) = self.open_folder_of(&path.as_str()[..at]) else { return };
            let stat = rustix::fs::statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok();
            if stat.map(|stat| id(&stat)) == stands
                || rustix::fs::unlinkat(folder.as_fd(), name, AtFlags::REMOVEDIR).is_err()
            {
                return;
            }
        }
    }

    /// Removes what a process that ended while it exchanged `path` has left beside it.
    ///
    /// # Errors
    /// `Busy` while another process writes in the folder.
    pub(crate) fn remove_leftovers_beside(&self, path: &TreePath) -> Result<()> {
        let Ok((folder, _)) = self.open_writing_folder(path.as_str()) else { return Ok(()) };
        if !path.as_str().contains('/') || lock(&folder, path)? {
            remove_leftovers(folder.as_fd());
        }
        Ok(())
    }

    /// Puts everything that was written on the disk.
    pub(crate) fn sync_all(&self) {
        // A file system that cannot do this does it by itself.
        let _ = rustix::fs::syncfs(&self.root);
    }
}

/// What tells that a file was not written since. Its time of change tells of renames too, so it is left out.
fn stamp(folder: BorrowedFd<'_>, name: &str) -> Option<(u64, u64, i64)> {
    let stat: Stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let Stamp { inode, size, mtime_ns, .. } = Stamp::of(&stat);
    Some((inode, size, mtime_ns))
}

/// Puts the new file in place of the old one, unless that is another one now.
fn swap(
    folder: BorrowedFd<'_>,
    temp: Temp<'_>,
    name: &str,
    before: Option<(u64, u64, i64)>,
) -> Result<bool, Errno> {
    let Some(spare) = temp.name() else { return Ok(false) };
    match rustix::fs::renameat_with(folder, spare, folder, name, RenameFlags::EXCHANGE) {
        Ok(()) if stamp(folder, spare) == before => Ok(true),
        Ok(()) => {
            rustix::fs::renameat_with(folder, spare, folder, name, RenameFlags::EXCHANGE)?;
            Ok(false)
        }
        // Not every file system can exchange two files.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => temp.put(name).map(|()| true),
        Err(e) => Err(e),
    }
}

/// Removes the file, unless it is another one now.
fn take_away(folder: BorrowedFd<'_>, name: &str, before: Option<(u64, u64, i64)>) -> Result<bool, Errno> {
    if before.is_none() {
        return Ok(true);
    }
    let spare = Temp::free_name();
    match rustix::fs::renameat_with(folder, name, folder, &*spare, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            return rustix::fs::unlinkat(folder, name, AtFlags::empty()).map(|()| true);
        }
        Err(e) => return Err(e),
    }
    if stamp(folder, &spare) == before {
        rustix::fs::unlinkat(folder, &*spare, AtFlags::empty())?;
        return Ok(true);
    }
    rustix::fs::renameat_with(folder, &*spare, folder, name, RenameFlags::NOREPLACE)?;
    Ok(false)
}

/// The folder in which this process stands.
fn stands() -> Option<(u64, u64)> {
    rustix::fs::stat(".").ok().map(|stat| id(&stat))
}

fn stands_there(path: &TreePath) -> Error {
    let what = format!("this process stands in the folder `{}`, where a file will come", path.shown());
    Error::new(Kind::Exists, what).with_hint("Leave the folder first.")
}

/// Removes a folder in which there are only folders, unless the process stands in one.
fn remove_empty(folder: BorrowedFd<'_>, name: &str, stands: Option<(u64, u64)>) -> Result<(), Errno> {
    let flags = FOLDER | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner: OwnedFd = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    if Some(id(&rustix::fs::fstat(&inner)?)) == stands {
        return Err(Errno::BUSY);
    }
    for item in Dir::read_from(&inner)?.flatten() {
        let below = item.file_name().to_string_lossy().into_owned();
        if !matches!(&*below, "." | "..") {
            remove_empty(inner.as_fd(), &below, stands)?;
        }
    }
    rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
}
