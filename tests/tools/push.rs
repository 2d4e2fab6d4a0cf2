//! Saving to a server: what was sent, what was not and why, and that nothing is ever sent twice.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use ocx::process::Supervisor;
use ocx::repo::Repository;
use ocx::sync::Remote;
use ocx::tool::{CallControl, Service};
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::http::HttpServer;
use crate::support::served::Served;
use crate::support::{OCX, four};

/// A server that takes a request and sends one byte of its answer a minute; it tells when it has begun, and when
/// the client has gone.
struct Slow {
    port: u16,
    begun: Receiver<()>,
    gone: Receiver<()>,
}

impl Slow {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let (tell_begun, begun) = channel();
        let (tell_gone, gone) = channel();
        // Its one connection ends with the client's process, and it with that.
        thread::spawn(move || {
            let (mut line, _) = listener.accept().expect("a client");
            drop(listener);
            let _ = line.read(&mut [0; 100]);
            line.write_all(b"H").expect("sent");
            tell_begun.send(()).expect("awaited");
            let _ = std::io::copy(&mut line, &mut std::io::sink());
            let _ = tell_gone.send(());
        });
        Self { port, begun, gone }
    }

    fn until_begun(&self) {
        self.begun.recv_timeout(Duration::from_mins(1)).expect("a push began");
    }

    /// Sooner than the limits after which a push ends by itself.
    fn until_gone(&self) {
        self.gone.recv_timeout(Duration::from_secs(30)).expect("the push ended");
    }
}

/// Has the agent's clone send to another port.
fn redirect(s: &Served, port: u16) {
    let clone = Repository::open(&s.server_side.folder().join("clone.fossil")).expect("a repository");
    let remote = Remote::parse(&format!("http://agent:s3cret@127.0.0.1:{port}/")).expect("a URL");
    clone.set_remote(Some(&remote), true).expect("remembered");
}

/// What the check-in is that a cancelled push has left, and that it is sent once by the next save.
fn committed_and_sent_by_the_next_save(s: &Served) {
    let context = s.call("ocx_context", json!({}));
    assert_eq!(context["result"]["not_pushed"].as_array().map(Vec::len), Some(1), "{context:#}");
    redirect(s, s.port);
    let answer = s.call("ocx_save", four("land it"));
    assert_eq!(answer["result"]["pushed"], true, "{answer:#}");
    assert_eq!(answer["result"]["checkin"], context["result"]["not_pushed"][0]);
    assert_eq!(s.on_server().len(), 1);
}

#[test]
fn a_save_lands_on_the_server() {
    let s = Served::new();
    s.edit("a", "b");
    let answer = s.call("ocx_save", four("land it"));
    assert_eq!(answer["ok"], true, "{answer:#}");
    let saved = &answer["result"];
    assert_eq!((&saved["committed"], &saved["pushed"]), (&json!(true), &json!(true)));
    let hash = saved["checkin"].as_str().expect("a hash");
    assert!(saved["link"].as_str().unwrap_or_default().ends_with(&format!("/info/{hash}")));
    assert!(saved["receipt"].is_null() && saved["no_receipt"].is_string());
    let held = s.on_server();
    assert_eq!((held.len(), held[0].0.as_str()), (1, hash));
    assert_eq!(held[0].1, "land it\nIntent: why\nExpression: where\nDemonstrates: unit");
    assert!(!answer.to_string().contains("s3cret"));
    assert_eq!(s.call("ocx_context", json!({}))["result"]["not_pushed"], json!([]));
}

#[test]
fn s01_a_stopped_server_leaves_it_committed_and_the_next_save_sends_it_once() {
    let mut s = Served::new();
    s.stop();
    s.edit("a", "b");
    let answer = s.call("ocx_save", four("t"));
    assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!("not_pushed")), "{answer:#}");
    assert_eq!((&answer["result"]["committed"], &answer["result"]["pushed"]), (&json!(true), &json!(false)));
    assert_eq!(answer["result"]["push"]["outcome"], "unreachable", "{answer:#}");
    assert_eq!(answer["next_call"], json!({"tool": "ocx_save", "arguments": four("t")}));
    let hash = answer["result"]["checkin"].clone();
    assert_eq!(s.call("ocx_context", json!({}))["result"]["not_pushed"], json!([hash]));
    s.start();
    let again = s.call("ocx_save", answer["next_call"]["arguments"].clone());
    assert_eq!(
        (&again["ok"], &again["result"]["checkin"], &again["result"]["pushed"]),
        (&json!(true), &hash, &json!(true)),
        "{again:#}"
    );
    assert_eq!(s.on_server().len(), 1);
    assert_eq!(s.call("ocx_save", four("t"))["code"], "unchanged");
}

#[test]
fn s02_a06_a_wrong_password_is_named_and_never_shown() {
    let s = Served::new();
    s.server_side.fossil(&["user", "password", "agent", "another"]);
    s.edit("a", "b");
    let answer = s.call("ocx_save", four("t"));
    assert_eq!(
        (&answer["code"], &answer["result"]["push"]["outcome"]),
        (&json!("not_pushed"), &json!("login_failed")),
        "{answer:#}"
    );
    assert!(!answer.to_string().contains("s3cret"));
    assert!(!s.call("ocx_context", json!({})).to_string().contains("s3cret"));
}

#[test]
fn s03_a_login_that_may_not_write_is_named() {
    let s = Served::new();
    s.server_side.fossil(&["user", "capabilities", "agent", "go"]);
    s.edit("a", "b");
    let answer = s.call("ocx_save", four("t"));
    assert_eq!(
        (&answer["code"], &answer["result"]["push"]["outcome"]),
        (&json!("not_pushed"), &json!("denied")),
        "{answer:#}"
    );
    assert!(s.on_server().is_empty());
}

