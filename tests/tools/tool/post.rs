//! `ocx_post`.

use ocx::format::Markup;
use ocx::name::User;
use ocx::record::Forum;
use ocx::repo::Repository;
use serde_json::json;

use crate::support::Fixture;

/// A checkout whose forum holds one thread, by its first post.
fn with_thread() -> (Fixture, String) {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let repository = Repository::open(&f.repository()).expect("a repository");
    let alice = User::parse("alice").expect("a user");
    let post = Forum::of(&repository).start("Plan", "Begin.", Markup::Markdown, &alice).expect("a thread");
    (f, post.hash.to_string())
}

fn posts(f: &Fixture) -> i64 {
    let db = rusqlite::Connection::open(f.repository()).expect("a repository");
    db.query_row("SELECT count(*) FROM event WHERE type='f'", [], |r| r.get(0)).expect("a count")
}

#[test]
fn a_reply_stands_in_the_thread_and_plain_fossil_shows_it() {
    let (f, to) = with_thread();
    let made = f.done("ocx_post", json!({"to": to, "text": "It is *done*.\n"}));
    assert_eq!(
        (&made["thread"], &made["reply_to"], &made["user"]),
        (&json!(to), &json!(to), &json!("alice"))
    );
    assert_eq!(made["pushed"], false);
    let artifact = f.fossil(&["artifact", made["post"].as_str().expect("a hash")]);
    assert!(artifact.contains(&format!("\nI {to}\n")) && artifact.contains("It is *done*."), "{artifact}");
    assert!(f.fossil(&["timeline", "-t", "f", "-n", "5"]).contains("Reply: Plan"));
}

#[test]
fn the_very_same_reply_is_made_once() {
    let (f, to) = with_thread();
    let reply = json!({"to": to, "text": "Done."});
    let made = f.done("ocx_post", reply.clone());
    let answer = f.refused("unchanged", "ocx_post", reply);
    assert_eq!(answer["result"]["post"], made["post"]);
    assert_eq!(posts(&f), 2);
}

#[test]
fn a_missing_post_a_short_hash_and_a_blank_text_are_refused() {
    let (f, to) = with_thread();
    let answer = f.refused("not_found", "ocx_post", json!({"to": "a".repeat(64), "text": "x"}));
    assert!(answer["next_step"].as_str().is_some_and(|s| s.contains("pull")), "{answer}");
    for bad in [&to[..10], "trunk", &to.to_uppercase()] {
        let answer = f.refused("invalid", "ocx_post", json!({"to": bad, "text": "x"}));
        assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("`to`")), "{answer}");
    }
    f.refused("invalid", "ocx_post", json!({"to": to, "text": " \n"}));
    let check_in = f.done("ocx_read", json!({"checkin": "trunk"}))["checkin"].clone();
    f.refused("not_found", "ocx_post", json!({"to": check_in, "text": "x"}));
    assert_eq!(posts(&f), 1);
}

#[test]
fn a_dry_run_posts_nothing() {
    let (f, to) = with_thread();
    let before = f.everything();
    let dry = f.call("ocx_post", json!({"to": to, "text": "Done.", "dry_run": true}));
    assert_eq!((&dry["ok"], &dry["log"][1]["op"]), (&json!(true), &json!("post")), "{dry}");
    let dry = f.call("ocx_post", json!({"to": to, "text": " ", "dry_run": true}));
    assert_eq!(dry["code"], "invalid");
    assert!(f.everything() == before);
}

#[test]
fn a_login_without_3_posts_nothing_and_one_without_4_waits_for_a_moderator() {
    let (f, to) = with_thread();
    f.fossil(&["user", "new", "rita", "rita", "pw"]);
    f.fossil(&["user", "capabilities", "rita", "o2"]);
    f.fossil(&["user", "default", "rita"]);
    let answer = f.refused("denied", "ocx_post", json!({"to": to, "text": "x"}));
    assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("`3`")), "{answer}");
    assert_eq!(posts(&f), 1);
    f.fossil(&["user", "capabilities", "rita", "o3"]);
    let made = f.done("ocx_post", json!({"to": to, "text": "x"}));
    assert!(made["push"].as_str().is_some_and(|p| p.contains("moderator")), "{made}");
}
