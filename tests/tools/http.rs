//! The protocol over HTTP: who may call, how much, both eras, concurrency, and the end of calls and of the server.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::client::{answer, initialize, runs};
use crate::support::http::{HttpServer, LEGACY, USUAL, reply, request};
use crate::support::{Fixture, OCX, four, until};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn modern(id: i64, method: &str, mut params: Value) -> (String, String) {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    let name = params["name"].as_str().map(|n| format!("Mcp-Name: {n}\r\n")).unwrap_or_default();
    let headers = format!("{USUAL}MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}");
    (headers, request(id, method, params))
}

#[test]
fn the_whole_job_over_http() {
    let f = Fixture::tested("grep -q hello a.txt", &[("a.txt", b"hallo\n")]);
    let s = HttpServer::start(&f);
    assert!(s.address.starts_with("127.0.0.1:"), "loopback unless told otherwise: {}", s.address);
    assert_eq!(s.request("initialize", initialize("2025-11-25"))["result"]["protocolVersion"], "2025-11-25");
    let told = s.post(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!((told.status, told.text().as_str()), (202, ""));
    assert_eq!(s.call("ocx_edit", json!({"path": "a.txt", "old": "hallo", "new": "hello"}))["ok"], true);
    let refused = s.call("ocx_save", four("t"));
    assert_eq!((&refused["ok"], &refused["code"]), (&json!(false), &json!("untested")));
    let next = refused["next_call"].clone();
    assert_eq!(s.call(next["tool"].as_str().expect("a tool"), next["arguments"].clone())["ok"], true);
    assert_eq!(s.call("ocx_save", four("t"))["result"]["committed"], true);
}

#[test]
fn requests_with_their_own_metadata_need_no_initialize() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let s = HttpServer::start(&f);
    let ask = |method, params| {
        let (headers, body) = modern(7, method, params);
        s.post_with(&headers, body.as_bytes()).json()
    };
    let versions = ask("server/discover", json!({}))["result"]["supportedVersions"].to_string();
    assert!(versions.contains("2026-07-28") && versions.contains("2025-11-25"), "{versions}");
    let list = ask("tools/list", json!({}));
    assert_eq!((&list["result"]["resultType"], &list["id"]), (&json!("complete"), &json!(7)));
    let read = ask("tools/call", json!({"name": "ocx_read", "arguments": {"path": "a.txt"}}));
    assert_eq!(answer(&read)["result"]["text"], "a\n");
    let (headers, body) =
        modern(8, "tools/call", json!({"name": "ocx_read", "arguments": {"path": "a.txt"}}));
    let other = s.post_with(&headers.replace("Mcp-Name: ocx_read", "Mcp-Name: ocx_edit"), body.as_bytes());
    assert_eq!(other.status, 400, "a header that contradicts the body: {}", other.text());
}

#[test]
fn m01_m02_bad_bodies_get_errors_and_the_next_is_answered() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let s = HttpServer::start(&f);
    for (body, status, code) in [
        (&b"garbage"[..], 400, -32_700),
        (b"[]", 400, -32_600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", 400, -32_600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":70,\"method\":\"no/such\"}", 200, -32_601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":71,\"method\":\"tools/call\",\"params\":null}", 200, -32_602),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":72,\"method\":\"tools/call\",\"params\":{\"arguments\":{}}}",
            200,
            -32_602,
        ),
        (b"{\"jsonrpc\":\"2.0\",\"id\":73,\"method\":\"\xff\"}", 400, -32_700),
    ] {
        let reply = s.post(body);
        let found = (reply.status, reply.json()["error"]["code"].as_i64());
        assert_eq!(found, (status, Some(code)), "{}: {}", String::from_utf8_lossy(body), reply.text());
        assert_eq!(s.request("ping", json!({}))["result"], json!({}));
    }
    let mut bom = "\u{feff}".to_owned();
    bom.push_str(&request(80, "tools/list", Value::Null));
    assert!(s.post(bom.as_bytes()).json()["result"]["tools"].is_array());
    for empty in [&b""[..], b" \r\n"] {
        let reply = s.post(empty);
        assert_eq!((reply.status, reply.json()["error"]["code"].as_i64()), (400, Some(-32_600)));
    }
}

