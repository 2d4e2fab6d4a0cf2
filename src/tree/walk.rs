//! Listing the tree. Every file is an entry, or ignored, or refused by name.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::os::fd::OwnedFd;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;

use super::entry::{Entry, FileKind, Stamp, kind, special};
use super::ignore::Ignore;
use super::root::{FOLDER, Tree};
use crate::error::{Error, Result};
use crate::name::{TEMP_PREFIX, TreePath, shown};

/// The smallest file that Fossil takes for a checkout database, in bytes.
const CHECKOUT_MIN: i64 = 1024;

/// With this many folders waiting, a second thread lists them too.
const WORTH_A_THREAD: usize = 6;

/// Room for the names that the system gives at once, in bytes.
const NAMES_ROOM: usize = 16 << 10;

/// The names under which Fossil keeps the database of a checkout.
const DATABASES: [&str; 3] = [".fslckout", "_FOSSIL_", ".fos"];

/// What a walk over the tree found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// The files and links that a check-in would hold, sorted by the bytes of their paths.
    pub entries: Vec<Entry>,
    /// What an ignore pattern left out, as shown names. A folder that was not entered ends in `/`.
    pub ignored: Vec<String>,
    /// What a check-in cannot hold: the shown name and the reason.
    pub refused: Vec<(String, String)>,
    /// The numbers of the known files, which are not among the entries. They are in no order, and one may occur twice.
    pub known: Vec<usize>,
}

/// Which files are known as they lie on disk. A walk need not describe those.
pub trait Known: Sync {
    /// The number of the file at `path`, if it is known to be of this kind and with this stamp.
    fn number(&self, path: &str, kind: FileKind, stamp: &Stamp) -> Option<usize>;
}

/// Nothing is known.
impl Known for () {
    fn number(&self, _path: &str, _kind: FileKind, _stamp: &Stamp) -> Option<usize> {
        None
    }
}

/// Which paths the parent check-in holds. These are never ignored.
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
    /// Lists the tree. Links are entries and are not followed. Empty folders count as nothing. Fossil's own files and
    /// half-written ones are left out. Other checkouts, special files and names that Fossil cannot store are refused
    /// by name.
    ///
    /// # Errors
    /// `Denied` or `Io`, naming a folder that cannot be listed.
    pub fn walk(&self, ignore: &Ignore, tracked: &dyn Tracked) -> Result<Walk> {
        self.walk_in("", ignore, tracked)
    }

    /// As [`walk`](Self::walk), but a file that `known` knows is listed only by its number.
    ///
    /// # Errors
    /// Those of [`walk`](Self::walk).
    pub fn walk_past(&self, known: &dyn Known, ignore: &Ignore, tracked: &dyn Tracked) -> Result<Walk> {
        Job::new(self, ignore, tracked, known).run("")
    }

    /// Lists the part of the tree in one folder.
    pub(super) fn walk_in(&self, folder: &str, ignore: &Ignore, tracked: &dyn Tracked) -> Result<Walk> {
        Job::new(self, ignore, tracked, &()).run(folder)
    }

    /// Whether the folder at `path` is the root of a checkout.
    pub(super) fn is_checkout(&self, path: &str) -> Result<bool, Errno> {
        let folder = self.open_folder(path)?;
        Ok(DATABASES.iter().any(|name| {
            let stat = rustix::fs::statat(folder.as_fd(), *name, AtFlags::SYMLINK_NOFOLLOW);
            stat.is_ok_and(|s| is_checkout_database(&s))
        }))
    }

    /// Opens a folder to list it. Its name need not be UTF-8.
    fn open_listing(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let flags = FOLDER | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match str::from_utf8(path) {
            Ok("") => rustix::fs::openat(&self.root, c".", flags, Mode::empty()),
            Ok(path) => self.open_beneath(path, FOLDER),
            Err(_) => {
                let mut folder = rustix::io::fcntl_dupfd_cloexec(&self.root, 0)?;
                for part in path.split(|&b| b == b'/') {
                    folder = rustix::fs::openat(&folder, part, flags, Mode::empty())?;
                }
                Ok(folder)
            }
        }
    }
}

/// A walk: its rules, and the folders that its threads have yet to list.
struct Job<'a> {
    tree: &'a Tree,
    ignore: &'a Ignore,
    tracked: &'a dyn Tracked,
    known: &'a dyn Known,
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// A folder, and whether a pattern ignores everything in it.
type Folder = (Vec<u8>, bool);

#[derive(Default)]
struct Queue {
    waiting: Vec<Folder>,
    /// How many folders are being listed now. More may come from them.
    busy: usize,
    failed: Option<Error>,
}

impl<'a> Job<'a> {
    fn new(tree: &'a Tree, ignore: &'a Ignore, tracked: &'a dyn Tracked, known: &'a dyn Known) -> Self {
        Self { tree, ignore, tracked, known, queue: Mutex::default(), changed: Condvar::new() }
    }

