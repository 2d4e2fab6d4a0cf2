//! What a checkout says of its files, and which check-ins it refuses.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::support::{Fossil, Place, ann, changes, check_in};
use ocx::checkout::{CheckIn, Checkout, How};
use ocx::error::Kind;
use ocx::name::{TreePath, User};
use ocx::tree::Why;

/// A place whose first check-in holds `a.txt` with `one`.
fn started() -> Place {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    place
}

fn refused(place: &Place) -> Vec<(String, String)> {
    place.checkout.status().unwrap().refused
}

fn left_out(place: &Place) -> Vec<(String, Why)> {
    let status = place.checkout.status().unwrap();
    status.left_out.into_iter().map(|out| (out.path, out.why)).collect()
}

/// A check-in is refused with this kind, naming `what`, and leaves everything as it was.
fn assert_refused(place: &Place, kind: Kind, what: &str) {
    let before =
        (place.check_ins(), place.sql("SELECT count(*) FROM blob"), place.checkout.parent().unwrap());
    let e = place.check_in("refused", None).unwrap_err();
    assert_eq!(e.kind(), kind, "{e}");
    assert!(e.to_string().contains(what), "{e}");
    assert!(e.hint().is_some(), "{e}");
    let after = (place.check_ins(), place.sql("SELECT count(*) FROM blob"), place.checkout.parent().unwrap());
    assert_eq!(before, after);
}

#[test]
fn c01_nothing_changed_is_refused() {
    assert_refused(&started(), Kind::Unchanged, "nothing has changed");
}

#[test]
fn c03_an_edit_in_the_same_second_of_the_same_size_counts() {
    let place = started();
    for content in ["two\n", "six\n", "ten\n"] {
        place.write("a.txt", content);
        assert_eq!(place.changes(), [("a.txt".into(), How::Edited)]);
        place.check_in(content, None).unwrap();
    }
    // Plain Fossil sees such an edit too, right after a check-in by OCX.
    place.write("a.txt", "one\n");
    for &fossil in Fossil::each() {
        assert!(place.by(fossil, &["changes"]).contains("EDITED"));
    }
    // An edit that sets the old times back is still one.
    let checkout = Checkout::at(place.checkout.root()).unwrap();
    check_in(&checkout, "one", None).unwrap();
    let old = fs::metadata(place.path("a.txt")).unwrap().modified().unwrap();
    thread::sleep(Duration::from_millis(120));
    assert_eq!(changes(&checkout), []);
    place.write("a.txt", "two\n");
    fs::File::options().write(true).open(place.path("a.txt")).unwrap().set_modified(old).unwrap();
    assert_eq!(changes(&checkout), [("a.txt".into(), How::Edited)]);
}

#[test]
fn c04_a_touched_file_is_no_change() {
    let place = started();
    let before = place.checkout.status().unwrap().tree_hash();
    let file = fs::File::options().write(true).open(place.path("a.txt")).unwrap();
    file.set_modified(std::time::SystemTime::now() + Duration::from_hours(1)).unwrap();
    assert_eq!(place.changes(), []);
    assert_eq!(place.checkout.status().unwrap().tree_hash(), before);
    assert_refused(&place, Kind::Unchanged, "nothing");
}

#[test]
fn c05_a_file_may_become_a_folder_and_a_folder_a_file() {
    let place = started();
    place.write("dir/x", "x");
    place.check_in("dir", None).unwrap();
    fs::remove_file(place.path("a.txt")).unwrap();
    place.write("a.txt/in", "in\n");
    fs::remove_dir_all(place.path("dir")).unwrap();
    place.write("dir", "file\n");
    place.check_in("swapped", None).unwrap();
    assert_eq!(place.changes(), []);
    for &fossil in Fossil::each() {
        assert_eq!(place.by(fossil, &["ls"]), "a.txt/in\ndir\n");
        assert_eq!(place.by(fossil, &["changes", "--hash"]), "");
    }
    fs::remove_file(place.path("dir")).unwrap();
    symlink("a.txt/in", place.path("dir")).unwrap();
    assert_refused(&place, Kind::Invalid, "`dir`");
    place.fossil(&["settings", "allow-symlinks", "on"]);
    assert_eq!(place.changes(), [("dir".into(), How::Kind)]);
    place.check_in("linked", None).unwrap();
    place.assert_whole();
}

