//! What a tree holds at one moment, and how two moments differ.

use std::{collections::BTreeMap, fmt};

use crate::name::{Hash, TreePath};

/// The content of a tree: one hash over all of it, and each file's.
///
/// ```
/// use std::collections::BTreeMap;
/// use ocx::{name::{Hash, TreePath}, testing::Snapshot};
/// let of = |text: &[u8]| Snapshot {
///     tree: Hash::of(text),
///     files: BTreeMap::from([(TreePath::parse("a.txt").unwrap(), (Hash::of(text), '-'))]),
/// };
/// let changes = of(b"old").changes(&of(b"new"));
/// assert_eq!(format!("{} {}", changes[0].path, changes[0].how), "a.txt edited");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The hash over names, modes and bytes.
    pub tree: Hash,
    /// Each file's content hash and its mode as one character: `-` regular, `x` executable, `l` link.
    pub files: BTreeMap<TreePath, (Hash, char)>,
}

/// One file that differs between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which file.
    pub path: TreePath,
    /// How it differs.
    pub how: How,
}

/// How a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It is new.
    Added,
    /// Its bytes differ.
    Edited,
    /// Only its mode differs.
    Mode,
    /// It is gone.
    Deleted,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Edited => "edited",
            Self::Mode => "mode changed",
            Self::Deleted => "deleted",
        })
    }
}

impl Snapshot {
    /// What differs in `later`, by path; nothing when the trees are equal.
    #[must_use]
    pub fn changes(&self, later: &Self) -> Vec<Change> {
        let how = |path: &TreePath| match (self.files.get(path), later.files.get(path)) {
            (None, Some(_)) => Some(How::Added),
            (Some(_), None) => Some(How::Deleted),
            (Some((old, _)), Some((new, _))) if old != new => Some(How::Edited),
            (Some((_, old)), Some((_, new))) if old != new => Some(How::Mode),
            _ => None,
        };
        let gone = self.files.keys().filter(|path| !later.files.contains_key(*path));
        let mut changes: Vec<_> = later
            .files
            .keys()
            .chain(gone)
            .filter_map(|path| how(path).map(|how| Change { path: path.clone(), how }))
            .collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str, char)]) -> Snapshot {
        let entry = |(path, content, mode): &(&str, &str, char)| {
            (TreePath::parse(path).unwrap(), (Hash::of(content.as_bytes()), *mode))
        };
        let files: BTreeMap<_, _> = files.iter().map(entry).collect();
        Snapshot { tree: Hash::of(format!("{files:?}").as_bytes()), files }
    }

    #[test]
    fn each_kind_of_difference_is_named() {
        let old = of(&[("a", "1", '-'), ("b", "1", '-'), ("c", "1", '-'), ("d", "1", '-')]);
        let new = of(&[("a", "2", 'x'), ("c", "1", 'x'), ("d", "1", '-'), ("e", "1", '-')]);
        let told: Vec<_> = old.changes(&new).iter().map(|c| format!("{} {}", c.path, c.how)).collect();
        assert_eq!(told, ["a edited", "b deleted", "c mode changed", "e added"]);
        assert!(old.changes(&old).is_empty());
    }
}
