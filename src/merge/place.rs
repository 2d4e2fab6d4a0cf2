//! Places: which paths are free, and where each file of a merge goes if two want one place.
//!
//! Each file wants its path of this side or that of the other side. The paths of one side never clash, so only a path of
//! this side and one of the other can. Then this side's stays. The other file stays where this side has it, or is put
//! beside if this side does not have it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::side::Trees;
use super::subject::Subject;
use super::verdict::Verdict;
use crate::name::TreePath;

/// A file, what becomes of it, and whether it gets the place that it wants.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub subject: Subject,
    pub verdict: Verdict,
    pub clash: Option<Clash>,
}

/// The place that a file wants is another one's.
#[derive(Debug, Clone)]
pub(super) struct Clash {
    /// Where the file was wanted.
    pub wanted: TreePath,
    /// The file in the way: there, above or below.
    pub with: TreePath,
}

/// Gives each file its place.
pub(super) fn settle_places(items: &mut [Item]) {
    let mut ours = BTreeSet::new();
    let mut theirs = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let Some(path) = &item.verdict.path else { continue };
        if item.subject.here.as_ref().is_some_and(|here| here.path == *path) {
            ours.insert(path.clone());
        } else {
            theirs.insert(at);
        }
    }
    loop {
        let before = theirs.len();
        theirs.retain(|&at| {
            let item = &mut items[at];
            let Some(wanted) = &item.verdict.path else { return false };
            let Some(with) = ours.in_the_way(wanted).next().cloned() else { return true };
            item.clash = Some(Clash { wanted: wanted.clone(), with });
            item.verdict.path = item.subject.here.as_ref().map(|here| here.path.clone());
            if let Some(path) = &item.verdict.path {
                ours.insert(path.clone());
            }
            false
        });
        if theirs.len() == before {
            return;
        }
    }
}

/// Paths in order: those of a map or of a set.
pub(super) trait Paths {
    /// The same path.
    fn same(&self, path: &str) -> Option<&TreePath>;
    /// The paths from `start` on.
    fn from<'a>(&'a self, start: &str) -> impl Iterator<Item = &'a TreePath> + use<'a, Self>;

    /// The path that is one of the folders of `path`.
    fn above(&self, path: &TreePath) -> Option<&TreePath> {
        let text = path.as_str();
        text.match_indices('/').find_map(|(at, _)| self.same(&text[..at]))
    }

    /// The paths in the folder `path`.
    fn below(&self, path: &TreePath) -> impl Iterator<Item = &TreePath> {
        let folder = format!("{path}/");
        self.from(&folder).take_while(move |path| path.as_str().starts_with(&folder))
    }

    /// The paths that a file at `path` cannot be beside: the same, one above, those below.
    fn in_the_way(&self, path: &TreePath) -> impl Iterator<Item = &TreePath> {
        self.same(path.as_str()).into_iter().chain(self.above(path)).chain(self.below(path))
    }

    /// Whether a file at `path` can be beside all of them.
    fn leave_free(&self, path: &TreePath) -> bool {
        self.in_the_way(path).next().is_none()
    }
}

impl<V> Paths for BTreeMap<TreePath, V> {
    fn same(&self, path: &str) -> Option<&TreePath> {
        self.get_key_value(path).map(|(path, _)| path)
    }

    fn from<'a>(&'a self, start: &str) -> impl Iterator<Item = &'a TreePath> + use<'a, V> {
        self.range::<str, _>((Bound::Included(start), Bound::Unbounded)).map(|(path, _)| path)
    }
}

impl Paths for BTreeSet<TreePath> {
    fn same(&self, path: &str) -> Option<&TreePath> {
        self.get(path)
    }

    fn from<'a>(&'a self, start: &str) -> impl Iterator<Item = &'a TreePath> + use<'a> {
        self.range::<str, _>((Bound::Included(start), Bound::Unbounded))
    }
}

/// The most bytes of a file's name on a disk.
const NAME_MAX: usize = 255;

/// The path with an ending. A long name is cut, so that a disk takes it.
pub(crate) fn beside(path: &str, ending: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let over = (name.len() + ending.len()).saturating_sub(NAME_MAX);
    let mut end = path.len() - over.min(name.len());
    while !path.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ending}", &path[..end])
}

/// Finds names for what is put beside.
pub(super) struct Names<'a> {
    trees: &'a Trees,
    results: &'a BTreeMap<TreePath, usize>,
    given: BTreeSet<TreePath>,
}

impl<'a> Names<'a> {
    pub fn new(trees: &'a Trees, results: &'a BTreeMap<TreePath, usize>) -> Self {
        Self { trees, results, given: BTreeSet::new() }
    }

    /// A free path like `path`, with `word` behind it. If a file is in the way in the place of one of its folders, the
    /// word is behind that folder's name.
    pub fn beside(&mut self, path: &TreePath, with: &TreePath, word: &str) -> TreePath {
        let rest = path.as_str().strip_prefix(with.as_str()).filter(|rest| rest.starts_with('/'));
        let (stem, rest) = rest.map_or((path.as_str(), ""), |rest| (with.as_str(), rest));
        let folder = stem.rfind('/').unwrap_or(0);
        let mut number = 0_u64;
        loop {
            let suffix = if number == 0 { String::new() } else { format!("-{number}") };
            let name = beside(stem, &format!("-{word}{suffix}")) + rest;
            let name = TreePath::parse_stored(&name);
            if let Some(name) = name.ok().filter(|name| self.is_free(name, folder)) {
                self.given.insert(name.clone());
                return name;
            }
            number += 1;
        }
    }

    /// Whether nothing is at `path`, now or afterwards. Its first folders, `folder` bytes, are those of a file that is
    /// there afterwards: what lies in their place now goes.
    fn is_free(&self, path: &TreePath, folder: usize) -> bool {
        let trees = self.trees;
        let goes = |other: &TreePath| other.as_str().len() <= folder;
        trees.here.files.in_the_way(path).all(goes)
            && trees.there.files.in_the_way(path).all(goes)
            && trees.untracked.in_the_way(path).all(goes)
            && trees.immovable.in_the_way(path).all(goes)
            && self.results.leave_free(path)
            && self.given.leave_free(path)
    }
}
