//! What the `.gitignore` files of a checkout leave out, as git reads them.
//!
//! Only these files count: neither a `.git/info/exclude` nor what a user has set for git. A file is read when the first
//! untracked name asks for it.

use std::sync::{Arc, OnceLock};

use gix_ignore::glob::pattern::Case;
use gix_ignore::glob::{Pattern, wildmatch};
use rustix::io::Errno;

use super::root::Tree;
use crate::name::shown;

/// What the file is called.
pub(super) const NAME: &str = ".gitignore";

/// The largest one that is read, in bytes.
const BYTES_MAX: u64 = 256 << 10;

/// In how many ways a pattern may lay its `**` over the folders of a path. The matcher may try each.
const WAYS_MAX: usize = 1_000_000;

/// The `.gitignore` of a folder, and those of the folders that it is in.
pub(super) struct GitIgnore {
    /// The folder, with a slash at its end unless it is the root.
    folder: String,
    above: Option<Arc<GitIgnore>>,
    patterns: OnceLock<Result<Vec<Pattern>, Unread>>,
}

/// The name of a `.gitignore` whose rules are not known, and the reason.
pub(super) type Unread = (String, String);

impl GitIgnore {
    /// The file in `folder`. There need not be one.
    pub fn of(folder: &str, above: Option<Arc<Self>>) -> Arc<Self> {
        let slash = if folder.is_empty() { "" } else { "/" };
        Arc::new(Self { folder: format!("{folder}{slash}"), above, patterns: OnceLock::new() })
    }

    /// The files in all folders that `path` is in.
    pub fn around(path: &str) -> Arc<Self> {
        let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        folders.fold(Self::of("", None), |above, folder| Self::of(folder, Some(above)))
    }

    /// Whether this file or folder is left out by its own name. The deepest file with a matching line decides, and its
    /// last such line.
    ///
    /// # Errors
    /// Names a file that cannot be read.
    pub fn leaves_out(&self, tree: &Tree, path: &str, is_folder: bool) -> Result<bool, Unread> {
        let mut at = Some(self);
        while let Some(file) = at {
            let below = path.strip_prefix(file.folder.as_str());
            if let Some(said) = below.map(|below| file.says(tree, below, is_folder)).transpose()?.flatten() {
                return Ok(said);
            }
            at = file.above.as_deref();
        }
        Ok(false)
    }

    /// What this file says of a path below its folder: left out, taken, or nothing.
    fn says(&self, tree: &Tree, below: &str, is_folder: bool) -> Result<Option<bool>, Unread> {
        for pattern in self.patterns(tree)?.iter().rev() {
            if ways(pattern, below) > WAYS_MAX {
                let what =
                    format!("has a line with too many `**` to be tried on `{}`", shown(below.as_bytes()));
                return Err((shown(self.path().as_bytes()), what));
            }
            if matches(pattern, below, is_folder) {
                return Ok(Some(!pattern.is_negative()));
            }
        }
        Ok(None)
    }

    fn patterns(&self, tree: &Tree) -> Result<&[Pattern], Unread> {
        self.patterns.get_or_init(|| self.read(tree)).as_deref().map_err(Clone::clone)
    }

    fn path(&self) -> String {
        format!("{}{NAME}", self.folder)
    }

    fn read(&self, tree: &Tree) -> Result<Vec<Pattern>, Unread> {
        let path = self.path();
        let unread = |why: String| (shown(path.as_bytes()), why);
        let mut content = Vec::new();
        match tree.read_into(&path, BYTES_MAX, &mut content) {
            Ok(()) if content.len() as u64 > BYTES_MAX => {
                Err(unread(format!("has more than {BYTES_MAX} bytes, so what it leaves out is not known")))
            }
            Ok(()) => Ok(gix_ignore::parse(&content, false).map(|(pattern, ..)| pattern).collect()),
            // As git does, a link is not followed.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR | Errno::LOOP) => Ok(Vec::new()),
            Err(e) => Err(unread(format!("cannot be read, so what it leaves out is not known: {e}"))),
        }
    }
}

/// In how many ways the `**` of a pattern can be laid over the folders of a path, at most.
fn ways(pattern: &Pattern, path: &str) -> usize {
    if pattern.first_wildcard_pos.is_none() {
        return 1;
    }
    let stars = memchr::memmem::find_iter(&pattern.text, b"**").count();
    let folders = 1 + memchr::memchr_iter(b'/', path.as_bytes()).count();
    (0..stars).try_fold(1_usize, |ways, _| ways.checked_mul(folders + 1)).unwrap_or(usize::MAX)
}

/// Whether a line of the file matches a path below its folder.
fn matches(pattern: &Pattern, path: &str, is_folder: bool) -> bool {
    let name = path.rfind('/').map(|slash| slash + 1);
    let mode = wildmatch::Mode::NO_MATCH_SLASH_LITERAL;
    pattern.matches_repo_relative_path(path.as_bytes().into(), name, Some(is_folder), Case::Sensitive, mode)
}