#[test]
fn c06_modes_and_empty_files_count_and_empty_folders_do_not() {
    let place = started();
    fs::set_permissions(place.path("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    place.write("e.txt", "");
    fs::create_dir(place.path("d")).unwrap();
    assert_eq!(place.changes(), [("a.txt".into(), How::Mode), ("e.txt".into(), How::Added)]);
    let made = place.check_in("mode", None).unwrap();
    let manifest = place.repository.store().content(&made.hash).unwrap();
    let text = String::from_utf8(manifest).unwrap();
    assert!(text.lines().any(|l| l.starts_with("F a.txt ") && l.ends_with(" x")), "{text}");
    assert_eq!(place.fossil(&["ls"]), "a.txt\ne.txt\n");
    assert_eq!(place.fossil(&["cat", "e.txt"]), "");
    place.assert_whole();
}

#[test]
fn c07_a_stale_parent_would_fork() {
    let place = started();
    let other = Checkout::open(&place.repository, &place.dir.path().join("o"), None, Some(&ann())).unwrap();
    place.write("a.txt", "two\n");
    place.check_in("second", None).unwrap();
    fs::write(other.root().join("a.txt"), "mine\n").unwrap();
    let e = check_in(&other, "fork", None).unwrap_err();
    assert_eq!(e.kind(), Kind::WouldFork);
    assert_eq!(place.check_ins(), 3);
    // Nor may a new branch take the name of one that has an open leaf (C10).
    place.write("a.txt", "three\n");
    place.check_in("side", Some("side")).unwrap();
    let e = check_in(&other, "second side", Some("side")).unwrap_err();
    assert_eq!(e.kind(), Kind::WouldFork);
    assert_eq!(fs::read_to_string(other.root().join("a.txt")).unwrap(), "mine\n");
}

#[test]
fn c08_a_closed_branch_is_refused() {
    let place = started();
    place.write("a.txt", "two\n");
    place.check_in("side", Some("side")).unwrap();
    place.fossil(&["branch", "close", "side"]);
    place.write("a.txt", "three\n");
    assert_refused(&place, Kind::Closed, "`side` is closed");
    place.check_in("elsewhere", Some("other")).unwrap();
}

#[test]
fn c13_a_clock_behind_the_parent_is_refused_naming_both_times() {
    let place = started();
    place.write("a.txt", "two\n");
    let status = place.checkout.status().unwrap();
    let at = |time: &str| CheckIn { comment: "c".into(), branch: None, user: ann(), time: Some(time.into()) };
    let e = place.checkout.check_in(&at("2001-02-03T04:05:06"), &status).unwrap_err();
    assert_eq!(e.kind(), Kind::Invalid);
    assert!(e.to_string().contains("2001-02-03T04:05:06"), "{e}");
    assert_eq!(place.check_ins(), 2);
    place.checkout.check_in(&at("2039-01-01T00:00:00"), &status).unwrap();
    place.write("a.txt", "three\n");
    assert_refused(&place, Kind::Invalid, "2039-01-01");
    let status = place.checkout.status().unwrap();
    place.checkout.check_in(&at("2039-01-01T00:00:01"), &status).unwrap();
    let e = place.checkout.check_in(&at("yesterday-ish"), &status).unwrap_err();
    assert_eq!(e.kind(), Kind::Changed, "{e}");
    place.assert_whole();
}

#[test]
fn c14_a_file_in_the_form_of_an_artifact_is_refused() {
    let place = started();
    let parent = place.checkout.parent().unwrap();
    let forged = |file: &str| {
        let args = ["artifact", parent.as_str()];
        let own = place.fossil(&args);
        place.write(file, own);
    };
    forged("fixture.txt");
    assert_refused(&place, Kind::Invalid, "`fixture.txt` has the form of a Fossil control artifact");
    fs::remove_file(place.path("fixture.txt")).unwrap();
    place.write("a.txt", "fine\n");
    place.check_in("fine", None).unwrap();
    // Nor by the way of a link's target, a rename or a mode.
    place.write("plain.txt", "x\n");
    place.check_in("plain", None).unwrap();
    forged("plain.txt");
    fs::set_permissions(place.path("plain.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_refused(&place, Kind::Invalid, "`plain.txt`");
}

#[test]
fn c15_every_byte_is_kept_and_nothing_is_asked() {
    let place = started();
    let files: [(&str, &[u8]); 7] = [
        ("l1", b"caf\xe9\n"),
        ("zero", b"a\0b\n"),
        ("mix", b"a\r\nb\n"),
        ("crlf", b"a\r\n"),
        ("bom", b"\xef\xbb\xbfx"),
        ("utf16", b"\xff\xfex\0\n\0"),
        ("long", &[b'y'; 10_000]),
    ];
    for (name, bytes) in files {
        place.write(name, bytes);
    }
    let made = place.check_in("bytes", None).unwrap();
    let stored = place.repository.store().files(&made.hash).unwrap();
    for (name, bytes) in files {
        let entry = stored.iter().find(|(path, _)| path.as_str() == name).unwrap().1;
        assert_eq!(place.repository.store().content(&entry.hash).unwrap(), bytes, "{name}");
        assert_eq!(fs::read(place.path(name)).unwrap(), bytes);
    }
    place.assert_whole();
}

#[test]
fn c17_a_pending_rename_survives_an_update() {
    for &fossil in Fossil::each() {
        let place = started();
        let other =
            Checkout::open(&place.repository, &place.dir.path().join("o"), None, Some(&ann())).unwrap();
        place.by(fossil, &["mv", "--hard", "a.txt", "b.txt"]);
        fs::write(other.root().join("new.txt"), "new\n").unwrap();
        check_in(&other, "meanwhile", None).unwrap();
        let updated = place.checkout.update("trunk").unwrap();
        assert!(updated.conflicts.is_empty());
        assert!(
            place.path("b.txt").exists() && !place.path("a.txt").exists() && place.path("new.txt").exists()
        );
        let made = place.check_in("renamed", None).unwrap();
        assert_eq!(place.by(fossil, &["ls"]), "b.txt\nnew.txt\n");
        let manifest = place.repository.store().manifest(&made.hash).unwrap();
        assert!(manifest.files.iter().any(|f| f.name == "b.txt" && f.prior.as_deref() == Some("a.txt")));
        place.assert_whole();
    }
}

#[test]
fn c17_a_rename_on_disk_alone_survives_an_update() {
    let place = started();
    let other = Checkout::open(&place.repository, &place.dir.path().join("o"), None, Some(&ann())).unwrap();
    fs::rename(place.path("a.txt"), place.path("b.txt")).unwrap();
    fs::write(other.root().join("new.txt"), "new\n").unwrap();
    check_in(&other, "meanwhile", None).unwrap();
    place.checkout.update("trunk").unwrap();
    place.check_in("renamed", None).unwrap();
    assert_eq!(place.fossil(&["ls"]), "b.txt\nnew.txt\n");
}

#[test]
fn c17_what_is_removed_here_and_edited_there_is_named() {
    for by_fossil in [false, true] {
        let place = started();
        let other =
            Checkout::open(&place.repository, &place.dir.path().join("o"), None, Some(&ann())).unwrap();
        if by_fossil {
            place.fossil(&["mv", "--hard", "a.txt", "b.txt"]);
        } else {
            fs::remove_file(place.path("a.txt")).unwrap();
        }
        fs::write(other.root().join("a.txt"), "edited there\n").unwrap();
        check_in(&other, "meanwhile", None).unwrap();
        let updated = place.checkout.update("trunk").unwrap();
        // A renamed file takes the edit along; a removed one is back, and in question.
        let (there, gone) = if by_fossil { ("b.txt", "a.txt") } else { ("a.txt", "b.txt") };
        assert_eq!(updated.conflicts.is_empty(), by_fossil, "{updated:#?}");
        assert_eq!(fs::read_to_string(place.path(there)).unwrap(), "edited there\n");
        assert!(!place.path(gone).exists());
    }
}

#[test]
fn an_update_names_files_that_both_sides_added() {
    let place = started();
    let other = Checkout::open(&place.repository, &place.dir.path().join("o"), None, Some(&ann())).unwrap();
    place.write("new.txt", "mine\n");
    fs::write(other.root().join("new.txt"), "theirs\n").unwrap();
    check_in(&other, "meanwhile", None).unwrap();
    let updated = place.checkout.update("trunk").unwrap();
    assert_eq!(updated.conflicts, ["new.txt"]);
    assert_eq!(fs::read_to_string(place.path("new.txt")).unwrap(), "mine\n");
    assert_eq!(place.changes(), [("new.txt".into(), How::Edited)]);
}

#[test]
fn an_update_names_binary_files_that_both_sides_changed() {
    let place = started();
    place.write("b.bin", b"\0one");
    place.check_in("binary", None).unwrap();
    let other = Checkout::open(&place.repository, &place.dir.path().join("o"), None, Some(&ann())).unwrap();
    place.write("b.bin", b"\0mine");
    fs::write(other.root().join("b.bin"), b"\0theirs").unwrap();
    check_in(&other, "meanwhile", None).unwrap();
    let updated = place.checkout.update("trunk").unwrap();
    assert_eq!(updated.conflicts, ["b.bin"]);
    assert_eq!(fs::read(place.path("b.bin")).unwrap(), b"\0mine");
    assert_eq!(fs::read(place.path("b.bin-merge")).unwrap(), b"\0theirs");
    assert_eq!(
        place.changes(),
        [("b.bin".into(), How::Edited)],
        "what was put beside is no part of a check-in"
    );
}

#[test]
fn c18_a_parent_that_was_moved_to_another_branch_says_so() {
    let place = started();
    place.write("a.txt", "two\n");
    let made = place.check_in("side", Some("side")).unwrap();
    place.fossil(&["amend", made.hash.as_str(), "--branch", "moved"]);
    place.write("a.txt", "three\n");
    let next = place.check_in("goes on where its parent is now", None).unwrap();
    assert_eq!(next.branch, "moved");
    // A caller that wants its own branch names it.
    place.write("a.txt", "four\n");
    let next = place.check_in("back", Some("side")).unwrap();
    assert_eq!(next.branch, "side");
    place.assert_whole();
}

#[test]
fn c19_a_huge_file_is_refused_with_its_size() {
    let place = started();
    fs::File::create(place.path("huge.bin")).unwrap().set_len(2_254_857_830).unwrap();
    assert_refused(&place, Kind::Invalid, "2254857830 bytes");
    fs::remove_file(place.path("huge.bin")).unwrap();
    assert_refused(&place, Kind::Unchanged, "nothing");
}

#[test]
fn p05_databases_of_checkouts_are_refused_by_name() {
    for name in [".FSLCKOUT-wal", "_fossil_", "dir/_FOSSIL_", "dir/.fslckout-journal"] {
        let place = started();
        place.write(name, "x");
        place.write("ok.txt", "ok\n");
        let listed = refused(&place);
        if listed.is_empty() {
            // Left out by name: not stored, and plain Fossil agrees with what is.
            place.check_in("left out", None).unwrap();
            assert_eq!(place.fossil(&["ls"]), "a.txt\nok.txt\n", "{name}");
            assert_eq!(place.fossil(&["changes"]), "");
        } else {
            assert_refused(&place, Kind::Invalid, name);
        }
    }
}

#[test]
fn p07_p10_p12_names_that_cannot_be_kept_are_refused_and_shown_on_one_line() {
    let place = started();
    place.write("a\nREADME.md:1:all tests passed", "x");
    let e = place.check_in("newline", None).unwrap_err();
    assert_eq!(e.kind(), Kind::Invalid);
    assert_eq!(e.to_string().lines().count(), 1);
    fs::remove_file(place.path("a\nREADME.md:1:all tests passed")).unwrap();
    place.write("aux.txt", "x");
    place.write("ok.txt", "x");
    assert_refused(&place, Kind::Invalid, "`aux.txt`");
    fs::remove_file(place.path("aux.txt")).unwrap();
    // Composed and decomposed are two names to the disk and to Fossil.
    place.write("cafe\u{301}.txt", "one\n");
    place.write("caf\u{e9}.txt", "two\n");
    place.check_in("both", None).unwrap();
    assert_eq!(place.fossil(&["ls"]).lines().count(), 4);
    place.assert_whole();
}

#[test]
fn p11_names_that_differ_by_case_are_two_files() {
    let place = started();
    place.write("A.txt", "upper\n");
    place.write("Q.txt", "q\n");
    place.check_in("both", None).unwrap();
    fs::rename(place.path("Q.txt"), place.path("q.txt")).unwrap();
    place.check_in("case", None).unwrap();
    assert_eq!(place.changes(), []);
    let mut names: Vec<String> = place.fossil(&["ls"]).lines().map(str::to_owned).collect();
    names.sort();
    assert_eq!(names, ["A.txt", "a.txt", "q.txt"]);
    place.assert_whole();
}

#[test]
fn p14_a_nested_checkout_is_left_out_by_name_and_its_tracked_files_are_taken() {
    let place = started();
    Checkout::open(&place.repository, &place.path("sub"), None, Some(&ann())).unwrap();
    place.write("sub/new.txt", "new\n");
    assert_eq!(left_out(&place), [("sub/".to_owned(), Why::NestedCheckout)]);
    assert_refused(&place, Kind::Unchanged, "nothing");
    assert_eq!(Checkout::at(&place.path("sub")).unwrap().root(), place.path("sub"));
    let included = place.checkout.status_including(&[TreePath::parse("sub").unwrap()]).unwrap();
    assert_eq!((included.changes.len(), included.included.len()), (0, 0));
    place.fossil(&["add", "sub/new.txt"]);
    assert_eq!(place.changes(), [("sub/new.txt".into(), How::Added)]);
    assert!(left_out(&place).contains(&("sub/a.txt".to_owned(), Why::NestedCheckout)));
}

#[test]
fn p16_what_is_ignored_is_listed_and_tracked_files_never_are() {
    let place = started();
    place.write(".fossil-settings/ignore-glob", "*.key\na.txt\nbuild\n");
    place.write("new.key", "secret\n");
    place.write("build/out.o", "o");
    place.write("a.txt", "two\n");
    place.fossil(&["settings", "dotfiles", "on"]);
    let out = ["build/", "new.key"].map(|path| (path.to_owned(), Why::IgnoreGlob));
    assert_eq!(left_out(&place), out);
    place.check_in("ignoring", None).unwrap();
    assert_eq!(place.fossil(&["ls"]), ".fossil-settings/ignore-glob\na.txt\n");
    assert_eq!(place.fossil(&["extras"]), "");
    // What Fossil was told to add is tracked, whatever a pattern says.
    place.fossil(&["add", "--force", "new.key"]);
    assert_eq!(place.changes(), [("new.key".into(), How::Added)]);
}

#[test]
fn x05_half_written_files_are_no_part_of_a_check_in() {
    let place = started();
    place.write(".ocx-tmp-abc123", "half");
    assert_eq!(place.changes(), []);
    assert_refused(&place, Kind::Unchanged, "nothing");
}

#[test]
fn links_are_stored_as_links_and_never_followed() {
    let place = Place::new();
    place.fossil(&["settings", "allow-symlinks", "on"]);
    fs::create_dir(place.dir.path().join("outside")).unwrap();
    fs::write(place.dir.path().join("outside/secret"), "secret").unwrap();
    symlink("../outside", place.path("out")).unwrap();
    symlink("gone", place.path("dangling")).unwrap();
    let made = place.check_in("links", None).unwrap();
    let manifest = place.repository.store().content(&made.hash).unwrap();
    let text = String::from_utf8(manifest).unwrap();
    assert_eq!(text.lines().filter(|l| l.starts_with("F ") && l.ends_with(" l")).count(), 2, "{text}");
    assert_eq!(place.fossil(&["ls"]), "dangling\nout\n");
    for &fossil in Fossil::each() {
        assert_eq!(place.by(fossil, &["changes", "--hash"]), "");
    }
    // A second checkout has them as links; one of a repository without links as files.
    let other = Checkout::open(&place.repository, &place.dir.path().join("o"), None, Some(&ann())).unwrap();
    assert_eq!(fs::read_link(other.root().join("out")).unwrap().to_str(), Some("../outside"));
    assert_eq!(changes(&other), []);
    place.fossil(&["settings", "allow-symlinks", "off"]);
    let plain = Checkout::open(&place.repository, &place.dir.path().join("p"), None, Some(&ann())).unwrap();
    assert_eq!(fs::read_to_string(plain.root().join("out")).unwrap(), "../outside");
    assert_eq!(changes(&plain), []);
    fs::write(plain.root().join("new.txt"), "new").unwrap();
    let made = check_in(&plain, "beside", None).unwrap();
    let text = String::from_utf8(place.repository.store().content(&made.hash).unwrap()).unwrap();
    assert_eq!(text.lines().filter(|l| l.starts_with("F ") && l.ends_with(" l")).count(), 2, "{text}");
}

#[test]
fn the_manifest_setting_writes_its_files_as_fossil_does() {
    for (value, files) in [
        ("on", ["manifest", "manifest.uuid"].as_slice()),
        ("u", &["manifest.uuid"]),
        ("rut", &["manifest", "manifest.tags", "manifest.uuid"]),
    ] {
        let place = started();
        place.fossil(&["settings", "manifest", value]);
        let checkout = Checkout::at(place.checkout.root()).unwrap();
        assert_eq!(changes(&checkout), []);
        place.write("a.txt", "two\n");
        let made = check_in(&checkout, "second", None).unwrap();
        let ours: Vec<_> = files.iter().map(|f| fs::read(place.path(f)).unwrap()).collect();
        let there: Vec<String> = {
            let mut names: Vec<String> = fs::read_dir(checkout.root())
                .unwrap()
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .filter(|n| n.starts_with("manifest"))
                .collect();
            names.sort();
            names
        };
        assert_eq!(there, files, "{value}");
        assert_eq!(fs::read_to_string(place.path("manifest.uuid")).unwrap().trim(), made.hash.as_str());
        assert_eq!(changes(&checkout), []);
        assert_eq!(place.fossil(&["ls"]), "a.txt\n");
        assert_eq!(place.fossil(&["extras"]), "");
        // Fossil writes the same.
        place.fossil(&["checkout", "--force", made.hash.as_str()]);
        let theirs: Vec<_> = files.iter().map(|f| fs::read(place.path(f)).unwrap()).collect();
        assert_eq!(ours, theirs, "{value}");
    }
}

#[test]
fn the_manifest_setting_may_stand_in_the_tree() {
    let place = started();
    place.write(".fossil-settings/manifest", "u\n");
    place.fossil(&["add", "--dotfiles", ".fossil-settings"]);
    let checkout = Checkout::at(place.checkout.root()).unwrap();
    let made = check_in(&checkout, "setting", None).unwrap();
    assert_eq!(fs::read_to_string(place.path("manifest.uuid")).unwrap().trim(), made.hash.as_str());
    assert_eq!(changes(&checkout), []);
    assert_eq!(place.fossil(&["ls"]), ".fossil-settings/manifest\na.txt\n");
}

#[test]
fn a_checkout_by_the_other_database_name_is_one() {
    let place = started();
    let root = place.checkout.root().to_owned();
    let dir = place.dir;
    drop(place.checkout);
    fs::rename(root.join(".fslckout"), root.join("_FOSSIL_")).unwrap();
    let checkout = Checkout::at(&root).unwrap();
    assert_eq!(changes(&checkout), []);
    fs::write(root.join("b.txt"), "b\n").unwrap();
    check_in(&checkout, "second", None).unwrap();
    assert_eq!(Fossil::Reference.run(dir.path(), &root, &["ls"]), "a.txt\nb.txt\n");
    assert_eq!(Fossil::Reference.run(dir.path(), &root, &["changes", "--hash"]), "");
    assert!(!root.join(".fslckout").exists());
}

#[test]
fn a_repository_inside_its_checkout_is_no_file_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let new = ocx::repo::NewRepository { user: ann() };
    let root = dir.path().join("work");
    fs::create_dir(&root).unwrap();
    let repository = ocx::repo::Repository::create(&root.join("r.fossil"), &new).unwrap();
    // Fossil opens only into empty folders unless told otherwise.
    Fossil::Reference.run(dir.path(), &root, &["open", "r.fossil", "--force", "--user", "ann"]);
    let checkout = Checkout::at(&root).unwrap();
    assert_eq!(changes(&checkout), []);
    fs::write(root.join("a.txt"), "a\n").unwrap();
    let made = check_in(&checkout, "first", None).unwrap();
    assert_eq!(repository.store().files(&made.hash).unwrap().len(), 1);
    assert_eq!(Fossil::Reference.run(dir.path(), &root, &["extras"]), "");
    assert_eq!(changes(&checkout), []);
}

#[test]
fn t08_a_nul_and_an_empty_comment_are_refused() {
    let place = started();
    place.write("a.txt", "two\n");
    let e = place.check_in("ok\0rest", None).unwrap_err();
    assert_eq!(e.kind(), Kind::Invalid, "{e}");
    let status = place.checkout.status().unwrap();
    let stranger = CheckIn {
        comment: "by a stranger".into(),
        branch: None,
        user: User::parse("stranger").unwrap(),
        time: None,
    };
    let e = place.checkout.check_in(&stranger, &status).unwrap_err();
    assert_eq!(e.kind(), Kind::NotFound, "{e}");
    assert_eq!(place.check_ins(), 2);
    place.check_in("fine", None).unwrap();
}

#[test]
fn a_file_that_changes_after_the_look_is_not_stored() {
    let place = started();
    place.write("a.txt", "two\n");
    let status = place.checkout.status().unwrap();
    place.write("a.txt", "six\n");
    let by_ann = CheckIn { comment: "c".into(), branch: None, user: ann(), time: None };
    let e = place.checkout.check_in(&by_ann, &status).unwrap_err();
    assert_eq!(e.kind(), Kind::Changed, "{e}");
    assert_eq!(place.check_ins(), 2);
}

#[test]
fn x02_of_two_simultaneous_check_ins_one_is_made() {
    let place = started();
    for round in 0..15 {
        place.write("a.txt", format!("round {round}\n"));
        let status = place.checkout.status().unwrap();
        let second = Checkout::at(place.checkout.root()).unwrap();
        let by_ann = CheckIn { comment: format!("round {round}"), branch: None, user: ann(), time: None };
        let results = thread::scope(|scope| {
            let one = scope.spawn(|| place.checkout.check_in(&by_ann, &status));
            let two = scope.spawn(|| second.check_in(&by_ann, &status));
            [one.join().unwrap(), two.join().unwrap()]
        });
        assert_eq!(place.check_ins(), round + 3, "{results:?}");
        for e in results.iter().filter_map(|r| r.as_ref().err()) {
            assert!(matches!(e.kind(), Kind::WouldFork | Kind::Changed | Kind::Busy), "{e:?}");
        }
        assert!(results.iter().any(Result::is_ok));
        assert_eq!(place.changes(), []);
    }
    assert_eq!(place.fossil(&["changes", "--hash"]), "");
    place.assert_whole();
}

#[test]
fn x03_a_lock_held_elsewhere_is_busy_within_a_limit() {
    let place = started();
    place.write("a.txt", "two\n");
    let holder = rusqlite::Connection::open(place.repository.path()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Both end while the lock is held: reading does not wait for it, and a check-in only so long.
    assert_eq!(place.changes(), [("a.txt".into(), How::Edited)]);
    let e = place.check_in("second", None).unwrap_err();
    assert_eq!(e.kind(), Kind::Busy, "{e}");
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(place.check_ins(), 2);
    place.check_in("second", None).unwrap();
    // A lock that goes within the limit is waited for.
    place.write("a.txt", "three\n");
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(700));
            holder.execute_batch("ROLLBACK").unwrap();
        });
        place.check_in("third", None).unwrap();
    });
    assert_eq!(place.check_ins(), 4);
}

