//! What the writing tools send: to a real server, again after a failure, and never twice.

use ocx::format::Markup;
use ocx::name::User;
use ocx::record::Forum;
use ocx::repo::Repository;
use serde_json::{Value, json};

use crate::support::served::Served;

/// How many artifacts of a kind the server's own repository holds.
fn on_server(s: &Served, kind: &str) -> i64 {
    let db = rusqlite::Connection::open(s.server_side.repository()).expect("a repository");
    let sql = "SELECT count(*) FROM event WHERE type=?1 AND user='agent'";
    db.query_row(sql, [kind], |r| r.get(0)).expect("a count")
}

/// Gives `agent` these capabilities in its own clone, which say nothing of those on the server.
fn allow_here(s: &Served, capabilities: &str) {
    let clone = s.server_side.folder().join("clone.fossil");
    let db = rusqlite::Connection::open(clone).expect("a repository");
    db.execute("UPDATE user SET cap=?1 WHERE login='agent'", [capabilities]).expect("set");
}

/// Calls while the server is stopped, then again as the answer says; gives the first answer and the second.
#[track_caller]
fn stopped_then_again(s: &mut Served, tool: &str, input: &Value) -> (Value, Value) {
    s.stop();
    let first = s.call(tool, input.clone());
    assert_eq!((&first["ok"], &first["code"]), (&json!(false), &json!("not_pushed")), "{first:#}");
    assert_eq!(
        (&first["result"]["pushed"], &first["result"]["push"]["outcome"]),
        (&json!(false), &json!("unreachable"))
    );
    assert_eq!(first["next_call"]["tool"], tool);
    let twice = s.call(tool, first["next_call"]["arguments"].clone());
    assert_eq!(twice["code"], "not_pushed", "{twice:#}");
    s.start();
    let again = s.call(tool, first["next_call"]["arguments"].clone());
    assert_eq!((&again["ok"], &again["result"]["pushed"]), (&json!(true), &json!(true)), "{again:#}");
    assert!(!again.to_string().contains("s3cret") && !first.to_string().contains("s3cret"));
    (first, again)
}

#[test]
fn a_wiki_page_lands_on_the_server() {
    let s = Served::new();
    let answer = s.call("ocx_wiki_edit", json!({"page": "Plan", "old": "", "new": "one\n"}));
    assert_eq!((&answer["ok"], &answer["result"]["pushed"]), (&json!(true), &json!(true)), "{answer:#}");
    assert!(answer["result"]["link"].is_string() && answer["result"]["receipt"].is_null());
    assert_eq!(s.server_side.fossil(&["wiki", "export", "Plan"]).trim_end(), "one");
}

#[test]
fn a_wiki_edit_that_was_not_sent_is_sent_once_by_the_same_call() {
    let mut s = Served::new();
    s.call("ocx_wiki_edit", json!({"page": "Plan", "old": "", "new": "one\n"}));
    let add = json!({"page": "Plan", "old": "", "new": "two\n"});
    let (first, again) = stopped_then_again(&mut s, "ocx_wiki_edit", &add);
    assert_eq!(first["next_call"]["arguments"], add);
    assert_eq!(first["result"]["version"], again["result"]["version"]);
    assert_eq!(on_server(&s, "w"), 2);
    assert_eq!(s.server_side.fossil(&["wiki", "export", "Plan"]).trim_end(), "one\ntwo");
    // What the server has is no longer unsent: adding once more is meant.
    assert_eq!(s.call("ocx_wiki_edit", add)["ok"], true);
    assert_eq!(on_server(&s, "w"), 3);
}

#[test]
fn a_login_that_the_server_does_not_let_write_is_named() {
    let s = Served::new();
    s.server_side.fossil(&["user", "capabilities", "agent", "go"]);
    let answer = s.call("ocx_wiki_edit", json!({"page": "Plan", "old": "", "new": "one\n"}));
    assert_eq!(
        (&answer["code"], &answer["result"]["push"]["outcome"]),
        (&json!("not_pushed"), &json!("denied")),
        "{answer:#}"
    );
    assert_eq!(on_server(&s, "w"), 0);
}

#[test]
fn an_unversioned_file_that_was_not_sent_is_sent_by_name_and_hash_alone() {
    let mut s = Served::new();
    s.server_side.fossil(&["user", "capabilities", "agent", "gioy"]);
    allow_here(&s, "sy");
    let put = json!({"name": "hello.txt", "content": "aGVsbG8K"});
    let (first, _) = stopped_then_again(&mut s, "ocx_unversioned_put", &put);
    assert!(first["next_call"]["arguments"]["content"].is_null(), "{first:#}");
    assert_eq!(s.server_side.fossil(&["uv", "cat", "hello.txt"]), "hello\n");
    assert_eq!(s.call("ocx_unversioned_put", put)["ok"], true);
}

#[test]
fn an_unversioned_file_that_the_server_does_not_take_is_not_called_pushed() {
    let s = Served::new();
    allow_here(&s, "sy");
    let answer = s.call("ocx_unversioned_put", json!({"name": "hello.txt", "content": "aGVsbG8K"}));
    assert_eq!(
        (&answer["code"], &answer["result"]["push"]["outcome"]),
        (&json!("not_pushed"), &json!("denied")),
        "{answer:#}"
    );
    assert_eq!(s.server_side.fossil(&["uv", "list"]).trim(), "");
}

#[test]
fn a_reply_that_was_not_sent_is_sent_once_by_the_same_call() {
    let mut s = Served::new();
    let clone = Repository::open(&s.server_side.folder().join("clone.fossil")).expect("a repository");
    let agent = User::parse("agent").expect("a user");
    let first = Forum::of(&clone).start("Plan", "Begin.", Markup::Markdown, &agent).expect("a thread");
    let reply = json!({"to": first.hash, "text": "Done."});
    stopped_then_again(&mut s, "ocx_post", &reply);
    assert_eq!(on_server(&s, "f"), 2);
    assert_eq!(s.call("ocx_post", reply)["code"], "unchanged");
    assert_eq!(on_server(&s, "f"), 2);
}

#[test]
fn a_verdict_that_was_not_sent_is_sent_once_by_the_same_call() {
    let mut s = Served::new();
    let checkin = s.call("ocx_context", json!({}))["result"]["parent"]["checkin"].clone();
    let verdict = json!({"checkin": checkin, "verdict": "pass", "note": "fine"});
    let (first, again) = stopped_then_again(&mut s, "ocx_audit", &verdict);
    assert_eq!(first["result"]["artifact"], again["result"]["artifact"]);
    let listed = s.server_side.fossil(&["tag", "list", checkin.as_str().expect("a hash")]);
    assert!(listed.contains("audited-agent"), "{listed}");
    assert_eq!(s.call("ocx_audit", verdict)["code"], "unchanged");
}
