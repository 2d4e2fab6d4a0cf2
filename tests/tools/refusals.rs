//! Each way in which a call can be refused: the code, the words, and a next step and next call that lead on.

use std::os::unix::fs::symlink;

use ocx::process::Supervisor;
use ocx::tool::{Input, Service, catalogue};
use serde_json::{Value, json};

use crate::support::served::Served;
use crate::support::{Fixture, OCX, four};

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old": old, "new": new})
}

fn ask(session: &Service, tool: &str, input: &Value) -> Value {
    crate::support::answer::call(session, tool, input.clone())
}

/// Checks a refusal: its code, that it names what is wrong, and that what it says to do next can be done.
#[track_caller]
fn refused(answer: &Value, code: &str, names: &[&str], helps: &str) {
    assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!(code)), "{answer:#}");
    let stopped = answer["stopped"].as_str().unwrap_or_default();
    assert!(!stopped.is_empty() && !stopped.contains('\n'), "{answer:#}");
    for name in names {
        assert!(stopped.contains(name), "{name}: {answer:#}");
    }
    let step = answer["next_step"].as_str().unwrap_or_default();
    assert!(step.ends_with('.') && step.contains(helps) && !step.contains('\n'), "{helps}: {answer:#}");
    if let Some(next) = answer.get("next_call") {
        let tool = catalogue::find(next["tool"].as_str().unwrap_or_default()).expect("a tool");
        Input::check(tool.declaration(), next["arguments"].clone()).expect("valid");
    }
}

/// Makes the next call of a refusal as it stands; it must not fail for the same reason.
#[track_caller]
fn led_on(session: &Service, answer: &Value) -> Value {
    let next = &answer["next_call"];
    let after = ask(session, next["tool"].as_str().expect("a next call"), &next["arguments"]);
    assert!(after["ok"] == true || after["stopped"] != answer["stopped"], "{answer:#}\n{after:#}");
    after
}

#[test]
fn an_unknown_tool_is_refused_with_the_names_there_are() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let answer = f.call("ocx_contxt", json!({}));
    refused(&answer, "not_found", &["`ocx_contxt`", "`ocx_context`"], "ocx_save");
    assert_eq!(led_on(f.session(), &answer)["ok"], true);
    refused(&f.call("bash", json!({})), "not_found", &["`bash`"], "ocx_edit");
}

#[test]
fn an_unknown_or_mistyped_field_is_refused_with_the_one_meant() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let answer = f.call("ocx_read", json!({"file_path": "a.txt"}));
    refused(&answer, "invalid", &["`file_path`", "did you mean `path`?"], "ocx_read takes");
    let answer = f.call("ocx_edit", json!({"path": "a.txt", "old_string": "a", "new_string": "b"}));
    refused(&answer, "invalid", &["`old`", "`new`"], "old, new");
    let answer = f.call("ocx_save", json!({"title": ["x"], "intent": "i", "expression": "e"}));
    refused(&answer, "invalid", &["`title` must be a string", "`demonstrates` is missing"], "ocx_save takes");
    let answer = f.call("ocx_read", json!(["a.txt"]));
    refused(&answer, "invalid", &["must be an object"], "ocx_read takes");
    let answer = f.call("ocx_read", json!({"path": "a.txt", "dry_run": "yes"}));
    refused(&answer, "invalid", &["`dry_run` must be true or false"], "dry_run (optional)");
}

#[test]
fn a_next_call_is_none_that_is_refused_as_well() {
    let f = Fixture::with(&[("src/main.c", b"a\n"), ("a.txt", b"a\n")]);
    for (tool, input, next) in [
        ("ocx_read", json!({"x": 1}), None),
        ("ocx_read", json!({"dry_run": 0}), None),
        ("ocx_read", json!("{}"), None),
        ("ocx_read", json!({"file_path": "/src/main.c"}), Some(json!({"path": "src/main.c"}))),
        ("ocx_read", json!({"file_path": "/no/such.c"}), None),
        ("ocx_raed", json!({}), None),
        ("ocx_edit", edit("a.txt", "a", "a\0"), None),
        ("ocx_edit", edit("./a.txt", "a", "b\0"), Some(edit("a.txt", "a", "b"))),
        ("ocx_wiki_edit", json!({"page": "P", "old": "a", "new": "a\0"}), None),
        ("ocx_wiki_read", json!({"version": "0", "dry_run": 0}), None),
        ("ocx_unversioned_put", json!({"name": "a", "dry_run": 0}), None),
        ("ocx_sync", json!({"branch": "agent/a-0a1b2c3d", "dry_run": 0}), None),
        ("ocx_create", json!({"instructions": " ", "dry_run": 0}), None),
    ] {
        let answer = f.call(tool, input.clone());
        assert_eq!(answer["ok"], false, "{answer:#}");
        assert_eq!(
            answer.get("next_call").map(|call| &call["arguments"]),
            next.as_ref(),
            "{input}: {answer:#}"
        );
        if next.is_some() {
            led_on(f.session(), &answer);
        }
        let step = answer["next_step"].as_str().unwrap_or_default();
        assert!(next.is_some() || !step.contains("next_call"), "{answer:#}");
    }
}

