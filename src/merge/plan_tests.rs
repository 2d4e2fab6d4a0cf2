//! What every plan keeps, over random trees, and single cases.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::place::Paths;
use super::*;
use crate::name::{Hash, TreePath};
use crate::repo::store::{FileEntry, Files};
use crate::tree::FileKind;

/// Every content by its hash.
pub(super) type Contents = BTreeMap<Hash, Vec<u8>>;

pub(super) fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

/// The settled plan.
pub(super) fn settled(trees: &Trees, contents: &Contents) -> Plan {
    let mut plan = Plan::of(trees);
    plan.settle(|_| true, |wanted| Ok(contents[wanted.hash].clone())).unwrap();
    plan
}

/// The files of a plan's result.
pub(super) fn result(plan: &Plan) -> Files {
    plan.tree.iter().map(|(path, placed)| (path.clone(), placed.entry)).collect()
}

/// Checks what must hold for any trees.
pub(super) fn check(trees: &Trees, contents: &Contents) -> Plan {
    let plan = settled(trees, contents);
    let tree = result(&plan);
    for path in tree.keys() {
        assert_eq!(tree.in_the_way(path).collect::<Vec<_>>(), [path], "two files in one place");
    }
    let mut beside = BTreeSet::new();
    for backup in plan.backups() {
        let stays = trees.untracked.keys().filter(|path| !plan.backups().any(|moved| moved.from == **path));
        let stays: BTreeSet<TreePath> = stays.cloned().collect();
        for free in
            [tree.leave_free(&backup.path), beside.leave_free(&backup.path), stays.leave_free(&backup.path)]
        {
            assert!(free, "{} is not free", backup.path);
        }
        beside.insert(backup.path.clone());
    }
    let joined: BTreeSet<Hash> = plan
        .steps
        .values()
        .flat_map(|step| match step.source {
            Source::Joined { here, there, .. } => vec![here, there],
            _ => Vec::new(),
        })
        .collect();
    let kept = |hash: Hash| {
        joined.contains(&hash)
            || tree.values().any(|entry| entry.hash == hash)
            || plan.backups().any(|backup| backup.entry.hash == hash)
    };
    let known: BTreeSet<Hash> = trees.base.values().map(|entry| entry.hash).collect();
    for path in &trees.unsaved {
        let hash = trees.here.files[path].hash;
        assert!(known.contains(&hash) || kept(hash), "what is in {path} here is lost: {plan:#?}");
    }
    for (path, entry) in &trees.untracked {
        assert!(tree.leave_free(path) || kept(entry.hash), "{path} is lost: {plan:#?}");
    }
    for (path, entry) in &trees.there.files {
        assert!(
            known.contains(&entry.hash) || kept(entry.hash),
            "what is in {path} there is lost: {plan:#?}"
        );
    }
    check_steps(trees, &plan);
    if trees.here.files == trees.base && trees.here.renames.is_empty() {
        assert_eq!(tree, trees.there.files, "nothing was done here");
    }
    if trees.there.files == trees.base && trees.there.renames.is_empty() {
        assert_eq!(tree, trees.here.files, "nothing was done there");
        assert!(plan.steps.is_empty());
    }
    check_mirrored(trees, contents, &plan);
    plan
}

/// The steps, done to the files of this side, give the result.
fn check_steps(trees: &Trees, plan: &Plan) {
    let mut files = trees.here.files.clone();
    let results = plan.steps.values().filter(|step| step.result.is_some());
    for step in plan.steps.values().filter(|step| step.what == FileOutcome::Removed) {
        files.remove(&step.path);
    }
    for from in results.clone().filter_map(Step::from) {
        files.remove(from);
    }
    files.retain(|path, _| plan.tree.contains_key(path));
    for step in results {
        files.insert(step.path.clone(), step.result.unwrap());
    }
    assert_eq!(files, result(plan), "the steps are not the result");
    for (path, step) in &plan.steps {
        assert_eq!(*path, step.path);
        assert!(!step.why.is_empty() && !step.why.starts_with(':'), "{step:?}");
    }
}

