//! Searching the tree for exact bytes.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter, memrchr};
use parking_lot::Mutex;

use super::entry::{Entry, FileKind};
use super::root::Tree;
use super::rules::Rules;
use super::tracked::Tracked;
use crate::error::{Error, Kind, Result};
use crate::name::TreePath;
use crate::text::{as_text, without_end};

/// The largest file that is searched, in bytes.
pub const SEARCHED_MAX: u64 = 64 << 20;

/// The most bytes of a line that a hit repeats.
pub const LINE_MAX: usize = 500;

/// How much of a long line is shown before the match, in bytes.
const LEAD: usize = 100;

/// A search stops when it has counted this many lines beyond those wanted.
const COUNT_MAX: usize = 100_000;

/// The threads that search. On one core they share it.
const THREADS: usize = 2;

/// Where to search, and how much to give.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// Only this file, or what lies in this folder.
    pub under: Option<&'a TreePath>,
    /// What is left out.
    pub rules: &'a Rules,
    /// What is never left out.
    pub tracked: &'a dyn Tracked,
    /// The most lines to give.
    pub limit: usize,
}

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The lines that hold the text, by path and line number.
    pub hits: Vec<Hit>,
    /// How many lines hold it in all.
    pub total: usize,
    /// Whether the count stopped early, so that there may be more.
    pub more: bool,
    /// How many files were searched to their end.
    pub files: usize,
    /// The files that were not searched.
    pub skipped: Vec<Skipped>,
}

/// A line that holds the text. If the text spans lines, the line on which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The file.
    pub path: TreePath,
    /// The line, from 1.
    pub line: usize,
    /// Where in the line the text begins, in bytes from 1.
    pub column: usize,
    /// The line without its line end. If it is longer than 500 bytes, up to 500 of them around the match.
    pub text: String,
    /// The length of the whole line in bytes. If `text` is shorter, it was cut.
    pub length: usize,
}

/// A file that was not searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file.
    pub path: TreePath,
    /// Its size in bytes.
    pub size: u64,
    /// Why, as a fragment.
    pub why: &'static str,
}

impl Tree {
    /// Finds the lines that hold `text`, byte for byte, in files that are text.
    ///
    /// # Errors
    /// `Invalid` for an empty text; those of [`walk`](Self::walk); those of [`stat`](Self::stat) for `under`.
    pub fn find(&self, text: &[u8], search: &Search<'_>) -> Result<Found> {
        if text.is_empty() {
            return Err(Error::new(Kind::Invalid, "the text to find is empty")
                .with_hint("Give at least one character."));
        }
        let entries = self.entries_under(search)?;
        let job = Job { tree: self, entries: &entries, finder: Finder::new(text), limit: search.limit };
        Ok(job.run())
    }

    fn entries_under(&self, search: &Search<'_>) -> Result<Vec<Entry>> {
        let Some(under) = search.under else { return Ok(self.walk(search.rules, search.tracked)?.entries) };
        match self.open_folder(under.as_str()) {
            Ok(_) => Ok(self.walk_in(under.as_str(), search.rules, search.tracked)?.entries),
            Err(_) => match self.stat(under)? {
                entry if entry.kind == FileKind::Symlink => Err(self.is_link(under)),
                entry => Ok(vec![entry]),
            },
        }
    }
}

struct Job<'a> {
    tree: &'a Tree,
    entries: &'a [Entry],
    finder: Finder<'a>,
    limit: usize,
}

/// The result for one file.
enum Outcome {
    Hits(Vec<Hit>, usize),
    Skipped(Skipped),
}