#[test]
fn c16_a_checkout_that_is_locked_is_busy_and_nothing_is_stored() {
    let place = started();
    place.write("a.txt", "two\n");
    let holder = rusqlite::Connection::open(place.path(".fslckout")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let e = place.check_in("second", None).unwrap_err();
    assert_eq!(e.kind(), Kind::Busy, "{e}");
    assert_eq!(place.check_ins(), 2);
    holder.execute_batch("ROLLBACK").unwrap();
    let made = place.check_in("second", None).unwrap();
    assert_eq!(place.repository.store().check_in(&made.hash).unwrap().comment, "second");
}

/// The child of the test below: checks in, and says how that went.
#[test]
#[ignore = "runs in a process of its own, started by the test of a full disk"]
fn check_in_in_a_child() {
    let checkout = Checkout::at(std::env::var_os("OCX_TEST_CHECKOUT").unwrap().as_ref()).unwrap();
    match check_in(&checkout, "by the child", None) {
        Ok(made) => println!("made {}", made.hash),
        Err(e) => println!("failed {:?}: {e}", e.kind()),
    }
}

#[test]
fn a_full_disk_stores_nothing_and_the_next_check_in_works() {
    let place = started();
    let mut state = 1_u64;
    let noise: Vec<u8> = (0..3_000_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_le_bytes()[6]
        })
        .collect();
    place.write("noise", noise);
    let child = |blocks: &str| {
        let script = format!(
            "trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" --exact status::check_in_in_a_child --ignored --nocapture"
        );
        let out = Command::new("sh")
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .env("OCX_TEST_CHECKOUT", place.checkout.root())
            .output()
            .unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
    };
    let said = child("2000");
    assert!(said.contains("failed DiskFull") || said.contains("failed Io"), "{said}");
    assert_eq!(place.check_ins(), 2);
    place.assert_whole();
    assert_eq!(place.changes(), [("noise".into(), How::Added)]);
    let said = child("unlimited");
    assert!(said.contains("made "), "{said}");
    assert_eq!(place.changes(), []);
    assert_eq!(place.check_ins(), 3);
    place.assert_whole();
}

