//! What a save takes: what is left out is named with its reason, and what is asked for comes along.

use serde_json::{Value, json};

use super::{edit, stopped};
use crate::support::{Fixture, four};

/// A save that takes these along.
fn with(include: &[&str]) -> Value {
    let mut input = four("t");
    input["include"] = json!(include);
    input
}

fn paths(saved: &Value) -> Vec<&str> {
    saved["changed"].as_array().expect("a list").iter().filter_map(|c| c["path"].as_str()).collect()
}

/// What an answer says is left out: path and reason.
fn left_out(result: &Value) -> Vec<(&str, &str)> {
    let all = result["left_out"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(|out| Some((out["path"].as_str()?, out["why"].as_str()?))).collect()
}

/// A checkout on trunk with a branch `side`, both of which have changed line 2 of `a.txt`.
fn forked() -> Fixture {
    let f = Fixture::with(&[("a.txt", b"1\n2\n3\n"), ("b.txt", b"b\n")]);
    f.write("a.txt", "1\ntheirs\n3\n");
    f.write("new.txt", "new\n");
    f.fossil(&["add", "new.txt"]);
    f.fossil(&["commit", "-m", "side", "--branch", "side", "--no-warnings"]);
    f.fossil(&["update", "trunk"]);
    f.write("a.txt", "1\nours\n3\n");
    f
}

#[test]
fn g09_conflict_marks_refuse_a_save_and_name_file_and_lines() {
    let f = forked();
    f.fossil(&["commit", "-m", "ours", "--no-warnings"]);
    f.fossil(&["merge", "side"]);
    let text = String::from_utf8(f.bytes("a.txt")).expect("text");
    let marked = |line: &&str| {
        ["<<<<<<< ", "||||||| ", "======= ", ">>>>>>> "].iter().any(|mark| line.starts_with(mark))
    };
    let numbers: Vec<String> =
        (1..).zip(text.lines()).filter(|(_, line)| marked(line)).map(|(n, _)| n.to_string()).collect();
    assert!(numbers.len() >= 4, "{text}");
    let before = f.check_ins();
    for tool in ["ocx_save", "ocx_commit_and_sync"] {
        let answer = f.refused("invalid", tool, four("t"));
        let named = format!("`a.txt` (lines {})", numbers.join(", "));
        assert!(stopped(&answer).contains(&named) && !stopped(&answer).contains("new.txt"), "{answer}");
        let read = json!({"path": "a.txt", "from": numbers[0].parse::<u64>().expect("a number")});
        assert_eq!(answer["next_call"], json!({"tool": "ocx_read", "arguments": read}));
    }
    let theirs = f.plain(&f.root()).args(["commit", "-m", "x", "--no-warnings"]).output().expect("it runs");
    assert!(!theirs.status.success(), "plain Fossil refuses too");
    assert_eq!(f.check_ins(), before);
    f.write("a.txt", "1\nboth\n3\n");
    let saved = f.done("ocx_save", four("t"));
    assert_eq!(paths(&saved), ["a.txt", "new.txt"]);
}

#[test]
fn g09_an_update_that_met_unsaved_edits_is_as_unfinished() {
    let f = forked();
    f.fossil(&["update", "side"]);
    let answer = f.refused("invalid", "ocx_save", four("t"));
    assert!(stopped(&answer).contains("`a.txt` (lines "), "{answer}");
}

#[test]
fn g09_a_file_that_is_meant_to_hold_marks_can_be_saved() {
    let marked = "<<<<<<< BEGIN MERGE CONFLICT: local copy shown first <<<<<<<<<<<<\n";
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("fixture.txt", marked);
    f.fossil(&["add", "fixture.txt"]);
    f.fossil(&["commit", "-m", "fixture", "--no-warnings", "--allow-conflict"]);
    f.write("fixture.txt", format!("{marked}more\n"));
    f.write("new.txt", marked);
    f.write("binary", [marked.as_bytes(), &[0]].concat());
    assert_eq!(paths(&f.done("ocx_save", four("t"))), ["binary", "fixture.txt", "new.txt"]);
    f.write("fixture.txt", marked.repeat(2));
    let answer = f.refused("invalid", "ocx_save", four("t"));
    assert!(stopped(&answer).contains("`fixture.txt` (lines 1, 2)"), "{answer}");
}

#[test]
fn g10_what_a_test_makes_is_left_out_and_named() {
    let f = Fixture::tested(
        "mkdir -p target && echo x >> target/out",
        &[("a.txt", b"a\n"), (".gitignore", b"/target\n")],
    );
    f.write("target/cache", "made before");
    f.done("ocx_edit", edit("a.txt", "a", "b"));
    f.done("ocx_test", json!({}));
    let saved = f.done("ocx_save", four("t"));
    assert_eq!(paths(&saved), ["a.txt"]);
    assert_eq!(left_out(&saved), [("target/", ".gitignore")]);
    assert!(saved["take_along"].as_str().is_some_and(|words| words.contains("`include`")), "{saved}");
}

#[test]
fn g11_secrets_data_of_git_and_editor_backups_are_left_out_and_a_tool_made_dot_file_is_saved() {
    let f = Fixture::with(&[("b.txt", b"b\n")]);
    for path in [".env", ".git/HEAD", ".a.txt.swp", "a.txt"] {
        f.write(path, "x\n");
    }
    f.done("ocx_edit", edit(".ci/run", "", "#!/bin/sh\n"));
    let out = [(".a.txt.swp", "a dot-file"), (".env", "a dot-file"), (".git/", "data of git")];
    for tool in ["ocx_context", "ocx_status"] {
        assert_eq!(left_out(&f.done(tool, json!({}))), out, "{tool}");
    }
    let found = f.done("ocx_find", json!({"text": "x"}));
    let found: Vec<_> =
        found["matches"].as_array().expect("a list").iter().map(|m| m["path"].clone()).collect();
    assert_eq!(found, ["a.txt"]);
    assert_eq!(f.done("ocx_find", json!({"text": "/bin/sh"}))["of"], 1);
    let saved = f.done("ocx_save", four("t"));
    assert_eq!((paths(&saved), left_out(&saved)), (vec![".ci/run", "a.txt"], out.to_vec()));
    assert_eq!(f.fossil(&["changes"]), "");
    let answer = f.refused("unchanged", "ocx_save", four("t"));
    assert!(stopped(&answer).contains("left out is `.a.txt.swp` (a dot-file) and 2 more"), "{answer}");
}

#[test]
fn g11_a_file_that_somebody_else_made_is_not_taken_because_a_tool_edits_it() {
    let f = Fixture::with(&[("b.txt", b"b\n")]);
    f.write(".env", "SECRET=1\n");
    let done = f.done("ocx_edit", edit(".env", "1", "2"));
    assert!(done["note"].as_str().is_some_and(|note| note.contains("(a dot-file)")), "{done}");
    f.refused("unchanged", "ocx_save", four("t"));
}

#[test]
fn p16_a_file_made_where_a_rule_leaves_it_out_says_so() {
    let f = Fixture::with(&[("b.txt", b"b\n"), (".gitignore", b"*.key\n")]);
    for (path, why) in [("a.key", ".gitignore"), (".ci/a.key", ".gitignore"), (".git/hooks/x", "data of git")]
    {
        let dry = json!({"path": path, "old": "", "new": "x\n", "dry_run": true});
        for input in [dry, edit(path, "", "x\n")] {
            let done = f.done("ocx_edit", input);
            let note = done["note"].as_str().unwrap_or_default();
            assert!(note.contains(&format!("leaves this file out ({why})")), "{path}: {done}");
        }
    }
    f.refused("unchanged", "ocx_save", four("t"));
    assert_eq!(paths(&f.done("ocx_save", with(&["a.key"]))), ["a.key"]);
}

#[test]
fn g10_what_is_included_is_tested_and_then_saved() {
    let f = Fixture::tested("test -e b.txt", &[("b.txt", b"b\n")]);
    f.write(".env", "x\n");
    f.write(".ci/run", "x\n");
    f.write(".ci/deep/run", "x\n");
    let before = f.everything();
    let mut dry = with(&[".ci/"]);
    dry["dry_run"] = true.into();
    for tool in ["ocx_save", "ocx_commit_and_sync"] {
        let answer = f.call(tool, dry.clone());
        assert_eq!(answer["log"][1], json!({"op": "include", "changes": true}), "{answer}");
        assert_eq!(answer["result"]["included"], json!([".ci/deep/run", ".ci/run"]), "{answer}");
        assert_eq!(answer["result"]["would_commit"], false);
    }
    assert_eq!(f.everything(), before);
    let answer = f.refused("untested", "ocx_save", with(&[".ci/"]));
    assert_eq!(answer["next_call"], json!({"tool": "ocx_test", "arguments": {"name": "unit"}}));
    assert_eq!(answer["result"]["included"], json!([".ci/deep/run", ".ci/run"]));
    // The mark stays, so that the tests see what will be saved.
    f.done("ocx_test", json!({}));
    let saved = f.done("ocx_save", four("t"));
    assert_eq!(
        (paths(&saved), left_out(&saved)),
        (vec![".ci/deep/run", ".ci/run"], vec![(".env", "a dot-file")])
    );
    assert_eq!(f.done("ocx_context", json!({}))["changed"], json!([]));
}

#[test]
fn g10_without_tests_what_is_included_is_saved_at_once() {
    let f = Fixture::with(&[("b.txt", b"b\n")]);
    f.write(".env", "x\n");
    f.write("c.txt", "c\n");
    let mut dry = with(&[".env", "c.txt"]);
    dry["dry_run"] = true.into();
    let preview = f.done("ocx_save", dry);
    assert_eq!((paths(&preview), &preview["included"]), (vec![".env", "c.txt"], &json!([".env"])));
    assert_eq!(left_out(&f.done("ocx_context", json!({}))), [(".env", "a dot-file")]);
    let saved = f.ocx(
        &f.root(),
        &[
            "save",
            "--json",
            "--title",
            "t",
            "--intent",
            "i",
            "--expression",
            "e",
            "--demonstrates",
            "d",
            "--include",
            ".env",
            "--include",
            "c.txt",
        ],
    );
    let saved: Value = serde_json::from_str(&saved).expect("JSON");
    assert_eq!(
        (paths(&saved["result"]), &saved["result"]["included"]),
        (vec![".env", "c.txt"], &json!([".env"]))
    );
    assert_eq!(f.fossil(&["ls"]), ".env\nb.txt\nc.txt\n");
}

#[test]
fn p14_what_cannot_be_included_is_refused_by_name() {
    let f = Fixture::with(&[("b.txt", b"b\n")]);
    f.write(".git/HEAD", "x\n");
    f.write("c.txt", "c\n");
    f.ocx(f.folder(), &["open", "r.fossil", "co/sub", "--user", "alice"]);
    for (path, code) in [
        (".git", "denied"),
        (".git/HEAD", "denied"),
        ("sub", "denied"),
        ("sub/b.txt", "denied"),
        ("gone", "not_found"),
        (".fslckout", "invalid"),
        ("../r.fossil", "invalid"),
        ("/etc/passwd", "invalid"),
    ] {
        let answer = f.refused(code, "ocx_save", with(&[path]));
        assert!(stopped(&answer).contains(path) || stopped(&answer).contains("include[0]"), "{answer}");
    }
    assert_eq!(
        left_out(&f.done("ocx_context", json!({}))),
        [(".git/", "data of git"), ("sub/", "another checkout")]
    );
    assert_eq!(paths(&f.done("ocx_save", four("t"))), ["c.txt"]);
}

#[test]
fn g11_who_may_not_read_is_not_told_what_is_left_out() {
    let f = Fixture::with(&[("b.txt", b"b\n")]);
    f.write(".env", "x\n");
    f.fossil(&["user", "new", "guest", "Guest", "pw"]);
    for login in ["nobody", "anonymous", "guest"] {
        f.fossil(&["user", "capabilities", login, "c"]);
    }
    let guest = f.session().acting_as(ocx::name::User::parse("guest").expect("a login"));
    let answer = crate::support::answer::call(&guest, "ocx_status", json!({}));
    assert_eq!((&answer["ok"], answer["result"]["left_out"].is_null()), (&json!(true), true), "{answer}");
}

#[test]
fn g11_the_programs_user_has_settings_of_their_own() {
    let f = Fixture::with(&[("b.txt", b"b\n")]);
    f.write("a.tmp", "x\n");
    f.fossil(&["settings", "--global", "ignore-glob", "*.tmp"]);
    let answer: Value =
        serde_json::from_str(&f.ocx(&f.root(), &["call", "ocx_context", "{}"])).expect("JSON");
    assert_eq!(left_out(&answer["result"]), [("a.tmp", "ignore-glob")]);
    assert_eq!(left_out(&f.done("ocx_context", json!({}))), [], "a host has no user");
}
