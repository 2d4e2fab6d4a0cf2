//! `ocx_read`.

use serde_json::json;

use crate::support::{Fixture, four};

#[test]
fn a_page_is_exact_and_says_where_it_goes_on() {
    let f = Fixture::with(&[("a.txt", "line\n".repeat(450).as_bytes())]);
    let page = f.done("ocx_read", json!({"path": "a.txt", "from": 201}));
    assert_eq!(
        (&page["first_line"], &page["last_line"], &page["lines"]),
        (&json!(201), &json!(400), &json!(450))
    );
    assert_eq!(
        (page["text"].as_str(), &page["next_from"]),
        (Some("line\n".repeat(200).as_str()), &json!(401))
    );
}

#[test]
fn a_read_past_the_end_gives_the_last_page_as_the_next_call() {
    let f = Fixture::with(&[("a.txt", b"1\n2\n")]);
    let answer = f.refused("invalid", "ocx_read", json!({"path": "a.txt", "from": 9}));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("2 lines"), "{answer}");
    assert_eq!(answer["next_call"], json!({"tool": "ocx_read", "arguments": {"path": "a.txt", "from": 1}}));
}

#[test]
fn a_missing_path_names_the_nearest_one() {
    let f = Fixture::with(&[("src/main.c", b"int main;\n")]);
    let answer = f.refused("not_found", "ocx_read", json!({"path": "main.c"}));
    assert_eq!(answer["next_call"], json!({"tool": "ocx_read", "arguments": {"path": "src/main.c"}}));
    let answer = f.refused("not_found", "ocx_read", json!({"path": "zzzzzz"}));
    assert_eq!(answer["next_call"]["tool"], "ocx_find");
}

#[test]
fn a_check_in_is_read_as_it_was_and_as_what_it_changed() {
    let f = Fixture::with(&[("a.txt", b"one\ntwo\n")]);
    f.done("ocx_edit", json!({"path": "a.txt", "old": "two", "new": "2"}));
    let saved = f.done("ocx_save", four("count"));
    let parent = saved["parent"].as_str().expect("a parent");
    let old = f.done("ocx_read", json!({"path": "a.txt", "checkin": parent}));
    assert_eq!(old["text"], "one\ntwo\n");
    let changes = f.done("ocx_read", json!({"checkin": saved["checkin"]}));
    assert_eq!(changes["text"], "=== edited a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    f.refused("not_found", "ocx_read", json!({"path": "b.txt", "checkin": parent}));
    f.refused("invalid", "ocx_read", json!({}));
}

#[test]
fn a_folder_is_refused_with_what_lies_in_it() {
    let f = Fixture::with(&[("src/a.c", b"a\n"), ("src/x/b.c", b"b\n")]);
    let answer = f.refused("invalid", "ocx_read", json!({"path": "src"}));
    assert_eq!(answer["result"]["entries"], json!(["a.c", "x/ (1)"]));
    assert_eq!(f.done("ocx_context", json!({}))["top"], json!(["src/ (2)"]));
}