#[test]
fn t14_a_lone_surrogate_is_refused_and_the_next_call_answered() {
    let f = Fixture::with(&[("a.txt", b"x\n")]);
    let s = HttpServer::start(&f);
    let body = br#"{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"ocx_edit","arguments":{"path":"a.txt","old":"x","new":"x\ud800y"}}}"#;
    let refused = answer(&s.post(body).json());
    assert_eq!((&refused["ok"], &refused["code"]), (&json!(false), &json!("invalid")));
    assert_eq!(f.bytes("a.txt"), b"x\n");
    assert_eq!(s.call("ocx_read", json!({"path": "a.txt"}))["ok"], true);
}

#[test]
fn m06_a_body_over_the_limit_is_413_in_bounded_memory_and_the_limit_is_stated() {
    let f = Fixture::with(&[("a.txt", b"x\n")]);
    let s = HttpServer::start(&f);
    let head =
        |more: &str| format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n{USUAL}{LEGACY}{more}\r\n\r\n", s.address);
    let piece = vec![b'x'; 1 << 20];
    let mut declared = s.begin(&head("Connection: close\r\nContent-Length: 209715200"));
    for _ in 0..200 {
        declared.write_all(&piece).expect("sent");
    }
    let mut chunked = s.begin(&head("Connection: close\r\nTransfer-Encoding: chunked"));
    for _ in 0..200 {
        chunked.write_all(b"100000\r\n").and_then(|()| chunked.write_all(&piece)).expect("sent");
        chunked.write_all(b"\r\n").expect("sent");
    }
    chunked.write_all(b"0\r\n\r\n").expect("sent");
    let mut asking = s.begin(&head("Connection: close\r\nExpect: 100-continue\r\nContent-Length: 209715200"));
    let mut bundle = request(1, "tools/call", json!({"name": "ocx_sync", "arguments": {"bundle": ""}}));
    bundle = bundle.replace(r#""bundle":"""#, &format!(r#""bundle":"{}""#, "QUJD".repeat(10 << 20)));
    for reply in [reply(&mut declared), reply(&mut chunked), reply(&mut asking), s.post(bundle.as_bytes())] {
        assert_eq!(reply.status, 413, "{}", reply.head);
        assert!(reply.text().contains("limit of 16777216 bytes"), "{}", reply.text());
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", s.child.id())).expect("status");
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("a peak");
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kib < 200 << 10, "{kib} KiB");
    assert_eq!(s.call("ocx_read", json!({"path": "a.txt"}))["ok"], true);
}

#[test]
fn m07_closing_the_response_ends_the_call_and_its_children() {
    let f = Fixture::tested("sleep 7301", &[]);
    let s = HttpServer::start(&f);
    // Without progress no byte of the answer has come yet, with it the stream is open.
    for meta in [json!({}), json!({"progressToken": "p"})] {
        let call = s.begin_call(json!({"name": "ocx_test", "arguments": {}, "_meta": meta}));
        until("the test starts", || runs("sleep\x007301"));
        if meta.get("progressToken").is_some() {
            let mut first = [0];
            call.peek(&mut first).expect("progress is told");
        }
        drop(call);
        until("the child is gone in seconds", || !runs("sleep\x007301"));
        // Until then the next call would wait for this run instead of starting one.
        until("the run has ended", || {
            s.call("ocx_context", json!({}))["result"]["tests"][0]["standing"] != "running"
        });
    }
    assert_ne!(s.call("ocx_context", json!({}))["result"]["tests"][0]["standing"], "passed");
    assert_eq!(*s.log.lock().expect("a log"), "", "a client that goes away is no error");
}

#[test]
fn m08_after_a_restart_a_client_with_an_old_session_goes_on() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let s = HttpServer::start(&f);
    let opened = s.post(request(1, "initialize", initialize("2025-11-25")).as_bytes());
    assert!(opened.head.contains("mcp-session-id"), "{}", opened.head);
    assert_eq!(s.call("ocx_edit", json!({"path": "a.txt", "old": "a", "new": "b"}))["ok"], true);
    drop(s);
    let s = HttpServer::start(&f);
    // Nothing is kept between calls, so that there is no session to be lost.
    let headers = format!("{USUAL}{LEGACY}Mcp-Session-Id: 5f0c\r\n");
    let call = request(2, "tools/call", json!({"name": "ocx_context", "arguments": {}}));
    let old = answer(&s.post_with(&headers, call.as_bytes()).json());
    assert_eq!(old["result"]["changed"][0]["path"], "a.txt", "{old}");
    assert_eq!(s.request("initialize", initialize("2025-11-25"))["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn m09_a_long_test_holds_nothing_up_and_says_that_it_goes_on() {
    let command = "sleep 5; while [ ! -e go ]; do sleep 0.05; done";
    let f = Fixture::tested(command, &[("a.txt", b"a\n"), ("big.js", &vec![b'x'; 20 << 20])]);
    let s = HttpServer::start(&f);
    let params = json!({"name": "ocx_test", "arguments": {}, "_meta": {"progressToken": "p"}});
    let mut test = s.begin_call(params);
    let mut large = s.begin_call(json!({"name": "ocx_find", "arguments": {"text": "needle"}}));
    for _ in 0..10 {
        assert_eq!(s.request("ping", json!({}))["result"], json!({}));
    }
    assert_eq!(s.call("ocx_read", json!({"path": "a.txt"}))["ok"], true);
    assert_eq!(answer(&reply(&mut large).json())["ok"], true);
    // Only now may the test end: everything above was answered while it ran.
    std::fs::write(f.in_test_tree("go"), "").expect("written");
    let messages = reply(&mut test).messages();
    assert_eq!(messages[0]["method"], "notifications/progress", "{messages:?}");
    assert_eq!(messages[0]["params"]["progressToken"], "p");
    assert_eq!(answer(messages.last().expect("an answer"))["ok"], true);
}

#[test]
fn m10_ids_come_back_exactly() {
    let f = Fixture::with(&[]);
    let s = HttpServer::start(&f);
    for id in [json!(9_007_199_254_740_993_i64), json!("x\0"), json!(-1), json!("")] {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
        assert_eq!(s.post(body.as_bytes()).json()["id"], id);
    }
}

#[test]
fn m11_a_web_page_reaches_nothing() {
    let f = Fixture::with(&[]);
    let s = HttpServer::start(&f);
    let ping = request(1, "ping", json!({}));
    let status = |headers: String| s.post_with(&headers, ping.as_bytes()).status;
    let own = format!("{USUAL}{LEGACY}Host: {}\r\n", s.address);
    assert_eq!(status(own.clone()), 200);
    assert_eq!(status(format!("{own}Origin: http://{}\r\n", s.address)), 200);
    assert_eq!(status(format!("{own}Origin: http://evil.example\r\n")), 403);
    assert_eq!(status(format!("{own}Origin: null\r\n")), 403);
    assert_eq!(status(format!("{own}Origin: http://127.0.0.1:1\r\n")), 403);
    assert_eq!(status(format!("{own}Host: evil.example\r\n")), 403);
    assert_eq!(status(format!("{USUAL}{LEGACY}Host: evil@{}\r\n", s.address)), 403);
    assert_eq!(status(format!("{USUAL}{LEGACY}Host: 127.0.0.1:abc\r\n")), 403);
    let whole = "POST http://evil.example/mcp HTTP/1.1\r\n";
    let foreign = s.begin(&format!("{whole}{own}Connection: close\r\nContent-Length: 0\r\n\r\n"));
    assert_eq!(reply(&mut { foreign }).status, 403);
    assert_eq!(status(format!("{USUAL}{LEGACY}Host: evil.example:80\r\n")), 403);
    let other = s.begin(&format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", s.address));
    assert_eq!(reply(&mut { other }).status, 404);
    let stream =
        s.begin(&format!("GET /mcp HTTP/1.1\r\nHost: {}\r\n{USUAL}Connection: close\r\n\r\n", s.address));
    assert_eq!(reply(&mut { stream }).status, 405);
}

/// The status of a call with this token, or with none.
fn status(s: &HttpServer, token: Option<&str>) -> u16 {
    let body = request(1, "tools/call", json!({"name": "ocx_read", "arguments": {"path": "a.txt"}}));
    let proof = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let reply = s.post_with(&format!("{USUAL}{LEGACY}{proof}"), body.as_bytes());
    assert!(reply.status != 401 || reply.head.contains("www-authenticate: bearer"), "{}", reply.head);
    assert!(reply.status != 200 || answer(&reply.json())["ok"] == true, "{}", reply.text());
    reply.status
}

/// What `ocx mcp` says when it does not start with these options.
fn refused(f: &Fixture, options: &[&str], token: Option<&str>) -> String {
    let mut command = f.command(OCX, &f.root());
    command.arg("mcp").args(options).env_remove("OCX_TOKEN");
    if let Some(token) = token {
        command.env("OCX_TOKEN", token);
    }
    let output = command.output().expect("ocx");
    assert!(!output.status.success(), "{options:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_token_is_wanted_that_the_file_or_the_environment_gives() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let file = f.folder().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).expect("written");
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("private");
    let by_file = HttpServer::proved(&f, |c| {
        c.arg("--token-file").arg(&file);
    });
    let by_environment = HttpServer::proved(&f, |c| {
        c.env("OCX_TOKEN", TOKEN);
    });
    for s in [by_file, by_environment] {
        assert_eq!([None, Some("another"), Some(TOKEN)].map(|token| status(&s, token)), [401, 401, 200]);
        assert_eq!(*s.log.lock().expect("a log"), "", "nothing is said of a token that was given");
    }
    assert!(!f.folder().join(".local/state/ocx/http-token").exists(), "none is made beside it");
}

#[test]
fn v07_without_a_token_given_one_is_made_kept_and_printed_once() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let start = || {
        let s = HttpServer::proved(&f, |_| ());
        until("the token is printed", || s.log.lock().expect("a log").ends_with('\n'));
        let said = s.log.lock().expect("a log").clone();
        let token = said.rsplit("Bearer ").next().unwrap_or_default().trim_end_matches("\"\n").to_owned();
        assert_eq!(said, said_of(&s, &token));
        assert!(token.len() == 64 && token.bytes().all(|b| b.is_ascii_hexdigit()), "{said}");
        (s, token)
    };
    let (s, token) = start();
    assert_eq!([None, Some(TOKEN), Some(&token)].map(|token| status(&s, token)), [401, 401, 200]);
    let line = std::fs::read(format!("/proc/{}/cmdline", s.child.id())).expect("a command line");
    assert!(!String::from_utf8_lossy(&line).contains(&token));
    assert_eq!(*s.log.lock().expect("a log"), said_of(&s, &token), "it is printed once");
    let file = f.folder().join(".local/state/ocx/http-token");
    assert_eq!(file.metadata().expect("the token").permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&file).expect("the token").trim(), token);
    drop(s);
    assert_eq!(start().1, token, "a client need not be told again");
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("open to all");
    let words = refused(&f, &["--listen"], None);
    assert!(
        words.contains("http-token") && words.contains("chmod 600") && !words.contains(&token),
        "{words}"
    );
}

/// The line with which a server tells of the token that it keeps.
fn said_of(s: &HttpServer, token: &str) -> String {
    let url = format!("http://{}/mcp", s.address);
    format!("claude mcp add --transport http ocx {url} --header \"Authorization: Bearer {token}\"\n")
}

#[test]
fn v07_a_token_file_that_others_can_use_is_refused() {
    let f = Fixture::with(&[]);
    let file = f.folder().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).expect("written");
    for mode in [0o644, 0o640, 0o606, 0o620] {
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("set");
        let words = refused(&f, &["--listen", "--token-file", file.to_str().expect("text")], None);
        assert!(words.contains("chmod 600") && !words.contains(TOKEN), "{mode:o}: {words}");
    }
}

#[test]
fn v07_no_token_is_for_loopback_and_warns() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    // The helper reads the warning.
    let s = HttpServer::proved(&f, |c| {
        c.arg("--no-token");
    });
    assert_eq!([None, Some(TOKEN)].map(|token| status(&s, token)), [200, 200]);
    assert!(!f.folder().join(".local/state/ocx/http-token").exists());
    let words = refused(&f, &["--listen", "0.0.0.0:0", "--no-token"], None);
    assert!(words.contains("0.0.0.0:0") && words.contains("--no-token"), "{words}");
    let words = refused(&f, &["--listen", "--no-token"], Some(TOKEN));
    assert!(words.contains("OCX_TOKEN") && !words.contains(TOKEN), "{words}");
    let words = refused(&f, &["--listen", "--no-token", "--token-file", "t"], None);
    assert!(words.contains("cannot be used with"), "{words}");
}