#[test]
fn a_path_that_leads_out_or_is_reserved_is_refused() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    for (path, why) in [("../x", ".."), ("/etc/passwd", "absolute"), ("d/.fslckout", "reserved")] {
        for (tool, input) in [("ocx_read", json!({"path": path})), ("ocx_edit", edit(path, "", "x"))] {
            refused(&f.call(tool, input), "invalid", &[why], "");
        }
    }
    symlink("/etc", f.path("etc")).expect("a link");
    refused(&f.call("ocx_read", json!({"path": "etc/hostname"})), "denied", &["etc"], "");
    refused(&f.call("ocx_edit", edit("etc/ocx-new", "", "x")), "denied", &["etc"], "");
    refused(&f.call("ocx_edit", edit("con.txt", "", "x")), "invalid", &["Windows"], "");
}

#[test]
fn a_binary_and_a_huge_file_are_refused_with_their_sizes() {
    let f = Fixture::with(&[("b.bin", b"a\0b")]);
    let big = std::fs::File::create(f.path("big.txt")).expect("a file");
    big.set_len((64 << 20) + 1).expect("sparse");
    for (path, code, size) in [("b.bin", "invalid", "3 bytes"), ("big.txt", "too_large", "67108865")] {
        for (tool, input) in [("ocx_read", json!({"path": path})), ("ocx_edit", edit(path, "a", "x"))] {
            refused(&f.call(tool, input), code, &[path, size], "");
        }
    }
}

#[test]
fn a_huge_argument_is_refused_with_the_limit() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let huge = "x".repeat((1 << 20) + 1);
    refused(&f.call("ocx_edit", edit("a.txt", "a", &huge)), "too_large", &["`new`", "1048576"], "");
    refused(&f.call("ocx_edit", edit("a.txt", &huge, "")), "too_large", &["`old`", "1048576"], "");
    refused(&f.call("ocx_find", json!({"text": huge})), "too_large", &["`text`", "10000"], "");
    refused(&f.call("ocx_read", json!({"path": huge})), "too_large", &["`path`", "4096"], "");
    assert_eq!(f.bytes("a.txt"), b"a\n");
}

#[test]
fn without_a_checkout_each_tool_says_how_to_open_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let session = Service::with_supervisor(folder.path(), Supervisor::at(OCX));
    for (tool, input) in each_tool() {
        refused(&ask(&session, tool, &input), "not_found", &["no Fossil checkout"], "ocx open");
    }
}

