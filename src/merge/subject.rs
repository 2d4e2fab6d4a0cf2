//! One file over three trees: where each has it, followed through renames, and what each side did to it.

use std::collections::{BTreeMap, BTreeSet};

use super::side::{Side, Trees};
use crate::name::TreePath;
use crate::repo::store::{FileEntry, Files};
use crate::tree::FileKind;

/// A file where one tree has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct At {
    pub path: TreePath,
    pub entry: FileEntry,
}

/// One file in the trees that have it. In at least one of the two sides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subject {
    pub base: Option<At>,
    pub here: Option<At>,
    pub there: Option<At>,
}

/// Returns every file that one of the sides has. Files that both added at one path are one.
pub(super) fn subjects(trees: &Trees) -> Vec<Subject> {
    let (here, there) = (Followed::of(&trees.base, &trees.here), Followed::of(&trees.base, &trees.there));
    let mut subjects = Vec::with_capacity(trees.here.files.len());
    for (path, entry) in &trees.base {
        let base = Some(At { path: path.clone(), entry: *entry });
        let (here, there) = (here.known.get(path).map(at), there.known.get(path).map(at));
        if here.is_some() || there.is_some() {
            subjects.push(Subject { base, here, there });
        }
    }
    let added: BTreeSet<&TreePath> = here.added.keys().chain(there.added.keys()).copied().collect();
    subjects.extend(added.into_iter().map(|path| Subject {
        base: None,
        here: here.added.get(path).map(|entry| at(&(path, entry))),
        there: there.added.get(path).map(|entry| at(&(path, entry))),
    }));
    subjects
}

fn at((path, entry): &(&TreePath, &FileEntry)) -> At {
    At { path: (*path).clone(), entry: **entry }
}

/// The files of one side: those of the base by their path there, and those that it added.
struct Followed<'a> {
    known: BTreeMap<&'a TreePath, (&'a TreePath, &'a FileEntry)>,
    added: BTreeMap<&'a TreePath, &'a FileEntry>,
}

impl<'a> Followed<'a> {
    /// Of two files that claim to be one of the base, the first by path is it.
    fn of(base: &'a Files, side: &'a Side) -> Self {
        let mut known = BTreeMap::new();
        let renamed = side.renames.iter().filter(|(new, old)| new != old);
        for (new, old) in renamed {
            if let (Some((old, _)), Some((new, entry))) =
                (base.get_key_value(old), side.files.get_key_value(new))
            {
                known.entry(old).or_insert((new, entry));
            }
        }
        let taken: BTreeSet<&TreePath> = known.values().map(|(new, _)| *new).collect();
        let mut added = BTreeMap::new();
        for (path, entry) in side.files.iter().filter(|(path, _)| !taken.contains(path)) {
            if base.contains_key(path) && !known.contains_key(path) {
                known.insert(path, (path, entry));
            } else {
                added.insert(path, entry);
            }
        }
        Self { known, added }
    }
}

impl Subject {
    /// What a side did, in a few words; nothing if it did nothing.
    pub fn did(&self, side: Option<&At>) -> Option<String> {
        let Some(base) = &self.base else { return side.map(|_| "added".to_owned()) };
        let Some(side) = side else { return Some("removed".to_owned()) };
        let mut did = Vec::new();
        if side.path != base.path {
            did.push(format!("renamed to `{}`", side.path.shown()));
        }
        let (was, is) = (base.entry, side.entry);
        if is_link(was) == is_link(is) {
            if was.hash != is.hash {
                did.push(if is_link(is) { "led elsewhere" } else { "edited" }.to_owned());
            }
            if was.kind != is.kind {
                let executable = is.kind == FileKind::Executable;
                did.push(if executable { "made executable" } else { "made not executable" }.to_owned());
            }
        } else {
            did.push(if is_link(is) { "made a link" } else { "made a file" }.to_owned());
        }
        (!did.is_empty()).then(|| did.join(" and "))
    }

    /// What both sides did: "edited here, removed there".
    pub fn story(&self) -> String {
        let words = [(self.did(self.here.as_ref()), "here"), (self.did(self.there.as_ref()), "there")];
        let told: Vec<_> =
            words.into_iter().filter_map(|(did, side)| Some(format!("{} {side}", did?))).collect();
        told.join(", ")
    }

    /// Whether a side changed neither the path nor the file.
    pub fn is_untouched(&self, side: Option<&At>) -> bool {
        side == self.base.as_ref()
    }
}

/// Whether it is a link rather than a file.
pub(super) fn is_link(entry: FileEntry) -> bool {
    entry.kind == FileKind::Symlink
}
