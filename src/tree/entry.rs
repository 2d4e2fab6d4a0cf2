//! A file or symbolic link as the disk describes it, and what tells that it is still the same.

use rustix::fs::{FileType, Stat};

use crate::error::{Error, Kind};
pub use crate::format::artifact::FileKind;
use crate::name::TreePath;

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

impl Entry {
    /// The entry for what `stat` describes, unless that is a folder or a special file.
    pub(super) fn of(path: TreePath, stat: &Stat) -> Option<Self> {
        Some(Self { path, kind: kind(stat)?, stamp: Stamp::of(stat) })
    }
}

/// What must be the same of a file for its content to be the same. No write leaves all of it as it was.
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

/// Returns what kind of file `stat` describes, unless that is a folder or a special file.
pub(super) fn kind(stat: &Stat) -> Option<FileKind> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_mode & 0o100 != 0 => Some(FileKind::Executable),
        FileType::RegularFile => Some(FileKind::Regular),
        FileType::Symlink => Some(FileKind::Symlink),
        _ => None,
    }
}

/// Names a kind of thing that no check-in holds.
pub(super) fn special(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a folder",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "of an unknown kind",
    }
}

/// Tells a file from others: its device and its number there.
pub(super) fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// The error for what is no file.
pub(super) fn not_a_file(path: &TreePath, stat: &Stat) -> Error {
    let what = special(FileType::from_raw_mode(stat.st_mode));
    Error::new(Kind::Invalid, format!("`{}` is {what}, not a file", path.shown()))
        .with_hint("Give the path of a file.")
}
