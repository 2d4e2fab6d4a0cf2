//! `ocx_save`.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::fixture::{Fixture, four};

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
fn c01_c04_nothing_changed_is_nothing_to_save() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let before = f.check_ins();
    f.refused("unchanged", "ocx_save", four("t"));
    f.write("a.txt", "a\n");
    f.refused("unchanged", "ocx_save", four("t"));
    assert_eq!(f.check_ins(), before);
}

#[test]
fn g07_a_touched_or_restored_file_keeps_its_pass() {
    let f = Fixture::tested("true", &[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "b");
    f.done("ocx_test", json!({}));
    f.write("a.txt", "b\n");
    edit(&f, "a.txt", "b", "c");
    edit(&f, "a.txt", "c", "b");
    f.done("ocx_save", four("t"));
}

#[test]
fn g02_a_test_that_changes_files_gives_no_pass() {
    let f = Fixture::tested("echo x >> a.txt", &[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "b");
    let answer = f.refused("untested", "ocx_test", json!({}));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("`a.txt`"), "{answer}");
    f.refused("untested", "ocx_save", four("t"));
}

#[test]
fn g03_weakened_tests_are_named_with_old_and_new_command() {
    let f = Fixture::tested("false", &[("a.txt", b"a\n")]);
    edit(&f, "ocx-tests.json", "\"false\"", "\"true\"");
    f.refused("untested", "ocx_save", four("t"));
    f.done("ocx_test", json!({}));
    let saved = f.done("ocx_save", four("t"));
    assert_eq!(saved["tests_changed"], json!([{"name": "unit", "old": "false", "new": "true"}]));
}

#[test]
fn g04_no_tests_is_said_and_broken_tests_are_refused() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "b");
    assert_eq!(f.done("ocx_save", four("t"))["tests"], "none declared");
    for broken in ["not json", r#"{"tests":[{"name":"a","command":""}]}"#] {
        f.write("ocx-tests.json", broken);
        f.refused("invalid", "ocx_save", four("t"));
        f.refused("invalid", "ocx_test", json!({}));
        assert!(f.done("ocx_context", json!({}))["tests"]["broken"].is_string());
    }
}

#[test]
fn p15_p16_settings_and_ignored_files_are_named() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    edit(&f, ".fossil-settings/ignore-glob", "", "*.key\n");
    f.write("new.key", "k");
    let saved = f.done("ocx_save", four("t"));
    assert_eq!(saved["settings_changed"], json!([".fossil-settings/ignore-glob"]));
    assert_eq!(saved["ignored"], json!(["new.key"]));
}

#[test]
fn c06_mode_and_empty_files_are_saved_and_empty_folders_not_claimed() {
    let f = Fixture::with(&[("a.sh", b"a\n")]);
    std::fs::set_permissions(f.path("a.sh"), std::fs::Permissions::from_mode(0o755)).expect("mode");
    f.write("e.txt", "");
    std::fs::create_dir(f.path("d")).expect("a folder");
    let saved = f.done("ocx_save", four("t"));
    let paths: Vec<&Value> =
        saved["changed"].as_array().expect("a list").iter().map(|c| &c["path"]).collect();
    assert_eq!(paths, ["a.sh", "e.txt"]);
}

#[test]
fn c05_a_file_replaced_by_a_folder_is_saved() {
    let f = Fixture::with(&[("x", b""), ("a.txt", b"a\n")]);
    std::fs::remove_file(f.path("x")).expect("gone");
    f.write("x/in", "in\n");
    let saved = f.done("ocx_save", four("t"));
    assert_eq!(f.done("ocx_read", json!({"path": "x/in", "checkin": saved["checkin"]}))["text"], "in\n");
    f.refused("not_found", "ocx_read", json!({"path": "x", "checkin": saved["checkin"]}));
}

#[test]
fn c11_the_comment_is_stored_as_it_was_sent() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "b");
    let saved = f.done(
        "ocx_save",
        json!({"title": "line1", "intent": "D 2020-01-01T00:00:00", "expression": "U boss\nU admin", "demonstrates": "\\s [trunk] <script>"}),
    );
    let read = f.done("ocx_read", json!({"checkin": saved["checkin"]}));
    assert_eq!(
        read["comment"],
        "line1\nIntent: D 2020-01-01T00:00:00\nExpression: U boss U admin\nDemonstrates: \\s [trunk] <script>"
    );
    assert_eq!(read["user"], "alice");
}

#[test]
fn c12_a_huge_part_is_refused_with_the_limit() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "b");
    let mut input = four("t");
    input["intent"] = "x".repeat(300_000).into();
    f.refused("too_large", "ocx_save", input.clone());
    input["intent"] = "x".repeat(2_500).into();
    let answer = f.refused("too_large", "ocx_save", input);
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("2000"), "{answer}");
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
fn c18_a_parent_moved_to_trunk_is_refused() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "b");
    let first = f.done("ocx_save", four("one"));
    f.fossil(&["amend", first["checkin"].as_str().expect("a hash"), "--branch", "trunk"]);
    edit(&f, "a.txt", "b", "c");
    let answer = f.refused("refused", "ocx_save", four("two"));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("now on `trunk`"), "{answer}");
}

#[test]
fn c13_a_parent_dated_later_than_now_is_refused_with_both_times() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("a.txt", "b\n");
    f.fossil(&["commit", "-m", "later", "--no-warnings", "--date-override", "2037-01-01"]);
    edit(&f, "a.txt", "b", "c");
    let answer = f.refused("refused", "ocx_save", four("t"));
    let stopped = answer["stopped"].as_str().unwrap_or_default();
    assert!(stopped.contains("2037-01-01T00:00:00Z") && stopped.contains("says 20"), "{stopped}");
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
fn x02_two_saves_at_once_make_one_check_in() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    edit(&f, "a.txt", "a", "b");
    let before = f.check_ins();
    let answers: Vec<Value> = std::thread::scope(|s| {
        let saves: Vec<_> = (0..2).map(|_| s.spawn(|| f.call("ocx_save", four("t")))).collect();
        saves.into_iter().map(|save| save.join().expect("no panic")).collect()
    });
    assert_eq!(f.check_ins(), before + 1, "{answers:?}");
    assert!(answers.iter().any(|a| a["ok"] == true && a["log"][1]["op"] == "check_in"), "{answers:?}");
}

#[test]
fn p05_p10_names_that_fossil_cannot_store_refuse_the_save_by_name() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("ok.txt", "ok\n");
    f.write("aux.txt", "x\n");
    let answer = f.refused("invalid", "ocx_save", four("t"));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("aux.txt"), "{answer}");
}

#[test]
fn x04_a_check_in_that_nobody_lived_to_note_is_found_and_not_made_again() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let branch = f.done("ocx_context", json!({}))["branch"].as_str().expect("a branch").to_owned();
    let parent = tip(&f, "trunk");
    let comment = "t\nIntent: why\nExpression: where\nDemonstrates: unit";
    let state = rusqlite::Connection::open(f.path(".fslckout")).expect("the checkout's database");
    ocx::run::Journal::new(&state)
        .begin(&ocx::run::Begun {
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
