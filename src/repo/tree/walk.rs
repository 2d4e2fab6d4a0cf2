//! Listing the tree: every file is an entry, ignored, or refused by name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::beneath::FOLDER;
use super::{Entry, Tree};
use crate::error::{Error, Result};
use crate::name::{TEMP_PREFIX, TreePath, shown};
use crate::repo::ignore::Ignore;

/// The smallest file that Fossil takes for a checkout database, in bytes.
const CHECKOUT_MIN: i64 = 1024;

/// The names under which Fossil keeps the database of a checkout.
const DATABASES: [&str; 3] = [".fslckout", "_FOSSIL_", ".fos"];

/// What a walk over the tree found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// The files and links that a check-in would hold, sorted by the bytes of their paths.
    pub entries: Vec<Entry>,
    /// What an ignore pattern left out, as shown names; a folder that was not entered ends in `/`.
    pub ignored: Vec<String>,
    /// What a check-in cannot hold: shown name and reason.
    pub refused: Vec<(String, String)>,
}

/// Which paths the parent check-in holds; these are never ignored.
pub trait Tracked: Sync {
    /// Whether `path` is tracked.
    fn holds(&self, path: &str) -> bool;

    /// Whether some tracked path lies in `folder`.
    fn reaches_into(&self, folder: &str) -> bool;
}

impl<V: Sync> Tracked for BTreeMap<TreePath, V> {
    fn holds(&self, path: &str) -> bool {
        self.contains_key(path)
    }

    fn reaches_into(&self, folder: &str) -> bool {
        let folder = format!("{folder}/");
        self.range::<str, _>(from(&folder)).next().is_some_and(|(path, _)| path.as_str().starts_with(&folder))
    }
}

impl Tracked for BTreeSet<TreePath> {
    fn holds(&self, path: &str) -> bool {
        self.contains(path)
    }

    fn reaches_into(&self, folder: &str) -> bool {
        let folder = format!("{folder}/");
        self.range::<str, _>(from(&folder)).next().is_some_and(|path| path.as_str().starts_with(&folder))
    }
}

/// The range of all paths from `start` on.
fn from(start: &str) -> (Bound<&str>, Bound<&str>) {
    (Bound::Included(start), Bound::Unbounded)
}

/// Nothing is tracked.
impl Tracked for () {
    fn holds(&self, _path: &str) -> bool {
        false
    }

    fn reaches_into(&self, _folder: &str) -> bool {
        false
    }
}

impl Tree {
    /// Lists the tree. Links are entries and are not followed; empty folders are nothing; Fossil's own
    /// files and half-written ones are left out. Other checkouts, special files and names that
    /// Fossil cannot store are refused by name.
    ///
    /// # Errors
    /// `Denied` or `Io`, naming a folder that cannot be listed.
    pub fn walk(&self, ignore: &Ignore, tracked: &dyn Tracked) -> Result<Walk> {
        self.walk_in("", ignore, tracked)
    }

    /// Lists the part of the tree in one folder.
    pub(super) fn walk_in(&self, folder: &str, ignore: &Ignore, tracked: &dyn Tracked) -> Result<Walk> {
        let mut walker = Walker { tree: self, ignore, tracked, walk: Walk::default(), folders: Vec::new() };
        walker
            .folders
            .push((folder.as_bytes().to_vec(), !folder.is_empty() && ignore.matches_folder(folder)));
        while let Some((path, ignored)) = walker.folders.pop() {
            walker.folder(&path, ignored).map_err(|e| {
                let name = if path.is_empty() { ".".to_owned() } else { shown(&path) };
                Error::io(format!("cannot list folder `{name}`"), e.into())
            })?;
        }
        let mut walk = walker.walk;
        walk.entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        walk.ignored.sort_unstable();
        walk.refused.sort_unstable();
        Ok(walk)
    }

    /// Whether the folder at `path` is the root of a checkout.
    pub(super) fn is_checkout(&self, path: &str) -> Result<bool, Errno> {
        let folder = self.open_folder(path)?;
        Ok(DATABASES.iter().any(|name| {
            let stat = rustix::fs::statat(folder.as_fd(), *name, AtFlags::SYMLINK_NOFOLLOW);
            stat.is_ok_and(|s| is_checkout_database(&s))
        }))
    }

