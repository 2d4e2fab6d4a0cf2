//! A new file before it has its name, and the lock of the folder in which it is made.

use std::fs::File;
use std::io::Write;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FlockOperation, Gid, Mode, OFlags, RawMode, Stat, Uid};
use rustix::io::Errno;

use super::aside::{name_new_at, sync_folder};
use super::entry::FileKind;
use crate::error::{Error, Kind, Result};
use crate::name::{TEMP_PREFIX, TreePath};

/// How long a writer waits for another one in the same folder.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// A written file that has no name of its own yet. Dropping it removes it.
pub(super) struct Temp<'f> {
    folder: BorrowedFd<'f>,
    name: Option<String>,
}

impl<'f> Temp<'f> {
    /// Writes `content` to the disk, with the mode and owner of `like`.
    pub fn write(
        folder: BorrowedFd<'f>,
        locked: bool,
        content: &[u8],
        like: Option<&Stat>,
    ) -> Result<Self, Errno> {
        if locked {
            remove_leftovers(folder);
        }
        let (temp, file) = Self::with(folder, content, like, |mode| mode)?;
        file.sync_all().map_err(|e| errno(&e))?;
        Ok(temp)
    }

    /// Writes a file or a link of this kind, with the mode and owner of `like` as far as that fits. Whoever calls this has
    /// it put on the disk.
    pub fn of_kind(
        folder: BorrowedFd<'f>,
        content: &[u8],
        kind: FileKind,
        like: Option<&Stat>,
    ) -> Result<Self, Errno> {
        if kind == FileKind::Symlink {
            let name = Self::free_name();
            rustix::fs::symlinkat(content, folder, &*name)?;
            return Ok(Self { folder, name: Some(name) });
        }
        // Whoever may read it may execute it, or nobody.
        let mode = |mode: RawMode| match kind {
            FileKind::Executable => mode | (mode >> 2 & 0o111),
            _ => mode & !0o111,
        };
        Self::with(folder, content, like, mode).map(|(temp, _)| temp)
    }

    fn with(
        folder: BorrowedFd<'f>,
        content: &[u8],
        like: Option<&Stat>,
        mode: impl Fn(RawMode) -> RawMode,
    ) -> Result<(Self, File), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let new = if like.is_some() { 0o600 } else { mode(0o666) };
        let name = Self::free_name();
        let fd = rustix::fs::openat(folder, &*name, flags, Mode::from_raw_mode(new))?;
        let temp = Self { folder, name: Some(name) };
        let mut file = File::from(fd);
        file.write_all(content).map_err(|e| errno(&e))?;
        if let Some(like) = like {
            // Only root may give a file away. For others the new file is their own.
            let owner = (Uid::from_raw(like.st_uid), Gid::from_raw(like.st_gid));
            let _ = rustix::fs::fchown(&file, Some(owner.0), Some(owner.1));
            rustix::fs::fchmod(&file, Mode::from_raw_mode(mode(like.st_mode & 0o7777)))?;
        }
        Ok((temp, file))
    }

    /// A name that no other file has.
    pub fn free_name() -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        format!("{TEMP_PREFIX}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// The name that it has meanwhile.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Gives the file its name. It replaces the file that has the name.
    pub fn put(mut self, name: &str) -> Result<(), Errno> {
        if let Some(temp) = &self.name {
            rustix::fs::renameat(self.folder, &**temp, self.folder, name)?;
        }
        self.name = None;
        sync_folder(self.folder)
    }

    /// Gives the file its name, unless something has it.
    pub fn put_new(mut self, name: &str) -> Result<(), Errno> {
        let Some(temp) = &self.name else { return Ok(()) };
        name_new_at(self.folder, temp, name)?;
        self.name = None;
        Ok(())
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(self.folder, &**name, AtFlags::empty());
        }
    }
}

fn errno(e: &std::io::Error) -> Errno {
    Errno::from_io_error(e).unwrap_or(Errno::IO)
}

/// Removes what writers that died have left in a folder. The lock on the folder says that none is at work.
pub(super) fn remove_leftovers(folder: BorrowedFd<'_>) {
    let Ok(list) = Dir::read_from(folder) else { return };
    for item in list.flatten() {
        let name = item.file_name();
        if name.to_bytes().starts_with(TEMP_PREFIX.as_bytes()) {
            let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
        }
    }
}

/// Takes the folder's lock, which all OCX writers share, until `folder` is closed. Returns false if the file system
/// has no locks.
pub(super) fn lock(folder: &OwnedFd, path: &TreePath) -> Result<bool> {
    let start = Instant::now();
    loop {
        match rustix::fs::flock(folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::AGAIN | Errno::INTR) if start.elapsed() < LOCK_WAIT => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(Errno::AGAIN | Errno::INTR) => {
                let what = format!("another process has been writing beside `{}` for 10 s", path.shown());
                return Err(Error::new(Kind::Busy, what).with_hint("Try again in a moment."));
            }
            Err(Errno::NOLCK | Errno::NOSYS | Errno::INVAL | Errno::NOTSUP) => return Ok(false),
            Err(e) => {
                return Err(Error::io(format!("cannot lock the folder of `{}`", path.shown()), e.into()));
            }
            Ok(()) => return Ok(true),
        }
    }
}
