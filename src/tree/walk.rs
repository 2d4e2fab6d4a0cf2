//! Listing the tree. Every file is an entry, or left out by a rule, or refused by name.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;

use super::entry::{Entry, Stamp, kind, special};
use super::gitignore::{self, GitIgnore};
use super::root::{FOLDER, Tree};
use super::rules::{LeftOut, Rules, Why};
use super::tracked::{Known, Tracked};
use super::within::Within;
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
    /// What a rule leaves out, sorted by path.
    pub left_out: Vec<LeftOut>,
    /// Entries that a rule would leave out, had nobody asked for them. Sorted.
    pub included: Vec<TreePath>,
    /// What a check-in cannot hold: the shown name and the reason.
    pub refused: Vec<(String, String)>,
    /// The numbers of the known files, which are not among the entries. They are in no order, and one may occur twice.
    pub known: Vec<usize>,
}

impl Tree {
    /// Lists the tree. Links are entries and are not followed. Empty folders count as nothing. Fossil's own files and
    /// half-written ones are skipped. Special files and names that Fossil cannot store are refused by name.
    ///
    /// # Errors
    /// `Denied` or `Io`, naming a folder that cannot be listed.
    pub fn walk(&self, rules: &Rules, tracked: &dyn Tracked) -> Result<Walk> {
        self.walk_in("", rules, tracked)
    }

    /// As [`walk`](Self::walk), but a file that `known` knows is listed only by its number.
    ///
    /// # Errors
    /// Those of [`walk`](Self::walk).
    pub fn walk_past(&self, known: &dyn Known, rules: &Rules, tracked: &dyn Tracked) -> Result<Walk> {
        Job::new(self, rules, tracked, known).run("")
    }

