//! Updates and merges: what is told of each file, and that nothing is lost.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Fossil, Place, ann, changes, check_in};
use ocx::checkout::{Checkout, FileOutcome, How, MergeHow, Updated};
use ocx::error::Kind;
use proptest::prelude::*;

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// A trunk with some files, and a branch `side` with changes to them, opened in `other`.
struct Two {
    place: Place,
    other: Checkout,
}

impl Two {
    fn new() -> Self {
        let place = Place::new();
        for name in ["a.txt", "b.txt", "gone.txt", "kept.txt", "old.txt"] {
            place.write(name, format!("{name}\n{LINES}"));
        }
        place.write("bin", b"\0one");
        place.check_in("base", None).unwrap();
        let root = place.dir.path().join("other");
        let other = Checkout::open(&place.repository, &root, None, Some(&ann())).unwrap();
        Self { place, other }
    }

    fn theirs(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::write(self.other.root().join(path), content).unwrap();
    }

    /// A line of `path` replaced.
    fn with_line(path: &str, line: u8, new: &str) -> String {
        format!("{path}\n{LINES}").replace(&format!("\n{line}\n"), &format!("\n{new}\n"))
    }

    /// Some of each kind of change, on `side`.
    fn changed(&self) {
        self.theirs("a.txt", Self::with_line("a.txt", 2, "theirs"));
        self.theirs("new.txt", "new\n");
        self.theirs("ignored.o", "theirs\n");
        fs::remove_file(self.other.root().join("gone.txt")).unwrap();
        Fossil::Own.run(self.place.dir.path(), self.other.root(), &["mv", "--hard", "old.txt", "moved.txt"]);
        check_in(&self.other, "their side", Some("side")).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.place.path(path)).unwrap()
    }
}

/// What happened, by path.
fn told(updated: &Updated) -> BTreeMap<&str, FileOutcome> {
    updated.files.iter().map(|file| (file.path.as_str(), file.what)).collect()
}

