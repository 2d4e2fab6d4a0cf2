//! Saving to a server: what was sent, what was not and why, and that nothing is ever sent twice.

mod fixture;

use ocx::run::Leash;
use ocx::tool::{Session, Watch};
use serde_json::json;

use fixture::served::Served;
use fixture::{OCX, four};

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
    let other = Session::with_leash(f.folder().join("other"), Leash::at(OCX));
    s.edit("b", "c");
    assert_eq!(s.call("ocx_save", four("two"))["ok"], true);
    std::fs::write(f.folder().join("other/a.txt"), "mine\n").expect("written");
    let answer = ocx::tool::call(&other, "ocx_save", four("three"), &Watch::default()).into_json();
    assert_eq!(answer["code"], "would_fork", "{answer:#}");
    assert_eq!(s.on_server().len(), 2);
    assert_eq!(std::fs::read(f.folder().join("other/a.txt")).expect("there"), b"mine\n");
}