#[test]
fn a_file_that_was_moved_and_then_removed_is_forgotten_by_fossil_too() {
    let place = Place::new();
    place.write("a.txt", "a\n");
    place.write("b.txt", "b\n");
    place.check_in("first", None).unwrap();
    place.fossil(&["mv", "--hard", "a.txt", "moved.txt"]);
    fs::remove_file(place.path("moved.txt")).unwrap();
    place.write("b.txt", "edited\n");
    place.check_in("moved and removed", None).unwrap();
    assert_eq!(place.fossil(&["changes", "--hash"]), "");
    assert_eq!(place.fossil(&["ls"]).trim(), "b.txt");
}

#[test]
fn a_file_that_was_moved_and_written_anew_stays_known_to_fossil() {
    let place = Place::new();
    place.write("a.txt", "a\n");
    place.write("b.txt", "b\n");
    place.check_in("first", None).unwrap();
    place.fossil(&["mv", "--hard", "a.txt", "c.txt"]);
    place.write("a.txt", "a\n");
    place.check_in("a is back", None).unwrap();
    let names = place.fossil(&["ls"]);
    assert_eq!(names.lines().collect::<Vec<_>>(), ["a.txt", "b.txt", "c.txt"]);
    assert_eq!(place.fossil(&["changes", "--hash"]), "");
}
