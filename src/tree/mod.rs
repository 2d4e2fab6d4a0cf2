//! The files of a checkout on disk: listed, read, searched and written, never outside the checkout.
//!
//! Every access goes through the descriptor of the root folder and follows no symbolic link, so no
//! name and no change made meanwhile leads out. What a file's bytes mean is not decided here.

mod beneath;
mod find;
pub mod ignore;
mod missing;
mod stamp;
mod walk;
mod write;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

pub use find::{FILE_MAX, Found, Hit, LINE_MAX, Search, Skipped};
pub use stamp::Stamp;
pub use walk::{Known, Tracked, Walk};

use crate::error::{Error, Kind, Result};
pub use crate::format::artifact::FileKind;
use crate::name::{Hash, TreePath};

/// How much is read at once from a file that is longer than it was said to be.
const CHUNK: usize = 4096;

/// A file or symbolic link, as the disk describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path.
    pub path: TreePath,
    /// What it is.
    pub kind: FileKind,
    /// Its size and times.
    pub stamp: Stamp,
}

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
    root: OwnedFd,
    path: PathBuf,
    /// Paths below the root that belong to the repository, not to the tree.
    kept_out: Vec<String>,
    /// Databases below any name: closing a descriptor of one would drop SQLite's locks on it.
    databases: Vec<(u64, u64)>,
}

impl Tree {
    /// Opens the folder at `root`.
    ///
    /// # Errors
    /// `NotFound`, `Denied` or `Io` where it cannot be opened or is no folder.
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

    /// Keeps a database outside the reach of every method: it is not listed, read or written, under
    /// any name it has in the tree; nor are the files that SQLite makes beside it.
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

    /// Describes the file or symbolic link at `path`.
    ///
    /// # Errors
    /// `NotFound`, saying so when an equal-looking name exists; `Denied` under a symbolic link;
    /// `Invalid` for a folder or a special file.
    pub fn stat(&self, path: &TreePath) -> Result<Entry> {
        let stat = self.lstat(path.as_str()).map_err(|e| self.explain("look at", path, e))?;
        if self.is_kept_out(path.as_str(), &stat) {
            return Err(Self::belongs_to_repository(path));
        }
        Entry::of(path.clone(), &stat).ok_or_else(|| not_a_file(path, &stat))
    }

    /// Reads a regular file of at most `max` bytes.
    ///
    /// # Errors
    /// As [`stat`](Self::stat); `Denied` for a symbolic link, saying where it leads; `TooLarge`.
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
    /// As [`stat`](Self::stat); `Invalid` for what is no link.
    pub fn read_link(&self, path: &TreePath) -> Result<Vec<u8>> {
        if self.stat(path)?.kind != FileKind::Symlink {
            return Err(Error::new(Kind::Invalid, format!("`{}` is no symbolic link", path.shown())));
        }
        self.link_target(path.as_str()).map_err(|e| self.explain("read", path, e))
    }

    /// Reads what a check-in stores for an entry: a file's bytes, or where a link leads.
    ///
    /// # Errors
    /// As [`read`](Self::read) and [`read_link`](Self::read_link).
    pub fn content(&self, entry: &Entry, max: u64) -> Result<Vec<u8>> {
        match entry.kind {
            FileKind::Symlink => self.read_link(&entry.path),
            FileKind::Regular | FileKind::Executable => self.read(&entry.path, max),
        }
    }

    /// Reads a file into `content`, whose old bytes go; stops one byte after `max`.
    fn read_into(&self, path: &str, max: u64, content: &mut Vec<u8>) -> Result<(), Errno> {
        // Without NONBLOCK, opening a named pipe that took the file's place would wait for ever.
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
    fn lstat(&self, path: &str) -> Result<Stat, Errno> {
        let (folder, name) = self.open_folder_of(path)?;
        rustix::fs::statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn link_target(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let (folder, name) = self.open_folder_of(path)?;
        Ok(rustix::fs::readlinkat(folder.as_fd(), name, Vec::new())?.into_bytes())
    }

    fn is_kept_out(&self, path: &str, stat: &Stat) -> bool {
        self.databases.contains(&id(stat)) || self.kept_out.iter().any(|k| k == path)
    }
}

impl Entry {
    /// The entry for what `stat` describes, unless it is a folder or special.
    fn of(path: TreePath, stat: &Stat) -> Option<Self> {
        Some(Self { path, kind: stamp::kind(stat)?, stamp: Stamp::of(stat) })
    }
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

fn too_large(path: &TreePath, size: u64, max: u64) -> Error {
    Error::new(Kind::TooLarge, format!("`{}` has {size} bytes, over the limit of {max}", path.shown()))
}

fn not_a_file(path: &TreePath, stat: &Stat) -> Error {
    let what = walk::special(FileType::from_raw_mode(stat.st_mode));
    Error::new(Kind::Invalid, format!("`{}` is {what}, not a file", path.shown()))
        .with_hint("Give the path of a file.")
}

/// The content that an edit expects, against what is there.
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

#[cfg(test)]
mod tests;
