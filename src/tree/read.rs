//! Reading files below the root folder.

use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use rustix::io::Errno;

use super::entry::{Entry, FileKind, not_a_file};
use super::root::Tree;
use crate::error::{Error, Kind, Result};
use crate::name::TreePath;

/// How much is read at once from a file that is longer than the disk said.
const CHUNK: usize = 4096;

impl Tree {
    /// Describes the file or symbolic link at `path`.
    ///
    /// # Errors
    /// `NotFound`, naming an equal-looking name if there is one; `Denied` under a symbolic link; `Invalid` for a
    /// folder or a special file.
    pub fn stat(&self, path: &TreePath) -> Result<Entry> {
        let stat = self.lstat(path.as_str()).map_err(|e| self.explain("look at", path, e))?;
        if self.is_kept_out(path.as_str(), &stat) {
            return Err(Self::belongs_to_repository(path));
        }
        Entry::of(path.clone(), &stat).ok_or_else(|| not_a_file(path, &stat))
    }

    /// Whether a folder is at `path`, and not a file or a link.
    ///
    /// # Errors
    /// Those of [`stat`](Self::stat), but for a folder.
    pub fn is_folder(&self, path: &TreePath) -> Result<bool> {
        let stat = self.lstat(path.as_str()).map_err(|e| self.explain("look at", path, e))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return Ok(true);
        }
        self.stat(path).map(|_| false)
    }

    /// Reads a regular file of at most `max` bytes.
    ///
    /// # Errors
    /// Those of [`stat`](Self::stat); `Denied` for a symbolic link, naming where it leads; `TooLarge`.
    pub fn read(&self, path: &TreePath, max: u64) -> Result<Vec<u8>> {
        let entry = self.stat(path)?;
        if entry.kind == FileKind::Symlink {
            return Err(self.is_link(path));
        }
        if entry.stamp.size > max {
            return Err(too_large(path, entry.stamp.size, max));
        }
        let mut content = Vec::new();
        self.read_into(path.as_str(), max, &mut content).map_err(|e| self.explain("read", path, e))?;
        match content.len() as u64 {
            size if size > max => Err(too_large(path, size, max)),
            _ => Ok(content),
        }
    }

    /// Reads where a symbolic link leads: what Fossil stores as its content.
    ///
    /// # Errors
    /// Those of [`stat`](Self::stat); `Invalid` for what is no link.
    pub fn read_link(&self, path: &TreePath) -> Result<Vec<u8>> {
        if self.stat(path)?.kind != FileKind::Symlink {
            return Err(Error::new(Kind::Invalid, format!("`{}` is no symbolic link", path.shown())));
        }
        self.link_target(path.as_str()).map_err(|e| self.explain("read", path, e))
    }

    /// Reads what a check-in stores for an entry: a file's bytes, or where a link leads.
    ///
    /// # Errors
    /// Those of [`read`](Self::read) and [`read_link`](Self::read_link).
    pub fn content(&self, entry: &Entry, max: u64) -> Result<Vec<u8>> {
        match entry.kind {
            FileKind::Symlink => self.read_link(&entry.path),
            FileKind::Regular | FileKind::Executable => self.read(&entry.path, max),
        }
    }

    /// Reads a file into `content`, in place of its old bytes. Stops one byte after `max`.
    pub(super) fn read_into(&self, path: &str, max: u64, content: &mut Vec<u8>) -> Result<(), Errno> {
        // Without NONBLOCK, opening a named pipe that has taken the file's place would wait for ever.
        let fd = self.open_beneath(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::ISDIR);
        }
        content.clear();
        let most = usize::try_from(max).unwrap_or(usize::MAX).saturating_add(1);
        let expected = usize::try_from(size(&stat)).unwrap_or(usize::MAX).saturating_add(1).min(most);
        loop {
            let room = expected.saturating_sub(content.len()).max(CHUNK).min(most - content.len());
            content.try_reserve(room).map_err(|_| Errno::NOMEM)?;
            match rustix::io::read(&fd, spare_capacity(content)) {
                Ok(0) => return Ok(()),
                Ok(_) if content.len() >= most => {
                    content.truncate(most);
                    return Ok(());
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Describes what stands at `path`, without following a link there or before it.
    pub(super) fn lstat(&self, path: &str) -> Result<Stat, Errno> {
        let (folder, name) = self.open_folder_of(path)?;
        rustix::fs::statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Where the link at `path` leads.
    pub(super) fn link_target(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let (folder, name) = self.open_folder_of(path)?;
        Ok(rustix::fs::readlinkat(folder.as_fd(), name, Vec::new())?.into_bytes())
    }
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn too_large(path: &TreePath, size: u64, max: u64) -> Error {
    Error::new(Kind::TooLarge, format!("`{}` has {size} bytes, over the limit of {max}", path.shown()))
}