fn each_tool() -> [(&'static str, Value); 6] {
    [
        ("ocx_context", json!({})),
        ("ocx_find", json!({"text": "a"})),
        ("ocx_read", json!({"path": "a.txt"})),
        ("ocx_edit", edit("a.txt", "a", "b")),
        ("ocx_test", json!({})),
        ("ocx_save", four("t")),
    ]
}

#[test]
fn a_repository_that_was_removed_or_moved_is_named() {
    for opened_before in [false, true] {
        let f = Fixture::with(&[("a.txt", b"a\n")]);
        let session = Service::with_supervisor(f.root(), Supervisor::at(OCX));
        if opened_before {
            assert_eq!(ask(&session, "ocx_context", &json!({}))["ok"], true);
        }
        std::fs::rename(f.repository(), f.folder().join("moved.fossil")).expect("moved");
        for (tool, input) in each_tool() {
            let answer = ask(&session, tool, &input);
            refused(&answer, "not_found", &["r.fossil"], "");
            assert!(!f.repository().exists(), "{tool} made a repository");
        }
        assert_eq!(f.bytes("a.txt"), b"a\n");
        std::fs::rename(f.folder().join("moved.fossil"), f.repository()).expect("moved back");
        assert_eq!(ask(&session, "ocx_context", &json!({}))["ok"], true);
    }
}

#[test]
fn missing_and_broken_tests_are_refused_with_what_to_do() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    refused(&f.call("ocx_test", json!({})), "not_found", &["ocx-tests.json"], "save");
    let answer = f.call("ocx_test", json!({"name": "unit"}));
    refused(&answer, "not_found", &["`unit`"], "ocx-tests.json");
    f.write("ocx-tests.json", r#"{"tests":[{"name":"unit"}]}"#);
    for (tool, input) in [("ocx_test", json!({})), ("ocx_save", four("t"))] {
        refused(&f.call(tool, input), "invalid", &["ocx-tests.json", "command"], r#"{"tests":["#);
    }
    f.write("ocx-tests.json", r#"{"tests":[{"name":"unit","command":"true"}]}"#);
    refused(&f.call("ocx_test", json!({"name": "unti"})), "not_found", &["`unti`"], "`unit`");
    let answer = f.call("ocx_save", four("t"));
    refused(&answer, "untested", &["`unit`"], "ocx_test");
    assert_eq!(led_on(f.session(), &answer)["ok"], true);
}

#[test]
fn a_log_that_is_not_there_is_refused() {
    let f = Fixture::tested("echo one", &[]);
    refused(&f.call("ocx_test", json!({"log_from": 1})), "invalid", &["`name`"], "");
    refused(&f.call("ocx_test", json!({"name": "unit", "log_from": 1})), "not_found", &["`unit`"], "Run");
    f.done("ocx_test", json!({}));
    refused(&f.call("ocx_test", json!({"name": "unit", "log_from": 9})), "invalid", &["lines 1 to 1"], "");
}

#[test]
fn a_server_that_is_down_leaves_the_check_in_and_says_to_save_again() {
    let mut s = Served::new();
    s.stop();
    s.edit("a", "b");
    let answer = s.call("ocx_save", four("t"));
    refused(&answer, "not_pushed", &["committed but not pushed", "127.0.0.1"], "same call again");
    let again = led_on_twice(&s, &answer);
    assert_eq!(again["result"]["checkin"], answer["result"]["checkin"]);
    s.start();
    assert_eq!(led_on(&s.session, &answer)["result"]["pushed"], true);
}

/// The same call where the reason lasts: it fails in the same way and makes no second check-in.
fn led_on_twice(s: &Served, answer: &Value) -> Value {
    let next = &answer["next_call"];
    let again = s.call(next["tool"].as_str().expect("a tool"), next["arguments"].clone());
    refused(&again, "not_pushed", &["committed but not pushed"], "same call again");
    again
}

#[test]
fn a_wrong_password_is_named_and_shown_nowhere() {
    let s = Served::new();
    s.server_side.fossil(&["user", "password", "agent", "another"]);
    s.edit("a", "b");
    let answer = s.call("ocx_save", four("t"));
    refused(&answer, "not_pushed", &["committed but not pushed"], "same call again");
    assert_eq!(answer["result"]["push"]["outcome"], "login_failed", "{answer:#}");
    assert!(!answer.to_string().contains("s3cret"));
}

#[test]
fn a_password_that_is_not_kept_comes_from_the_environment() {
    let s = Served::new();
    let f = &s.server_side;
    let url = format!("http://agent@127.0.0.1:{}/", s.port);
    let ocx = |folder: &std::path::Path, password: Option<&str>, args: &[&str]| {
        let mut command = f.command(OCX, folder);
        command.args(args).env_remove("OCX_PASSWORD");
        if let Some(password) = password {
            command.env("OCX_PASSWORD", password);
        }
        command.output().expect("ocx runs")
    };
    let cloned = ocx(f.folder(), Some("s3cret"), &["clone", &url, "kept-not.fossil"]);
    assert!(cloned.status.success(), "{}", String::from_utf8_lossy(&cloned.stderr));
    f.ocx(f.folder(), &["open", "kept-not.fossil", "there", "--user", "agent"]);
    let there = f.folder().join("there");
    f.ocx(&there, &["edit", "a.txt", "--old", "a", "--new", "b"]);
    let input = four("t").to_string();
    let save = |password| {
        let output = ocx(&there, password, &["call", "ocx_save", &input]);
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("s3cret"), "{text}");
        serde_json::from_slice::<Value>(&output.stdout).expect("an answer")
    };
    let without = save(None);
    assert_eq!((&without["code"], &without["result"]["committed"]), (&json!("not_pushed"), &json!(true)));
    assert_eq!(save(Some("s3cret"))["result"]["pushed"], true);
    let bytes = std::fs::read(f.folder().join("kept-not.fossil")).expect("readable");
    assert!(memchr::memmem::find(&bytes, b"s3cret").is_none(), "the password is stored nowhere");
}

#[test]
fn a_local_user_without_the_capability_is_refused_before_anything_changes() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.fossil(&["user", "new", "rita", "rita", "pw"]);
    f.fossil(&["user", "default", "rita"]);
    f.fossil(&["user", "capabilities", "rita", "o"]);
    for (tool, input) in each_tool().into_iter().skip(3) {
        refused(&f.call(tool, input), "denied", &["`rita`", "`i`", tool], "capabilities");
    }
    assert_eq!(f.call("ocx_read", json!({"path": "a.txt"}))["ok"], true);
    // Whoever has an account may do what nobody and anybody may.
    for name in ["nobody", "anonymous", "rita"] {
        f.fossil(&["user", "capabilities", name, "h"]);
    }
    for (tool, input) in each_tool().into_iter().take(3) {
        refused(&f.call(tool, input), "denied", &["`rita`", "`o`", tool], "capabilities");
    }
    assert_eq!(f.bytes("a.txt"), b"a\n");
}

#[test]
fn a_login_that_may_not_write_on_the_server_is_named() {
    let s = Served::new();
    s.server_side.fossil(&["user", "capabilities", "agent", "go"]);
    s.edit("a", "b");
    let answer = s.call("ocx_save", four("t"));
    refused(&answer, "not_pushed", &["committed but not pushed"], "same call again");
    assert_eq!(answer["result"]["push"]["outcome"], "denied", "{answer:#}");
    assert!(s.on_server().is_empty());
}

#[test]
fn a_fork_and_a_closed_branch_are_refused_and_the_files_stay() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("a.txt", "b\n");
    let first = f.done("ocx_save", four("one"))["checkin"].as_str().expect("a hash").to_owned();
    f.write("a.txt", "c\n");
    let second = f.done("ocx_save", four("two"))["checkin"].as_str().expect("a hash").to_owned();
    f.fossil(&["update", &first]);
    f.write("b.txt", "mine\n");
    refused(&f.call("ocx_save", four("three")), "would_fork", &["newer check-in"], "ocx update");
    f.ocx(&f.root(), &["update"]);
    f.fossil(&["tag", "add", "closed", &second, "--raw"]);
    refused(&f.call("ocx_save", four("three")), "closed", &["is closed"], "reopened");
    assert_eq!((f.bytes("a.txt"), f.bytes("b.txt")), (b"c\n".to_vec(), b"mine\n".to_vec()));
}

