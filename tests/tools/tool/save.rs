//! `ocx_save`.

use serde_json::json;

use crate::support::{Fixture, four};

fn edit(f: &Fixture, path: &str, old: &str, new: &str) {
    f.done("ocx_edit", json!({"path": path, "old": old, "new": new}));
}

fn tip(f: &Fixture, name: &str) -> String {
    f.done("ocx_read", json!({"checkin": name}))["checkin"].as_str().expect("a hash").to_owned()
}

#[test]
fn a_save_is_refused_until_every_test_has_passed_since_the_last_change() {
    let f = Fixture::tested("grep -q B a.txt", &[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "A");
    let answer = f.refused("untested", "ocx_save", four("t"));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("`unit`"), "{answer}");
    assert_eq!(answer["next_call"], json!({"tool": "ocx_test", "arguments": {"name": "unit"}}));
    f.refused("untested", "ocx_test", json!({}));
    f.refused("untested", "ocx_save", four("t"));
    edit(&f, "a.txt", "A", "B");
    f.done("ocx_test", json!({}));
    edit(&f, "a.txt", "B\n", "B\nmore\n");
    f.refused("untested", "ocx_save", four("t"));
    f.done("ocx_test", json!({"name": "unit"}));
    let saved = f.done("ocx_save", four("t"));
    assert_eq!((&saved["committed"], &saved["pushed"]), (&json!(true), &json!(false)));
    assert!(saved["push"].as_str().unwrap_or_default().contains("no remote"));
    assert!(saved["branch"].as_str().unwrap_or_default().starts_with("agent/alice-"));
}

#[test]
fn the_second_save_goes_on_on_the_same_branch() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "b");
    let first = f.done("ocx_save", four("one"));
    edit(&f, "a.txt", "b", "c");
    let second = f.done("ocx_save", four("two"));
    assert_eq!((&first["branch"], &second["parent"]), (&second["branch"], &first["checkin"]));
    let context = f.done("ocx_context", json!({}));
    assert_eq!((&context["branch"], &context["changed"]), (&second["branch"], &json!([])));
}

#[test]
fn c07_a_stale_parent_is_refused_and_the_edits_stay() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "b");
    let first = f.done("ocx_save", four("one"));
    let branch = first["branch"].as_str().expect("a branch");
    f.write("a.txt", "other\n");
    f.done("ocx_save", four("two"));
    f.fossil(&["update", first["checkin"].as_str().expect("a hash")]);
    f.write("a.txt", "mine\n");
    let (count, before) = (f.check_ins(), tip(&f, branch));
    let answer = f.refused("would_fork", "ocx_save", four("three"));
    assert!(answer["next_step"].as_str().unwrap_or_default().contains("update"), "{answer}");
    assert_eq!((f.check_ins(), tip(&f, branch), f.bytes("a.txt")), (count, before, b"mine\n".to_vec()));
}

#[test]
fn c08_a_closed_branch_is_refused() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "b");
    let first = f.done("ocx_save", four("one"));
    f.fossil(&["tag", "add", "closed", first["checkin"].as_str().expect("a hash"), "--raw"]);
    edit(&f, "a.txt", "b", "c");
    f.refused("closed", "ocx_save", four("two"));
    assert_eq!(f.bytes("a.txt"), b"c\n");
}

#[test]
fn s09_a_private_parent_is_refused() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("a.txt", "b\n");
    f.fossil(&["commit", "-m", "hidden", "--no-warnings", "--private"]);
    edit(&f, "a.txt", "b", "c");
    let answer = f.refused("refused", "ocx_save", four("t"));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("private"), "{answer}");
}

#[test]
fn a_new_task_from_trunk_gets_a_branch_of_its_own() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "b");
    let first = f.done("ocx_save", four("one"));
    f.fossil(&["update", "trunk"]);
    edit(&f, "a.txt", "a", "c");
    let second = f.done("ocx_save", four("two"));
    assert_ne!(first["branch"], second["branch"]);
    assert!(second["branch"].as_str().unwrap_or_default().starts_with("agent/alice-"));
}

#[test]
fn x04_a_check_in_that_nobody_lived_to_note_is_found_and_not_made_again() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let branch = f.done("ocx_context", json!({}))["branch"].as_str().expect("a branch").to_owned();
    let parent = tip(&f, "trunk");
    let comment = "t\nIntent: why\nExpression: where\nDemonstrates: unit";
    let state = rusqlite::Connection::open(f.path(".fslckout")).expect("the checkout's database");
    ocx::work::Journal::new(&state)
        .begin(&ocx::work::Begun {
            parent: ocx::name::Hash::parse(&parent).expect("a hash"),
            branch: branch.clone(),
            user: ocx::name::User::parse("alice").expect("a user"),
            comment: comment.into(),
        })
        .expect("noted");
    f.write("a.txt", "b\n");
    f.fossil(&["commit", "-m", comment, "--branch", &branch, "--no-warnings", "--user-override", "alice"]);
    let made = tip(&f, &branch);
    let context = f.done("ocx_context", json!({}));
    assert_eq!(context["not_pushed"], json!([made]));
    assert!(context["recovered"].as_str().unwrap_or_default().contains(&made));
    let before = f.check_ins();
    f.refused("unchanged", "ocx_save", four("t"));
    assert_eq!(f.check_ins(), before);
}

#[test]
fn c01_saving_twice_without_a_remote_is_nothing_to_save() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "b");
    f.done("ocx_save", four("t"));
    let answer = f.refused("unchanged", "ocx_save", four("t"));
    assert_eq!(answer["next_call"], json!({"tool": "ocx_context", "arguments": {}}));
}