#[test]
fn r10_asked_to_end_it_ends_what_is_in_flight_answers_it_and_leaves_no_process() {
    for name in ["TERM", "INT"] {
        let f = Fixture::tested("sleep 7302", &[("a.txt", b"a\n")]);
        let mut s = HttpServer::start(&f);
        let mut half = s.begin("POST /mcp HTTP/1.1\r\nHost: loc");
        let mut call = s.begin_call(json!({"name": "ocx_test", "arguments": {}}));
        until("the test starts", || runs("sleep\x007302"));
        s.signal(name);
        let mut rest = Vec::new();
        let _ = half.read_to_end(&mut rest);
        assert_eq!(rest, b"", "half a head gets no answer");
        let answered = answer(&reply(&mut call).json());
        assert_eq!(answered["ok"], false, "{answered}");
        until("the server ends", || {
            s.child.try_wait().expect("a child").is_some_and(|status| status.success())
        });
        until("the test is gone", || !runs("sleep\x007302"));
    }
}

#[test]
fn x01_100_edits_at_once_of_one_file_are_all_there() {
    let lines = (0..100).map(|n| format!("old-{n:03}\n")).collect::<Vec<_>>().concat();
    let f = Fixture::with(&[("f.txt", lines.as_bytes())]);
    let s = HttpServer::start(&f);
    let calls: Vec<_> = (0..100)
        .map(|n| {
            let input = json!({"path": "f.txt", "old": format!("old-{n:03}"), "new": format!("new-{n:03}")});
            s.begin_call(json!({"name": "ocx_edit", "arguments": input}))
        })
        .collect();
    for mut call in calls {
        assert_eq!(answer(&reply(&mut call).json())["ok"], true);
    }
    assert_eq!(f.bytes("f.txt"), lines.replace("old", "new").as_bytes());
}