#[test]
fn a_change_after_a_failed_push_is_sent_with_what_was_unsent() {
    let mut s = Served::new();
    s.stop();
    s.edit("a", "b");
    assert_eq!(s.call("ocx_save", four("one"))["code"], "not_pushed");
    s.start();
    s.edit("b", "c");
    let answer = s.call("ocx_save", four("two"));
    assert_eq!(answer["result"]["pushed"], true, "{answer:#}");
    assert_eq!(s.on_server().len(), 2);
}

#[test]
fn c07_a_check_in_that_another_clone_pushed_is_seen_before_it_is_forked() {
    let s = Served::new();
    s.edit("a", "b");
    let first = s.call("ocx_save", four("one"));
    let branch = first["result"]["branch"].as_str().expect("a branch");
    let f = &s.server_side;
    let url = format!("http://agent:s3cret@127.0.0.1:{}/", s.port);
    f.ocx(f.folder(), &["clone", &url, "other.fossil", "--save-password"]);
    f.ocx(f.folder(), &["open", "other.fossil", "other", branch, "--user", "agent"]);
    let other = Service::with_supervisor(f.folder().join("other"), Supervisor::at(OCX));
    s.edit("b", "c");
    assert_eq!(s.call("ocx_save", four("two"))["ok"], true);
    std::fs::write(f.folder().join("other/a.txt"), "mine\n").expect("written");
    let answer = ocx::tool::call(&other, "ocx_save", four("three"), &CallControl::default()).into_json();
    assert_eq!(answer["code"], "would_fork", "{answer:#}");
    assert_eq!(s.on_server().len(), 2);
    assert_eq!(std::fs::read(f.folder().join("other/a.txt")).expect("there"), b"mine\n");
}

#[test]
fn s08_m07_a_cancelled_call_ends_its_push_while_other_calls_are_answered() {
    let s = Served::new();
    let slow = Slow::new();
    redirect(&s, slow.port);
    s.edit("a", "b");
    let mut client = Client::start(&s.server_side, &s.server_side.folder().join("work"));
    client.request("initialize", crate::support::client::initialize("2025-11-25"));
    let save = json!({"name": "ocx_save", "arguments": four("land it")});
    let id = client.start_request("tools/call", save);
    slow.until_begun();
    let meanwhile = client.call("ocx_read", json!({"path": "a.txt"}));
    assert_eq!(meanwhile["ok"], true, "{meanwhile:#}");
    client.call("ocx_edit", json!({"path": "a.txt", "old": "b", "new": "c"}));
    client.call("ocx_edit", json!({"path": "a.txt", "old": "c", "new": "b"}));
    assert!(slow.gone.try_recv().is_err(), "the push goes on");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    slow.until_gone();
    client.ping();
    client.end();
    committed_and_sent_by_the_next_save(&s);
}

#[test]
fn s08_m07_a_closed_response_ends_its_push() {
    let s = Served::new();
    let slow = Slow::new();
    redirect(&s, slow.port);
    s.edit("a", "b");
    let work = s.server_side.folder().join("work");
    let server = HttpServer::with(&s.server_side, |command| {
        command.current_dir(work);
    });
    let call = server.begin_call(json!({"name": "ocx_save", "arguments": four("land it")}));
    slow.until_begun();
    drop(call);
    slow.until_gone();
    drop(server);
    committed_and_sent_by_the_next_save(&s);
}

#[test]
fn s08_a_push_that_was_cancelled_says_that_it_is_committed_and_not_pushed() {
    let s = Served::new();
    let slow = Slow::new();
    redirect(&s, slow.port);
    s.edit("a", "b");
    let watch = CallControl::default();
    let answer: Value = thread::scope(|scope| {
        let save = scope.spawn(|| ocx::tool::call(&s.session, "ocx_save", four("land it"), &watch));
        slow.until_begun();
        watch.cancel();
        save.join().expect("an answer").into_json()
    });
    assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!("not_pushed")), "{answer:#}");
    assert_eq!((&answer["result"]["committed"], &answer["result"]["pushed"]), (&json!(true), &json!(false)));
    assert_eq!(answer["result"]["push"]["outcome"], "cancelled", "{answer:#}");
    assert_eq!(answer["next_call"], json!({"tool": "ocx_save", "arguments": four("land it")}));
    committed_and_sent_by_the_next_save(&s);
}

/// A server that sends everyone elsewhere, as often as it is asked.
fn redirecting(to: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let reply =
        format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    thread::spawn(move || {
        for stream in listener.incoming().take(20).flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 8_192]);
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    port
}

#[test]
fn s06_a_failed_or_redirected_sync_leaves_the_remembered_remote_alone() {
    let s = Served::new();
    let (f, work) = (&s.server_side, s.server_side.folder().join("work"));
    let remote = || {
        let output = f.command(OCX, &work).args(["fossil", "remote"]).output().expect("ocx runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let before = remote();
    assert!(before.contains(&s.port.to_string()), "{before}");
    let dead = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let dead = format!("http://agent@127.0.0.1:{dead}/");
    let away = format!("http://agent@127.0.0.1:{}/", redirecting(&dead));
    for url in [&dead, &away] {
        for sync in ["push", "pull"] {
            let output = f.command(OCX, &work).args([sync, url]).output().expect("ocx runs");
            assert!(!output.status.success(), "{sync} {url}");
            assert_eq!(remote(), before, "{sync} {url}");
        }
    }
    s.edit("a", "b");
    let saved = s.call("ocx_save", four("t"));
    assert_eq!(saved["result"]["pushed"], true, "{saved:#}");
    assert_eq!(s.on_server().len(), 1);
}