    /// Lists the part of the tree in one folder.
    pub(super) fn walk_in(&self, folder: &str, rules: &Rules, tracked: &dyn Tracked) -> Result<Walk> {
        Job::new(self, rules, tracked, &()).run(folder)
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
    rules: &'a Rules,
    tracked: &'a dyn Tracked,
    known: &'a dyn Known,
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// A folder, and what holds for everything in it.
type Folder = (Vec<u8>, Within);

#[derive(Default)]
struct Queue {
    waiting: Vec<Folder>,
    /// How many folders are being listed now. More may come from them.
    busy: usize,
    failed: Option<Error>,
}

impl<'a> Job<'a> {
    fn new(tree: &'a Tree, rules: &'a Rules, tracked: &'a dyn Tracked, known: &'a dyn Known) -> Self {
        Self { tree, rules, tracked, known, queue: Mutex::default(), changed: Condvar::new() }
    }

    fn run(self, folder: &str) -> Result<Walk> {
        self.queue().waiting.push((folder.as_bytes().to_vec(), Within::unknown(folder)));
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
        walk.left_out.sort_unstable();
        walk.included.sort_unstable();
        walk.refused.sort_unstable();
        walk.refused.dedup();
        Ok(walk)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Lists folders until none is left or `enough` are waiting.
    fn work(&self, enough: usize) -> Walk {
        let mut walker = Walker { job: self, walk: Walk::default(), folders: Vec::new(), known: Vec::new() };
        while let Some((path, within)) = self.next(enough) {
            let listed = walker.folder(&path, within);
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
        self.left_out.append(&mut other.left_out);
        self.included.append(&mut other.included);
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
    fn folder(&mut self, path: &[u8], mut within: Within) -> Result<(), Errno> {
        let folder = match self.job.tree.open_listing(path) {
            // It has gone, or become something else, since its own folder was listed.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_empty() => return Ok(()),
            opened => opened?,
        };
        let text = String::from_utf8_lossy(path);
        let mut others = Vec::new();
        let mut full = path.to_vec();
        if !path.is_empty() {
            full.push(b'/');
        }
        let stem = full.len();
        let (mut is_checkout, mut has_rules) = (false, false);
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
            is_checkout |= stem > 0
                && DATABASES.iter().any(|d| d.as_bytes() == name.to_bytes())
                && is_checkout_database(&stat);
            has_rules |= name.to_bytes() == gitignore::NAME.as_bytes();
            full.truncate(stem);
            full.extend_from_slice(name.to_bytes());
            self.item(&full, &stat, &mut others);
        }
        if is_checkout && !self.job.tracked.reaches_into(&text) {
            self.known.clear();
            self.leave_out(path, Why::NestedCheckout, true);
            return Ok(());
        }
        self.walk.known.append(&mut self.known);
        if is_checkout {
            within = within.judged(Some(Why::NestedCheckout));
        }
        if has_rules {
            within.git = Some(GitIgnore::of(&text, within.git.take()));
        }
        for (path, stat) in others {
            self.other(&text, &mut within, path, &stat);
        }
        Ok(())
    }

    /// Puts a tracked file where it belongs, and anything else among the others.
    fn item(&mut self, path: &[u8], stat: &Stat, others: &mut Vec<(Vec<u8>, Stat)>) {
        let Job { tree, tracked, known, .. } = self.job;
        let file_type = FileType::from_raw_mode(stat.st_mode);
        let text = String::from_utf8_lossy(path);
        if is_own(path, file_type) || tree.is_kept_out(&text, stat) {
            return;
        }
        if file_type == FileType::Directory {
            return others.push((path.to_vec(), *stat));
        }
        if let Some(number) = kind(stat).and_then(|kind| known.number(&text, kind, &Stamp::of(stat))) {
            return self.known.push(number);
        }
        if tracked.holds(&text) {
            self.take(path, stat, true);
        } else {
            others.push((path.to_vec(), *stat));
        }
    }

    /// Judges what lies in a folder and is not tracked, and enters folders.
    fn other(&mut self, folder: &str, within: &mut Within, path: Vec<u8>, stat: &Stat) {
        let Job { tree, tracked, rules, .. } = self.job;
        let text = String::from_utf8_lossy(&path).into_owned();
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let is_tracked = || is_folder && tracked.reaches_into(&text);
        // With a `.gitignore`, not to judge a folder is cheaper; without one, not to look for tracked files in it.
        if within.git.is_some() && is_tracked() {
            return self.folders.push((path, within.for_tracked()));
        }
        let why = within.why((rules, tree), folder, &text, is_folder).unwrap_or_else(|unread| {
            self.walk.refused.push(unread);
            None
        });
        let may_enter =
            |why: Why| why.can_be_included() && (rules.includes(&text) || rules.includes_in(&text));
        match why {
            Some(_) if within.git.is_none() && is_tracked() => {
                self.folders.push((path, within.for_tracked()));
            }
            _ if is_folder && why.is_none_or(may_enter) => {
                self.folders.push((path, within.clone().judged(why)));
            }
            Some(why) if is_folder || !(why.can_be_included() && rules.includes(&text)) => {
                self.leave_out(&path, why, is_folder);
            }
            _ => {
                let taken = self.take(&path, stat, false);
                self.walk.included.extend(taken.filter(|_| why.is_some()));
            }
        }
    }

    /// Makes an entry of a file. Returns its path unless it is refused.
    fn take(&mut self, path: &[u8], stat: &Stat, is_tracked: bool) -> Option<TreePath> {
        let file_type = FileType::from_raw_mode(stat.st_mode);
        let entry = checked(path, is_tracked)
            .and_then(|path| Entry::of(path, stat).ok_or_else(|| format!("is {}", special(file_type))));
        match entry {
            Ok(entry) => {
                let path = (!is_tracked).then(|| entry.path.clone());
                self.walk.entries.push(entry);
                path
            }
            Err(why) => {
                self.walk.refused.push((shown(path), why));
                None
            }
        }
    }

    fn leave_out(&mut self, path: &[u8], why: Why, is_folder: bool) {
        let slash = if is_folder { "/" } else { "" };
        self.walk.left_out.push(LeftOut { path: shown(path) + slash, why });
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
