//! `kill -9` at any moment: what was answered stays, nothing half-done shows, and the next process says what it found.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::client::{Client, initialize, runs};
use crate::support::served::Served;
use crate::support::{four, until};

/// A process of `ocx mcp` in the clone's checkout.
fn serve(s: &Served) -> Client {
    let mut client = Client::start(&s.server_side, &s.server_side.folder().join("work"));
    client.request("initialize", initialize("2025-11-25"));
    client
}

/// The check-ins by `agent` in a repository, with their comments.
fn check_ins(repository: &Path) -> Vec<(String, String)> {
    let db = Connection::open(repository).expect("a repository");
    let sql = "SELECT uuid, comment FROM event JOIN blob ON rid=objid WHERE type='ci' AND user='agent' ORDER BY mtime";
    let mut rows = db.prepare(sql).expect("a query");
    let rows = rows.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).expect("rows");
    rows.collect::<Result<_, _>>().expect("rows")
}

fn assert_whole(repository: &Path) {
    let db = Connection::open(repository).expect("a repository");
    let check: String = db.query_row("PRAGMA integrity_check", [], |r| r.get(0)).expect("checked");
    assert_eq!(check, "ok", "{}", repository.display());
}

/// Numbers that scatter and are the same in every run.
struct Scatter(u64);

impl Scatter {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The answer that came before the end, if one did.
fn heard(client: &Client, id: i64) -> Option<Value> {
    client.lines.iter().find_map(|line| {
        let message: Value = serde_json::from_str(&line).ok()?;
        (message["id"] == id).then(|| message["result"]["structuredContent"].clone())
    })
}

fn kill(client: &mut Client) {
    client.child.kill().expect("killed");
    let status = client.child.wait().expect("ended");
    assert_eq!(status.signal(), Some(9));
}

#[test]
fn a_process_killed_in_a_save_loses_nothing_and_makes_nothing_twice() {
    let s = Served::new();
    let local = s.server_side.folder().join("clone.fossil");
    let mut scatter = Scatter(20_261_130);
    let (mut acknowledged, mut pushed) = (BTreeSet::new(), BTreeSet::new());
    let mut cut_short = 0;
    let started = Instant::now();
    for round in 0..40 {
        if started.elapsed() > Duration::from_secs(20) {
            break;
        }
        let title = format!("round {round}");
        let mut c = serve(&s);
        let new = format!("{round}\n");
        let edited = c.call("ocx_edit", json!({"path": "a.txt", "old": "", "new": new}));
        assert_eq!(edited["ok"], true, "{edited}");
        let id = c.start_request("tools/call", json!({"name": "ocx_save", "arguments": four(&title)}));
        std::thread::sleep(Duration::from_millis(scatter.below(120)));
        kill(&mut c);
        if let Some(answer) = heard(&c, id) {
            let hash = answer["result"]["checkin"].as_str().expect("a hash").to_owned();
            assert_eq!(answer["ok"], true, "{answer}");
            assert_eq!(answer["result"]["pushed"], true, "{answer}");
            pushed.insert(hash.clone());
            acknowledged.insert(hash);
        } else {
            cut_short += 1;
        }
        acknowledged.insert(resumed(&s, &title));
        assert_whole(&local);
        assert_whole(&s.server_side.repository());
    }
    let held: BTreeSet<String> = check_ins(&local).into_iter().map(|(hash, _)| hash).collect();
    let sent: BTreeSet<String> = s.on_server().into_iter().map(|(hash, _)| hash).collect();
    assert_eq!(held, acknowledged);
    assert_eq!(sent, acknowledged);
    assert!(pushed.is_subset(&sent));
    assert!(cut_short > 0, "some were killed before they had answered");
    eprintln!("{cut_short} of {} saves were cut short", acknowledged.len());
}

/// What the next process finds and makes good: exactly one check-in of that title, here and on the server.
fn resumed(s: &Served, title: &str) -> String {
    let local = s.server_side.folder().join("clone.fossil");
    let of_title = |all: Vec<(String, String)>| -> Vec<String> {
        all.into_iter().filter(|(_, c)| c.lines().next() == Some(title)).map(|(hash, _)| hash).collect()
    };
    let made = of_title(check_ins(&local));
    assert!(made.len() <= 1, "{title}: {made:?}");
    let mut c = serve(s);
    let context = c.call("ocx_context", json!({}))["result"].clone();
    let unsaved = context["changed"].as_array().expect("a list");
    let unsent = context["not_pushed"].as_array().expect("a list");
    if let Some(hash) = made.first() {
        assert!(unsaved.is_empty(), "what is saved is no change: {context:#}");
        let on_server = of_title(s.on_server());
        assert!(unsent.contains(&json!(hash)) || on_server == [hash.as_str()], "{context:#}");
    } else {
        assert_eq!(unsaved, &[json!({"path": "a.txt", "how": "edited"})], "{context:#}");
        assert!(unsent.is_empty(), "{context:#}");
    }
    let saved = c.call("ocx_save", four(title));
    if saved["code"] != "unchanged" {
        assert_eq!((&saved["ok"], &saved["result"]["pushed"]), (&json!(true), &json!(true)), "{saved:#}");
    }
    let (here, there) = (of_title(check_ins(&local)), of_title(s.on_server()));
    assert_eq!(here.len(), 1, "{title}: {here:?}");
    assert_eq!(here, there, "{title}");
    let context = c.call("ocx_context", json!({}))["result"].clone();
    assert_eq!((&context["changed"], &context["not_pushed"]), (&json!([]), &json!([])), "{context:#}");
    c.end();
    here[0].clone()
}

#[test]
fn a_process_killed_in_a_test_leaves_no_process_no_pass_and_no_lock() {
    let command = "echo begun; sleep 6201 & setsid sleep 6202 & sleep 6203";
    let f = crate::support::Fixture::tested(command, &[("a.txt", b"a\n")]);
    let mut scatter = Scatter(1);
    for _ in 0..6 {
        let mut c = Client::legacy(&f);
        let id = c.start_request("tools/call", json!({"name": "ocx_test", "arguments": {}}));
        std::thread::sleep(Duration::from_millis(scatter.below(800)));
        kill(&mut c);
        assert_eq!(heard(&c, id), None);
        until("no process of the test is left", || {
            !["sleep\x006201", "sleep\x006202", "sleep\x006203"].into_iter().any(runs)
        });
        let mut c = Client::legacy(&f);
        let context = c.call("ocx_context", json!({}));
        let standing = context["result"]["tests"][0]["standing"].as_str().unwrap_or_default().to_owned();
        assert!(
            standing == "not run" || standing.contains("lost") || standing.contains("ended"),
            "{standing}"
        );
        let saved = c.call("ocx_save", four("t"));
        assert_eq!(saved["ok"], false, "{saved}");
    }
    let mut c = Client::legacy(&f);
    c.call("ocx_edit", json!({"path": "ocx-tests.json", "old": command, "new": "true"}));
    assert_eq!(c.call("ocx_test", json!({}))["ok"], true, "no lock is left");
    assert_eq!(c.call("ocx_save", four("t"))["result"]["of"], 1, "no file of a half-done call is saved");
}
