//! By what the disk tells that a file is still the same.

use rustix::fs::{FileType, Stat};

use super::FileKind;

/// What must be the same of a file for its content to be the same: no write leaves all of it as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Its size in bytes.
    pub size: u64,
    /// When its content last changed, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// When its content, mode or name last changed, in nanoseconds since 1970.
    pub ctime_ns: i64,
    /// Its inode number.
    pub inode: u64,
    /// Whether it is a symbolic link.
    pub is_link: bool,
}

impl Stamp {
    /// What `stat` says.
    pub(super) fn of(stat: &Stat) -> Self {
        let ns = |sec: i64, ns: u64| sec.saturating_mul(1_000_000_000).saturating_add_unsigned(ns);
        Self {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime_ns: ns(stat.st_mtime, stat.st_mtime_nsec),
            ctime_ns: ns(stat.st_ctime, stat.st_ctime_nsec),
            inode: stat.st_ino,
            is_link: FileType::from_raw_mode(stat.st_mode) == FileType::Symlink,
        }
    }
}

/// What a file that `stat` describes is, unless it is a folder or special.
pub(super) fn kind(stat: &Stat) -> Option<FileKind> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_mode & 0o100 != 0 => Some(FileKind::Executable),
        FileType::RegularFile => Some(FileKind::Regular),
        FileType::Symlink => Some(FileKind::Symlink),
        _ => None,
    }
}
