//! The library from end to end: made, opened, checked in, pushed, cloned, with plain Fossil as the judge.

use std::fs;

use crate::support::Place;
use ocx::checkout::{CheckIn, Checkout, How};
use ocx::error::Kind;
use ocx::repo::Repository;
use ocx::sync::Remote;

#[test]
fn plain_fossil_sees_what_was_checked_in() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write("dir/b.sh", "#!/bin/sh\n");
    let made = place.check_in("first\nwith \\ and spaces", None).unwrap();
    assert!(place.fossil(&["status"]).contains(&made.hash.as_str()[..40]));
    assert_eq!(place.fossil(&["changes"]), "");
    assert_eq!(place.fossil(&["ls"]), "a.txt\ndir/b.sh\n");
    place.write("a.txt", "two\n");
    let made = place.check_in("second", Some("agent/ann-12345678")).unwrap();
    assert!(place.fossil(&["branch", "current"]).contains("agent/ann-12345678"));
    assert_eq!(place.fossil(&["cat", "a.txt", "-r", made.hash.as_str()]), "two\n");
    assert_eq!(place.fossil(&["changes"]), "");
    place.fossil(&["test-integrity", "-R", place.repository.path().to_str().unwrap()]);
    place.repository.verify().unwrap();
    place.fossil(&["rebuild", place.repository.path().to_str().unwrap()]);
    let e = place.check_in("nothing", None).unwrap_err();
    assert_eq!(e.kind(), Kind::Unchanged);
}

#[test]
fn ocx_sees_what_plain_fossil_checked_in() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    place.write("b.txt", "b\n");
    place.fossil(&["mv", "--hard", "a.txt", "c.txt"]);
    place.fossil(&["add", "b.txt"]);
    let status = place.checkout.status().unwrap();
    let hows: Vec<_> = status.changes.iter().map(|c| (c.path.as_str(), c.how)).collect();
    assert_eq!(hows, [("a.txt", How::Deleted), ("b.txt", How::Added), ("c.txt", How::Added)]);
    place.fossil(&["commit", "-m", "by fossil", "--no-warnings"]);
    let status = place.checkout.status().unwrap();
    assert!(status.changes.is_empty(), "{status:?}");
    place.fossil(&["mv", "--hard", "c.txt", "d.txt"]);
    let made = place.check_in("renamed", None).unwrap();
    assert!(
        place
            .repository
            .store()
            .manifest(&made.hash)
            .unwrap()
            .files
            .iter()
            .any(|f| f.prior.as_deref() == Some("c.txt"))
    );
    assert!(place.fossil(&["finfo", "d.txt"]).contains("renamed"));
}

#[test]
fn a_second_leaf_is_refused_and_loses_nothing() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    let first = place.check_in("first", None).unwrap();
    let other =
        Checkout::open(&place.repository, &place.dir.path().join("other"), None, Some(&place.user)).unwrap();
    place.write("a.txt", "two\n");
    place.check_in("second", None).unwrap();
    fs::write(other.root().join("a.txt"), "mine\n").unwrap();
    let check_in = CheckIn { comment: "fork".into(), branch: None, user: place.user.clone(), time: None };
    let e = other.check_in(&check_in, &other.status().unwrap()).unwrap_err();
    assert_eq!(e.kind(), Kind::WouldFork);
    assert_eq!(other.parent().unwrap(), first.hash);
    assert_eq!(fs::read_to_string(other.root().join("a.txt")).unwrap(), "mine\n");
    let updated = other.update("trunk").unwrap();
    assert_eq!(updated.conflicts, ["a.txt"]);
}

#[test]
fn a_file_is_cloned_without_what_is_private() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    let made = place.check_in("first", None).unwrap();
    let clone =
        Repository::clone_file(place.repository.path(), &place.dir.path().join("c.fossil"), &place.user)
            .unwrap();
    assert_eq!(clone.store().resolve("trunk").unwrap(), made.hash);
    clone.verify().unwrap();
    let e = Repository::clone_file(place.repository.path(), &place.dir.path().join("c.fossil"), &place.user)
        .unwrap_err();
    assert_eq!(e.kind(), Kind::Exists);
}

#[test]
fn remotes_are_remembered_without_password_unless_asked() {
    let place = Place::new();
    let remote = Remote::parse("http://ann:s3cret@127.0.0.1:9/x").unwrap();
    place.repository.set_remote(Some(&remote), false).unwrap();
    let kept = place.repository.remote().unwrap().unwrap();
    assert_eq!(kept.user().unwrap().as_str(), "ann");
    assert!(kept.password().is_none());
    place.repository.set_remote(Some(&remote), true).unwrap();
    assert_eq!(place.repository.remote().unwrap().unwrap(), remote);
    place.repository.set_remote(None, false).unwrap();
    assert!(place.repository.remote().unwrap().is_none());
}

#[test]
fn verify_finds_content_that_does_not_fit_its_hash() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write("b.txt", "two\n");
    place.check_in("first", None).unwrap();
    place.repository.verify().unwrap();
    let db = rusqlite::Connection::open(place.repository.path()).unwrap();
    let sql = "UPDATE blob SET content=(SELECT content FROM blob WHERE rid=3) WHERE rid=2";
    assert_eq!(db.execute(sql, []).unwrap(), 1);
    let e = place.repository.verify().unwrap_err();
    assert_eq!(e.kind(), Kind::Corrupt);
    assert!(e.to_string().contains("wrong hash on artifact 2"), "{e}");
}