#[test]
fn a_lock_held_elsewhere_says_to_call_again() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("a.txt", "b\n");
    let lock = rusqlite::Connection::open(f.repository()).expect("a repository");
    lock.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    refused(&f.call("ocx_save", four("t")), "busy", &[], "again");
    drop(lock);
    f.done("ocx_save", four("t"));
}

#[test]
fn a_lock_on_the_checkout_says_to_call_again() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("a.txt", "b\n");
    let lock = rusqlite::Connection::open(f.path(".fslckout")).expect("a database");
    lock.execute_batch("BEGIN EXCLUSIVE").expect("the lock");
    refused(&f.call("ocx_save", four("t")), "busy", &[], "again");
    drop(lock);
    f.done("ocx_save", four("t"));
}

#[test]
fn an_edit_that_misses_leads_to_the_lines_to_read() {
    let f = Fixture::with(&[("a.txt", b"one\ntwo\ntwo\n")]);
    for (old, code) in [("twoo", "not_found"), ("two", "ambiguous")] {
        let answer = f.call("ocx_edit", edit("a.txt", old, "x"));
        refused(&answer, code, &["a.txt"], "");
        assert_eq!(led_on(f.session(), &answer)["ok"], true);
    }
    let answer = f.call("ocx_read", json!({"path": "a.txt", "from": 100}));
    refused(&answer, "invalid", &["there are 3 lines"], "");
    assert_eq!(led_on(f.session(), &answer)["result"]["lines"], 3);
    let answer = f.call("ocx_read", json!({"path": "src/a.txt"}));
    refused(&answer, "not_found", &["src/a.txt"], "`a.txt`");
    assert_eq!(led_on(f.session(), &answer)["ok"], true);
}

#[test]
fn an_objective_is_told_by_the_context() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    assert_eq!(f.done("ocx_context", json!({}))["objective"], Value::Null);
    f.ocx(f.folder(), &["open", "r.fossil", "task", "--user", "alice", "--objective", "mend the clock"]);
    let told = f.ocx(&f.folder().join("task"), &["call", "ocx_context"]);
    assert!(told.contains(r#""objective":"mend the clock""#), "{told}");
}