/// Without conflicts it is the same which side is which; and there are conflicts or none either way.
fn check_mirrored(trees: &Trees, contents: &Contents, plan: &Plan) {
    let mirrored = Trees {
        base: trees.base.clone(),
        here: trees.there.clone(),
        there: trees.here.clone(),
        ..Trees::default()
    };
    let other = settled(&mirrored, contents);
    let own = plan.conflicts().filter(|step| step.what != FileOutcome::ConflictInTheWay);
    assert_eq!(own.count() == 0, other.conflicts().count() == 0, "{:#?}\n{:#?}", plan.steps, other.steps);
    if other.conflicts().count() == 0 {
        assert_eq!(result(plan), result(&other));
    }
}

/// One change of one side.
type Op = (u8, usize, usize);

const PATHS: [&str; 10] = ["a", "b", "c", "d", "d/x", "d/y", "e/x", "a/b", "e", "a-merge"];

/// Trees in the making.
#[derive(Default)]
struct Maker {
    contents: Contents,
}

impl Maker {
    fn keep(&mut self, text: String) -> Hash {
        let hash = Hash::of(text.as_bytes());
        self.contents.insert(hash, text.into_bytes());
        hash
    }

    fn made(&mut self, name: &str) -> FileEntry {
        let text = ["1", "2", "3", "4", "5", "6"].map(|line| format!("{name} {line}\n")).concat();
        FileEntry { hash: self.keep(text), kind: FileKind::Regular }
    }

    fn edited(&mut self, entry: FileEntry, line: usize, with: &str) -> Hash {
        let text = String::from_utf8(self.contents[&entry.hash].clone()).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        let at = line % lines.len().max(1);
        lines[at] = with;
        self.keep(lines.join("\n") + "\n")
    }

    /// A side: the base with changes. `name` tells the sides apart.
    fn side(&mut self, base: &Files, ops: &[Op], name: &str) -> Side {
        let mut files = base.clone();
        let mut origin: BTreeMap<TreePath, TreePath> = base.keys().map(|p| (p.clone(), p.clone())).collect();
        for (number, (what, one, other)) in ops.iter().enumerate() {
            let (one, other) = (path(PATHS[one % PATHS.len()]), path(PATHS[other % PATHS.len()]));
            let Some(entry) = files.get(&one).copied() else {
                if files.leave_free(&one) {
                    let shared = if what % 2 == 0 { "both" } else { name };
                    let entry = self.made(shared);
                    files.insert(one, entry);
                }
                continue;
            };
            match what % 8 {
                0..=2 => {
                    let hash = self.edited(entry, usize::from(what / 8), &format!("{name} {number}"));
                    files.insert(one, FileEntry { hash, ..entry });
                }
                3 => {
                    files.remove(&one);
                    origin.remove(&one);
                }
                4 => {
                    let is_plain = entry.kind == FileKind::Regular;
                    let kind = if is_plain { FileKind::Executable } else { FileKind::Regular };
                    files.insert(one, FileEntry { kind, ..entry });
                }
                5 => {
                    let hash = self.keep(format!("target of {name} {what}"));
                    files.insert(one, FileEntry { hash, kind: FileKind::Symlink });
                }
                _ => Self::exchange(&mut files, &mut origin, &one, &other),
            }
        }
        let renames = origin.into_iter().filter(|(new, old)| new != old).collect();
        Side { files, renames }
    }

    /// Renames a file to a free path, or swaps it with the file there.
    fn exchange(
        files: &mut Files,
        origin: &mut BTreeMap<TreePath, TreePath>,
        one: &TreePath,
        other: &TreePath,
    ) {
        let entry = files.remove(one).unwrap();
        let swapped = files.remove(other);
        if !files.leave_free(other) || one == other {
            files.insert(one.clone(), entry);
            files.extend(swapped.map(|entry| (other.clone(), entry)));
            return;
        }
        let (first, second) = (origin.remove(one), origin.remove(other));
        files.insert(other.clone(), entry);
        origin.extend(first.map(|origin| (other.clone(), origin)));
        if let Some(swapped) = swapped {
            files.insert(one.clone(), swapped);
            origin.extend(second.map(|origin| (one.clone(), origin)));
        }
    }

    fn trees(&mut self, seed: &Seed) -> Trees {
        let mut base = Files::new();
        for at in &seed.base {
            let path = path(PATHS[at % PATHS.len()]);
            if base.leave_free(&path) {
                let entry = self.made(path.as_str());
                base.insert(path, entry);
            }
        }
        let here = self.side(&base, &seed.here, "here");
        let there = self.side(&base, &seed.there, "there");
        let mut untracked = BTreeMap::new();
        for at in &seed.untracked {
            let path = path(PATHS[at % PATHS.len()]);
            if here.files.leave_free(&path) && untracked.leave_free(&path) {
                let entry = if at % 3 == 0 { self.made("both") } else { self.made("untracked") };
                untracked.insert(path, entry);
            }
        }
        let unsaved =
            here.files.keys().filter(|path| base.get(*path) != here.files.get(*path)).cloned().collect();
        Trees { base, here, there, unsaved, untracked, immovable: BTreeSet::new() }
    }
}