    /// Opens a folder, whose name may not be UTF-8, to list it.
    fn open_listing(&self, path: &[u8]) -> Result<Dir, Errno> {
        match str::from_utf8(path) {
            Ok("") => Dir::read_from(&self.root),
            Ok(path) => Dir::new(self.open_beneath(path, FOLDER)?),
            Err(_) => {
                let mut folder = rustix::io::fcntl_dupfd_cloexec(&self.root, 0)?;
                for part in path.split(|&b| b == b'/') {
                    let flags = FOLDER | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                    folder = rustix::fs::openat(&folder, part, flags, Mode::empty())?;
                }
                Dir::new(folder)
            }
        }
    }
}

struct Walker<'a> {
    tree: &'a Tree,
    ignore: &'a Ignore,
    tracked: &'a dyn Tracked,
    walk: Walk,
    /// Folders still to be listed, and whether a pattern ignores all in them.
    folders: Vec<(Vec<u8>, bool)>,
}

impl Walker<'_> {
    /// Lists one folder.
    fn folder(&mut self, path: &[u8], ignored: bool) -> Result<(), Errno> {
        let mut list = match self.tree.open_listing(path) {
            // It went, or became something else, since its own folder was listed.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_empty() => return Ok(()),
            list => list?,
        };
        let before =
            (self.walk.entries.len(), self.walk.ignored.len(), self.walk.refused.len(), self.folders.len());
        let mut full = path.to_vec();
        if !path.is_empty() {
            full.push(b'/');
        }
        let stem = full.len();
        while let Some(item) = list.read() {
            let item = item?;
            let name = item.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let stat = match rustix::fs::statat(list.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => continue,
                stat => stat?,
            };
            if stem > 0
                && DATABASES.iter().any(|d| d.as_bytes() == name.to_bytes())
                && is_checkout_database(&stat)
            {
                self.walk.entries.truncate(before.0);
                self.walk.ignored.truncate(before.1);
                self.walk.refused.truncate(before.2);
                self.folders.truncate(before.3);
                self.refuse(path, "is another checkout".to_owned());
                return Ok(());
            }
            full.truncate(stem);
            full.extend_from_slice(name.to_bytes());
            self.item(&full, &stat, ignored);
        }
        Ok(())
    }

    /// Puts one thing on disk where it belongs.
    fn item(&mut self, path: &[u8], stat: &Stat, ignored: bool) {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let text = String::from_utf8_lossy(path);
        if is_own(path, kind) || self.tree.is_kept_out(&text, stat) {
            return;
        }
        if kind == FileType::Directory {
            return self.subfolder(path, &text, ignored);
        }
        let is_tracked = self.tracked.holds(&text);
        if !is_tracked && (ignored || self.ignore.matches(&text)) {
            if !ignored {
                self.walk.ignored.push(shown(path));
            }
            return;
        }
        let entry = checked(path, is_tracked)
            .and_then(|path| Entry::of(path, stat).ok_or_else(|| format!("is {}", special(kind))));
        match entry {
            Ok(entry) => self.walk.entries.push(entry),
            Err(why) => self.refuse(path, why),
        }
    }

    /// Puts a folder on the list of those to enter, unless all in it is ignored.
    fn subfolder(&mut self, path: &[u8], text: &str, ignored: bool) {
        let newly = !ignored && self.ignore.matches_folder(text);
        if newly {
            self.walk.ignored.push(format!("{}/", shown(path)));
        }
        if !(newly || ignored) || self.tracked.reaches_into(text) {
            self.folders.push((path.to_vec(), newly || ignored));
        }
    }

    fn refuse(&mut self, path: &[u8], why: String) {
        self.walk.refused.push((shown(path), why));
    }
}

/// Whether this is a file that Fossil or OCX itself keeps in the checkout.
fn is_own(path: &[u8], kind: FileType) -> bool {
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
    if kind == FileType::RegularFile && name.starts_with(TEMP_PREFIX.as_bytes()) {
        return true;
    }
    let base =
        [&b"-wal"[..], b"-shm", b"-journal"].iter().find_map(|end| path.strip_suffix(*end)).unwrap_or(path);
    matches!(base, b".fslckout" | b"_FOSSIL_") && kind == FileType::RegularFile
}

fn is_checkout_database(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_size >= CHECKOUT_MIN
}

/// The path of something on disk, or the rule it breaks; a tracked one may break those for new names.
fn checked(path: &[u8], is_tracked: bool) -> Result<TreePath, String> {
    let text = str::from_utf8(path).map_err(|_| "has a name that is not UTF-8".to_owned())?;
    if is_tracked && let Ok(path) = TreePath::parse_stored(text) {
        return Ok(path);
    }
    TreePath::check(text)
}

/// What a thing is that no check-in holds.
pub(super) fn special(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a folder",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "of an unknown kind",
    }
}
