//! `ocx_stop`, where no node runs.

use ocx::format::Markup;
use ocx::name::User;
use ocx::record::Forum;
use ocx::repo::Repository;
use serde_json::json;

use crate::support::Fixture;

const RECORD: &str =
    "Review.\n\n```json\n{\"ocx\":\"record\",\"runner\":\"claude\",\"login\":\"claude-1a2b3c4d\"}\n```\n";

fn thread(f: &Fixture, text: &str) -> String {
    let repository = Repository::open(&f.repository()).expect("a repository");
    let alice = User::parse("alice").expect("a user");
    Forum::of(&repository).start("Agent", text, Markup::Markdown, &alice).expect("a thread").hash.to_string()
}

#[test]
fn the_run_of_a_record_is_named_and_no_node_runs_here() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let record = thread(&f, RECORD);
    let before = f.everything();
    let answer = f.refused("unavailable", "ocx_stop", json!({"record": record}));
    assert_eq!(
        answer["result"],
        json!({"record": record, "login": "claude-1a2b3c4d", "runner": "claude", "user": "alice"})
    );
    assert_eq!(f.call("ocx_stop", json!({"record": record, "dry_run": true}))["code"], "unavailable");
    assert!(f.everything() == before);
}

#[test]
fn what_is_no_record_is_refused() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let (record, other) = (thread(&f, RECORD), thread(&f, "Hello."));
    for bad in [&record[..12], "tip", &record.to_uppercase()] {
        let answer = f.refused("invalid", "ocx_stop", json!({"record": bad}));
        assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("`record`")), "{answer}");
    }
    let answer = f.refused("invalid", "ocx_stop", json!({"record": other}));
    assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("is no record")), "{answer}");
    f.refused("not_found", "ocx_stop", json!({"record": "a".repeat(64)}));
    let check_in = f.done("ocx_read", json!({"checkin": "trunk"}))["checkin"].clone();
    f.refused("not_found", "ocx_stop", json!({"record": check_in}));
}

#[test]
fn a_login_without_admin_or_setup_is_denied() {
    let f = Fixture::with(&[]);
    let record = thread(&f, RECORD);
    f.fossil(&["user", "new", "rita", "rita", "pw"]);
    f.fossil(&["user", "capabilities", "rita", "io345"]);
    f.fossil(&["user", "default", "rita"]);
    f.refused("denied", "ocx_stop", json!({"record": record}));
}
