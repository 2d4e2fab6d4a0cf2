//! Check-ins: what counts as a change, where it may land, and that nothing is undone without a word.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use serde_json::{Value, json};

use super::{committed, edit, manifest, stopped};
use crate::support::served::Served;
use crate::support::{Fixture, four};

fn changed(saved: &Value) -> Vec<(String, String)> {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    saved["changed"].as_array().expect("a list").iter().map(|c| (text(&c["path"]), text(&c["how"]))).collect()
}

fn tip(f: &Fixture, branch: &str) -> Value {
    f.done("ocx_read", json!({"checkin": branch}))["checkin"].clone()
}

#[test]
fn c01_nothing_changed_is_nothing_to_save() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let before = (f.check_ins(), tip(&f, "trunk"));
    let answer = f.refused("unchanged", "ocx_save", four("t"));
    assert_eq!(answer["next_call"], json!({"tool": "ocx_context", "arguments": {}}));
    assert_eq!((f.check_ins(), tip(&f, "trunk")), before);
}

#[test]
fn c03_an_edit_in_the_second_of_opening_is_seen() {
    let f = Fixture::with(&[("a.txt", b"same size 1\n")]);
    let co = f.folder().join("fresh");
    f.ocx(f.folder(), &["open", "r.fossil", "fresh", "--user", "alice"]);
    std::fs::write(co.join("a.txt"), "same size 2\n").expect("written");
    let input = four("t").to_string();
    let answer: Value = serde_json::from_str(&f.ocx(&co, &["call", "ocx_save", &input])).expect("JSON");
    assert_eq!(committed(&f, &answer["result"]["checkin"], "a.txt"), b"same size 2\n");
}

#[test]
fn c04_a_touch_is_no_change_and_undoes_no_pass() {
    let f = Fixture::tested("true", &[("base.txt", b"a\n")]);
    f.write("base.txt", "a\n");
    f.refused("unchanged", "ocx_save", four("t"));
    f.done("ocx_edit", edit("base.txt", "a", "b"));
    f.done("ocx_test", json!({}));
    f.write("base.txt", "b\n");
    f.done("ocx_save", four("t"));
    f.write("base.txt", "b\n");
    f.refused("unchanged", "ocx_save", four("t"));
}

#[test]
fn c05_a_file_replaced_by_a_folder_or_a_link_wedges_no_save() {
    let f = Fixture::with(&[("empty.txt", b""), ("other.txt", b"x\n")]);
    std::fs::remove_file(f.path("empty.txt")).expect("gone");
    f.write("empty.txt/in", "in\n");
    let saved = f.done("ocx_save", four("t"));
    let pair = |path: &str, how: &str| (path.to_owned(), how.to_owned());
    assert_eq!(changed(&saved), [pair("empty.txt", "deleted"), pair("empty.txt/in", "added")]);
    std::fs::remove_file(f.path("other.txt")).expect("gone");
    symlink("empty.txt/in", f.path("other.txt")).expect("a link");
    let answer = f.refused("invalid", "ocx_save", four("t"));
    assert!(stopped(&answer).contains("`other.txt`") && stopped(&answer).contains("link"), "{answer}");
    std::fs::remove_file(f.path("other.txt")).expect("gone");
    assert_eq!(changed(&f.done("ocx_save", four("t"))), [pair("other.txt", "deleted")]);
}

#[test]
fn c06_modes_and_empty_files_count_and_empty_folders_do_not() {
    let f = Fixture::tested("true", &[("base.txt", b"a\n")]);
    f.write("e.txt", "");
    std::fs::create_dir(f.path("d")).expect("a folder");
    f.done("ocx_test", json!({}));
    std::fs::set_permissions(f.path("base.txt"), std::fs::Permissions::from_mode(0o755)).expect("mode");
    f.refused("untested", "ocx_save", four("t"));
    f.done("ocx_test", json!({}));
    let saved = f.done("ocx_save", four("t"));
    let pair = |path: &str, how: &str| (path.to_owned(), how.to_owned());
    assert_eq!(changed(&saved), [pair("base.txt", "mode changed"), pair("e.txt", "added")]);
    let manifest = manifest(&f, &saved["checkin"]);
    assert!(manifest.lines().any(|l| l.starts_with("F base.txt ") && l.ends_with(" x")), "{manifest}");
    assert_eq!(committed(&f, &saved["checkin"], "e.txt"), b"");
}