/// All files below a folder with their bytes, without databases.
fn everything(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file()
                && !path.to_string_lossy().contains(".fslckout")
                && !path.to_string_lossy().contains("r.fossil")
            {
                all.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    all
}

#[test]
fn a_merge_tells_what_happened_to_each_file_and_plain_fossil_agrees() {
    let two = Two::new();
    two.changed();
    two.place.write("a.txt", Two::with_line("a.txt", 8, "ours"));
    two.place.write("kept.txt", "ours\n");
    let merged = two.place.checkout.merge("side", MergeHow::Whole).unwrap();
    let expected = [
        ("a.txt", FileOutcome::Merged),
        ("gone.txt", FileOutcome::Removed),
        ("ignored.o", FileOutcome::Added),
        ("moved.txt", FileOutcome::Renamed),
        ("new.txt", FileOutcome::Added),
    ];
    assert_eq!(told(&merged), BTreeMap::from(expected), "{merged:#?}");
    assert!(merged.conflicts.is_empty());
    let renamed = merged.files.iter().find(|file| file.path == "moved.txt").unwrap();
    assert_eq!(renamed.from.as_deref(), Some("old.txt"));
    let joined = two.read("a.txt");
    assert!(joined.contains("theirs\n") && joined.contains("ours\n"));
    assert_eq!(two.read("kept.txt"), "ours\n");
    assert!(two.place.fossil(&["status"]).contains("MERGED_WITH"));
    let made = two.place.check_in("merged", None).unwrap();
    let info = two.place.repository.store().check_in(&made.hash).unwrap();
    assert_eq!(info.parents.len(), 2);
    assert_eq!(two.place.fossil(&["changes"]), "");
    assert!(two.place.fossil(&["ls"]).contains("moved.txt"));
    two.place.assert_whole();
}

#[test]
fn a_rehearsal_says_the_same_and_touches_nothing() {
    let two = Two::new();
    two.changed();
    two.place.write(".fossil-settings/ignore-glob", "*.o\n");
    two.place.write("ignored.o", "lies in the way\n");
    two.place.write("a.txt", Two::with_line("a.txt", 2, "ours"));
    let before = everything(two.place.dir.path());
    let would = two.place.checkout.would_merge("side", MergeHow::Whole).unwrap();
    let would_move = two.place.checkout.would_update("side").unwrap();
    assert_eq!(everything(two.place.dir.path()), before);
    assert_eq!(told(&would)["a.txt"], FileOutcome::ConflictMarked);
    assert_eq!(told(&would)["ignored.o"], FileOutcome::ConflictInTheWay);
    assert_ne!(would_move.hash, two.place.checkout.parent().unwrap());
    let merged = two.place.checkout.merge("side", MergeHow::Whole).unwrap();
    assert_eq!(merged, would);
    two.place.checkout.undo().unwrap();
    assert_eq!(everything(two.place.dir.path()), before);
    assert_eq!(two.place.checkout.update("side").unwrap(), would_move);
}

#[test]
fn conflicts_are_told_with_their_kinds_and_nothing_is_lost() {
    let two = Two::new();
    two.changed();
    two.theirs("bin", b"\0theirs");
    check_in(&two.other, "binary", None).unwrap();
    two.place.write(".fossil-settings/ignore-glob", "*.o\n");
    two.place.write("a.txt", Two::with_line("a.txt", 2, "ours"));
    two.place.write("gone.txt", "edited here\n");
    two.place.write("new.txt", "ours\n");
    two.place.write("bin", b"\0ours");
    two.place.write("ignored.o", "ours\n");
    let merged = two.place.checkout.merge("side", MergeHow::Whole).unwrap();
    let told = told(&merged);
    assert_eq!(told["a.txt"], FileOutcome::ConflictMarked, "{merged:#?}");
    assert_eq!(told["gone.txt"], FileOutcome::ConflictRemovedThere);
    assert_eq!(told["bin"], FileOutcome::ConflictUnjoinable);
    assert_eq!(told["ignored.o"], FileOutcome::ConflictInTheWay);
    assert!(told["new.txt"].is_conflict());
    assert!(two.read("a.txt").contains("ours\n") && two.read("a.txt").contains("<<<<<<<"));
    assert_eq!(two.read("gone.txt"), "edited here\n");
    assert_eq!(fs::read(two.place.path("bin")).unwrap(), b"\0ours");
    assert_eq!(two.read("ignored.o-original"), "ours\n");
    assert!(two.read("new.txt").contains("ours\n"));
    let way = merged.files.iter().find(|file| file.path == "ignored.o").unwrap();
    assert_eq!(way.backup.as_deref(), Some("ignored.o-original"));
    assert_eq!(merged.conflicts.len(), merged.files.iter().filter(|file| file.what.is_conflict()).count());
    // Kept here, so it is part of the check-in, also for plain Fossil.
    let made = two.place.check_in("resolved", None).unwrap();
    let files = two.place.repository.store().files(&made.hash).unwrap();
    for path in ["gone.txt", "new.txt", "moved.txt", "ignored.o"] {
        assert!(files.contains_key(path), "{path}");
    }
    assert_eq!(two.place.fossil(&["changes"]), "");
    two.place.assert_whole();
}

#[test]
fn an_update_tells_its_conflicts_and_loses_nothing() {
    let two = Two::new();
    two.theirs("a.txt", Two::with_line("a.txt", 2, "theirs"));
    two.theirs("b.txt", Two::with_line("b.txt", 2, "theirs"));
    two.theirs("kept.txt", Two::with_line("kept.txt", 2, "theirs"));
    two.theirs("new.txt", "new\n");
    two.theirs("x.o", "theirs\n");
    two.theirs("bin", b"\0theirs");
    fs::remove_file(two.other.root().join("gone.txt")).unwrap();
    let made = check_in(&two.other, "meanwhile", None).unwrap();
    two.place.write(".fossil-settings/ignore-glob", "*.o\n");
    two.place.write("a.txt", Two::with_line("a.txt", 2, "ours"));
    two.place.write("b.txt", Two::with_line("b.txt", 8, "ours"));
    two.place.write("gone.txt", "edited here\n");
    two.place.write("x.o", "ours\n");
    two.place.write("bin", b"\0ours");
    fs::remove_file(two.place.path("kept.txt")).unwrap();
    let updated = two.place.checkout.update("trunk").unwrap();
    assert_eq!(updated.hash, made.hash);
    let expected = [
        ("a.txt", FileOutcome::ConflictMarked),
        ("b.txt", FileOutcome::Merged),
        ("bin", FileOutcome::ConflictUnjoinable),
        ("gone.txt", FileOutcome::ConflictRemovedThere),
        ("kept.txt", FileOutcome::ConflictRemovedHere),
        ("new.txt", FileOutcome::Added),
        ("x.o", FileOutcome::ConflictInTheWay),
    ];
    assert_eq!(told(&updated), BTreeMap::from(expected), "{updated:#?}");
    assert_eq!(two.read("gone.txt"), "edited here\n");
    assert_eq!(fs::read(two.place.path("bin")).unwrap(), b"\0ours");
    assert_eq!(fs::read(two.place.path("bin-merge")).unwrap(), b"\0theirs");
    assert_eq!(two.read("x.o-original"), "ours\n");
    assert_eq!(two.read("x.o"), "theirs\n");
    assert!(changes(&two.place.checkout).contains(&("gone.txt".into(), How::Added)));
}

#[test]
fn a_renamed_file_that_lands_on_an_added_one_costs_neither() {
    let two = Two::new();
    two.changed();
    for (update, to) in [(true, "side"), (false, "side")] {
        let root = two.place.dir.path().join(format!("third{update}"));
        let third = Checkout::open(&two.place.repository, &root, Some("trunk"), Some(&ann())).unwrap();
        fs::write(root.join("old.txt"), Two::with_line("old.txt", 5, "ours")).unwrap();
        fs::write(root.join("moved.txt"), "an added file\n").unwrap();
        let done = if update { third.update(to) } else { third.merge(to, MergeHow::Whole) }.unwrap();
        let all: Vec<_> = everything(&root).into_values().collect();
        assert!(all.iter().any(|bytes| bytes == b"an added file\n"), "{done:#?}");
        assert!(all.iter().any(|bytes| String::from_utf8_lossy(bytes).contains("ours\n")), "{done:#?}");
        assert!(!done.conflicts.is_empty(), "{done:#?}");
    }
}

#[test]
fn a_cherrypick_and_a_backout_take_one_check_in() {
    let two = Two::new();
    two.theirs("a.txt", Two::with_line("a.txt", 2, "first"));
    let first = check_in(&two.other, "first", Some("side")).unwrap();
    two.theirs("b.txt", Two::with_line("b.txt", 2, "second"));
    let second = check_in(&two.other, "second", None).unwrap();
    let checkout = &two.place.checkout;
    let picked = checkout.merge(second.hash.as_str(), MergeHow::Cherrypick).unwrap();
    assert_eq!(told(&picked), BTreeMap::from([("b.txt", FileOutcome::Updated)]));
    let made = two.place.check_in("picked", None).unwrap();
    let manifest = two.place.repository.store().manifest(&made.hash).unwrap();
    assert_eq!(manifest.cherrypicks[0].target, second.hash);
    two.other.merge(first.hash.as_str(), MergeHow::Backout).unwrap();
    assert_eq!(fs::read_to_string(two.other.root().join("a.txt")).unwrap(), format!("a.txt\n{LINES}"));
    let made = check_in(&two.other, "backed out", None).unwrap();
    let manifest = two.place.repository.store().manifest(&made.hash).unwrap();
    assert!(manifest.cherrypicks[0].backout && manifest.cherrypicks[0].target == first.hash);
    two.place.assert_whole();
}

#[test]
fn an_integrated_branch_is_closed_by_the_check_in() {
    let two = Two::new();
    two.changed();
    two.place.checkout.merge("side", MergeHow::Integrate).unwrap();
    let side = ocx::name::Branch::parse("side").unwrap();
    assert!(!two.place.repository.store().branch_closed(&side).unwrap());
    let made = two.place.check_in("integrated", None).unwrap();
    assert!(two.place.repository.store().branch_closed(&side).unwrap());
    assert_eq!(two.place.repository.store().check_in(&made.hash).unwrap().parents.len(), 2);
    assert!(two.place.fossil(&["branch", "ls", "--closed"]).contains("side"));
    two.place.assert_whole();
}

#[test]
fn a_private_check_in_is_merged_without_being_named() {
    let two = Two::new();
    two.theirs("a.txt", Two::with_line("a.txt", 2, "theirs"));
    let plain = |args: &[&str]| Fossil::Reference.run(two.place.dir.path(), two.other.root(), args);
    plain(&["commit", "-m", "private", "--private", "--no-warnings", "--hash", "--branch", "hidden"]);
    two.place.checkout.merge("hidden", MergeHow::Whole).unwrap();
    let made = two.place.check_in("merged", None).unwrap();
    let manifest = two.place.repository.store().manifest(&made.hash).unwrap();
    assert_eq!(manifest.parents.len(), 1);
}

#[test]
fn an_undo_brings_the_files_back() {
    let two = Two::new();
    two.changed();
    two.place.write("a.txt", Two::with_line("a.txt", 8, "ours"));
    let (files, at) = (everything(two.place.checkout.root()), two.place.checkout.parent().unwrap());
    for merge in [true, false] {
        let checkout = &two.place.checkout;
        if merge { checkout.merge("side", MergeHow::Whole) } else { checkout.update("side") }.unwrap();
        assert_ne!(everything(checkout.root()), files);
        let undone = checkout.undo().unwrap();
        assert_eq!(everything(checkout.root()), files);
        assert_eq!((undone.hash, undone.conflicts.len()), (at, 0), "{undone:#?}");
        assert_eq!(changes(checkout), [("a.txt".into(), How::Edited)]);
        assert_eq!(checkout.undo().unwrap_err().kind(), Kind::NotFound);
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let two = Two::new();
    two.changed();
    let checkout = &two.place.checkout;
    two.place.write("a.txt", "ours\n");
    let files = everything(checkout.root());
    let refused = |version: &str, how| checkout.merge(version, how).unwrap_err().kind();
    assert_eq!(refused("nosuch", MergeHow::Whole), Kind::NotFound);
    assert_eq!(refused("trunk", MergeHow::Whole), Kind::Unchanged);
    let root = two.place.repository.store().check_in(&checkout.parent().unwrap()).unwrap().parents[0];
    assert_eq!(refused(root.as_str(), MergeHow::Whole), Kind::Unchanged);
    assert_eq!(refused(root.as_str(), MergeHow::Cherrypick), Kind::Invalid);
    assert_eq!(checkout.undo().unwrap_err().kind(), Kind::NotFound);
    assert_eq!(everything(checkout.root()), files);
    checkout.merge("side", MergeHow::Whole).unwrap();
    assert_eq!(refused("side", MergeHow::Whole), Kind::Unchanged);
    let tags = ocx::record::Tags::of(&two.place.repository);
    tags.close(&ocx::name::Branch::parse("trunk").unwrap(), &ann()).unwrap();
    assert_eq!(refused("side", MergeHow::Whole), Kind::Closed);
}

#[test]
fn a_failed_update_leaves_the_files_as_they_were() {
    let two = Two::new();
    two.theirs("a.txt", Two::with_line("a.txt", 2, "theirs"));
    two.theirs("b.txt", Two::with_line("b.txt", 2, "theirs"));
    two.theirs("first.txt", "new\n");
    two.theirs("z", "a file\n");
    fs::remove_file(two.other.root().join("gone.txt")).unwrap();
    check_in(&two.other, "meanwhile", Some("side")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(two.place.path("z")).unwrap();
    two.place.write("a.txt", Two::with_line("a.txt", 8, "ours"));
    let (files, at) = (everything(two.place.checkout.root()), two.place.checkout.parent().unwrap());
    let before = two.place.changes();
    assert_eq!(two.place.checkout.update("side").unwrap_err().kind(), Kind::Exists);
    assert_eq!(everything(two.place.checkout.root()), files);
    two.place.checkout.merge("side", MergeHow::Whole).unwrap_err();
    assert_eq!(everything(two.place.checkout.root()), files);
    assert_eq!((two.place.changes(), two.place.checkout.parent().unwrap()), (before, at));
    fs::remove_file(two.place.path("z")).unwrap();
    assert_eq!(told(&two.place.checkout.update("side").unwrap())["a.txt"], FileOutcome::Merged);
}

#[test]
fn p01_an_update_follows_no_link_out_of_the_checkout() {
    for links in ["off", "on"] {
        let two = Two::new();
        two.place.fossil(&["settings", "allow-symlinks", links]);
        two.place.write("d/x", "inside\n");
        two.place.write("e/x", "inside\n");
        two.place.check_in("folders", None).unwrap();
        two.other.update("trunk").unwrap();
        two.theirs("a.txt", "theirs\n");
        two.theirs("e/x", "theirs\n");
        fs::remove_dir_all(two.other.root().join("d")).unwrap();
        check_in(&two.other, "theirs", Some("side")).unwrap();
        let outside = two.place.dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("x"), "secret\n").unwrap();
        let checkout = &two.place.checkout;
        for (name, target) in [("a.txt", outside.join("x")), ("d", outside.clone()), ("e", outside.clone())] {
            let place = two.place.path(name);
            let aside = two.place.dir.path().join("aside");
            fs::rename(&place, &aside).unwrap();
            std::os::unix::fs::symlink(target, &place).unwrap();
            let is_conflict = name != "d";
            let would = checkout.would_merge("side", MergeHow::Whole).unwrap();
            assert_eq!(!would.conflicts.is_empty(), is_conflict, "{name} {links}");
            assert_eq!(checkout.merge("side", MergeHow::Whole).unwrap(), would);
            assert_eq!(fs::read(outside.join("x")).unwrap(), b"secret\n");
            checkout.undo().unwrap();
            checkout.update("side").unwrap();
            assert_eq!(fs::read(outside.join("x")).unwrap(), b"secret\n");
            checkout.undo().unwrap();
            assert!(place.is_symlink(), "{name} {links}");
            assert_eq!(fs::read(outside.join("x")).unwrap(), b"secret\n");
            fs::remove_file(&place).unwrap();
            fs::rename(&aside, &place).unwrap();
        }
        checkout.update("side").unwrap();
        assert_eq!(two.read("e/x"), "theirs\n");
    }
}

#[test]
fn a_file_where_a_folder_will_come_is_named() {
    let two = Two::new();
    fs::create_dir(two.other.root().join("f")).unwrap();
    two.theirs("f/x", "theirs\n");
    check_in(&two.other, "a folder", Some("side")).unwrap();
    two.place.write("f", "a file\n");
    let updated = two.place.checkout.update("side").unwrap();
    assert_eq!(updated.conflicts, ["f/x"]);
    assert!(updated.files[0].why.contains("`f`"), "{updated:?}");
    assert_eq!((two.read("f"), two.read("f-merge/x")), ("a file\n".to_owned(), "theirs\n".to_owned()));
}

#[test]
fn the_commands_tell_each_file() {
    let two = Two::new();
    two.changed();
    two.place.write("a.txt", Two::with_line("a.txt", 2, "ours"));
    let ocx = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ocx"));
        let out = command.args(args).current_dir(two.place.checkout.root()).output().unwrap();
        (out.status.code(), String::from_utf8(out.stdout).unwrap())
    };
    let (code, said) = ocx(&["merge", "side", "--dry-run"]);
    assert_eq!(code, Some(0));
    assert!(said.contains("moved.txt: renamed (was old.txt)\n"), "{said}");
    assert!(said.contains("a.txt: conflict"), "{said}");
    assert!(two.place.path("old.txt").exists());
    let (code, said) = ocx(&["update", "side", "--dry-run"]);
    assert!(
        code == Some(0) && said.contains("would be at check-in") && said.contains("new.txt: added"),
        "{said}"
    );
    assert_eq!(ocx(&["merge", "side", "--backout", "--integrate"]).0, Some(2));
    assert_eq!(ocx(&["merge", "trunk"]).0, Some(1));
    assert_eq!(ocx(&["merge", "side"]).0, Some(0));
    assert!(two.place.path("moved.txt").exists());
}

/// One thing that happens to the files of a side.
#[derive(Debug, Clone)]
enum Edit {
    /// A line is replaced by one that is nowhere else.
    Line(usize, usize),
    /// A file is made, or made anew, of one such line.
    Write(usize),
    Delete(usize),
    /// Fossil is told of the new name, or is not.
    Rename(usize, usize, bool),
}

const NAMES: [&str; 7] = ["a", "b", "c", "d/e", "d/f", "x.o", "y.o"];

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        4 => (0..NAMES.len(), 0..6_usize).prop_map(|(name, line)| Edit::Line(name, line)),
        2 => (0..NAMES.len()).prop_map(Edit::Write),
        1 => (0..NAMES.len()).prop_map(Edit::Delete),
        2 => (0..NAMES.len(), 0..NAMES.len(), any::<bool>()).prop_map(|(from, to, told)| Edit::Rename(from, to, told)),
    ];
    prop::collection::vec(edit, 1..6)
}

