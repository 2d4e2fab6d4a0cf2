//! A plan in the making: one step per path, from what becomes of each file and from what lies in the way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::outcome::FileOutcome;
use super::place::{Clash, Item, Names, Paths, settle_places};
use super::side::Trees;
use super::step::{Backup, Owner, Placed, Refusal, Source, Step};
use super::subject::{At, is_link, subjects};
use super::verdict::Verdict;
use crate::name::TreePath;
use crate::repo::store::FileEntry;

/// How what is put beside is named, in Fossil's words: what lay here, and the other side's file.
const ORIGINAL: &str = "original";
const MERGED_IN: &str = "merge";

/// The parts of a plan.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub steps: BTreeMap<TreePath, Step>,
    pub refusals: Vec<Refusal>,
    pub tree: BTreeMap<TreePath, Placed>,
    /// For each text to be joined, where the other side's file goes if it turns out to be none.
    pub spare: BTreeMap<TreePath, Backup>,
}

impl Draft {
    /// Drafts the plan for these trees.
    pub fn of(trees: &Trees) -> Self {
        let items = subjects(trees).into_iter().filter_map(|subject| {
            let verdict = Verdict::of(&subject)?;
            Some(Item { subject, verdict, clash: None })
        });
        let mut items: Vec<Item> = items.collect();
        settle_places(&mut items);
        let placed = items.iter().enumerate().filter_map(|(at, item)| Some((item.verdict.path.clone()?, at)));
        let results: BTreeMap<TreePath, usize> = placed.collect();
        let mut names = Names::new(trees, &results);
        let mut draft = Self::default();
        for item in &items {
            draft.place(trees, item, &mut names);
        }
        for item in &items {
            match (&item.verdict.path, &item.clash) {
                (None, None) => draft.remove(trees, item),
                (None, Some(clash)) => {
                    let holder = results.get(&clash.wanted).map(|at| &items[*at]);
                    draft.displace(trees, item, clash, holder, &mut names);
                }
                _ => {}
            }
        }
        draft.clear(trees, &mut names);
        draft
    }

    /// A file that is there afterwards.
    fn place(&mut self, trees: &Trees, item: &Item, names: &mut Names<'_>) {
        let Some(path) = &item.verdict.path else { return };
        let placed = Placed {
            entry: item.verdict.entry,
            base: path_of(item.subject.base.as_ref()),
            here: path_of(item.subject.here.as_ref()),
            there: path_of(item.subject.there.as_ref()),
        };
        self.tree.insert(path.clone(), placed);
        let (mut what, mut why) = (item.verdict.what, why(item));
        if let Some(clash) = &item.clash {
            what = what.filter(|what| what.is_conflict()).or(Some(FileOutcome::ConflictNames));
            why = format!(
                "{}: `{}` is in the way of the new name, so your name is kept",
                item.subject.story(),
                clash.with.shown()
            );
        }
        let Some(what) = what else { return };
        let mut step = step(trees, item, path, what, why);
        step.result = Some(item.verdict.entry);
        if let Some(there) = &item.subject.there {
            if item.verdict.beside {
                step.backups.push(beside(there, path, path, names));
            } else if matches!(step.source, Source::Joined { .. }) {
                self.spare.insert(path.clone(), beside(there, path, path, names));
            }
        }
        self.steps.insert(path.clone(), step);
    }

    /// A file that is gone afterwards. If another one comes to its place, that one's step says so.
    fn remove(&mut self, trees: &Trees, item: &Item) {
        let Some(here) = &item.subject.here else { return };
        if let Some(step) = self.steps.get_mut(&here.path) {
            step.why.push_str("; the file that was here is gone");
            return;
        }
        let gone = step(trees, item, &here.path, FileOutcome::Removed, why(item));
        self.steps.insert(here.path.clone(), gone);
    }

    /// A file of the other side whose place is another one's.
    fn displace(
        &mut self,
        trees: &Trees,
        item: &Item,
        clash: &Clash,
        holder: Option<&Item>,
        names: &mut Names<'_>,
    ) {
        let Some(there) = &item.subject.there else { return };
        let path = &clash.wanted;
        let backup = beside(there, path, &clash.with, names);
        let what =
            item.verdict.what.filter(|what| what.is_conflict()).unwrap_or(FileOutcome::ConflictBothAdded);
        let why = format!(
            "{}: `{}` is in the way, so theirs is put beside",
            item.subject.story(),
            clash.with.shown()
        );
        let known = self.steps.entry(path.clone()).or_insert_with(|| {
            let mut new = step(trees, holder.unwrap_or(item), path, what, String::new());
            new.result = holder.map(|holder| holder.verdict.entry);
            if holder.is_none() {
                new.source = Source::Nothing;
            }
            new
        });
        if !known.what.is_conflict() {
            known.what = what;
        }
        known.why = if known.why.is_empty() { why } else { format!("{}; {why}", known.why) };
        known.backups.push(backup);
    }

    /// Puts aside what lies on the disk, is no part of the checkout, and is in the way.
    fn clear(&mut self, trees: &Trees, names: &mut Names<'_>) {
        let mut moved = BTreeSet::new();
        for (path, step) in &mut self.steps {
            let Some(entry) = step.result.filter(|_| step.here.as_ref() != Some(path)) else { continue };
            for other in trees.untracked.in_the_way(path) {
                let found = trees.untracked[other];
                let is_same = found.hash == entry.hash && is_link(found) == is_link(entry);
                let is_joined = matches!(step.source, Source::Joined { .. });
                if (other == path && is_same && !is_joined) || !moved.insert(other) {
                    continue;
                }
                let with = if other.is_within(path) { path } else { other };
                let name = names.beside(other, with, ORIGINAL);
                let _ = write!(step.why, "; `{}`, not part of the checkout, lay there", other.shown());
                let backup = Backup { path: name, of: Owner::Untracked, from: other.clone(), entry: found };
                step.backups.push(backup);
                if !step.what.is_conflict() {
                    step.what = FileOutcome::ConflictInTheWay;
                }
            }
            for fixed in trees.immovable.in_the_way(path) {
                let why = format!("`{}` is to come there", path.shown());
                self.refusals.push(Refusal { path: fixed.clone(), why });
            }
        }
    }
}

fn path_of(at: Option<&At>) -> Option<TreePath> {
    at.map(|at| at.path.clone())
}

fn why(item: &Item) -> String {
    format!("{}: {}", item.subject.story(), item.verdict.then)
}

fn step(trees: &Trees, item: &Item, path: &TreePath, what: FileOutcome, why: String) -> Step {
    let subject = &item.subject;
    Step {
        path: path.clone(),
        what,
        why,
        source: item.verdict.source,
        result: None::<FileEntry>,
        base: path_of(subject.base.as_ref()),
        here: path_of(subject.here.as_ref()),
        there: path_of(subject.there.as_ref()),
        unsaved: subject.here.as_ref().is_some_and(|here| trees.unsaved.contains(&here.path)),
        backups: Vec::new(),
    }
}

/// The other side's file, put beside the file at `with`.
fn beside(there: &At, path: &TreePath, with: &TreePath, names: &mut Names<'_>) -> Backup {
    let name = names.beside(path, with, MERGED_IN);
    Backup { path: name, of: Owner::There, from: there.path.clone(), entry: there.entry }
}
