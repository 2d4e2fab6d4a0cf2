//! Says why a path could not be used: what stands in its way, or what looks like it.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use unicode_normalization::UnicodeNormalization;

use super::root::Tree;
use crate::error::{Error, Kind};
use crate::name::{TreePath, shown};

impl Tree {
    /// Makes the error for `path`, after the system refused to `act` on it.
    pub(super) fn explain(&self, act: &str, path: &TreePath, e: Errno) -> Error {
        if matches!(e, Errno::LOOP | Errno::NOTDIR | Errno::NOENT | Errno::ISDIR)
            && let Some(found) = self.obstacle(path)
        {
            return found;
        }
        match e {
            Errno::NOENT => {
                let e = Error::new(Kind::NotFound, format!("no file `{}`", path.shown()));
                match self.lookalike(path) {
                    Some(found) => Error::new(Kind::NotFound, format!("{e}; {}", found.described()))
                        .with_hint(format!("Use the name as it is on disk, `{}`.", found.name)),
                    None => e.with_hint("Look for the right path: search the files, or list them."),
                }
            }
            e => Error::io(format!("cannot {act} `{}`", path.shown()), e.into()),
        }
    }

    /// Finds the first part of `path` that is a link, or that is no folder and not the last part.
    fn obstacle(&self, path: &TreePath) -> Option<Error> {
        let text = path.as_str();
        for (at, _) in text.match_indices('/').chain([(text.len(), "")]) {
            let part = &text[..at];
            let kind = FileType::from_raw_mode(self.lstat(part).ok()?.st_mode);
            match kind {
                FileType::Symlink => return Some(self.led_by_link(path, part)),
                FileType::Directory => {}
                _ if at < text.len() => {
                    let what = format!(
                        "`{}` is no folder, so there is no `{}`",
                        shown(part.as_bytes()),
                        path.shown()
                    );
                    return Some(Error::new(Kind::NotFound, what));
                }
                _ => return None,
            }
        }
        None
    }

    /// The error for `path` as a symbolic link.
    pub(super) fn is_link(&self, path: &TreePath) -> Error {
        self.led_by_link(path, path.as_str())
    }

    fn led_by_link(&self, path: &TreePath, link: &str) -> Error {
        let target = self.link_target(link).unwrap_or_default();
        let place = if leads_outside(link, &target) { ", outside the checkout" } else { "" };
        let is = if path.as_str() == link { "is" } else { "lies under" };
        let name =
            if path.as_str() == link { String::new() } else { format!(" `{}`", shown(link.as_bytes())) };
        let what = format!("`{}` {is} the symbolic link{name} to `{}`{place}", path.shown(), shown(&target));
        Error::new(Kind::Denied, what).with_hint("Name the file itself; symbolic links are not followed.")
    }

    /// The error for a file that belongs to the repository or to the checkout itself.
    pub(super) fn belongs_to_repository(path: &TreePath) -> Error {
        Error::new(Kind::Denied, format!("`{}` belongs to the repository, not to its files", path.shown()))
            .with_hint("Choose another file.")
    }

    /// Finds a name on disk that looks like `path`, at the first part that does not exist.
    pub(super) fn lookalike(&self, path: &TreePath) -> Option<Lookalike> {
        let mut folder = "";
        loop {
            let rest = path.as_str()[folder.len()..].trim_start_matches('/');
            let part = rest.split('/').next()?;
            let here = self.open_folder(folder).ok()?;
            if rustix::fs::statat(here.as_fd(), part, AtFlags::SYMLINK_NOFOLLOW).is_err() {
                return twin_in(here.as_fd(), part);
            }
            let end = path.as_str().len() - rest.len() + part.len();
            folder = &path.as_str()[..end];
            if folder.len() == path.as_str().len() {
                return None;
            }
        }
    }
}

/// A name that people read as the same as another one.
pub(super) struct Lookalike {
    /// The name on disk.
    pub(super) name: String,
    /// Whether only the encoding of its letters differs, not their case.
    pub(super) is_twin: bool,
}

impl Lookalike {
    pub(super) fn described(&self) -> String {
        let name = self.name.escape_default();
        let how = if self.is_twin {
            "an equal-looking name exists, its letters encoded otherwise"
        } else {
            "a name exists that differs in case"
        };
        format!("{how}: `{name}`")
    }
}

/// Finds a name in `folder` that equals `wanted` once letters are composed alike, or else in another case.
fn twin_in(folder: BorrowedFd<'_>, wanted: &str) -> Option<Lookalike> {
    let composed: String = wanted.nfc().collect();
    let lowercase = composed.to_lowercase();
    let mut other_case = None;
    let here =
        rustix::fs::openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    for item in Dir::new(here.ok()?).ok()? {
        let item = item.ok()?;
        let Ok(name) = item.file_name().to_str() else { continue };
        if name == wanted {
            continue;
        }
        let theirs: String = name.nfc().collect();
        if theirs == composed {
            return Some(Lookalike { name: name.to_owned(), is_twin: true });
        }
        if theirs.to_lowercase() == lowercase {
            other_case = Some(Lookalike { name: name.to_owned(), is_twin: false });
        }
    }
    other_case
}

/// Whether a link at `link` with this target leaves the tree, as far as its text tells.
fn leads_outside(link: &str, target: &[u8]) -> bool {
    let mut depth = link.matches('/').count();
    if target.starts_with(b"/") {
        return true;
    }
    for part in target.split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." if depth == 0 => return true,
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}
