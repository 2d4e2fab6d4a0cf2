//! Lines: they end at LF only, and every tool counts them alike.

use serde_json::json;

use super::{edit, stopped};
use crate::support::Fixture;

#[test]
fn t17_a_lone_cr_is_no_line_end_to_any_tool() {
    let f = Fixture::with(&[("r.txt", b"alpha\nbeta\rx\ngamma\n")]);
    assert_eq!(f.done("ocx_find", json!({"text": "gamma"}))["matches"][0]["line"], 3);
    let page = f.done("ocx_read", json!({"path": "r.txt", "from": 2}));
    assert_eq!((&page["text"], &page["lines"]), (&json!("beta\rx\ngamma\n"), &json!(3)));
    let edited = f.done("ocx_edit", edit("r.txt", "gamma", "delta"));
    assert_eq!((&edited["first_line"], &edited["lines"]), (&json!(3), &json!(3)));
}

#[test]
fn t18_a_line_of_20_mb_is_cut_and_said_so_in_bounded_memory() {
    let mut big = vec![b'x'; 20 << 20];
    big.extend_from_slice(b"needle");
    let f = Fixture::with(&[("s.txt", b"s\n")]);
    f.write("big.js", &big);
    let read = f.call("ocx_read", json!({"path": "big.js"}));
    assert!(read["result"]["note"].as_str().unwrap_or_default().contains("20971526 bytes"));
    assert!(read.to_string().len() < 10_000);
    let found = f.call("ocx_find", json!({"text": "needle"}));
    assert_eq!(found["result"]["matches"][0]["line_bytes"], 20_971_526);
    assert!(found.to_string().len() < 10_000);
    let edited = f.call("ocx_edit", edit("big.js", "needle", "thread"));
    assert_eq!(edited["ok"], true);
    assert!(edited.to_string().len() < 11_000, "{}", edited.to_string().len());
}

#[test]
fn m04_numbers_are_taken_as_they_are_or_refused_by_field() {
    let f = Fixture::with(&[("a.txt", b"1\n2\n")]);
    for from in [json!("10"), json!(0), json!(-1), json!(1e9), json!(1.5), json!(true)] {
        let answer = f.refused("invalid", "ocx_read", json!({"path": "a.txt", "from": from}));
        assert!(stopped(&answer).contains("`from`"), "{from}: {answer}");
    }
    let answer = f.refused("invalid", "ocx_edit", json!({"path": "a.txt", "old": 5, "new": "x"}));
    assert!(stopped(&answer).contains("`old` must be a string, not a number"), "{answer}");
    let answer = f.refused("invalid", "ocx_read", json!({"path": "a.txt", "from": 3}));
    assert!(stopped(&answer).contains("there are 2 lines"), "{answer}");
    assert_eq!(f.bytes("a.txt"), b"1\n2\n");
}
