//! Updates and merges: real faults that must not come back, and processes that end in the middle.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{Fossil, Place, ann, check_in, files_below};
use ocx::checkout::{Checkout, FileOutcome, How, MergeHow, Updated};
use ocx::merge::in_memory;
use ocx::name::Branch;

/// Two checkouts of one repository, both on the same check-in.
struct Sides {
    place: Place,
    side: Checkout,
}

impl Sides {
    /// Both have these files.
    fn with(files: &[(&str, &str)]) -> Self {
        let place = Place::new();
        for (path, content) in files {
            place.write(path, content);
        }
        place.check_in("base", None).unwrap();
        let root = place.dir.path().join("side");
        let side = Checkout::open(&place.repository, &root, None, Some(&ann())).unwrap();
        Self { place, side }
    }

    fn there(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.side.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Plain Fossil moves a file of the other side.
    fn moves(&self, from: &str, to: &str) {
        moved(&self.place, self.side.root(), from, to);
    }

    fn save_there(&self) {
        check_in(&self.side, "theirs", Some("side")).unwrap();
    }

    fn merge(&self) -> Updated {
        let would = self.place.checkout.would_merge("side", MergeHow::Whole).unwrap();
        let merged = self.place.checkout.merge("side", MergeHow::Whole).unwrap();
        assert_eq!(merged, would, "the plan is what is done");
        merged
    }

    fn update(&self) -> Updated {
        let would = self.place.checkout.would_update("side").unwrap();
        let updated = self.place.checkout.update("side").unwrap();
        assert_eq!(updated, would, "the plan is what is done");
        updated
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.place.path(path)).unwrap_or_else(|_| "nothing".to_owned())
    }

    /// Plain Fossil's changes and the library's are of the same files.
    fn assert_fossil_agrees(&self) {
        let theirs = self.place.fossil(&["changes"]);
        let mut theirs: Vec<&str> =
            theirs.lines().filter_map(|line| line.split_once(' ')).map(|(_, path)| path.trim()).collect();
        theirs.retain(|path| !path.contains("->") && !path.starts_with("MERGED"));
        for (path, how) in self.place.changes() {
            let known = theirs.contains(&path.as_str());
            let is_part = self.place.fossil(&["changes", "--differ", "--extra"]).contains(&path);
            assert!(known || is_part, "{path} {how}: {theirs:?}");
        }
    }
}

fn moved(place: &Place, root: &Path, from: &str, to: &str) {
    Fossil::Reference.run(place.dir.path(), root, &["mv", "--hard", from, to]);
}

fn told(updated: &Updated) -> BTreeMap<&str, FileOutcome> {
    updated.files.iter().map(|file| (file.path.as_str(), file.what)).collect()
}

#[test]
fn k01_a_last_line_without_an_end_is_a_line_of_its_own() {
    let sides = Sides::with(&[("f", "alpha\nbeta\ngamma\n")]);
    sides.there("f", "alpha\nbeta\ngamma\ndelta\n");
    sides.save_there();
    sides.place.write("f", "first\nalpha\nbeta\ngamma");
    let merged = sides.merge();
    let text = sides.read("f");
    assert!(!text.contains("gammadelta"), "{text}");
    if !told(&merged)["f"].is_conflict() {
        assert_eq!(text.lines().collect::<Vec<_>>(), ["first", "alpha", "beta", "gamma", "delta"]);
    }
}

#[test]
fn k02_an_edited_file_that_becomes_a_folder_there_is_not_lost() {
    let sides = Sides::with(&[("x", "base\n"), ("y/in.txt", "y\n")]);
    fs::remove_file(sides.side.root().join("x")).unwrap();
    fs::remove_dir_all(sides.side.root().join("y")).unwrap();
    sides.there("x/in.txt", "theirs\n");
    sides.there("y", "a file now\n");
    sides.save_there();
    sides.place.write("x", "edited here\n");
    let merged = sides.merge();
    let all: Vec<String> = files_below(sides.place.checkout.root()).into_values().collect();
    for text in ["edited here\n", "theirs\n", "a file now\n"] {
        assert!(all.iter().any(|found| found == text), "{text} in {all:?}: {merged:#?}");
    }
}

