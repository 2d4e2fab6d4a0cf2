//! `ocx_queue`.

use ocx::format::Markup;
use ocx::name::User;
use ocx::record::Forum;
use ocx::repo::Repository;
use serde_json::json;

use crate::support::{Fixture, four};

fn become_user(f: &Fixture, name: &str, capabilities: &str) {
    f.fossil(&["user", "new", name, name, "pw"]);
    f.fossil(&["user", "capabilities", name, capabilities]);
    f.fossil(&["user", "default", name]);
}

#[test]
fn others_check_ins_wait_until_the_verdict_is_given() {
    let f = Fixture::tested("true", &[("a.txt", b"a\nb\n")]);
    f.write("a.txt", "a\nB\nc\n");
    f.write("ocx-tests.json", r#"{"tests": []}"#);
    let saved = f.done("ocx_save", four("one"));
    assert_eq!(f.done("ocx_queue", json!({}))["check_ins"]["of"], 0);
    become_user(&f, "bob", "oi2");
    let queue = f.done("ocx_queue", json!({}));
    assert_eq!((&queue["check_ins"]["shown"], &queue["check_ins"]["of"]), (&json!(2), &json!(2)));
    let first = &queue["check_ins"]["first"][0];
    assert_eq!(
        (&first["checkin"], &first["title"], &first["author"]),
        (&saved["checkin"], &json!("one"), &json!("alice"))
    );
    assert_eq!((&first["branch"], &first["tests_changed"]), (&saved["branch"], &json!(true)));
    assert_eq!(first["files"][0], json!({"path": "a.txt", "added": 2, "removed": 1}));
    assert_eq!(first["files_of"], 2);
    f.done("ocx_audit", json!({"checkin": saved["checkin"], "verdict": "pass", "note": "x"}));
    assert_eq!(f.done("ocx_queue", json!({}))["check_ins"]["of"], 1);
    become_user(&f, "carl", "oi2");
    assert_eq!(f.done("ocx_queue", json!({}))["check_ins"]["of"], 2);
}

#[test]
fn at_most_ten_are_shown_and_where_the_list_goes_on_is_said() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    for n in 0..12 {
        f.write("a.txt", format!("{n}\n"));
        f.fossil(&[
            "commit",
            "-m",
            &format!("change {n} {}", "x".repeat(300)),
            "--no-warnings",
            "--user-override",
            "alice",
        ]);
    }
    become_user(&f, "bob", "oi2");
    let answer = f.call("ocx_queue", json!({}));
    assert!(answer.to_string().len() <= 10_500, "{}", answer.to_string().len());
    let list = &answer["result"]["check_ins"];
    assert_eq!((&list["shown"], &list["of"], &list["next_from"]), (&json!(10), &json!(13), &json!(11)));
    let rest = f.done("ocx_queue", json!({"from": 11}))["check_ins"].clone();
    assert_eq!((&rest["shown"], &rest["next_from"]), (&json!(3), &json!(null)));
}

#[test]
fn check_ins_of_a_run_that_one_took_part_in_do_not_wait() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("a.txt", "b\n");
    f.done("ocx_save", four("one"));
    become_user(&f, "bob", "oi2");
    f.write("a.txt", "c\n");
    f.done("ocx_save", four("two"));
    let queue = f.done("ocx_queue", json!({}));
    assert_eq!(queue["check_ins"]["of"], 1, "only the first check-in on trunk: {queue:#}");
}

#[test]
fn posts_by_others_since_ones_last_wait_for_who_may_read_them() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let repository = Repository::open(&f.repository()).expect("a repository");
    let alice = User::parse("alice").expect("a user");
    let first = Forum::of(&repository).start("Plan", "Begin.", Markup::Markdown, &alice).expect("a thread");
    become_user(&f, "bob", "oi4");
    let made = f.done("ocx_post", json!({"to": first.hash, "text": "Done."}));
    f.fossil(&["user", "default", "alice"]);
    let posts = f.done("ocx_queue", json!({}))["posts"].clone();
    assert_eq!((&posts["of"], &posts["first"][0]["post"]), (&json!(1), &made["post"]));
    assert_eq!((&posts["first"][0]["author"], &posts["first"][0]["text"]), (&json!("bob"), &json!("Done.")));
    f.done("ocx_post", json!({"to": made["post"], "text": "Thanks."}));
    assert_eq!(f.done("ocx_queue", json!({}))["posts"]["of"], 0);
    f.fossil(&["user", "capabilities", "bob", "oi"]);
    f.fossil(&["user", "default", "bob"]);
    assert!(f.done("ocx_queue", json!({}))["posts"]["blocker"].is_string());
}