#[test]
fn c08_a_branch_closed_on_the_server_takes_no_more() {
    let s = Served::new();
    s.edit("a", "b");
    let first = s.call("ocx_save", four("one"));
    let hash = first["result"]["checkin"].as_str().expect("a hash");
    s.server_side.fossil(&["tag", "add", "closed", hash, "--raw"]);
    s.edit("b", "c");
    let answer = s.call("ocx_save", four("two"));
    assert_eq!(answer["code"], "closed", "{answer}");
    assert!(stopped(&answer).contains("is closed"), "{answer}");
    assert_eq!(s.on_server().len(), 1);
    assert_eq!(s.call("ocx_read", json!({"path": "a.txt"}))["result"]["text"], "c\n");
}

#[test]
fn c10_a_working_branch_that_is_there_already_is_not_taken_over() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let name = f.done("ocx_context", json!({}))["branch"].as_str().expect("a name").to_owned();
    f.fossil(&["branch", "new", &name, "trunk", "--user-override", "alice"]);
    let taken = tip(&f, &name);
    f.done("ocx_edit", edit("a.txt", "a", "b"));
    let saved = f.done("ocx_save", four("t"));
    assert_ne!(saved["branch"], json!(name));
    assert_eq!(tip(&f, &name), taken);
}

#[test]
fn c11_a_comment_is_four_lines_whatever_it_looks_like() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.done("ocx_edit", edit("a.txt", "a", "b"));
    let saved = f.done(
        "ocx_save",
        json!({"title": "line1", "intent": "D 2020-01-01T00:00:00", "expression": "U boss\nF x y",
            "demonstrates": "\\s [trunk] <script>"}),
    );
    let sent = "line1\nIntent: D 2020-01-01T00:00:00\nExpression: U boss F x y\n\
        Demonstrates: \\s [trunk] <script>";
    let read = f.done("ocx_read", json!({"checkin": saved["checkin"]}));
    assert_eq!((&read["comment"], &read["user"]), (&json!(sent), &json!("alice")));
    assert!(!read["time"].as_str().unwrap_or_default().starts_with("2020"), "{read}");
    let cards = manifest(&f, &saved["checkin"]);
    assert_eq!(cards.lines().filter(|l| l.starts_with("U ")).collect::<Vec<_>>(), ["U alice"]);
    let mut three = four("t");
    three.as_object_mut().expect("an object").remove("demonstrates");
    let answer = f.refused("invalid", "ocx_save", three);
    assert!(stopped(&answer).contains("`demonstrates` is missing"), "{answer}");
}

#[test]
fn c12_a_huge_comment_is_refused_with_the_limit() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.done("ocx_edit", edit("a.txt", "a", "b"));
    let count = f.check_ins();
    for (bytes, limit) in [(300_000, "4000"), (2_500, "2000")] {
        let mut save = four("t");
        save["expression"] = "x".repeat(bytes).into();
        let answer = f.refused("too_large", "ocx_save", save);
        assert!(stopped(&answer).contains(limit) && stopped(&answer).contains("expression"), "{answer}");
    }
    assert_eq!(f.check_ins(), count);
}

#[test]
fn c13_a_clock_behind_the_parent_saves_nothing_until_it_has_passed_it() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let db = rusqlite::Connection::open_in_memory().expect("a database");
    let sql = "SELECT strftime('%Y-%m-%dT%H:%M:%S', 'now', '+6 seconds')";
    let soon: String = db.query_row(sql, [], |r| r.get(0)).expect("a time");
    f.write("a.txt", "b\n");
    f.fossil(&["commit", "-m", "soon", "--no-warnings", "--date-override", &soon]);
    f.done("ocx_edit", edit("a.txt", "b", "c"));
    let count = f.check_ins();
    let answer = f.refused("refused", "ocx_save", four("t"));
    assert!(stopped(&answer).contains(&soon) && stopped(&answer).contains("clock here says"), "{answer}");
    assert_eq!(f.check_ins(), count);
    std::thread::sleep(Duration::from_secs(7));
    f.done("ocx_save", four("t"));
}

