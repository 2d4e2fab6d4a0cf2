//! The protocol over real standard input and output: both eras, bad input, concurrency, the end.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::{Client, answer, initialize, runs};
use crate::support::{Fixture, four, until};

#[test]
fn the_whole_job_in_a_session_with_initialize() {
    let f = Fixture::tested("grep -q hello a.txt", &[("a.txt", b"hallo\n")]);
    let mut c = Client::legacy(&f);
    let tools = c.request("tools/list", json!({}));
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(ocx::tool::catalogue::TOOLS.len()));
    assert_eq!(tools["result"]["tools"][2]["annotations"]["readOnlyHint"], true);
    let found = c.call("ocx_find", json!({"text": "hallo"}));
    assert_eq!(found["result"]["matches"][0]["path"], "a.txt");
    assert_eq!(c.call("ocx_edit", json!({"path": "a.txt", "old": "hallo", "new": "hello"}))["ok"], true);
    let refused = c.call("ocx_save", four("t"));
    assert_eq!((&refused["ok"], &refused["code"]), (&json!(false), &json!("untested")));
    let next = refused["next_call"].clone();
    let tested = c.call(next["tool"].as_str().expect("a tool"), next["arguments"].clone());
    assert_eq!(tested["ok"], true, "{tested}");
    let saved = c.call("ocx_save", four("t"));
    assert_eq!(saved["result"]["committed"], true, "{saved}");
    c.end();
}

#[test]
fn requests_with_their_own_metadata_need_no_initialize() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let mut c = Client::modern(&f);
    let found = c.request("server/discover", json!({}));
    let versions = found["result"]["supportedVersions"].to_string();
    assert!(versions.contains("2026-07-28") && versions.contains("2025-11-25"), "{found}");
    let list = c.request("tools/list", json!({}));
    assert_eq!(list["result"]["resultType"], "complete", "{list}");
    assert!(list["result"]["ttlMs"].is_u64());
    assert_eq!(c.call("ocx_read", json!({"path": "a.txt"}))["result"]["text"], "a\n");
    c.end();
}

#[test]
fn older_versions_are_spoken_too() {
    let f = Fixture::with(&[]);
    for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let mut c = Client::start(&f, &f.root());
        let answer = c.request("initialize", initialize(version));
        assert_eq!(answer["result"]["protocolVersion"], version);
    }
}

#[test]
fn m01_m02_bad_lines_get_errors_and_the_session_goes_on() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let mut c = Client::start(&f, &f.root());
    c.raw(b"garbage before the session");
    assert_eq!(c.message()["error"]["code"], -32_700);
    c.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    c.send(&json!({"jsonrpc": "2.0", "id": 900, "result": {}}));
    c.request("initialize", initialize("2025-11-25"));
    for (line, code) in [
        (&b"garbage"[..], -32_700),
        (b"[]", -32_600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32_600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32_600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":70,\"method\":\"no/such\"}", -32_601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":71,\"method\":\"tools/call\",\"params\":null}", -32_602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":72,\"method\":\"tools/call\",\"params\":{\"arguments\":{}}}", -32_602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":73,\"method\":\"\xff\"}", -32_700),
    ] {
        c.raw(line);
        let reply = c.message();
        assert_eq!(reply["error"]["code"], code, "{}: {reply}", String::from_utf8_lossy(line));
        c.ping();
    }
    c.raw("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":80,\"method\":\"tools/list\",\"params\":null}".as_bytes());
    assert!(c.reply(&json!(80))["result"]["tools"].is_array());
    c.end();
}

#[test]
fn t14_a_lone_surrogate_is_refused_and_the_next_call_answered() {
    let f = Fixture::with(&[("a.txt", b"x\n")]);
    let mut c = Client::legacy(&f);
    c.raw(br#"{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"ocx_edit","arguments":{"path":"a.txt","old":"x","new":"x\ud800y"}}}"#);
    let refused = answer(&c.reply(&json!("s")));
    assert_eq!((&refused["ok"], &refused["code"]), (&json!(false), &json!("invalid")));
    assert!(refused["stopped"].as_str().unwrap_or_default().contains("surrogate"));
    assert_eq!(f.bytes("a.txt"), b"x\n");
    assert_eq!(c.call("ocx_read", json!({"path": "a.txt"}))["ok"], true);
}

#[test]
fn unknown_tools_and_arguments_in_a_string_are_refused_in_words() {
    let f = Fixture::with(&[("a.txt", b"x\n")]);
    let mut c = Client::legacy(&f);
    let unknown = c.call("read_file", json!({"path": "a.txt"}));
    assert_eq!(unknown["code"], "not_found");
    assert!(unknown["next_step"].as_str().unwrap_or_default().contains("ocx_read"));
    let reply = c.request("tools/call", json!({"name": "ocx_read", "arguments": "{\"path\":\"a.txt\"}"}));
    assert_eq!(answer(&reply)["next_call"], json!({"tool": "ocx_read", "arguments": {"path": "a.txt"}}));
    let wrong = c.call("ocx_read", json!({"path": "a.txt", "from": "10"}));
    assert!(wrong["stopped"].as_str().unwrap_or_default().contains("`from`"), "{wrong}");
    let missing = c.request("tools/call", json!({"name": "ocx_context"}));
    assert_eq!(answer(&missing)["ok"], true);
}

#[test]
fn m06_an_endless_line_is_refused_in_bounded_memory() {
    let f = Fixture::with(&[("a.txt", b"x\n")]);
    let mut c = Client::legacy(&f);
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        c.input.as_mut().expect("open").write_all(&piece).expect("sent");
    }
    c.raw(b"");
    let reply = c.message();
    assert_eq!(reply["error"]["code"], -32_600);
    assert!(reply["error"]["message"].as_str().unwrap_or_default().contains("209715200 bytes"), "{reply}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", c.child.id())).expect("status");
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("a peak");
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kib < 200 << 10, "{kib} KiB");
    c.ping();
}

