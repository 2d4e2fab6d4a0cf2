//! `ocx_test`.

use serde_json::json;

use crate::support::{Fixture, four, until};

#[test]
fn the_answer_is_ok_only_when_every_test_passed() {
    let f = Fixture::with(&[]);
    f.write(
        "ocx-tests.json",
        r#"{"tests":[{"name":"good","command":"echo fine"},{"name":"bad","command":"echo no; exit 3"}]}"#,
    );
    let answer = f.refused("untested", "ocx_test", json!({}));
    let tests = &answer["result"]["tests"];
    assert_eq!((&tests[0]["passed"], &tests[1]["passed"]), (&json!(true), &json!(false)));
    assert_eq!((&tests[0]["output"], &tests[1]["output"]), (&json!("fine\n"), &json!("no\n")));
    assert!(
        answer["stopped"].as_str().unwrap_or_default().contains("`bad` failed with exit status 3"),
        "{answer}"
    );
    assert_eq!(f.done("ocx_test", json!({"name": "good"}))["tests"].as_array().map(Vec::len), Some(1));
    f.refused("not_found", "ocx_test", json!({"name": "godo"}));
}

#[test]
fn without_declared_tests_there_is_nothing_to_run() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let answer = f.refused("not_found", "ocx_test", json!({}));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("ocx-tests.json"));
}

#[test]
fn t15_r06_output_is_valid_text_and_the_answer_small() {
    let f = Fixture::tested(
        r"for i in $(seq 300); do printf '%040d\360\237\230\200\360b\033[31m\n' $i; done",
        &[],
    );
    let answer = f.call("ocx_test", json!({}));
    assert_eq!(answer["ok"], true, "{answer:#}");
    assert!(answer.to_string().len() < 11_000, "{}", answer.to_string().len());
    assert_eq!(answer["result"]["tests"][0]["of"], 300);
    let log = f.done("ocx_test", json!({"name": "unit", "log_from": 5}));
    assert!(log["text"].as_str().unwrap_or_default().contains("0005"), "{log:#}");
    assert_eq!(log["lines"], 300);
}

#[test]
fn an_edit_while_a_test_runs_is_made_and_takes_the_pass_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let [begun, go] = ["begun", "go"].map(|name| folder.path().join(name));
    let command =
        format!("echo > '{}'; while [ ! -e '{}' ]; do sleep 0.05; done", begun.display(), go.display());
    let f = Fixture::tested(&command, &[("a.txt", b"a\n")]);
    std::thread::scope(|s| {
        let test = s.spawn(|| f.call("ocx_test", json!({})));
        until("the test runs", || begun.exists());
        // An edit does not wait for a test: this one ends only after it.
        f.done("ocx_edit", json!({"path": "a.txt", "old": "a", "new": "b"}));
        std::fs::write(&go, "").expect("written");
        let answer = test.join().expect("no panic");
        assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!("untested")), "{answer:#}");
        assert_eq!(answer["next_call"]["tool"], "ocx_test");
    });
    f.refused("untested", "ocx_save", four("t"));
}