    fn run(self, folder: &str) -> Result<Walk> {
        let ignored = !folder.is_empty() && self.ignore.matches_folder(folder);
        self.queue().waiting.push((folder.as_bytes().to_vec(), ignored));
        let mut walk = self.work(WORTH_A_THREAD);
        if !self.queue().waiting.is_empty() {
            std::thread::scope(|scope| {
                let other = scope.spawn(|| self.work(usize::MAX));
                walk.append(self.work(usize::MAX));
                match other.join() {
                    Ok(theirs) => walk.append(theirs),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            });
        }
        if let Some(e) = self.queue().failed.take() {
            return Err(e);
        }
        walk.entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        walk.ignored.sort_unstable();
        walk.refused.sort_unstable();
        Ok(walk)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Lists folders until none is left or `enough` are waiting.
    fn work(&self, enough: usize) -> Walk {
        let mut walker = Walker { job: self, walk: Walk::default(), folders: Vec::new(), known: Vec::new() };
        while let Some((path, ignored)) = self.next(enough) {
            let listed = walker.folder(&path, ignored);
            let mut queue = self.queue();
            queue.busy -= 1;
            queue.waiting.append(&mut walker.folders);
            if let Err(e) = listed {
                let name = if path.is_empty() { ".".to_owned() } else { shown(&path) };
                queue.failed = Some(Error::io(format!("cannot list folder `{name}`"), e.into()));
            }
            drop(queue);
            self.changed.notify_all();
        }
        walker.walk
    }

    fn next(&self, enough: usize) -> Option<Folder> {
        let mut queue = self.queue();
        loop {
            if queue.failed.is_some() || queue.waiting.len() >= enough {
                return None;
            }
            if let Some(folder) = queue.waiting.pop() {
                queue.busy += 1;
                return Some(folder);
            }
            if queue.busy == 0 {
                return None;
            }
            self.changed.wait(&mut queue);
        }
    }
}

impl Walk {
    fn append(&mut self, mut other: Self) {
        self.entries.append(&mut other.entries);
        self.ignored.append(&mut other.ignored);
        self.refused.append(&mut other.refused);
        self.known.append(&mut other.known);
    }
}

/// One thread of a walk.
struct Walker<'a> {
    job: &'a Job<'a>,
    walk: Walk,
    /// Folders found in the one that is being listed.
    folders: Vec<Folder>,
    /// Known files found in it.
    known: Vec<usize>,
}

impl Walker<'_> {
    /// Lists one folder.
    fn folder(&mut self, path: &[u8], ignored: bool) -> Result<(), Errno> {
        let folder = match self.job.tree.open_listing(path) {
            // It has gone, or become something else, since its own folder was listed.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_empty() => return Ok(()),
            opened => opened?,
        };
        let before = (self.walk.entries.len(), self.walk.ignored.len(), self.walk.refused.len());
        let mut full = path.to_vec();
        if !path.is_empty() {
            full.push(b'/');
        }
        let stem = full.len();
        let mut room = [MaybeUninit::uninit(); NAMES_ROOM];
        let mut list = RawDir::new(&folder, &mut room);
        while let Some(item) = list.next() {
            let item = item?;
            let name = item.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let stat = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
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
                self.folders.clear();
                self.known.clear();
                self.refuse(path, "is another checkout".to_owned());
                return Ok(());
            }
            full.truncate(stem);
            full.extend_from_slice(name.to_bytes());
            self.item(&full, &stat, ignored);
        }
        self.walk.known.append(&mut self.known);
        Ok(())
    }

    /// Puts one thing on disk where it belongs.
    fn item(&mut self, path: &[u8], stat: &Stat, ignored: bool) {
        let Job { tree, tracked, ignore, known, .. } = self.job;
        let file_type = FileType::from_raw_mode(stat.st_mode);
        let text = String::from_utf8_lossy(path);
        if is_own(path, file_type) || tree.is_kept_out(&text, stat) {
            return;
        }
        if file_type == FileType::Directory {
            return self.subfolder(path, &text, ignored);
        }
        if let Some(number) = kind(stat).and_then(|kind| known.number(&text, kind, &Stamp::of(stat))) {
            return self.known.push(number);
        }
        let is_tracked = tracked.holds(&text);
        if !is_tracked && (ignored || ignore.matches(&text)) {
            if !ignored {
                self.walk.ignored.push(shown(path));
            }
            return;
        }
        let entry = checked(path, is_tracked)
            .and_then(|path| Entry::of(path, stat).ok_or_else(|| format!("is {}", special(file_type))));
        match entry {
            Ok(entry) => self.walk.entries.push(entry),
            Err(why) => self.refuse(path, why),
        }
    }

    /// Puts a folder on the list of those to enter, unless everything in it is ignored.
    fn subfolder(&mut self, path: &[u8], text: &str, ignored: bool) {
        let newly = !ignored && self.job.ignore.matches_folder(text);
        if newly {
            self.walk.ignored.push(format!("{}/", shown(path)));
        }
        if !(newly || ignored) || self.job.tracked.reaches_into(text) {
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

/// Returns the path of something on disk, or the rule that it breaks. A tracked path may break the rules for new
/// names.
fn checked(path: &[u8], is_tracked: bool) -> Result<TreePath, String> {
    let text = str::from_utf8(path).map_err(|_| "has a name that is not UTF-8".to_owned())?;
    if is_tracked && let Ok(path) = TreePath::parse_stored(text) {
        return Ok(path);
    }
    TreePath::check(text)
}