#[test]
fn more_connections_than_there_are_places_for_wait_their_turn() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let s = HttpServer::start(&f);
    let calls: Vec<_> =
        (0..200).map(|_| s.begin_call(json!({"name": "ocx_read", "arguments": {"path": "a.txt"}}))).collect();
    for mut call in calls {
        assert_eq!(answer(&reply(&mut call).json())["ok"], true);
    }
}

#[test]
fn m09_pings_are_answered_while_20_mb_are_being_answered() {
    let f = Fixture::with(&[]);
    std::fs::write(f.folder().join("big"), vec![7; 15 << 20]).expect("written");
    f.ocx(f.folder(), &["fossil", "uv", "add", "big", "-R", "r.fossil"]);
    let s = HttpServer::start(&f);
    let input = json!({"name": "big", "bytes": 15 << 20});
    let mut big = s.begin_call(json!({"name": "ocx_unversioned_get", "arguments": input}));
    let reading = std::thread::spawn(move || reply(&mut big));
    let mut meanwhile = 0;
    while !reading.is_finished() {
        assert_eq!(s.request("ping", json!({}))["result"], json!({}));
        meanwhile += 1;
    }
    let answered = reading.join().expect("an answer");
    assert!(
        answered.body.len() > 20_000_000 && meanwhile > 1,
        "{} bytes, {meanwhile} pings",
        answered.body.len()
    );
    assert_eq!(answer(&answered.json())["ok"], true);
}
