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
    let mut ours: BTreeMap<TreePath, ()> = BTreeMap::new();
    let mut theirs = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let Some(path) = &item.verdict.path else { continue };
        if item.subject.here.as_ref().is_some_and(|here| here.path == *path) {
            ours.insert(path.clone(), ());
        } else {
            theirs.insert(at);
        }
    }
    loop {
        let before = theirs.len();
        theirs.retain(|&at| {
            let item = &mut items[at];
            let Some(wanted) = &item.verdict.path else { return false };
            let Some(with) = in_the_way(&ours, wanted).cloned() else { return true };
            item.clash = Some(Clash { wanted: wanted.clone(), with });
            item.verdict.path = item.subject.here.as_ref().map(|here| here.path.clone());
            if let Some(path) = &item.verdict.path {
                ours.insert(path.clone(), ());
            }
            false
        });
        if theirs.len() == before {
            return;
        }
    }
}

/// Returns a file of `files` that a file at `path` cannot be beside: at the same path, above or below.
pub(super) fn in_the_way<'a, V>(files: &'a BTreeMap<TreePath, V>, path: &TreePath) -> Option<&'a TreePath> {
    let same = files.get_key_value(path).map(|(path, _)| path);
    same.or_else(|| above(files, path)).or_else(|| below(files, path).next())
}

/// Returns the file of `files` that is one of the folders of `path`.
fn above<'a, V>(files: &'a BTreeMap<TreePath, V>, path: &TreePath) -> Option<&'a TreePath> {
    let text = path.as_str();
    text.match_indices('/').find_map(|(at, _)| files.get_key_value(&text[..at])).map(|(path, _)| path)
}

/// The files of `files` in the folder `path`.
fn below<'a, V>(files: &'a BTreeMap<TreePath, V>, path: &TreePath) -> impl Iterator<Item = &'a TreePath> {
    let folder = format!("{path}/");
    let range = files.range::<str, _>((Bound::Included(folder.as_str()), Bound::Unbounded));
    range.map(|(path, _)| path).take_while(move |path| path.as_str().starts_with(&folder))
}

/// All files of `files` that a file at `path` cannot be beside.
pub(super) fn all_in_the_way<V>(files: &BTreeMap<TreePath, V>, path: &TreePath) -> Vec<TreePath> {
    let same = files.get_key_value(path).map(|(path, _)| path);
    same.into_iter().chain(above(files, path)).chain(below(files, path)).cloned().collect()
}

/// Finds names for what is put beside.
pub(super) struct Names<'a> {
    trees: &'a Trees,
    results: &'a BTreeMap<TreePath, usize>,
    immovable: BTreeMap<TreePath, ()>,
    given: BTreeMap<TreePath, ()>,
}

impl<'a> Names<'a> {
    pub fn new(trees: &'a Trees, results: &'a BTreeMap<TreePath, usize>) -> Self {
        let immovable = trees.immovable.iter().map(|path| (path.clone(), ())).collect();
        Self { trees, results, immovable, given: BTreeMap::new() }
    }

    /// A free path like `path`, with `word` behind it. If a file is in the way in the place of one of its folders, the
    /// word is behind that folder's name.
    pub fn beside(&mut self, path: &TreePath, with: &TreePath, word: &str) -> TreePath {
        let rest = path.as_str().strip_prefix(with.as_str()).filter(|rest| rest.starts_with('/'));
        let (stem, rest) = rest.map_or((path.as_str(), ""), |rest| (with.as_str(), rest));
        let mut number = 0_u64;
        loop {
            let suffix = if number == 0 { String::new() } else { format!("-{number}") };
            let name = TreePath::parse_stored(&format!("{stem}-{word}{suffix}{rest}"));
            if let Some(name) = name.ok().filter(|name| self.is_free(name)) {
                self.given.insert(name.clone(), ());
                return name;
            }
            number += 1;
        }
    }

    fn is_free(&self, path: &TreePath) -> bool {
        let trees = self.trees;
        in_the_way(&trees.here.files, path).is_none()
            && in_the_way(&trees.there.files, path).is_none()
            && in_the_way(&trees.untracked, path).is_none()
            && in_the_way(&self.immovable, path).is_none()
            && in_the_way(self.results, path).is_none()
            && in_the_way(&self.given, path).is_none()
    }

    /// What cannot be moved and is in the way of a file at `path`.
    pub fn immovable(&self, path: &TreePath) -> Option<&TreePath> {
        in_the_way(&self.immovable, path)
    }
}
