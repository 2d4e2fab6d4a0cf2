//! Check-ins whose manifest amends a baseline: made and read by the library and by both plain Fossils in turn.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Fossil, Place, ann, changes, check_in, served};
use ocx::checkout::Checkout;
use ocx::format::artifact::FileKind;
use ocx::name::Hash;
use ocx::repo::Repository;
use proptest::prelude::*;

/// More files than the library takes for a small tree.
const LARGE: usize = 520;

/// A place with a first check-in of `files` files.
fn place_of(files: usize) -> Place {
    let place = Place::new();
    for i in 0..files {
        place.write(&name(i), format!("file {i}\n"));
    }
    place.check_in("first", None).unwrap();
    place
}

fn name(i: usize) -> String {
    format!("d{}/f{i}.txt", i % 7)
}

fn baseline(place: &Place, hash: &Hash) -> Option<Hash> {
    place.repository.store().manifest(hash).unwrap().baseline
}

/// Lets a small tree have them too, as plain Fossil does once it has seen one.
fn allow_in_small_trees(place: &Place) {
    let db = rusqlite::Connection::open(place.repository.path()).unwrap();
    db.execute("REPLACE INTO config(name,value,mtime) VALUES('seen-delta-manifest',1,0)", []).unwrap();
}

/// The files of a check-in as plain Fossil lists them: mode is not among them.
fn listed(place: &Place, fossil: Fossil, hash: &Hash) -> Vec<String> {
    let mut names: Vec<_> =
        place.by(fossil, &["ls", "-r", hash.as_str()]).lines().map(str::to_owned).collect();
    names.sort_unstable();
    names
}