#[test]
fn m10_ids_come_back_exactly() {
    let f = Fixture::with(&[]);
    let mut c = Client::legacy(&f);
    for id in [json!(9_007_199_254_740_993_i64), json!("x\0"), json!(-1), json!("")] {
        c.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        assert_eq!(c.reply(&id)["result"], json!({}));
    }
}

#[test]
fn m09_a_long_test_holds_nothing_up_and_says_that_it_goes_on() {
    let f = Fixture::tested("sleep 5", &[("a.txt", b"a\n")]);
    let mut c = Client::legacy(&f);
    let params = json!({"name": "ocx_test", "arguments": {}, "_meta": {"progressToken": "p"}});
    let test = c.start_request("tools/call", params);
    std::thread::sleep(Duration::from_millis(500));
    // A reply that comes before the one that is waited for is dropped: the test's answer must come after all these.
    c.call("ocx_read", json!({"path": "a.txt"}));
    c.call("ocx_context", json!({}));
    (0..10).for_each(|_| c.ping());
    let told = loop {
        let message = c.message();
        if message["method"] == "notifications/progress" {
            break message;
        }
        assert_ne!(message["id"], test, "progress comes before the answer");
    };
    assert_eq!(told["params"]["progressToken"], "p");
    assert!(told["params"]["message"].as_str().unwrap_or_default().contains("unit"), "{told}");
    assert_eq!(answer(&c.reply(&json!(test)))["ok"], true);
}

#[test]
fn m07_a_cancelled_test_is_gone_and_not_answered() {
    let f = Fixture::tested("sleep 3001", &[]);
    let mut c = Client::legacy(&f);
    let test = c.start_request("tools/call", json!({"name": "ocx_test", "arguments": {}}));
    std::thread::sleep(Duration::from_secs(1));
    assert!(runs("sleep 3001") || runs("sleep\x003001"));
    c.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": test}}));
    until("the child is gone", || !runs("sleep\x003001"));
    let context = c.call("ocx_context", json!({}));
    assert_ne!(context["result"]["tests"][0]["standing"], "passed");
    while let Ok(line) = c.lines.recv_timeout(Duration::from_millis(500)) {
        let message: Value = serde_json::from_str(&line).expect("JSON");
        assert_ne!(message["id"], test, "no answer to what was cancelled");
    }
}

#[test]
fn r10_when_the_client_goes_the_server_ends_and_its_children_with_it() {
    let f = Fixture::tested("sleep 3002", &[]);
    let mut c = Client::legacy(&f);
    c.start_request("tools/call", json!({"name": "ocx_test", "arguments": {}}));
    std::thread::sleep(Duration::from_secs(1));
    assert!(runs("sleep\x003002"));
    c.end();
    assert!(!runs("sleep\x003002"));
    assert_eq!(f.done("ocx_context", json!({}))["tests"][0]["name"], "unit");
}

#[test]
fn answers_in_flight_are_still_given_when_the_input_ends() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let mut c = Client::legacy(&f);
    let id = c.start_request("tools/call", json!({"name": "ocx_read", "arguments": {"path": "a.txt"}}));
    c.input = None;
    assert_eq!(answer(&c.reply(&json!(id)))["ok"], true);
}

#[test]
fn r09_a_test_sees_no_secret_of_the_server() {
    let f = Fixture::tested("env; ls -l /proc/self/fd", &[]);
    let mut c = Client::legacy(&f);
    let tested = c.call("ocx_test", json!({})).to_string();
    assert!(!tested.contains("hunter2") && !tested.contains("SECRET_TOKEN"), "{tested}");
    assert!(!tested.contains(".fossil") || !tested.contains("r.fossil"), "{tested}");
}

#[test]
fn outside_a_checkout_it_serves_and_each_tool_says_what_to_do() {
    let f = Fixture::with(&[]);
    let mut c = Client::start(&f, f.folder());
    c.request("initialize", initialize("2025-11-25"));
    assert!(c.request("tools/list", json!({}))["result"]["tools"].is_array());
    let refused = c.call("ocx_context", json!({}));
    assert_eq!(refused["code"], "not_found");
    assert!(refused["next_step"].as_str().unwrap_or_default().contains("ocx open"), "{refused}");
}

#[test]
fn the_command_prints_exactly_what_the_protocol_answers() {
    let f = Fixture::with(&[("a.txt", "caf\u{e9}\n".as_bytes())]);
    let mut c = Client::legacy(&f);
    let reply = c.request("tools/call", json!({"name": "ocx_read", "arguments": {"path": "a.txt"}}));
    let text = reply["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
    assert_eq!(f.ocx(&f.root(), &["call", "ocx_read", r#"{"path":"a.txt"}"#]), format!("{text}\n"));
    assert_eq!(f.ocx(f.folder(), &["-C", "co", "read", "a.txt", "--json"]), format!("{text}\n"));
    assert_eq!(f.ocx(&f.root(), &["read", "a.txt"]), "caf\u{e9}\n");
}

#[test]
fn an_empty_session_ends_well() {
    let f = Fixture::with(&[]);
    Client::start(&f, &f.root()).end();
}
