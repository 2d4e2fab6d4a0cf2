//! Tests as processes, and what their passes are good for.

use serde_json::{Value, json};

use super::{edit, stopped};
use crate::support::client::{Client, runs};
use crate::support::{Fixture, four};

/// A checkout whose one test runs `command` for at most so long.
fn limited(command: &str, timeout: &str) -> Fixture {
    let f = Fixture::with(&[]);
    let tests = json!({"tests": [{"name": "unit", "command": command, "timeout": timeout}]});
    f.write("ocx-tests.json", tests.to_string());
    f
}

#[test]
fn r01_a_background_child_keeps_no_call_waiting_and_is_gone() {
    let f = Fixture::tested("sleep 6101 & echo done", &[]);
    let done = f.done("ocx_test", json!({}));
    assert_eq!((&done["tests"][0]["output"], &done["tests"][0]["passed"]), (&json!("done\n"), &json!(true)));
    assert!(!runs("sleep\x006101"));
}

#[test]
fn r02_a_child_in_a_session_of_its_own_is_ended_and_counted() {
    let f = Fixture::tested("setsid sleep 6102 & echo done", &[]);
    let done = f.done("ocx_test", json!({}));
    assert_eq!(done["tests"][0]["output"], "done\n");
    assert!(done["tests"][0]["processes_ended"].as_u64() >= Some(1), "{done}");
    assert!(!runs("sleep\x006102"));
}

#[test]
fn r03_a_time_out_ends_grandchildren_that_ignore_term() {
    let f = limited("sh -c 'trap \"\" TERM; sleep 6103' & wait", "2s");
    let answer = f.refused("untested", "ocx_test", json!({}));
    assert!(stopped(&answer).contains("time"), "{answer}");
    assert!(!runs("sleep\x006103"));
}

#[test]
fn r05_a_flood_of_output_ends_at_the_limit_in_a_small_answer() {
    for command in ["yes", "head -c 3000000000 /dev/zero"] {
        let f = limited(command, "3s");
        let answer = f.call("ocx_test", json!({}));
        assert!(answer.to_string().len() < 11_000, "{command}: {} bytes", answer.to_string().len());
        assert_eq!(answer["result"]["tests"][0]["name"], "unit", "{command}");
    }
}

#[test]
fn r06_bytes_that_are_no_text_become_replacement_characters() {
    let f = Fixture::tested(r"printf 'a\360b\n\000\033[31m'", &[]);
    let done = f.done("ocx_test", json!({}));
    let output = done["tests"][0]["output"].as_str().expect("text");
    assert!(output.starts_with("a\u{fffd}b\n"), "{output:?}");
}

#[test]
fn r07_a_silent_test_passes_at_once() {
    let f = Fixture::tested("true", &[]);
    let done = f.done("ocx_test", json!({}));
    assert_eq!((&done["tests"][0]["output"], &done["tests"][0]["of"]), (&json!(""), &json!(0)));
}

#[test]
fn r08_a_test_that_kills_its_parent_ends_nothing_but_itself() {
    let f = Fixture::tested("kill -9 $PPID; exit 3", &[]);
    let mut c = Client::legacy(&f);
    let answer = c.call("ocx_test", json!({}));
    assert_eq!((&answer["ok"], &answer["result"]["tests"][0]["passed"]), (&json!(false), &json!(false)));
    let context = c.call("ocx_context", json!({}));
    assert_ne!(context["result"]["tests"][0]["standing"], "passed");
    c.call("ocx_edit", edit("ocx-tests.json", "kill -9 $PPID; exit 3", "true"));
    assert_eq!(c.call("ocx_test", json!({}))["ok"], true);
}

#[test]
fn g02_what_a_test_writes_stays_in_its_own_tree() {
    let f = Fixture::tested("touch made; grep -qx a base.txt && echo x >> base.txt", &[("base.txt", b"a\n")]);
    f.done("ocx_edit", edit("new.txt", "", "n\n"));
    for _ in 0..2 {
        let done = f.done("ocx_test", json!({}));
        assert_eq!(done["tests"][0]["changed"], json!([{"path": "base.txt", "how": "edited"}]), "{done}");
    }
    let saved = f.done("ocx_save", four("t"));
    assert_eq!(saved["changed"], json!([{"path": "new.txt", "how": "added"}]), "{saved}");
    assert_eq!((f.bytes("base.txt"), f.path("made").exists()), (b"a\n".to_vec(), false));
}

#[test]
fn g03_other_tests_are_named_in_the_answer_with_both_commands() {
    let f = Fixture::tested("false", &[("a.txt", b"a\n")]);
    let edited = f.done("ocx_edit", edit("ocx-tests.json", "\"false\"", "\"true\""));
    assert!(edited["note"].as_str().unwrap_or_default().contains("which tests a save needs"), "{edited}");
    f.refused("untested", "ocx_save", four("t"));
    f.done("ocx_test", json!({}));
    let mut dry = four("t");
    dry["dry_run"] = true.into();
    for input in [dry, four("t")] {
        let told = f.done("ocx_save", input)["tests_changed"].clone();
        assert_eq!(told, json!([{"name": "unit", "old": "false", "new": "true"}]));
    }
}

#[test]
fn g04_no_tests_are_said_and_broken_ones_refused_with_the_reason() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let mut round = 0;
    for none in [None, Some("{}"), Some(r#"{"tests":[]}"#)] {
        if let Some(none) = none {
            f.write("ocx-tests.json", none);
        }
        round += 1;
        f.write("a.txt", format!("{round}\n"));
        assert_eq!(f.done("ocx_save", four("t"))["tests"], "none declared", "{none:?}");
    }
    f.write("a.txt", "more\n");
    for (broken, why) in [
        ("not json", "expected"),
        (r#"{"tests":[{"name":"a","command":""}]}"#, "empty command"),
        (r#"{"tests":[{"name":"a","command":"x"},{"name":"a","command":"y"}]}"#, "two tests"),
        ("[]", "not an object"),
    ] {
        f.write("ocx-tests.json", broken);
        for (tool, input) in [("ocx_save", four("t")), ("ocx_test", json!({}))] {
            let answer = f.refused("invalid", tool, input);
            assert!(stopped(&answer).contains(why), "{answer}");
        }
        let told = f.done("ocx_context", json!({}))["tests"]["broken"].clone();
        assert!(told.as_str().unwrap_or_default().contains(why), "{told}");
    }
}

#[test]
fn g05_a_pipe_hides_no_failure_from_a_save() {
    let f = Fixture::tested("false | tail -1", &[("a.txt", b"a\n")]);
    f.done("ocx_edit", edit("a.txt", "a", "b"));
    f.refused("untested", "ocx_test", json!({}));
    f.refused("untested", "ocx_save", four("t"));
}

#[test]
fn g07_a_pass_counts_for_exactly_its_tree_and_the_answer_names_it() {
    let f = Fixture::tested("true", &[("a.txt", b"a\n")]);
    f.done("ocx_edit", edit("a.txt", "a", "b"));
    let tree: Value = f.done("ocx_test", json!({}))["tree"].clone();
    f.write("a.txt", "b\n");
    f.done("ocx_edit", edit("a.txt", "b", "c"));
    f.refused("untested", "ocx_save", four("t"));
    f.done("ocx_edit", edit("a.txt", "c", "b"));
    assert_eq!(f.done("ocx_save", four("t"))["tree"], tree);
}