/// What derived tables say of changed files, by names and hashes.
fn linked(place: &Place) -> Vec<String> {
    let db = rusqlite::Connection::open(place.repository.path()).unwrap();
    let sql = "SELECT (SELECT uuid FROM blob WHERE rid=mid)||' '||
          ifnull((SELECT uuid FROM blob WHERE rid=fid),'-')||' '||ifnull((SELECT uuid FROM blob WHERE rid=pmid),'-')||' '||
          ifnull((SELECT uuid FROM blob WHERE rid=pid),'-')||' '||(SELECT name FROM filename WHERE fnid=mlink.fnid)||' '||
          ifnull((SELECT name FROM filename WHERE fnid=pfnid),'-')||' '||mperm||' '||isaux
        FROM mlink ORDER BY 1";
    let mut query = db.prepare(sql).unwrap();
    query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_large_tree_amends_its_baseline_and_both_fossils_read_it() {
    let place = place_of(LARGE);
    let first = place.checkout.parent().unwrap();
    assert_eq!(baseline(&place, &first), None);
    place.write(&name(3), "edited\n");
    place.write("new.txt", "new\n");
    fs::remove_file(place.path(&name(9))).unwrap();
    fs::set_permissions(place.path(&name(5)), fs::Permissions::from_mode(0o755)).unwrap();
    let second = place.check_in("amends", None).unwrap().hash;
    assert_eq!(baseline(&place, &second), Some(first));
    assert_eq!(place.repository.store().manifest(&second).unwrap().files.len(), 4);
    place.fossil(&["mv", "--hard", &name(20), "moved.txt"]);
    place.write(&name(3), "file 3\n");
    place.write(&name(9), "back\n");
    let third = place.check_in("amends again", Some("side")).unwrap().hash;
    let made = place.repository.store().manifest(&third).unwrap();
    assert_eq!(made.baseline, Some(first));
    assert!(made.files.iter().any(|f| f.name == "moved.txt" && f.prior == Some(name(20))));
    assert!(made.files.iter().any(|f| f.name == name(20) && f.hash.is_none()));
    assert!(made.files.iter().all(|f| f.name != name(3)), "as in the baseline again");

    // What was remembered is what is stored, and what Fossil reads.
    let anew = Repository::open(place.repository.path()).unwrap();
    for hash in [&second, &third] {
        let files = anew.store().files(hash).unwrap();
        assert_eq!(files, place.repository.store().files(hash).unwrap());
        assert_eq!(files[name(5).as_str()].kind, FileKind::Executable);
        let names: Vec<_> = files.keys().map(ToString::to_string).collect();
        for &fossil in Fossil::each() {
            assert_eq!(listed(&place, fossil, hash), names);
        }
    }
    for &fossil in Fossil::each() {
        assert_eq!(place.by(fossil, &["changes", "--hash"]), "");
        assert_eq!(place.by(fossil, &["extras"]), "");
        let shown = place.by(fossil, &["timeline", "-n", "3", "-v"]);
        assert!(shown.contains("EDITED new.txt") || shown.contains("ADDED new.txt"), "{shown}");
        let diff = place.by(fossil, &["diff", "--from", first.as_str(), "--to", third.as_str()]);
        assert!(diff.contains("new.txt") && !diff.contains("d3/f3.txt"), "{diff}");
        place.by(fossil, &["update", first.as_str()]);
        assert!(!place.path("new.txt").exists());
        place.by(fossil, &["update", "side"]);
        assert_eq!(fs::metadata(place.path(&name(5))).unwrap().permissions().mode() & 0o111, 0o111);
        assert_eq!(place.by(fossil, &["status"]).lines().filter(|l| l.starts_with("EDITED")).count(), 0);
    }
    assert_eq!(place.changes(), []);
    place.assert_whole();
}

#[test]
fn a_rebuild_by_plain_fossil_changes_nothing_that_amending_check_ins_linked() {
    let place = place_of(LARGE);
    for round in 0..4 {
        place.write(&name(round), format!("round {round}\n"));
        place.write(&name(round + 100), format!("round {round}\n"));
        place.check_in(&format!("round {round}"), None).unwrap();
    }
    place.write(&name(1), "file 1\n");
    place.check_in("one is as in the baseline again", None).unwrap();
    let before = linked(&place);
    for &fossil in Fossil::each() {
        place.by(fossil, &["rebuild", place.repository.path().to_str().unwrap()]);
        assert_eq!(linked(&place), before, "{fossil:?}");
    }
    place.assert_whole();
}

#[test]
fn the_planner_knows_how_many_artifacts_there_are() {
    // Where it takes a table of a new repository for one row, plain Fossil scans it once for each file.
    let place = place_of(LARGE);
    let rows = place.sql("SELECT max(CAST(stat AS INT)) FROM sqlite_stat1 WHERE tbl='blob'");
    assert!(rows > 100, "{rows}");
}

#[test]
fn a_small_tree_is_amended_only_where_the_repository_has_seen_it() {
    let place = place_of(30);
    place.write(&name(1), "edited\n");
    assert_eq!(baseline(&place, &place.check_in("whole", None).unwrap().hash), None);
    let whole = place.checkout.parent().unwrap();
    allow_in_small_trees(&place);
    place.write(&name(1), "edited again\n");
    assert_eq!(baseline(&place, &place.check_in("amends", None).unwrap().hash), Some(whole));
    // Nine more changes, and a manifest of its own takes less in the long run.
    for i in 0..9 {
        place.write(&name(i), "many\n");
    }
    let made = place.check_in("whole again", None).unwrap().hash;
    assert_eq!(baseline(&place, &made), None);
    place.write(&name(1), "and on\n");
    assert_eq!(baseline(&place, &place.check_in("amends the new one", None).unwrap().hash), Some(made));
    place.assert_whole();
}

#[test]
fn a_repository_that_forbids_delta_manifests_gets_none() {
    let place = place_of(LARGE);
    place.fossil(&["settings", "forbid-delta-manifests", "on"]);
    place.write(&name(1), "edited\n");
    assert_eq!(baseline(&place, &place.check_in("whole", None).unwrap().hash), None);
    place.fossil(&["settings", "forbid-delta-manifests", "off"]);
    place.write(&name(1), "edited again\n");
    assert!(baseline(&place, &place.check_in("amends", None).unwrap().hash).is_some());
}

#[test]
fn three_hands_amend_one_baseline_in_turn() {
    let place = place_of(LARGE);
    let mut whole = Vec::new();
    for turn in 0..6 {
        place.write(&name(turn), format!("turn {turn}\n"));
        let comment = format!("turn {turn}");
        match turn % 3 {
            0 => drop(place.check_in(&comment, None).unwrap()),
            hand => {
                let args = ["commit", "-m", &comment, "--no-warnings", "--hash"];
                drop(place.by(Fossil::BOTH[hand - 1], &args));
            }
        }
        whole.push(baseline(&place, &place.checkout.parent().unwrap()));
        assert_eq!(place.changes(), []);
    }
    assert!(whole[0].is_some() && whole.iter().all(|base| *base == whole[0]), "{whole:?}");
    place.assert_whole();
}

#[test]
fn amending_check_ins_travel_to_a_server_and_into_a_clone() {
    let (dir, path, server) = served(Fossil::Reference);
    let remote = server.remote("ann:secret");
    let open = |file: &str| Repository::clone_from(&remote, &dir.path().join(file), &ann()).unwrap();
    let repository = open("mine.fossil");
    let checkout = Checkout::open(&repository, &dir.path().join("mine"), None, None).unwrap();
    fs::create_dir(checkout.root().join("d")).unwrap();
    for i in 0..LARGE {
        fs::write(checkout.root().join(format!("d/{i}")), format!("{i}\n")).unwrap();
    }
    check_in(&checkout, "first", None).unwrap();
    fs::write(checkout.root().join("d/7"), "edited\n").unwrap();
    let made = check_in(&checkout, "amends", None).unwrap().hash;
    assert!(repository.store().manifest(&made).unwrap().baseline.is_some());
    repository.push(&remote).unwrap();
    let theirs = open("theirs.fossil");
    assert_eq!(theirs.store().files(&made).unwrap(), repository.store().files(&made).unwrap());
    let other = Checkout::open(&theirs, &dir.path().join("theirs"), None, None).unwrap();
    assert_eq!(fs::read_to_string(other.root().join("d/7")).unwrap(), "edited\n");
    assert_eq!((changes(&other), changes(&checkout)), (vec![], vec![]));
    Fossil::Reference.run(dir.path(), dir.path(), &["test-integrity", "-R", path.to_str().unwrap()]);
}

/// What happens to a file of the tree: new content, gone, another mode.
#[derive(Debug, Clone)]
enum Edit {
    Write(usize, u8),
    Delete(usize),
    Chmod(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let file = 0..24_usize;
    prop_oneof![
        (file.clone(), 0..3_u8).prop_map(|(f, c)| Edit::Write(f, c)),
        file.clone().prop_map(Edit::Delete),
        file.prop_map(Edit::Chmod),
    ]
}

/// Applies an edit on disk and in the model.
fn apply(place: &Place, model: &mut BTreeMap<String, (Vec<u8>, bool)>, edit: &Edit) {
    match edit {
        Edit::Write(file, content) => {
            let executable = model.get(&name(*file)).is_some_and(|(_, x)| *x);
            place.write(&name(*file), [*content; 60]);
            model.insert(name(*file), (vec![*content; 60], executable));
        }
        Edit::Delete(file) => {
            if model.len() > 15 && model.remove(&name(*file)).is_some() {
                fs::remove_file(place.path(&name(*file))).unwrap();
            }
        }
        Edit::Chmod(file) => {
            if let Some((_, executable)) = model.get_mut(&name(*file)) {
                *executable = !*executable;
                let mode = if *executable { 0o755 } else { 0o644 };
                fs::set_permissions(place.path(&name(*file)), fs::Permissions::from_mode(mode)).unwrap();
            }
        }
    }
}

fn check_rounds(rounds: &[Vec<Edit>]) {
    let place = place_of(24);
    allow_in_small_trees(&place);
    let mut model: BTreeMap<_, _> =
        (0..24).map(|i| (name(i), (format!("file {i}\n").into_bytes(), false))).collect();
    for (round, edits) in rounds.iter().enumerate() {
        for edit in edits {
            apply(&place, &mut model, edit);
        }
        let Ok(made) = place.check_in(&format!("round {round}"), None) else { continue };
        let anew = Repository::open(place.repository.path()).unwrap();
        let files = anew.store().files(&made.hash).unwrap();
        let read: BTreeMap<_, _> = files
            .iter()
            .map(|(path, file)| {
                let content = anew.store().content(&file.hash).unwrap();
                (path.to_string(), (content, file.kind == FileKind::Executable))
            })
            .collect();
        assert_eq!(read, model);
        assert_eq!(place.changes(), []);
        assert_eq!(Checkout::at(place.checkout.root()).unwrap().status().unwrap().changes, []);
        assert_eq!(place.fossil(&["changes"]), "");
    }
    place.repository.verify().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn amending_check_ins_hold_exactly_the_tree(
        rounds in prop::collection::vec(prop::collection::vec(edit(), 1..4), 1..7)
    ) {
        check_rounds(&rounds);
    }
}