#[derive(Debug, Clone)]
struct Seed {
    base: Vec<usize>,
    here: Vec<Op>,
    there: Vec<Op>,
    untracked: Vec<usize>,
}

fn seed() -> impl Strategy<Value = Seed> {
    let ops = || prop::collection::vec((0..64_u8, 0..10_usize, 0..10_usize), 0..7);
    let some = || prop::collection::vec(0..30_usize, 0..6);
    (some(), ops(), ops(), some()).prop_map(|(base, here, there, untracked)| Seed {
        base,
        here,
        there,
        untracked,
    })
}

/// How many random trees are planned: `OCX_MERGE_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("OCX_MERGE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(6000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_byte_is_lost_whatever_the_sides_did(seed in seed()) {
        let mut maker = Maker::default();
        let trees = maker.trees(&seed);
        check(&trees, &maker.contents);
    }
}

/// Trees by hand: `side(&[("a", "text", "old name")])`.
fn side(maker: &mut Maker, files: &[(&str, &str, &str)]) -> Side {
    let mut side = Side::default();
    for (name, text, old) in files {
        let entry = FileEntry { hash: maker.keep((*text).to_owned()), kind: FileKind::Regular };
        side.files.insert(path(name), entry);
        if !old.is_empty() {
            side.renames.insert(path(name), path(old));
        }
    }
    side
}

fn planned(
    base: &[(&str, &str)],
    here: &[(&str, &str, &str)],
    there: &[(&str, &str, &str)],
) -> (Plan, String) {
    let mut maker = Maker::default();
    let base: Vec<_> = base.iter().map(|(name, text)| (*name, *text, "")).collect();
    let base = side(&mut maker, &base).files;
    let (here, there) = (side(&mut maker, here), side(&mut maker, there));
    let trees = Trees { base, here, there, ..Trees::default() };
    let plan = check(&trees, &maker.contents);
    let text = |path: &TreePath, entry: &FileEntry| {
        let bytes = plan.texts.get(path).unwrap_or_else(|| &maker.contents[&entry.hash]);
        format!("{path}={}", String::from_utf8_lossy(bytes).replace('\n', "/"))
    };
    let shown: Vec<_> = result(&plan).iter().map(|(path, entry)| text(path, entry)).collect();
    let shown = shown.join(" ");
    (plan, shown)
}

#[test]
fn k03_an_edit_here_lands_under_the_name_that_the_other_side_gave() {
    let (plan, tree) = planned(&[("a", "1\n2\n3\n")], &[("a", "X\n2\n3\n", "")], &[("b", "1\n2\n3\n", "a")]);
    assert_eq!(tree, "b=X/2/3/");
    let step = &plan.steps[&path("b")];
    assert_eq!((step.what, step.from(), plan.steps.len()), (FileOutcome::Renamed, Some(&path("a")), 1));
    assert_eq!(step.why, "edited here, renamed to `b` there: yours has the new name");
    let (plan, tree) = planned(&[("a", "1\n2\n3\n")], &[("b", "1\n2\n3\n", "a")], &[("a", "1\n2\nY\n", "")]);
    assert_eq!((tree.as_str(), plan.steps[&path("b")].what), ("b=1/2/Y/", FileOutcome::Updated));
}

#[test]
fn k04_swapped_names_keep_their_contents_and_the_edit() {
    let base = [("a", "a1\na2\na3\n"), ("b", "b1\nb2\nb3\n")];
    let swapped = [("a", "b1\nb2\nB3\n", "b"), ("b", "a1\na2\na3\n", "a")];
    let edited = [("a", "A1\na2\na3\n", ""), ("b", "B1\nb2\nb3\n", "")];
    let (plan, tree) = planned(&base, &edited, &swapped);
    assert_eq!(tree, "a=B1/b2/B3/ b=A1/a2/a3/");
    assert_eq!(plan.conflicts().count(), 0);
    assert_eq!(planned(&base, &swapped, &edited).1, tree);
}

