//! `ocx_edit`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::support::Fixture;

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old": old, "new": new})
}

#[test]
fn the_changed_lines_come_back_as_read_gives_them() {
    let f = Fixture::with(&[("a.txt", b"1\n2\n3\n4\n")]);
    let done = f.done("ocx_edit", edit("a.txt", "2\n3\n", "two\nthree\nmore\n"));
    assert_eq!(done["text"], "two\nthree\nmore\n");
    assert_eq!((&done["first_line"], &done["last_line"], &done["lines"]), (&json!(2), &json!(4), &json!(5)));
    assert_eq!(done["file_hash"], f.done("ocx_read", json!({"path": "a.txt"}))["file_hash"]);
}

#[test]
fn t01_line_ends_follow_a_crlf_file_and_the_answer_says_so() {
    let f = Fixture::with(&[("a.txt", b"one\r\ntwo\r\nthree\r\n"), ("m.txt", b"a\r\nb\nc\r\n")]);
    let done = f.done("ocx_edit", edit("a.txt", "one\ntwo", "ONE\nTWO"));
    assert!(done["note"].as_str().unwrap_or_default().contains("CR LF"));
    assert_eq!(f.bytes("a.txt"), b"ONE\r\nTWO\r\nthree\r\n");
    f.refused("not_found", "ocx_edit", edit("m.txt", "a\nb", "A\nB"));
}

#[test]
fn more_than_one_match_names_their_lines() {
    let f = Fixture::with(&[("a.txt", b"x\ny\nx\n")]);
    let answer = f.refused("ambiguous", "ocx_edit", edit("a.txt", "x", "z"));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("1, 3"), "{answer}");
    assert!(answer["next_step"].as_str().unwrap_or_default().contains("unique"));
}

#[test]
fn a_stale_file_hash_is_refused_with_the_read_that_helps() {
    let f = Fixture::with(&[("a.txt", b"1\n2\n")]);
    let hash = f.done("ocx_read", json!({"path": "a.txt"}))["file_hash"].clone();
    f.done("ocx_edit", json!({"path": "a.txt", "old": "1", "new": "one", "file_hash": hash}));
    let answer = f.refused(
        "changed",
        "ocx_edit",
        json!({"path": "a.txt", "old": "2", "new": "two", "file_hash": hash}),
    );
    assert_eq!(answer["next_call"], json!({"tool": "ocx_read", "arguments": {"path": "a.txt"}}));
    assert_eq!(f.bytes("a.txt"), b"one\n2\n");
}

#[test]
fn nothing_to_change_is_refused() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.refused("unchanged", "ocx_edit", edit("a.txt", "a", "a"));
}

#[test]
fn x01_two_edits_at_once_are_both_there() {
    let f = Arc::new(Fixture::with(&[("f.txt", b"")]));
    for round in 0..50 {
        f.write("f.txt", "50\n75\n");
        std::thread::scope(|s| {
            for (old, new) in [("50", "A"), ("75", "B")] {
                let f = Arc::clone(&f);
                s.spawn(move || f.done("ocx_edit", edit("f.txt", old, new)));
            }
        });
        assert_eq!(f.bytes("f.txt"), b"A\nB\n", "round {round}");
    }
}

#[test]
fn a03_a_reader_reads_and_every_write_is_refused_before_anything_changes() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.fossil(&["user", "new", "rita", "rita", "pw"]);
    f.fossil(&["user", "capabilities", "rita", "o"]);
    f.fossil(&["user", "default", "rita"]);
    f.done("ocx_read", json!({"path": "a.txt"}));
    f.done("ocx_context", json!({}));
    for (tool, input) in [
        ("ocx_edit", edit("a.txt", "a", "b")),
        ("ocx_test", json!({})),
        ("ocx_save", crate::support::four("t")),
    ] {
        let answer = f.refused("denied", tool, input);
        assert!(
            answer["stopped"].as_str().unwrap_or_default().contains("`rita` lacks capability `i`"),
            "{answer}"
        );
    }
    assert_eq!(f.bytes("a.txt"), b"a\n");
}
