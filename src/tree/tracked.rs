//! What a walk is told of the files before it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::entry::{FileKind, Stamp};
use crate::name::TreePath;

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

/// Which paths are tracked. These are never left out.
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