#[test]
fn a_chain_of_renames_is_followed() {
    let base = [("a", "a1\n\na3\n"), ("b", "b1\n\nb3\n")];
    let chain = [("b", "a1\n\na3\n", "a"), ("c", "b1\n\nb3\n", "b")];
    let edited = [("a", "A1\n\na3\n", ""), ("b", "B1\n\nb3\n", "")];
    assert_eq!(planned(&base, &edited, &chain).1, "b=A1//a3/ c=B1//b3/");
    assert_eq!(planned(&base, &chain, &edited).1, "b=A1//a3/ c=B1//b3/");
}

#[test]
fn two_names_for_one_file_and_two_files_for_one_name_are_conflicts() {
    let (plan, tree) = planned(&[("a", "1\n")], &[("b", "1\n", "a")], &[("c", "1\n", "a")]);
    let step = &plan.steps[&path("b")];
    assert_eq!((tree.as_str(), step.what), ("b=1/", FileOutcome::ConflictNames));
    assert_eq!(step.why, "renamed to `b` here, renamed to `c` there: your name is kept");
    let base = [("a", "1\n"), ("b", "2\n")];
    let (plan, tree) =
        planned(&base, &[("b", "2\n", ""), ("c", "1\n", "a")], &[("a", "1\n", ""), ("c", "2\n", "b")]);
    assert_eq!((tree.as_str(), plan.steps[&path("b")].what), ("b=2/ c=1/", FileOutcome::ConflictNames));
    assert!(plan.steps[&path("b")].why.contains("`c` is in the way"));
}

#[test]
fn k05_an_edit_and_a_removal_are_a_conflict_that_names_both() {
    let (plan, tree) = planned(&[("a", "1\n")], &[("a", "2\n", "")], &[]);
    let step = &plan.steps[&path("a")];
    assert_eq!((tree.as_str(), step.what), ("a=2/", FileOutcome::ConflictRemovedThere));
    assert_eq!(step.why, "edited here, removed there: yours is kept");
    let (plan, tree) = planned(&[("a", "1\n")], &[], &[("a", "2\n", "")]);
    let step = &plan.steps[&path("a")];
    assert_eq!((tree.as_str(), step.what), ("a=2/", FileOutcome::ConflictRemovedHere));
    assert_eq!(step.why, "removed here, edited there: theirs is back");
}

#[test]
fn k02_a_folder_here_and_a_file_there_are_both_kept() {
    let base = [("x", "1\n"), ("y", "2\n")];
    let here = [("x", "edited\n", ""), ("y/in", "3\n", "")];
    let there = [("x/in.txt", "4\n", ""), ("y", "5\n", "")];
    let (plan, tree) = planned(&base, &here, &there);
    assert_eq!(tree, "x=edited/ y/in=3/");
    let beside: Vec<_> = plan.backups().map(|backup| backup.path.to_string()).collect();
    assert_eq!(beside, ["x-merge/in.txt", "y-merge"]);
    assert_eq!(plan.conflicts().count(), 3);
}

#[test]
fn what_is_not_part_of_the_checkout_is_moved_aside_and_what_cannot_be_moved_refuses() {
    let mut maker = Maker::default();
    let there =
        side(&mut maker, &[("new", "1\n", ""), ("f/x", "2\n", ""), ("same", "3\n", ""), ("g", "4\n", "")]);
    let loose =
        side(&mut maker, &[("new", "9\n", ""), ("f", "8\n", ""), ("same", "3\n", ""), ("g/y", "7\n", "")]);
    let mut trees = Trees { there, untracked: loose.files, ..Trees::default() };
    trees.untracked.insert(path("new-original"), trees.untracked[&path("f")]);
    let plan = check(&trees, &maker.contents);
    let moved: Vec<_> = plan.backups().map(|backup| format!("{}>{}", backup.from, backup.path)).collect();
    assert_eq!(moved, ["f>f-original", "g/y>g-original/y", "new>new-original-1"]);
    assert_eq!(plan.steps[&path("same")].what, FileOutcome::Added);
    assert_eq!(plan.steps[&path("new")].what, FileOutcome::ConflictInTheWay);
    assert_eq!(plan.refusals, []);
    trees.immovable.insert(path("same/socket"));
    let refusals = Plan::of(&trees).refusals;
    assert_eq!(refusals[0].path, path("same/socket"));
}