#[test]
fn k03_an_edit_here_follows_the_rename_there() {
    for edit in ["content", "mode"] {
        let sides = Sides::with(&[("a", "one\ntwo\n"), ("z", "z\n")]);
        sides.moves("a", "b");
        sides.save_there();
        if edit == "content" {
            sides.place.write("a", "one\ntwo\nmine\n");
        } else {
            fs::set_permissions(sides.place.path("a"), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let merged = sides.merge();
        assert!(merged.conflicts.is_empty(), "{merged:#?}");
        assert!(!sides.place.path("a").exists());
        let text = if edit == "content" { "one\ntwo\nmine\n" } else { "one\ntwo\n" };
        assert_eq!(sides.read("b"), text);
        let mode = fs::metadata(sides.place.path("b")).unwrap().permissions().mode();
        assert_eq!(mode & 0o100 != 0, edit == "mode");
        sides.place.check_in("merged", None).unwrap();
        assert_eq!(sides.place.fossil(&["ls"]).split_whitespace().collect::<Vec<_>>(), ["b", "z"]);
        assert_eq!(sides.place.fossil(&["changes"]), "");
    }
}

#[test]
fn k04_an_update_renames_an_edited_file_and_the_save_keeps_the_rename() {
    let sides = Sides::with(&[("a", "one\ntwo\n"), ("p", "p\n"), ("q", "q\n")]);
    sides.moves("a", "b");
    moved(&sides.place, sides.side.root(), "p", "t");
    moved(&sides.place, sides.side.root(), "q", "p");
    moved(&sides.place, sides.side.root(), "t", "q");
    sides.save_there();
    sides.place.write("a", "one\ntwo\nmine\n");
    let updated = sides.update();
    assert_eq!(told(&updated)["b"], FileOutcome::Renamed, "{updated:#?}");
    assert_eq!((sides.read("a"), sides.read("b")), ("nothing".into(), "one\ntwo\nmine\n".into()));
    assert_eq!((sides.read("p"), sides.read("q")), ("q\n".into(), "p\n".into()));
    assert_eq!(sides.place.changes(), [("b".to_owned(), How::Edited)]);
    sides.assert_fossil_agrees();
    sides.place.check_in("saved", None).unwrap();
    assert_eq!(sides.place.fossil(&["ls"]).split_whitespace().collect::<Vec<_>>(), ["b", "p", "q"]);
}

#[test]
fn k05_an_edit_and_a_removal_are_a_conflict_and_no_work_is_dropped() {
    let sides = Sides::with(&[("f", "f\n"), ("g", "g\n")]);
    fs::remove_file(sides.side.root().join("f")).unwrap();
    sides.there("g", "edited there\n");
    sides.save_there();
    sides.place.write("f", "edited here\n");
    fs::remove_file(sides.place.path("g")).unwrap();
    sides.place.check_in("ours", None).unwrap();
    let merged = sides.merge();
    let expected = [("f", FileOutcome::ConflictRemovedThere), ("g", FileOutcome::ConflictRemovedHere)];
    assert_eq!(told(&merged), BTreeMap::from(expected), "{merged:#?}");
    assert_eq!((sides.read("f"), sides.read("g")), ("edited here\n".into(), "edited there\n".into()));
    let why: Vec<&str> = merged.files.iter().map(|file| file.why.as_str()).collect();
    assert!(why[0].contains("edited here") && why[0].contains("removed there"), "{why:?}");
    assert!(why[1].contains("removed here") && why[1].contains("edited there"), "{why:?}");
}

#[test]
fn k06_a_merge_that_changes_no_file_is_recorded_by_the_save() {
    let sides = Sides::with(&[("f", "f\n")]);
    sides.there("new", "equal\n");
    sides.save_there();
    sides.place.write("new", "equal\n");
    sides.place.check_in("ours", None).unwrap();
    let merged = sides.merge();
    assert!(merged.files.is_empty(), "{merged:#?}");
    let made = sides.place.check_in("the merge", None).unwrap();
    let info = sides.place.repository.store().check_in(&made.hash).unwrap();
    assert_eq!(info.parents.len(), 2);
    let again = sides.place.checkout.merge("side", MergeHow::Whole).unwrap_err();
    assert_eq!(again.kind(), ocx::error::Kind::Unchanged);
}

#[test]
fn k07_an_update_stays_on_its_branch_whatever_tags_are_called() {
    let sides = Sides::with(&[("f", "f\n")]);
    sides.there("f", "on v2\n");
    check_in(&sides.side, "on v2", Some("v2")).unwrap();
    sides.place.write("f", "later on trunk\n");
    let trunk = sides.place.check_in("later", None).unwrap();
    sides.place.fossil(&["tag", "add", "v2", "trunk"]);
    let latest = sides.side.latest().unwrap();
    assert_ne!(latest, trunk.hash);
    assert_eq!(sides.place.repository.store().check_in(&latest).unwrap().branch, "v2");
    let command = Command::new(env!("CARGO_BIN_EXE_ocx"))
        .arg("update")
        .current_dir(sides.side.root())
        .env("HOME", sides.place.dir.path())
        .output()
        .unwrap();
    assert!(command.status.success(), "{command:?}");
    assert_eq!(sides.side.parent().unwrap(), latest);
}

#[test]
fn k08_plain_fossil_and_the_library_see_the_same_changes_after_an_update() {
    for by_fossil in [true, false] {
        let sides = Sides::with(&[("a", "a\nb\nc\n"), ("z", "z\n")]);
        sides.there("a", "a\nb\nc\nd\n");
        sides.save_there();
        if by_fossil {
            moved(&sides.place, sides.place.checkout.root(), "a", "b");
        } else {
            fs::rename(sides.place.path("a"), sides.place.path("b")).unwrap();
        }
        let updated = sides.update();
        sides.assert_fossil_agrees();
        if by_fossil {
            assert!(updated.conflicts.is_empty(), "{updated:#?}");
            assert_eq!(sides.read("b"), "a\nb\nc\nd\n");
            sides.place.fossil(&["commit", "-m", "by plain fossil", "--no-warnings"]);
            assert_eq!(sides.place.fossil(&["ls"]).split_whitespace().collect::<Vec<_>>(), ["b", "z"]);
        } else {
            assert_eq!(told(&updated)["a"], FileOutcome::ConflictRemovedHere);
            assert_eq!((sides.read("a"), sides.read("b")), ("a\nb\nc\nd\n".into(), "a\nb\nc\n".into()));
        }
    }
}

#[test]
fn k09_a_byte_order_mark_is_kept() {
    let sides = Sides::with(&[("f", "\u{feff}one\ntwo\nthree\n")]);
    sides.there("f", "\u{feff}one\ntwo\nthree\nfour\n");
    sides.save_there();
    sides.place.write("f", "\u{feff}zero\none\ntwo\nthree\n");
    assert!(sides.merge().conflicts.is_empty());
    assert_eq!(sides.read("f"), "\u{feff}zero\none\ntwo\nthree\nfour\n");
}

#[test]
fn k10_the_folder_in_which_the_caller_stands_stays() {
    let sides = Sides::with(&[("s/t/f", "f\n"), ("z", "z\n")]);
    fs::remove_dir_all(sides.side.root().join("s")).unwrap();
    sides.save_there();
    let stands = sides.place.path("s/t");
    let ocx = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ocx"));
        command.args(args).current_dir(&stands).env("HOME", sides.place.dir.path()).output().unwrap()
    };
    let updated = ocx(&["update", "side"]);
    assert!(updated.status.success(), "{updated:?}");
    assert!(stands.exists() && !stands.join("f").exists());
    let next = ocx(&["update", "trunk"]);
    assert!(next.status.success(), "{next:?}");
    assert_eq!(sides.read("s/t/f"), "f\n");
    // Nor does a file take its place.
    sides.there("s/t", "a file\n");
    check_in(&sides.side, "a file", None).unwrap();
    let refused = ocx(&["update", "side"]);
    assert!(!refused.status.success(), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("`s/t`") && said.contains("Leave the folder"), "{said}");
    assert_eq!(sides.read("s/t/f"), "f\n");
    assert!(sides.place.changes().is_empty());
}

#[test]
fn v18_a_folder_that_becomes_a_link_meanwhile_leads_no_write_outside() {
    let sides = Sides::with(&[("d/f", "f\n"), ("d/g", "g\n"), ("z", "z\n")]);
    for file in ["d/f", "d/g", "d/h"] {
        sides.there(file, "theirs\n");
    }
    sides.save_there();
    let outside = sides.place.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    for file in ["f", "g"] {
        fs::write(outside.join(file), "secret\n").unwrap();
    }
    let stop = AtomicBool::new(false);
    let (d, aside) = (sides.place.path("d"), sides.place.dir.path().join("aside"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if fs::rename(&d, &aside).is_ok() {
                    let _ = symlink(&outside, &d);
                    std::thread::sleep(Duration::from_micros(200));
                    let _ = fs::remove_file(&d);
                    let _ = fs::rename(&aside, &d);
                }
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        for _ in 0..25 {
            for version in ["side", "trunk"] {
                // What the swaps make of it is all the same: a refusal, a conflict, an update.
                let _ = sides.place.checkout.update(version);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let found = files_below(&outside);
    let expected =
        BTreeMap::from([("f".to_owned(), "secret\n".to_owned()), ("g".to_owned(), "secret\n".to_owned())]);
    assert_eq!(found, expected);
}

/// The child: goes from one version to the other until it is killed.
#[test]
#[ignore = "runs for ever in a process of its own, started and killed by the other tests"]
fn update_for_ever() {
    let root = std::env::var("OCX_TEST_CHECKOUT").unwrap();
    let checkout = Checkout::at(Path::new(&root)).unwrap();
    for step in 0.. {
        checkout.update(["side", "trunk"][step % 2]).unwrap();
    }
}

/// How often a child is killed.
const ROUNDS: u64 = 30;

#[test]
fn an_update_that_is_killed_at_any_moment_is_finished_by_the_next_call() {
    let name = |i: usize| format!("d{}/f{i}", i % 4);
    let files: Vec<(String, String)> = (0..40).map(|i| (name(i), format!("{i}\nmiddle\nend\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let sides = Sides::with(&files);
    for i in (0..40).step_by(2) {
        sides.there(&name(i), format!("theirs\n{i}\nmiddle\nend\n"));
    }
    sides.moves("d1/f1", "moved");
    fs::remove_file(sides.side.root().join("d3/f3")).unwrap();
    sides.there("new/file", "new\n");
    sides.save_there();
    let trunk = sides.place.checkout.parent().unwrap();
    for i in [0, 1, 5] {
        sides.place.write(&name(i), format!("{i}\nmiddle\nend\nmine\n"));
    }
    let root = sides.place.checkout.root();
    let at_trunk = files_below(root);
    sides.update();
    let at_side = files_below(root);
    assert_ne!(at_trunk, at_side);
    let mut finished = 0;
    for round in 0..ROUNDS {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "update::update_for_ever", "--ignored", "--nocapture"])
            .env("OCX_TEST_CHECKOUT", root)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(40 + round * 7 % 60));
        child.kill().unwrap();
        let out = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(!error.contains("panicked"), "{error}");
        let before = files_below(root);
        let checkout = Checkout::at(root).unwrap();
        let says = checkout.finished();
        let expected = if checkout.parent().unwrap() == trunk { &at_trunk } else { &at_side };
        assert_eq!(files_below(root), *expected, "round {round}");
        if before != *expected {
            assert!(
                says.is_some_and(|said| said.contains("update")),
                "the next call says what it has finished"
            );
            finished += 1;
        }
        let changed: Vec<String> =
            checkout.status().unwrap().changes.iter().map(|c| c.path.to_string()).collect();
        assert_eq!(changed.len(), 3, "{changed:?}");
        for path in changed {
            assert!(sides.place.fossil(&["changes"]).contains(&path), "{path}");
        }
    }
    println!("{finished} of {ROUNDS} updates were cut short and finished by the next call");
}

#[test]
fn two_check_ins_are_merged_in_memory_without_a_checkout() {
    let sides = Sides::with(&[("a", "one\ntwo\nthree\n"), ("b", "b\n")]);
    sides.there("a", "one\ntwo\nthree\nfour\n");
    sides.moves("b", "c");
    sides.save_there();
    sides.place.write("a", "zero\none\ntwo\nthree\n");
    let ours = sides.place.check_in("ours", None).unwrap();
    let store = sides.place.repository.store();
    let theirs = store.branch_tips(&Branch::parse("side").unwrap()).unwrap()[0];
    let merged = in_memory(store, &ours.hash, &theirs, MergeHow::Whole).unwrap();
    assert!(merged.conflicts.is_empty(), "{merged:#?}");
    let file = |path: &str| &merged.tree[&ocx::name::TreePath::parse(path).unwrap()];
    assert_eq!(file("a").content.as_deref(), Some(b"zero\none\ntwo\nthree\nfour\n".as_slice()));
    assert_eq!(file("c").from.as_ref().map(ToString::to_string).as_deref(), Some("b"));
    sides.merge();
    assert_eq!(sides.read("a"), "zero\none\ntwo\nthree\nfour\n");
}

#[test]
fn plain_fossil_takes_back_what_was_merged_here_and_the_library_what_plain_fossil_merged() {
    for by_fossil in [true, false] {
        let sides = Sides::with(&[("a", "one\ntwo\nthree\n"), ("b", "b\n"), ("gone", "gone\n")]);
        sides.there("a", "zero\none\ntwo\nthree\n");
        sides.there("new", "new\n");
        sides.moves("b", "c");
        fs::remove_file(sides.side.root().join("gone")).unwrap();
        sides.save_there();
        sides.place.write("a", "one\ntwo\nthree\nmine\n");
        let before = files_below(sides.place.checkout.root());
        let changes = sides.place.changes();
        if by_fossil {
            sides.merge();
            sides.place.fossil(&["undo"]);
        } else {
            sides.place.fossil(&["merge", "side"]);
            sides.place.checkout.undo().unwrap();
        }
        assert_eq!(files_below(sides.place.checkout.root()), before, "by fossil: {by_fossil}");
        assert_eq!(sides.place.changes(), changes);
        assert_eq!(sides.place.fossil(&["changes"]).split_whitespace().collect::<Vec<_>>(), ["EDITED", "a"]);
        assert_eq!(
            sides.place.checkout.parent().unwrap(),
            sides.place.repository.store().resolve("trunk").unwrap()
        );
        sides.merge();
        sides.place.check_in("after all", None).unwrap();
        assert_eq!(sides.read("a"), "zero\none\ntwo\nthree\nmine\n");
    }
}

#[test]
fn what_is_put_beside_is_no_part_of_a_check_in_and_a_merge_waits_for_it() {
    let sides = Sides::with(&[("bin", "\0base"), ("a", "a\n")]);
    sides.there("bin", "\0theirs");
    sides.there("lies.o", "theirs\n");
    sides.save_there();
    sides.place.write("bin", "\0ours");
    sides.place.write(".fossil-settings/ignore-glob", "*.o\n");
    sides.place.write("lies.o", "untracked\n");
    let merged = sides.merge();
    assert_eq!(told(&merged)["bin"], FileOutcome::ConflictUnjoinable);
    assert_eq!(
        (sides.read("bin-merge"), sides.read("lies.o-original")),
        ("\0theirs".into(), "untracked\n".into())
    );
    let status = sides.place.checkout.status().unwrap();
    let left: Vec<&str> = status.left_out.iter().map(|left| left.path.as_str()).collect();
    assert!(left.contains(&"bin-merge") && left.contains(&"lies.o-original"), "{left:?}");
    let open = sides.place.checkout.conflicted(&status).unwrap();
    assert_eq!(open.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["bin-merge"]);
    fs::remove_file(sides.place.path("bin-merge")).unwrap();
    let status = sides.place.checkout.status().unwrap();
    assert!(sides.place.checkout.conflicted(&status).unwrap().is_empty());
    let made = sides.place.check_in("decided", None).unwrap();
    let files = sides.place.repository.store().files(&made.hash).unwrap();
    assert!(
        !files
            .keys()
            .any(|path| path.as_str().contains('-') && path.as_str() != ".fossil-settings/ignore-glob")
    );
}

#[test]
fn another_checkout_is_never_written_to() {
    let sides = Sides::with(&[("sub/x", "x\n"), ("sub/y", "y\n"), ("z", "z\n")]);
    sides.there("sub/x", "theirs\n");
    sides.there("sub/new", "theirs\n");
    fs::remove_file(sides.side.root().join("sub/y")).unwrap();
    sides.save_there();
    let sub = sides.place.path("sub");
    fs::remove_dir_all(&sub).unwrap();
    let nested = Checkout::open(&sides.place.repository, &sub, None, Some(&ann())).unwrap();
    fs::write(sub.join("x"), "another checkout's\n").unwrap();
    let before = files_below(sides.place.checkout.root());
    for refused in [sides.place.checkout.update("side"), sides.place.checkout.merge("side", MergeHow::Whole)]
    {
        let e = refused.unwrap_err();
        assert_eq!(e.kind(), ocx::error::Kind::Exists, "{e}");
        assert!(e.to_string().contains("`sub`"), "{e}");
    }
    assert_eq!(files_below(sides.place.checkout.root()), before);
    drop(nested);
}

#[test]
fn k04_names_that_are_swapped_and_not_saved_take_the_other_sides_edits_with_them() {
    for merge in [true, false] {
        let place = Place::new();
        place.write("a", "a1\na2\na3\na4\n");
        place.write("b", "b1\nb2\nb3\nb4\n");
        place.check_in("base", None).unwrap();
        let other =
            Checkout::open(&place.repository, &place.dir.path().join("other"), None, Some(&ann())).unwrap();
        fs::write(other.root().join("a"), "a1\na2\na3\ntheirs\n").unwrap();
        check_in(&other, "theirs", Some("side")).unwrap();
        for [old, new] in [["a", "t"], ["b", "a"], ["t", "b"]] {
            place.fossil(&["mv", "--hard", old, new]);
        }
        place.write("b", "ours\na2\na3\na4\n");
        let done =
            if merge { place.checkout.merge("side", MergeHow::Whole) } else { place.checkout.update("side") };
        assert_eq!(done.unwrap().conflicts, Vec::<String>::new());
        assert_eq!(fs::read_to_string(place.path("a")).unwrap(), "b1\nb2\nb3\nb4\n");
        assert_eq!(fs::read_to_string(place.path("b")).unwrap(), "ours\na2\na3\ntheirs\n");
        let made = place.check_in("swapped", None).unwrap();
        let manifest = String::from_utf8(place.repository.store().content(&made.hash).unwrap()).unwrap();
        let priors = manifest.lines().filter(|line| line.starts_with("F ") && line.split(' ').count() == 5);
        assert_eq!(priors.count(), 2, "{manifest}");
        assert_eq!(place.fossil(&["changes"]), "");
        place.assert_whole();
    }
}

#[test]
fn names_that_no_disk_takes_are_cut() {
    let long = "n".repeat(250);
    let sides = Sides::with(&[(long.as_str(), "\0base"), ("z", "z\n")]);
    sides.there(&long, "\0theirs");
    sides.there("z", "theirs\n");
    sides.save_there();
    sides.place.write(&long, "\0ours");
    let merged = sides.merge();
    let theirs = merged.files.iter().find_map(|file| file.theirs.as_deref()).unwrap();
    assert!(theirs.len() <= 255 && theirs.ends_with("-merge"), "{theirs}");
    assert_eq!((sides.read(theirs), sides.read(&long)), ("\0theirs".to_owned(), "\0ours".to_owned()));
}

/// Has an update end after its plan was written down: its first file cannot be changed meanwhile.
fn cut_short(sides: &Sides) {
    let db = sides.place.path(".fslckout");
    let before = rusqlite::Connection::open(&db).unwrap();
    let store = sides.place.repository.store();
    let entry = |version: &str, path: &str| {
        let files = store.files(&store.resolve(version).unwrap()).unwrap();
        files[&ocx::name::TreePath::parse(path).unwrap()].hash.to_string()
    };
    before
        .execute_batch(
            "CREATE TABLE ocx_unfinished(path TEXT PRIMARY KEY, act TEXT, old TEXT, old_kind INT, new TEXT, new_kind INT, content BLOB)",
        )
        .unwrap();
    for path in ["f", "g"] {
        let row = [path, &entry("trunk", path), &entry("side", path)];
        before.execute("INSERT INTO ocx_unfinished VALUES(?1,'update',?2,0,?3,0,NULL)", row).unwrap();
    }
}

#[test]
fn what_was_cut_short_is_finished_around_what_somebody_did_since_and_left_once_plain_fossil_has_taken_it_back()
 {
    for by_fossil in [false, true] {
        let sides = Sides::with(&[("f", "f\n"), ("g", "g\n")]);
        sides.there("f", "theirs\n");
        sides.there("g", "theirs\n");
        sides.save_there();
        sides.update();
        // As if it had ended before it changed a file.
        sides.place.write("f", "f\n");
        sides.place.write("g", "g\n");
        cut_short(&sides);
        if by_fossil {
            sides.place.fossil(&["undo"]);
        }
        sides.place.write("f", "edited since\n");
        fs::remove_file(sides.place.path("g")).unwrap();
        let checkout = Checkout::at(sides.place.checkout.root()).unwrap();
        checkout.status().unwrap();
        let files = if by_fossil {
            assert_eq!(checkout.finished(), None);
            [("f", "edited since\n"), ("g", "nothing"), ("f-original", "nothing")]
        } else {
            assert!(checkout.finished().unwrap().contains("finished"));
            [("f", "theirs\n"), ("g", "theirs\n"), ("f-original", "edited since\n")]
        };
        for (path, content) in files {
            assert_eq!(sides.read(path), content, "{path}, by fossil: {by_fossil}");
        }
    }
}

#[test]
fn a_file_that_a_merge_added_and_that_has_gone_again_leaves_no_trace() {
    let sides = Sides::with(&[("f", "f\n")]);
    sides.there("c", "new\n");
    sides.there("f", "theirs\n");
    sides.save_there();
    sides.merge();
    fs::remove_file(sides.place.path("c")).unwrap();
    sides.place.check_in("without it", None).unwrap();
    assert_eq!(sides.place.fossil(&["changes"]), "");
    assert_eq!(sides.place.fossil(&["ls"]).split_whitespace().collect::<Vec<_>>(), ["f"]);
}

#[test]
fn what_nobody_told_fossil_of_stays_so() {
    let sides = Sides::with(&[("f", "f\n")]);
    sides.there("f", "theirs\n");
    sides.save_there();
    sides.place.write("notes", "mine\n");
    sides.update();
    assert_eq!(sides.place.fossil(&["changes"]), "");
    assert_eq!(sides.place.fossil(&["extras"]).trim(), "notes");
    sides.place.checkout.update("trunk").unwrap();
    sides.merge();
    assert_eq!(sides.place.fossil(&["extras"]).trim(), "notes");
}

#[test]
fn what_binary_glob_names_is_never_joined() {
    let sides = Sides::with(&[("f.txt", "1\n2\n3\n")]);
    sides.there("f.txt", "theirs\n1\n2\n3\n");
    sides.save_there();
    sides.place.fossil(&["settings", "binary-glob", "*.txt"]);
    sides.place.write("f.txt", "1\n2\n3\nours\n");
    assert_eq!(told(&sides.merge())["f.txt"], FileOutcome::ConflictUnjoinable);
    assert_eq!(sides.read("f.txt-merge"), "theirs\n1\n2\n3\n");
}

#[test]
fn a_file_in_the_place_of_a_manifest_is_put_beside() {
    let sides = Sides::with(&[("f", "f\n")]);
    sides.there("f", "theirs\n");
    sides.save_there();
    sides.place.fossil(&["settings", "manifest", "on"]);
    sides.place.write("manifest", "somebody's own\n");
    let checkout = Checkout::at(sides.place.checkout.root()).unwrap();
    checkout.update("side").unwrap();
    assert_eq!(sides.read("manifest-original"), "somebody's own\n");
    assert!(sides.read("manifest").contains("Z "));
    checkout.update("trunk").unwrap();
    assert!(!sides.place.path("manifest-original-1").exists(), "its own file is none of somebody's");
}

#[test]
fn a_setting_that_names_a_folder_outside_refuses_an_update_before_anything_is_done() {
    let sides = Sides::with(&[("f", "f\n")]);
    sides.there("f", "theirs\n");
    sides.save_there();
    sides.place.fossil(&["settings", "empty-dirs", "../outside"]);
    let parent = sides.place.checkout.parent().unwrap();
    sides.place.checkout.would_update("side").unwrap_err();
    sides.place.checkout.update("side").unwrap_err();
    assert_eq!((sides.place.checkout.parent().unwrap(), sides.read("f")), (parent, "f\n".to_owned()));
}
