//! `ocx_wiki_edit`.

use serde_json::{Value, json};

use crate::support::Fixture;

fn edit(old: &str, new: &str) -> Value {
    json!({"page": "Plan", "old": old, "new": new})
}

#[test]
fn a_page_is_made_edited_and_added_to_and_plain_fossil_shows_it() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let made = f.done("ocx_wiki_edit", edit("", "# Plan\none\n"));
    assert_eq!(
        (&made["created"], &made["previous"], &made["user"]),
        (&json!(true), &json!(null), &json!("alice"))
    );
    assert_eq!((&made["pushed"], &made["mimetype"]), (&json!(false), &json!("text/x-markdown")));
    let edited = f.done("ocx_wiki_edit", edit("one", "two"));
    assert_eq!(
        (&edited["previous"], &edited["text"], &edited["first_line"]),
        (&made["version"], &json!("two\n"), &json!(2))
    );
    f.done("ocx_wiki_edit", edit("", "three\n"));
    f.done("ocx_wiki_edit", edit("", "three\n"));
    assert_eq!(f.fossil(&["wiki", "export", "Plan"]).trim_end(), "# Plan\ntwo\nthree\nthree");
    let read = f.done("ocx_wiki_read", json!({"page": "Plan", "version": edited["version"]}));
    assert_eq!(read["text"], "# Plan\ntwo\n");
}

#[test]
fn a_version_that_the_page_has_left_behind_is_refused_with_the_read_that_helps() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let mut first = edit("", "one\n");
    first["version"] = json!("a".repeat(64));
    f.refused("changed", "ocx_wiki_edit", first);
    let made = f.done("ocx_wiki_edit", edit("", "one\n"));
    let mut second = edit("one", "two");
    second["version"] = made["version"].clone();
    f.done("ocx_wiki_edit", second.clone());
    second["old"] = "two".into();
    second["new"] = "three".into();
    let answer = f.refused("changed", "ocx_wiki_edit", second);
    assert_eq!(answer["next_call"], json!({"tool": "ocx_wiki_read", "arguments": {"page": "Plan"}}));
    assert_eq!(f.done("ocx_wiki_read", json!({"page": "Plan"}))["text"], "two\n");
}

#[test]
fn what_cannot_be_written_is_refused_and_says_what_helps() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.done("ocx_wiki_edit", edit("", "x\ny\nx\n"));
    let before = f.everything();
    let answer = f.refused("ambiguous", "ocx_wiki_edit", edit("x", "z"));
    assert_eq!(answer["next_call"]["arguments"], json!({"page": "Plan", "from": 1}));
    let answer = f.refused("not_found", "ocx_wiki_edit", edit("gone", "z"));
    assert_eq!(answer["next_call"]["tool"], "ocx_wiki_read");
    f.refused("unchanged", "ocx_wiki_edit", edit("y", "y"));
    f.refused("invalid", "ocx_wiki_edit", edit("x\ny\nx\n", "\n"));
    f.refused("invalid", "ocx_wiki_edit", json!({"page": " x", "old": "", "new": "a"}));
    let answer = f.refused("not_found", "ocx_wiki_edit", json!({"page": "Plans", "old": "x", "new": "a"}));
    assert_eq!(answer["next_call"], json!({"tool": "ocx_wiki_read", "arguments": {"page": "Plan"}}));
    assert!(f.everything() == before);
}

#[test]
fn line_ends_follow_a_page_written_with_cr_lf() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("page.txt", "one\r\ntwo\r\n");
    f.fossil(&["wiki", "create", "Plan", "page.txt"]);
    let done = f.done("ocx_wiki_edit", edit("one\ntwo", "1\n2"));
    assert!(done["note"].as_str().is_some_and(|n| n.contains("CR LF") && n.contains("page")), "{done}");
    assert_eq!(done["mimetype"], "text/x-fossil-wiki");
    assert_eq!(f.done("ocx_wiki_read", json!({"page": "Plan"}))["text"], "1\r\n2\r\n");
}

#[test]
fn a_dry_run_says_what_it_would_do_and_changes_nothing() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.done("ocx_wiki_edit", edit("", "one\n"));
    let before = f.everything();
    let mut dry = edit("one", "two");
    dry["dry_run"] = true.into();
    let answer = f.call("ocx_wiki_edit", dry);
    assert_eq!((&answer["ok"], &answer["result"]["text"]), (&json!(true), &json!("two\n")));
    assert!(f.everything() == before);
    let real = f.call("ocx_wiki_edit", edit("one", "two"));
    assert_eq!(answer["log"], real["log"]);
}

#[test]
fn a_new_page_needs_f_and_an_edit_needs_k() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.done("ocx_wiki_edit", edit("", "one\n"));
    f.fossil(&["user", "new", "rita", "rita", "pw"]);
    f.fossil(&["user", "default", "rita"]);
    for (capabilities, page, old, lacks) in
        [("oij", "Plan", "one", "`k` or `f`"), ("of", "Plan", "one", "`k`"), ("ok", "New", "", "`f`")]
    {
        f.fossil(&["user", "capabilities", "rita", capabilities]);
        let answer = f.refused("denied", "ocx_wiki_edit", json!({"page": page, "old": old, "new": "x\n"}));
        assert!(answer["stopped"].as_str().is_some_and(|s| s.contains(lacks)), "{answer}");
        assert_eq!(
            (f.fossil(&["wiki", "list"]).trim(), f.fossil(&["wiki", "export", "Plan"]).trim()),
            ("Plan", "one")
        );
    }
    f.fossil(&["user", "capabilities", "rita", "of"]);
    f.done("ocx_wiki_edit", json!({"page": "New", "old": "", "new": "x\n"}));
}

#[test]
fn an_edit_that_a_moderator_must_approve_is_held_back_and_says_so() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.set("modreq-wiki", "1");
    f.fossil(&["user", "new", "rita", "rita", "pw"]);
    f.fossil(&["user", "capabilities", "rita", "ofk"]);
    f.fossil(&["user", "default", "rita"]);
    let made = f.done("ocx_wiki_edit", edit("", "one\n"));
    assert!(made["push"].as_str().is_some_and(|p| p.contains("moderator")), "{made}");
}
