//! `ocx_find`.

use serde_json::json;

use crate::support::Fixture;

#[test]
fn at_most_fifty_lines_and_how_many_there_are() {
    let f = Fixture::with(&[("a.txt", "hit\n".repeat(80).as_bytes()), ("b/c.txt", b"hit\nmiss\n")]);
    let found = f.done("ocx_find", json!({"text": "hit"}));
    assert_eq!((&found["shown"], &found["of"]), (&json!(50), &json!(81)));
    let found = f.done("ocx_find", json!({"text": "hit", "path": "b"}));
    assert_eq!(found["matches"], json!([{"path": "b/c.txt", "line": 1, "text": "hit"}]));
    f.refused("not_found", "ocx_find", json!({"text": "hit", "path": "d"}));
}

#[test]
fn long_lines_keep_the_answer_small() {
    let line = format!("{}needle{}\n", "x".repeat(3_000), "\u{1f600}".repeat(3_000));
    let f = Fixture::with(&[("a.txt", line.repeat(60).as_bytes())]);
    let answer = f.call("ocx_find", json!({"text": "needle"}));
    assert!(answer.to_string().len() <= 10_500, "{}", answer.to_string().len());
    assert_eq!(answer["result"]["of"], 60);
    assert!(answer["result"]["note"].is_string());
}

#[test]
fn nothing_found_is_an_answer_that_says_how_it_was_matched() {
    let f = Fixture::with(&[("a.txt", b"Hit\n")]);
    let found = f.done("ocx_find", json!({"text": "hit"}));
    assert_eq!(found["of"], 0);
    assert!(found["note"].as_str().unwrap_or_default().contains("case and all"));
}
