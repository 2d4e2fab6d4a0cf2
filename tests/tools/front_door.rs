//! What comes through the front door: what messages cost, which request is meant, what is left out, and the end.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ocx::tool::catalogue::TOOLS;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::client::{Client, answer, initialize, runs};
use crate::support::http::{HttpServer, LEGACY, USUAL, reply, request};
use crate::support::{Fixture, HANG, OCX, required, until};

/// The longest message that is taken, in bytes.
const MESSAGE: usize = 16 << 20;

/// What a program has before any message comes, and more.
const BASE: usize = 100 << 20;

/// The most memory that a process has had, in bytes.
fn peak(process: &Child) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).expect("status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    peak.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

/// A call of about this many bytes, whose arguments hold this over and over.
fn call_of(bytes: usize, piece: &str) -> String {
    let (start, end) = (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ocx_edit","arguments":{"x":["#,
        "0]}}}",
    );
    let pieces = (bytes - start.len() - end.len()) / piece.len();
    [start, &piece.repeat(pieces), end].concat()
}

/// Messages of the greatest length, each of another kind.
fn heavy() -> Vec<String> {
    let text = format!("\"{}\",", "x".repeat(1 << 20));
    let escapes = format!("\"{}\",", "\\u0001".repeat(1 << 17));
    let mut all: Vec<_> = ["[],", "{},", "[[[]]],", "1,", "\"\",", "{\"a\":{}},", &text, &escapes]
        .iter()
        .map(|piece| call_of(MESSAGE, piece))
        .collect();
    all.push("[".repeat(MESSAGE));
    all.push(format!("{{\"id\":1,{}", "\"a\":[],".repeat(MESSAGE / 7 - 8)));
    all
}

#[test]
fn v08_no_message_costs_more_than_ten_times_its_bytes() {
    let f = Fixture::with(&[]);
    let mut c = Client::legacy(&f);
    for message in heavy() {
        c.raw(message.as_bytes());
        let reply = c.message();
        assert!(reply["error"].is_object() || answer(&reply)["ok"] == false, "{reply}");
        c.ping();
    }
    let peak = peak(&c.child);
    assert!(peak < BASE + 10 * MESSAGE, "{} MiB", peak >> 20);
}

#[test]
fn v08_over_all_connections_what_is_parsed_is_bounded() {
    let f = Fixture::with(&[]);
    let s = HttpServer::start(&f);
    let messages = heavy();
    thread::scope(|scope| {
        for message in messages.iter().chain(&messages) {
            let s = &s;
            scope.spawn(move || {
                let reply = s.post(message.as_bytes());
                assert!([200, 400, 503].contains(&reply.status), "{}", reply.status);
            });
        }
    });
    assert_eq!(s.request("ping", json!({}))["result"], json!({}));
    let peak = peak(&s.child);
    assert!(peak < BASE + 10 * 4 * MESSAGE, "{} MiB", peak >> 20);
}

#[test]
fn m12_a_second_request_under_an_id_in_flight_is_refused_and_the_first_lives() {
    let f = Fixture::tested("sleep 3012", &[("a.txt", b"a\n")]);
    let mut c = Client::legacy(&f);
    let test = c.start_request("tools/call", json!({"name": "ocx_test", "arguments": {}}));
    until("the test starts", || runs("sleep\x003012"));
    for method in ["ping", "tools/list"] {
        c.send(&json!({"jsonrpc": "2.0", "id": test, "method": method}));
        let refused = c.reply(&json!(test));
        let words = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(words.contains("in flight"), "{refused}");
    }
    c.ping();
    assert!(runs("sleep\x003012"), "the first goes on");
    c.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": test}}));
    until("the first is cancelled", || !runs("sleep\x003012"));
    // An id that was answered is free again, as for clients that know only one.
    for _ in 0..50 {
        c.send(&json!({"jsonrpc": "2.0", "id": "one", "method": "ping"}));
        assert_eq!(c.reply(&json!("one"))["result"], json!({}));
        let params = json!({"name": "ocx_read", "arguments": {"path": "a.txt"}});
        c.send(&json!({"jsonrpc": "2.0", "id": "one", "method": "tools/call", "params": params}));
        assert_eq!(answer(&c.reply(&json!("one")))["ok"], true);
    }
}

/// The session id that a server gives.
fn session(s: &HttpServer) -> String {
    let reply = s.post(request(1, "initialize", initialize("2025-11-25")).as_bytes());
    let id = reply.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ").map(str::to_owned));
    id.expect("a session id")
}

/// Posts a notification that cancels the request 1, and returns the status.
fn cancel(s: &HttpServer, session: Option<&str>) -> u16 {
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    let body = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    s.post_with(&format!("{USUAL}{LEGACY}{session}"), body.to_string().as_bytes()).status
}

#[test]
fn m13_a_notification_cancels_a_call_over_http_and_only_that_of_its_client() {
    let f = Fixture::tested("sleep 3013", &[]);
    let s = HttpServer::start(&f);
    let (own, other) = (session(&s), session(&s));
    assert_ne!(own, other);
    for session in [None, Some(&own[..])] {
        let headers = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let body = request(1, "tools/call", json!({"name": "ocx_test", "arguments": {}}));
        let (length, host) = (body.len(), &s.address);
        let mut call = s.begin(&format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{USUAL}{LEGACY}{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
        until("the test starts", || runs("sleep\x003013"));
        assert_eq!(cancel(&s, Some(&other)), 202);
        assert_eq!(s.request("ping", json!({}))["result"], json!({}));
        assert!(runs("sleep\x003013"), "another client's id is another");
        if session.is_some() {
            let twice = s.post_with(&format!("{USUAL}{LEGACY}{headers}"), body.as_bytes()).json();
            assert!(twice["error"]["message"].as_str().unwrap_or_default().contains("in flight"), "{twice}");
        }
        assert_eq!(cancel(&s, session), 202);
        until("the test is gone", || !runs("sleep\x003013"));
        let ended = answer(&reply(&mut call).json());
        assert_eq!(ended["ok"], false, "{ended}");
    }
}

#[test]
fn m14_an_empty_string_or_null_in_an_optional_field_means_that_it_is_absent() {
    let f = Fixture::tested("true", &[("a.txt", b"a.txt\n")]);
    for tool in TOOLS.iter().map(|tool| tool.declaration()) {
        for field in tool.fields().filter(|field| !field.required) {
            let mut plain = required(tool);
            plain["dry_run"] = true.into();
            if tool.name == "ocx_unversioned_put" {
                // Of these two, one must be there.
                let other = if field.name == "content" { "hash" } else { "content" };
                plain[other] = if other == "content" { "YQ==".into() } else { "0".repeat(64).into() };
            }
            let mut expected = f.call(tool.name, plain.clone());
            for nothing in [json!(""), Value::Null] {
                let mut input = plain.clone();
                if field.name == "dry_run" {
                    if !tool.hints.read_only {
                        continue;
                    }
                    expected["dry_run"] = false.into();
                }
                input[field.name] = nothing.clone();
                let mut given = f.call(tool.name, input);
                for answer in [&mut given, &mut expected] {
                    settle(answer);
                }
                assert_eq!(given, expected, "{} with {}: {nothing}", tool.name, field.name);
            }
        }
    }
}

/// Leaves out of an answer what differs from call to call.
fn settle(answer: &mut Value) {
    match answer {
        Value::Object(fields) => {
            fields.retain(|name, _| !["time", "state_bytes", "kept", "disk", "age"].contains(&name.as_str()));
            fields.values_mut().for_each(settle);
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        _ => {}
    }
}

#[test]
fn m14_a_meta_that_is_null_is_none() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let mut c = Client::legacy(&f);
    let params = json!({"name": "ocx_read", "arguments": {"path": "a.txt", "checkin": "", "from": null}, "_meta": null});
    assert_eq!(answer(&c.request("tools/call", params))["ok"], true);
    for method in ["ping", "tools/list"] {
        let reply = c.request(method, json!({"_meta": null}));
        assert!(reply["result"].is_object(), "{reply}");
    }
}

#[test]
fn m18_a_client_that_reads_json_gets_json() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let s = HttpServer::start(&f);
    let params = json!({"name": "ocx_read", "arguments": {"path": "a.txt"}, "_meta": {"progressToken": 1}});
    let body = request(1, "tools/call", params);
    let with = |accept: &str| {
        s.post_with(&format!("{accept}Content-Type: application/json\r\n{LEGACY}"), body.as_bytes())
    };
    for accept in ["", "Accept: */*\r\n", "Accept: application/json\r\n", "Accept: application/*;q=0.5\r\n"] {
        let reply = with(accept);
        assert_eq!(reply.status, 200, "{accept}{}", reply.text());
        assert!(reply.head.contains("content-type: application/json"), "{}", reply.head);
        assert_eq!(answer(&reply.json())["ok"], true);
    }
    for accept in ["Accept: text/html\r\n", "Accept: application/json;q=0\r\n"] {
        assert_eq!(with(accept).status, 406, "{accept}");
    }
}

#[test]
fn v16_only_the_servers_own_origin_passes() {
    let f = Fixture::with(&[]);
    let s = HttpServer::start(&f);
    let port = s.address.rsplit(':').next().expect("a port");
    let ping = request(1, "ping", json!({}));
    let status =
        |origin: &str| s.post_with(&format!("{USUAL}{LEGACY}Origin: {origin}\r\n"), ping.as_bytes()).status;
    assert_eq!(status(&format!("http://{}", s.address)), 200);
    for origin in [
        "http://203.0.113.7".to_owned(),
        format!("http://203.0.113.7:{port}"),
        format!("http://[2001:db8::1]:{port}"),
        "http://127.0.0.1".to_owned(),
        format!("http://127.0.0.1.evil.example:{port}"),
    ] {
        assert_eq!(status(&origin), 403, "{origin}");
    }
}

/// Runs a command of plain Fossil on a text, and returns what it wrote. It must come to its end.
fn rendered(f: &Fixture, command: &[&str], text: &str) -> String {
    let file = f.folder().join("text");
    std::fs::write(&file, text).expect("written");
    let mut child = f
        .command(OCX, f.folder())
        .arg("fossil")
        .args(command)
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("ocx fossil");
    let mut output = child.stdout.take().expect("a stream");
    let reading = thread::spawn(move || {
        let mut text = Vec::new();
        output.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    until("the text is rendered", || child.try_wait().expect("a child").is_some());
    reading.join().expect("a thread").expect("a text")
}

#[test]
fn v10_hostile_markup_is_rendered_in_bounded_time() {
    let f = Fixture::with(&[]);
    let growing = (1..900).map(|n| format!("*a {} ", "`".repeat(n))).collect::<Vec<_>>().concat();
    let pieces = [
        "***a ",
        "*a ",
        "__a ",
        "*a [b ",
        "[",
        "![a",
        "[a](b",
        "(^a",
        "<a ",
        "<!-- \n\n",
        "<hr\n\n",
        &growing,
    ];
    for piece in pieces {
        let text = piece.repeat((1 << 20) / piece.len());
        let html = rendered(&f, &["test-markdown-render"], &text);
        assert!(!html.is_empty(), "{piece}");
    }
    for piece in ["[", "[a|", "<a href=", "<a href=\"", "<div></b>", "<b></i>"] {
        let text = piece.repeat((1 << 20) / piece.len());
        let html = rendered(&f, &["test-wiki-render"], &text);
        assert!(
            html.contains("&lt;") || !piece.starts_with("<a"),
            "what is not looked into is text: {piece}"
        );
    }
    // What people write is as it was.
    let html = rendered(&f, &["test-markdown-render"], "***a*** _b_ [c](/d) `e` <b>f</b>\n\n* g\n");
    for part in ["<b><i>a</i></b>", "<i>b</i>", "href=\"/d\"", "<code>e</code>", "<b>f</b>", "<li>"] {
        let strong = part.replace("<b><i>", "<strong><em>").replace("</i></b>", "</em></strong>");
        let emphasis = part.replace("i>", "em>");
        assert!([part, &strong, &emphasis].iter().any(|part| html.contains(part)), "{part}: {html}");
    }
}

#[test]
fn v10_a_hostile_page_and_post_are_kept_and_the_engine_goes_on() {
    let f = Fixture::with(&[]);
    let mut c = Client::legacy(&f);
    let page = "***a ".repeat(200_000);
    let made = c.call("ocx_wiki_edit", json!({"page": "Stars", "old": "", "new": page}));
    assert_eq!(made["ok"], true, "{made}");
    let read = c.call("ocx_wiki_read", json!({"page": "Stars"}));
    assert_eq!(read["ok"], true, "{read}");
}

/// Ends a process by a signal, and returns how it ended. Whatever it does, it must not go on.
fn ended_by(process: &mut Child, name: &str) -> std::process::ExitStatus {
    let sent = Command::new("kill").args([format!("-{name}"), process.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
    let asked = Instant::now();
    until("it ends", || process.try_wait().expect("a child").is_some());
    // A second is promised; a busy machine gets more, and what hangs takes for ever.
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    process.wait().expect("ended")
}

/// The wiki pages that a plain copy of the repository file holds, without anything that lies beside it.
fn pages_of_a_copy(f: &Fixture) -> i64 {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("copy.fossil");
    std::fs::copy(f.repository(), &copy).expect("copied");
    let db = Connection::open(&copy).expect("a database");
    db.query_row("SELECT count(*) FROM tag WHERE tagname GLOB 'wiki-*'", [], |row| row.get(0))
        .expect("a count")
}

/// Whether something stands in the log beside the repository file.
fn has_log(f: &Fixture) -> bool {
    f.folder().join("r.fossil-wal").metadata().is_ok_and(|meta| meta.len() > 0)
}

#[test]
fn a_signal_ends_a_session_in_order_and_nothing_acknowledged_is_missing() {
    for (name, reports) in [("TERM", false), ("INT", false), ("TERM", true)] {
        let f = Fixture::tested("sleep 3021", &[]);
        let mut c = Client::legacy(&f);
        for page in ["One", "Two", "Three"] {
            let made = c.call("ocx_wiki_edit", json!({"page": page, "old": "", "new": "x\n"}));
            assert_eq!(made["ok"], true, "{made}");
        }
        assert!(has_log(&f), "there is something to fold in");
        let mut params = json!({"name": "ocx_test", "arguments": {}});
        if reports {
            params["_meta"]["progressToken"] = "p".into();
        }
        let test = c.start_request("tools/call", params);
        until("the test starts", || runs("sleep\x003021"));
        if reports {
            while c.message()["method"] != "notifications/progress" {}
        }
        ended_by(&mut c.child, name);
        // A busy machine may leave no time for the answer.
        for line in &c.lines {
            let message: Value = serde_json::from_str(&line).expect("JSON");
            assert!(message["id"] != test || answer(&message)["ok"] == false, "{message}");
        }
        until("the test is gone", || !runs("sleep\x003021"));
        assert!(!has_log(&f), "{name}");
        assert_eq!(pages_of_a_copy(&f), 3);
    }
}

#[test]
fn a_signal_ends_a_session_whose_client_reads_nothing() {
    let f = Fixture::with(&[("a.txt", &vec![b'a'; 100_000])]);
    let mut c = Client::legacy(&f);
    assert_eq!(c.call("ocx_wiki_edit", json!({"page": "One", "old": "", "new": "x\n"}))["ok"], true);
    drop(c);
    let mut command = f.command(OCX, &f.root());
    let mut child = command
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("ocx mcp");
    let mut input = child.stdin.take().expect("a stream");
    let edit = json!({"name": "ocx_wiki_edit", "arguments": {"page": "Two", "old": "", "new": "x\n"}});
    let writing = thread::spawn(move || {
        let _ = writeln!(input, "{}", request(0, "initialize", initialize("2025-11-25")));
        let _ = writeln!(input, "{}", request(1, "tools/call", edit));
        let read = json!({"name": "ocx_read", "arguments": {"path": "a.txt"}});
        // Until the pipe is full, or the process has ended.
        (2..100_000).all(|id| writeln!(input, "{}", request(id, "tools/call", read.clone())).is_ok())
    });
    until("the page is there", || has_page(&f, "Two"));
    thread::sleep(Duration::from_secs(1));
    ended_by(&mut child, "TERM");
    assert!(!has_log(&f));
    assert!(!writing.join().expect("a thread"));
    assert_eq!(pages_of_a_copy(&f), 2);
}

/// Makes the engine's next wiki page work for an hour: an index of where in a long text another one stands. SQLite
/// cannot be asked to leave it.
fn hold_the_engine(f: &Fixture) {
    let db = Connection::open(f.repository()).expect("a database");
    let last: i64 = db.query_row("SELECT max(objid) FROM event", [], |row| row.get(0)).expect("a number");
    let many = |count: usize| format!("printf('%.*c', {count}, type)");
    let endless =
        format!("instr(CAST({} AS BLOB), CAST({}||'b' AS BLOB))", many(16_000_000), many(8_000_000));
    db.execute_batch(&format!("CREATE INDEX hold ON event(({endless})) WHERE objid>{last}"))
        .expect("an index");
}

/// Whether the page is there, for one who opens the repository later.
fn has_page(f: &Fixture, name: &str) -> bool {
    let db = Connection::open(f.repository()).expect("a database");
    let count = "SELECT count(*) FROM tag WHERE tagname='wiki-'||?1";
    db.query_row(count, [name], |row| row.get::<_, i64>(0)).expect("a count") == 1
}

#[test]
fn v10_a_signal_ends_the_program_whatever_the_engine_does() {
    for name in ["TERM", "INT"] {
        let f = Fixture::with(&[]);
        let mut c = Client::legacy(&f);
        assert_eq!(c.call("ocx_wiki_edit", json!({"page": "One", "old": "", "new": "x\n"}))["ok"], true);
        hold_the_engine(&f);
        let page = json!({"page": "Two", "old": "", "new": "x\n"});
        let call = c.start_request("tools/call", json!({"name": "ocx_wiki_edit", "arguments": page}));
        thread::sleep(Duration::from_secs(1));
        c.ping();
        ended_by(&mut c.child, name);
        assert!(c.lines.iter().all(|line| !line.contains(&format!("\"id\":{call}"))), "it was not answered");
        assert!(has_page(&f, "One") && !has_page(&f, "Two"));
    }
}

#[test]
fn v10_a_signal_ends_the_http_server_whatever_the_engine_does() {
    let f = Fixture::with(&[]);
    let mut s = HttpServer::start(&f);
    assert_eq!(s.call("ocx_wiki_edit", json!({"page": "One", "old": "", "new": "x\n"}))["ok"], true);
    hold_the_engine(&f);
    let page = json!({"page": "Two", "old": "", "new": "x\n"});
    let _call = s.begin_call(json!({"name": "ocx_wiki_edit", "arguments": page}));
    thread::sleep(Duration::from_secs(1));
    assert_eq!(s.request("ping", json!({}))["result"], json!({}));
    ended_by(&mut s.child, "TERM");
    assert!(has_page(&f, "One") && !has_page(&f, "Two"));
}

#[test]
fn v07_a_socket_is_the_owners_alone_and_needs_no_token() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let path = f.folder().join("ocx.sock");
    let start = || {
        let mut command = f.command(OCX, &f.root());
        command.args(["mcp", "--socket"]).arg(&path).env_remove("OCX_TOKEN");
        command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("ocx mcp")
    };
    let mut child = start();
    until("it listens", || UnixStream::connect(&path).is_ok());
    assert_eq!(path.metadata().expect("a socket").permissions().mode() & 0o777, 0o600);
    assert!(!f.folder().join(".local/state/ocx/http-token").exists(), "no token is made");
    let body = request(1, "tools/call", json!({"name": "ocx_read", "arguments": {"path": "a.txt"}}));
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{USUAL}{LEGACY}Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = UnixStream::connect(&path).expect("connected");
    stream.set_read_timeout(Some(HANG)).expect("a time limit");
    stream.write_all((head + &body).as_bytes()).expect("sent");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("an answer");
    assert!(said.starts_with("HTTP/1.1 200") && said.contains(r#""ok":true"#), "{said}");
    let mut second = start();
    until("a second server is refused", || second.try_wait().expect("a child").is_some());
    assert!(!second.wait().expect("ended").success());
    // A busy machine may leave no time for more than the end.
    if ended_by(&mut child, "TERM").success() {
        assert!(!path.exists(), "it goes with its server");
    }
}

#[test]
fn a_folder_that_is_not_there_is_refused_at_the_start() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    for (folder, words) in [("nowhere", "No such file"), ("co/a.txt", "is no folder")] {
        for command in [&["mcp"][..], &["read", "a.txt"], &["status", "--json"]] {
            let mut ocx = f.command(OCX, f.folder());
            let output = ocx.args(["-C", folder]).args(command).stdin(Stdio::null()).output().expect("ocx");
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(!output.status.success(), "{folder}: {said}");
            assert!(said.contains(folder) && said.contains(words) && said.contains("-C"), "{said}");
        }
    }
}

#[test]
fn a_repository_that_can_be_read_but_not_written_says_so() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    // A file system that takes no writes, since a mode stops no test that runs as root.
    let script = "mount --bind . . && mount -o remount,ro,bind . && cd . && exec \"$@\" --json";
    let ocx = |args: &[&str]| {
        let repository = f.repository().display().to_string();
        let made = Command::new("unshare")
            .args(["-r", "-m", "sh", "-c", script, "sh", OCX, "-R", &repository])
            .args(args)
            .current_dir(f.folder())
            .output();
        let said = made.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        serde_json::from_str::<Value>(&said.unwrap_or_default()).ok()
    };
    let Some(read) = ocx(&["wiki-read"]) else {
        eprintln!("not tried: this machine mounts nothing");
        return;
    };
    assert_eq!(read["ok"], true, "{read}");
    let answer = ocx(&["wiki-edit", "Page", "--old", "", "--new", "text"]).expect("an answer");
    assert_eq!(answer["code"], "denied", "{answer}");
    let words = answer["stopped"].as_str().unwrap_or_default();
    assert!(words.contains("can be read but not written"), "{answer}");
    let step = answer["next_step"].as_str().unwrap_or_default();
    assert!(step.contains("writable") && !step.contains("capability"), "{answer}");
}
