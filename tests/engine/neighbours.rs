//! Others change the same repository between two calls.

use std::fs;

use ocx::engine;
use ocx::error::Kind;
use ocx::repo::{NewRepository, Repository};

use super::place::{Place, expect, integrity, save};
use crate::support::Fossil;
use crate::support::ann;

#[test]
fn a_check_in_by_plain_fossil_between_two_calls_is_seen() {
    let place = Place::new();
    for n in 0..3 {
        place.save(&format!("ours {n}")).unwrap();
        fs::write(place.checkout.root().join("b.txt"), format!("theirs {n}")).unwrap();
        let run = |args: &[&str]| Fossil::Reference.run(place.dir.path(), place.checkout.root(), args);
        run(&["addremove"]);
        run(&["commit", "-m", "theirs", "--no-warnings", "--hash"]);
        assert!(place.fossil(&["timeline", "-n", "1"]).unwrap().out.contains("theirs"));
    }
    place.is_well("check-ins of plain Fossil");
    place.repository.verify().unwrap();
}

#[test]
fn a_rebuild_by_plain_fossil_between_two_calls_is_seen() {
    let place = Place::new();
    for n in 0..20 {
        place.save(&format!("{n}")).unwrap();
        save(&place.checkout, &format!("{n} on a branch"), Some(&format!("b{n}"))).unwrap();
        if n % 5 == 0 {
            let path = place.path();
            let path = path.to_str().unwrap();
            Fossil::Reference.run(place.dir.path(), place.dir.path(), &["rebuild", path]);
        }
    }
    assert_eq!(integrity(&place.path()), "ok");
    place.repository.verify().unwrap();
    let list = place.fossil(&["branch", "list"]).unwrap().out;
    assert!((0..20).all(|n| list.contains(&format!("b{n}"))), "{list}");
}

#[test]
fn a_repository_replaced_by_another_between_two_calls_is_another() {
    let place = Place::new();
    let path = place.dir.path().join("one.fossil");
    let other = place.dir.path().join("two.fossil");
    for p in [&path, &other] {
        Repository::create(p, &NewRepository { user: ann() }).unwrap();
    }
    engine::set_remote(&path, Some("http://127.0.0.1:1/one"), None).unwrap();
    engine::set_remote(&other, Some("http://127.0.0.1:1/two"), None).unwrap();
    engine::close(&other).unwrap();
    assert_eq!(engine::remote(&path).unwrap().0, "http://127.0.0.1:1/one");
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(path.with_extension(format!("fossil{end}")));
    }
    fs::rename(&other, &path).unwrap();
    assert_eq!(engine::remote(&path).unwrap().0, "http://127.0.0.1:1/two");
    engine::set_remote(&path, None, None).unwrap();
    assert_eq!(integrity(&path), "ok");
    expect("gone", engine::remote(&other), Kind::NotFound, "two.fossil");
    place.is_well("a replaced repository");
}