impl Job<'_> {
    /// Searches every entry. The answer is in the order of their paths.
    fn run(&self) -> Found {
        let (next, counted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let outcomes = Mutex::new(Vec::new());
        let worker = || {
            let (mut mine, mut content) = (Vec::new(), Vec::new());
            loop {
                if counted.load(Ordering::Relaxed) > self.limit.saturating_add(COUNT_MAX) {
                    break;
                }
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(entry) = self.entries.get(at) else { break };
                if let Some(outcome) = self.search(entry, &mut content) {
                    if let Outcome::Hits(_, count) = &outcome {
                        counted.fetch_add(*count, Ordering::Relaxed);
                    }
                    mine.push((at, outcome));
                }
            }
            outcomes.lock().append(&mut mine);
        };
        std::thread::scope(|scope| {
            for _ in 1..THREADS.min(self.entries.len()) {
                scope.spawn(worker);
            }
            worker();
        });
        let all_taken = next.into_inner() >= self.entries.len();
        self.collect(outcomes.into_inner(), !all_taken)
    }

    fn collect(&self, mut outcomes: Vec<(usize, Outcome)>, more: bool) -> Found {
        // Files were taken in order, so those before the last one taken are all here.
        outcomes.sort_unstable_by_key(|(at, _)| *at);
        let mut found = Found { more, ..Found::default() };
        for (_, outcome) in outcomes {
            match outcome {
                Outcome::Hits(hits, count) => {
                    found.files += 1;
                    found.total += count;
                    let room = self.limit - found.hits.len();
                    found.hits.extend(hits.into_iter().take(room));
                }
                Outcome::Skipped(skipped) => found.skipped.push(skipped),
            }
        }
        found
    }

    /// Searches one file. Returns nothing for a symbolic link and for a file that has gone.
    fn search(&self, entry: &Entry, content: &mut Vec<u8>) -> Option<Outcome> {
        let skipped = |size, why| Some(Outcome::Skipped(Skipped { path: entry.path.clone(), size, why }));
        if entry.kind == FileKind::Symlink {
            return None;
        }
        if entry.stamp.size > SEARCHED_MAX {
            return skipped(entry.stamp.size, "over 64 MiB");
        }
        match self.tree.read_into(entry.path.as_str(), SEARCHED_MAX, content) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => return None,
            Err(_) => return skipped(entry.stamp.size, "cannot be read"),
        }
        let size = content.len() as u64;
        if size > SEARCHED_MAX {
            return skipped(size, "over 64 MiB");
        }
        let Some(text) = as_text(content) else { return skipped(size, "binary") };
        let (mut hits, mut count) = (Vec::new(), 0);
        self.lines_in(text, |line, span, at| {
            count += 1;
            if hits.len() < self.limit {
                hits.push(hit(&entry.path, text, line, span, at));
            }
        });
        if content.capacity() > 4 << 20 {
            // One big file must not keep its memory for the thousand small ones after it.
            *content = Vec::new();
        }
        Some(Outcome::Hits(hits, count))
    }

    /// Calls `each` with the number and the span of each line on which a match begins, and its place.
    fn lines_in(&self, text: &str, mut each: impl FnMut(usize, Range<usize>, usize)) {
        let bytes = text.as_bytes();
        let (mut from, mut line) = (0, 1);
        while let Some(at) = self.finder.find(&bytes[from..]).map(|at| from + at) {
            line += memchr_iter(b'\n', &bytes[from..at]).count();
            let start = memrchr(b'\n', &bytes[..at]).map_or(0, |lf| lf + 1);
            let end = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |lf| at + lf + 1);
            each(line, start..end, at);
            (from, line) = (end, line + 1);
        }
    }
}

/// Makes the hit on a line. Of a long line, it shows the part around the match.
fn hit(path: &TreePath, text: &str, line: usize, span: Range<usize>, at: usize) -> Hit {
    let length = without_end(&text.as_bytes()[span.clone()]).len();
    let whole = &text[span.start..span.start + length];
    let offset = (at - span.start).min(length);
    let from = match offset {
        _ if length <= LINE_MAX => 0,
        offset if offset <= LINE_MAX - LEAD => 0,
        offset => whole.floor_char_boundary(offset - LEAD),
    };
    let end = whole.floor_char_boundary((from + LINE_MAX).min(length));
    Hit { path: path.clone(), line, column: at - span.start + 1, text: whole[from..end].to_owned(), length }
}
