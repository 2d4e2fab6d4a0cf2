//! The protocol, and many calls at once over one connection.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::edit;
use crate::support::client::{Client, answer, initialize, runs};
use crate::support::served::Served;
use crate::support::{Fixture, four, until};

/// Collects the answers of these requests, in the order of the requests.
fn answers(c: &mut Client, ids: &[i64]) -> Vec<Value> {
    let mut found: Vec<Option<Value>> = vec![None; ids.len()];
    while found.iter().any(Option::is_none) {
        let message = c.message();
        if let Some(at) = ids.iter().position(|id| message["id"] == *id) {
            found[at] = Some(answer(&message));
        }
    }
    found.into_iter().flatten().collect()
}

fn start(c: &mut Client, tool: &str, arguments: Value) -> i64 {
    let mut params = json!({"name": tool});
    params["arguments"] = arguments;
    c.start_request("tools/call", params)
}

#[test]
fn m05_only_messages_stand_on_standard_output() {
    let mut s = Served::new();
    let mut c = Client::start(&s.server_side, &s.server_side.folder().join("work"));
    c.request("initialize", initialize("2025-11-25"));
    c.call("ocx_edit", edit("a.txt", "a", "b"));
    assert_eq!(c.call("ocx_save", four("t"))["result"]["pushed"], true);
    s.stop();
    c.call("ocx_edit", edit("a.txt", "b", "c"));
    assert_eq!(c.call("ocx_save", four("t"))["code"], "not_pushed");
    assert_eq!(c.call("ocx_read", json!({"checkin": "no such"}))["ok"], false);
    let mut nowhere = Client::start(&s.server_side, s.server_side.folder());
    nowhere.request("initialize", initialize("2025-11-25"));
    assert_eq!(nowhere.call("ocx_context", json!({}))["ok"], false);
    for c in [c, nowhere] {
        c.end();
    }
}

#[test]
fn m07_a_cancelled_save_is_not_made_or_is_told_by_the_next_call() {
    let f = Fixture::with(&[("a.txt", b"0\n")]);
    let mut c = Client::legacy(&f);
    for (round, wait_ms) in [0, 1, 2, 5, 10, 20, 40].into_iter().enumerate() {
        c.call("ocx_edit", edit("a.txt", &format!("{round}\n"), &format!("{}\n", round + 1)));
        let count = f.check_ins();
        let save = start(&mut c, "ocx_save", four("t"));
        std::thread::sleep(Duration::from_millis(wait_ms));
        c.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": save}}),
        );
        let started = Instant::now();
        let made = loop {
            let context = c.call("ocx_context", json!({}))["result"].clone();
            let clean = context["changed"] == json!([]);
            let waited = started.elapsed() > Duration::from_secs(2);
            if clean || waited {
                break clean;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        assert_eq!(f.check_ins(), count + i64::from(made), "after {wait_ms} ms");
        if !made {
            assert_eq!(c.call("ocx_save", four("t"))["ok"], true);
        }
    }
}

#[test]
fn m09_a_long_test_blocks_no_other_call() {
    let f = Fixture::tested("sleep 6109", &[("a.txt", b"a\n")]);
    let mut c = Client::legacy(&f);
    let test = start(&mut c, "ocx_test", json!({}));
    until("the test runs", || runs("sleep\x006109"));
    for (tool, input) in [
        ("ocx_read", json!({"path": "a.txt"})),
        ("ocx_find", json!({"text": "a"})),
        ("ocx_context", json!({})),
        ("ocx_edit", edit("a.txt", "a", "b")),
    ] {
        assert_eq!(c.call(tool, input)["ok"], true);
        assert!(runs("sleep\x006109"), "{tool} waits for no test");
    }
    c.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": test}}));
    until("the test is gone", || !runs("sleep\x006109"));
}

#[test]
fn x01_200_edits_at_once_of_one_file_are_all_there() {
    let lines = (0..200).map(|n| format!("old-{n:03}\n")).collect::<Vec<_>>().concat();
    let f = Fixture::with(&[("f.txt", lines.as_bytes())]);
    let mut c = Client::legacy(&f);
    let ids: Vec<i64> = (0..200)
        .map(|n| start(&mut c, "ocx_edit", edit("f.txt", &format!("old-{n:03}"), &format!("new-{n:03}"))))
        .collect();
    for answer in answers(&mut c, &ids) {
        assert_eq!(answer["ok"], true, "{answer}");
    }
    let wanted = (0..200).map(|n| format!("new-{n:03}\n")).collect::<Vec<_>>().concat();
    assert_eq!(String::from_utf8(f.bytes("f.txt")).expect("text"), wanted);
}

#[test]
fn x02_two_saves_at_once_over_one_connection_make_one_check_in() {
    let f = Fixture::with(&[("a.txt", b"0\n")]);
    let mut c = Client::legacy(&f);
    for round in 0..10 {
        c.call("ocx_edit", edit("a.txt", &format!("{round}\n"), &format!("{}\n", round + 1)));
        let count = f.check_ins();
        let ids = [start(&mut c, "ocx_save", four("t")), start(&mut c, "ocx_save", four("t"))];
        let answers = answers(&mut c, &ids);
        assert_eq!(f.check_ins(), count + 1, "{answers:#?}");
        assert_eq!(answers.iter().filter(|a| a["ok"] == true).count(), 1, "{answers:#?}");
        let other = answers.iter().find(|a| a["ok"] == false).expect("the other");
        let code = other["code"].as_str().unwrap_or_default();
        assert!(["unchanged", "changed", "busy"].contains(&code), "{other}");
    }
}

#[test]
fn x06_a_call_that_fails_within_fossil_disturbs_no_other() {
    let f = Fixture::with(&[("a.txt", b"0\n")]);
    let mut c = Client::legacy(&f);
    for round in 0..20 {
        let bad = start(&mut c, "ocx_read", json!({"checkin": "no such\u{7f}branch"}));
        let worse = start(&mut c, "ocx_read", json!({"checkin": "2026-99-99T99:99"}));
        let good =
            start(&mut c, "ocx_edit", edit("a.txt", &format!("{round}\n"), &format!("{}\n", round + 1)));
        let oks: Vec<_> = answers(&mut c, &[bad, worse, good]).iter().map(|a| a["ok"].clone()).collect();
        assert_eq!(oks, [false, false, true]);
    }
    assert_eq!(c.call("ocx_save", four("t"))["ok"], true);
}