/// Makes the edits in a checkout; gives the lines that are there only by them.
fn make(place: &Place, root: &Path, side: &str, edits: &[Edit]) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        let line = format!("{side} {at}");
        match *edit {
            Edit::Line(name, number) => {
                let Ok(text) = fs::read_to_string(root.join(NAMES[name])) else { continue };
                let mut all: Vec<_> = text.lines().collect();
                let number = number.min(all.len() - 1);
                all[number] = &line;
                fs::write(root.join(NAMES[name]), all.join("\n") + "\n").unwrap();
            }
            Edit::Write(name) => {
                fs::create_dir_all(root.join(NAMES[name]).parent().unwrap()).unwrap();
                fs::write(root.join(NAMES[name]), line.clone() + "\n").unwrap();
            }
            Edit::Delete(name) => drop(fs::remove_file(root.join(NAMES[name]))),
            Edit::Rename(from, to, told) => {
                let (old, new) = (root.join(NAMES[from]), root.join(NAMES[to]));
                if !old.exists() || new.exists() {
                    continue;
                }
                let args = ["mv", "--hard", NAMES[from], NAMES[to]];
                let is_told = told
                    && Fossil::Own.command(place.dir.path(), root, &args).output().unwrap().status.success();
                if !is_told && old.exists() && !new.exists() {
                    fs::create_dir_all(new.parent().unwrap()).unwrap();
                    fs::rename(old, new).unwrap();
                }
            }
        }
        lines.push(line);
    }
    let all = all_text(root);
    lines.retain(|line| all.contains(&format!("{line}\n")));
    lines
}