#[test]
fn c16_a_save_that_failed_for_a_lock_is_made_once_with_its_whole_comment() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.done("ocx_edit", edit("a.txt", "a", "b"));
    let count = f.check_ins();
    let lock = rusqlite::Connection::open(f.repository()).expect("a repository");
    lock.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    f.refused("busy", "ocx_save", four("t"));
    lock.execute_batch("ROLLBACK").expect("let go");
    assert_eq!(f.check_ins(), count);
    let saved = f.done("ocx_save", four("t"));
    assert_eq!(f.check_ins(), count + 1);
    let comment = f.done("ocx_read", json!({"checkin": saved["checkin"]}))["comment"].clone();
    assert_eq!(comment, "t\nIntent: why\nExpression: where\nDemonstrates: unit");
}

#[test]
fn x03_a_lock_held_elsewhere_refuses_the_save_and_holds_up_no_reader() {
    let f = Fixture::with(&[("a.txt", b"needle\n")]);
    f.done("ocx_edit", edit("a.txt", "needle", "thread"));
    let lock = rusqlite::Connection::open(f.repository()).expect("a repository");
    lock.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    std::thread::scope(|s| {
        let save = s.spawn(|| f.refused("busy", "ocx_save", four("t")));
        std::thread::sleep(Duration::from_millis(300));
        f.done("ocx_read", json!({"path": "a.txt"}));
        assert_eq!(f.done("ocx_find", json!({"text": "thread"}))["of"], 1);
        f.done("ocx_context", json!({}));
        let answer = save.join().expect("no panic");
        assert!(answer["next_step"].as_str().unwrap_or_default().contains("again"), "{answer}");
    });
    lock.execute_batch("ROLLBACK").expect("let go");
    f.done("ocx_save", four("t"));
}

#[test]
fn c17_a_rename_stays_over_an_update_to_a_new_parent() {
    let f = Fixture::with(&[("a.txt", b"1\n2\n3\n4\n5\n"), ("c.txt", b"c\n")]);
    f.done("ocx_edit", edit("c.txt", "c", "d"));
    let first = f.done("ocx_save", four("one"));
    let hash = first["checkin"].as_str().expect("a hash");
    f.ocx(f.folder(), &["open", "r.fossil", "other", hash, "--user", "alice"]);
    f.ocx(&f.folder().join("other"), &["edit", "c.txt", "--old", "d", "--new", "e"]);
    let input = four("two").to_string();
    f.ocx(&f.folder().join("other"), &["call", "ocx_save", &input]);
    std::fs::rename(f.path("a.txt"), f.path("b.txt")).expect("renamed");
    f.refused("would_fork", "ocx_save", four("three"));
    f.ocx(&f.root(), &["update"]);
    let saved = f.done("ocx_save", four("three"));
    let manifest = manifest(&f, &saved["checkin"]);
    assert!(manifest.contains("\nF b.txt ") && !manifest.contains("\nF a.txt "), "{manifest}");
    assert_eq!(committed(&f, &saved["checkin"], "c.txt"), b"e\n");
}

#[test]
fn c18_a_parent_moved_to_trunk_takes_no_save() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.done("ocx_edit", edit("a.txt", "a", "b"));
    let first = f.done("ocx_save", four("one"));
    f.fossil(&["amend", first["checkin"].as_str().expect("a hash"), "--branch", "trunk"]);
    f.done("ocx_edit", edit("a.txt", "b", "c"));
    let before = (f.check_ins(), tip(&f, "trunk"));
    let answer = f.refused("refused", "ocx_save", four("two"));
    assert!(stopped(&answer).contains("now on `trunk`"), "{answer}");
    assert_eq!((f.check_ins(), tip(&f, "trunk"), f.bytes("a.txt")), (before.0, before.1, b"c\n".to_vec()));
}

#[test]
fn b16_a_name_that_names_no_check_in_is_refused() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let none = "0123456789abcdef0123456789abcdef01234567";
    let file = f.done("ocx_read", json!({"path": "a.txt"}))["file_hash"].clone();
    for name in ["zzzz", none, "trunkk"] {
        let answer = f.refused("not_found", "ocx_read", json!({"checkin": name}));
        assert!(stopped(&answer).contains(name), "{answer}");
    }
    assert_eq!(f.call("ocx_read", json!({"checkin": file}))["ok"], false, "a file is no check-in");
}