fn all_text(root: &Path) -> String {
    everything(root).values().map(|bytes| String::from_utf8_lossy(bytes).into_owned() + "\n").collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("OCX_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(12),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn no_line_of_either_side_is_ever_lost(theirs in edits(), ours in edits(), merge in any::<bool>(), ignore in any::<bool>()) {
        let place = Place::new();
        for name in &NAMES[..5] {
            place.write(name, format!("{name}\n{LINES}"));
        }
        place.check_in("base", None).unwrap();
        let other = Checkout::open(&place.repository, &place.dir.path().join("other"), None, Some(&ann())).unwrap();
        let their_lines = make(&place, other.root(), "theirs", &theirs);
        if changes(&other).is_empty() {
            return Ok(());
        }
        let there = check_in(&other, "theirs", Some("side")).unwrap();
        if ignore {
            place.write(".fossil-settings/ignore-glob", "*.o\n");
        }
        let root = place.checkout.root();
        let our_lines = make(&place, root, "ours", &ours);
        let before = everything(root);
        let would = if merge { place.checkout.would_merge("side", MergeHow::Whole) } else { place.checkout.would_update("side") };
        prop_assert_eq!(&everything(root), &before);
        let done = if merge { place.checkout.merge("side", MergeHow::Whole) } else { place.checkout.update("side") };
        match done {
            Ok(done) => {
                prop_assert_eq!(&would.unwrap(), &done);
                let all = all_text(root);
                for line in &our_lines {
                    prop_assert!(all.contains(&format!("{line}\n")), "{} is lost: {:#?}", line, done);
                }
                let in_conflict = |line: &str| {
                    // Where this side's file was kept whole, theirs is in the repository and named.
                    let files = place.repository.store().files(&there.hash).unwrap();
                    files.iter().any(|(path, file)| {
                        String::from_utf8_lossy(&place.repository.store().content(&file.hash).unwrap()).contains(line)
                            && done.conflicts.iter().any(|name| name == path.as_str())
                    })
                };
                for line in &their_lines {
                    let line = format!("{line}\n");
                    prop_assert!(all.contains(&line) || in_conflict(&line), "{} is lost: {:#?}", line, done);
                }
            }
            Err(e) => prop_assert_eq!(everything(root), before, "{}", e),
        }
    }
}
