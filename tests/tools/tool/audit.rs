//! `ocx_audit`.

use serde_json::{Value, json};

use crate::support::{Fixture, four};

/// A checkout with a check-in by alice on her working branch, which `bob` looks at.
fn saved() -> (Fixture, String) {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.done("ocx_edit", json!({"path": "a.txt", "old": "a", "new": "b"}));
    let hash = f.done("ocx_save", four("one"))["checkin"].as_str().expect("a hash").to_owned();
    become_user(&f, "bob", "oi");
    (f, hash)
}

fn become_user(f: &Fixture, name: &str, capabilities: &str) {
    f.fossil(&["user", "new", name, name, "pw"]);
    f.fossil(&["user", "capabilities", name, capabilities]);
    f.fossil(&["user", "default", name]);
}

fn verdict(checkin: &str, verdict: &str, note: &str) -> Value {
    json!({"checkin": checkin, "verdict": verdict, "note": note})
}

/// The tags of a check-in with their values, as plain Fossil has them.
fn tags(f: &Fixture, checkin: &str) -> Vec<(String, String)> {
    let db = rusqlite::Connection::open(f.repository()).expect("a repository");
    let sql = "SELECT tagname, value FROM tagxref JOIN tag USING(tagid) JOIN blob USING(rid)
         WHERE uuid=?1 AND tagtype>0 AND tagname GLOB 'sym-audited*' ORDER BY tagname";
    let mut rows = db.prepare(sql).expect("a query");
    let rows = rows.query_map([checkin], |r| Ok((r.get(0)?, r.get(1)?))).expect("rows");
    rows.collect::<Result<_, _>>().expect("rows")
}

#[test]
fn each_logins_verdict_stands_and_plain_fossil_lists_the_tags() {
    let (f, hash) = saved();
    let given = f.done("ocx_audit", verdict(&hash, "pass", "reads\nwell"));
    assert_eq!(
        (&given["note"], &given["user"], &given["pushed"]),
        (&json!("reads well"), &json!("bob"), &json!(false))
    );
    become_user(&f, "carl", "oi");
    f.done("ocx_audit", verdict(&hash, "fail", "no test"));
    let standing = [
        ("sym-audited", "fail: no test"),
        ("sym-audited-bob", "pass: reads well"),
        ("sym-audited-carl", "fail: no test"),
    ];
    assert_eq!(tags(&f, &hash), standing.map(|(tag, value)| (tag.to_owned(), value.to_owned())));
    let listed = f.fossil(&["tag", "list", &hash]);
    assert!(listed.contains("audited-bob") && listed.contains("audited-carl"), "{listed}");
    f.fossil(&["rebuild"]);
    assert_eq!(tags(&f, &hash).len(), 3);
}

#[test]
fn a_verdict_may_change_and_the_same_one_is_nothing_to_do() {
    let (f, hash) = saved();
    f.done("ocx_audit", verdict(&hash, "fail", "no test"));
    f.refused("unchanged", "ocx_audit", verdict(&hash, "fail", " no  test "));
    f.done("ocx_audit", verdict(&hash, "pass", "it has one now"));
    assert_eq!(tags(&f, &hash)[1].1, "pass: it has one now");
}

#[test]
fn ones_own_check_in_and_those_of_ones_run_are_refused() {
    let (f, hash) = saved();
    f.fossil(&["user", "default", "alice"]);
    let answer = f.refused("denied", "ocx_audit", verdict(&hash, "pass", "mine"));
    assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("your own")), "{answer}");
    f.fossil(&["user", "default", "bob"]);
    f.write("a.txt", "c\n");
    let second = f.done("ocx_save", four("two"));
    assert!(second["branch"].as_str().is_some_and(|b| b.starts_with("agent/bob-")), "{second}");
    let answer = f.refused("denied", "ocx_audit", verdict(&hash, "pass", "ours"));
    assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("took part")), "{answer}");
    assert_eq!(tags(&f, &hash), []);
}

#[test]
fn a_check_in_whose_user_was_amended_stays_its_makers_own() {
    let (f, hash) = saved();
    f.fossil(&["user", "default", "alice"]);
    f.fossil(&["amend", &hash, "--author", "bob"]);
    f.refused("denied", "ocx_audit", verdict(&hash, "pass", "mine"));
}

#[test]
fn v03_a_tag_that_names_another_user_keeps_no_auditor_from_judging() {
    let (f, hash) = saved();
    f.fossil(&["amend", &hash, "--author", "bob"]);
    assert_eq!(f.done("ocx_queue", json!({}))["check_ins"]["first"][0]["checkin"], hash);
    f.done("ocx_audit", verdict(&hash, "pass", "fine"));
    f.fossil(&["user", "default", "alice"]);
    let of_alice = f.done("ocx_queue", json!({}))["check_ins"].clone();
    assert!(!of_alice.to_string().contains(&hash), "{of_alice}");
}

#[test]
fn v03_who_sent_a_check_in_in_anothers_name_does_not_judge_it() {
    let (f, hash) = saved();
    let db = rusqlite::Connection::open(f.repository()).expect("a repository");
    let receipt = |ip: Option<&str>| {
        let sql = "UPDATE rcvfrom SET ipaddr=?1, uid=(SELECT uid FROM user WHERE login='bob')
             WHERE rcvid=(SELECT rcvid FROM blob WHERE uuid=?2)";
        assert_eq!(db.execute(sql, (ip, &hash)).expect("a receipt"), 1);
    };
    receipt(Some("127.0.0.1"));
    assert!(!f.done("ocx_queue", json!({}))["check_ins"].to_string().contains(&hash));
    let answer = f.refused("denied", "ocx_audit", verdict(&hash, "pass", "mine"));
    assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("your own")), "{answer}");
    // A receipt without an address is that of a pull.
    receipt(None);
    f.done("ocx_audit", verdict(&hash, "pass", "fine"));
}

#[test]
fn v03_a_verdict_is_of_the_login_that_its_artifact_names() {
    let (f, hash) = saved();
    f.fossil(&["tag", "add", "audited-bob", &hash, "pass: forged", "--user-override", "alice"]);
    let db = rusqlite::Connection::open(f.repository()).expect("a repository");
    let sql =
        "SELECT uuid FROM event JOIN blob ON rid=objid WHERE type='g' ORDER BY event.mtime DESC LIMIT 1";
    let control: String = db.query_row(sql, [], |row| row.get(0)).expect("a control artifact");
    f.fossil(&["tag", "add", "user", "--raw", &control, "bob"]);
    assert!(f.done("ocx_queue", json!({}))["check_ins"].to_string().contains(&hash));
    f.done("ocx_audit", verdict(&hash, "pass", "forged"));
}

#[test]
fn a_hash_that_is_short_or_names_nothing_is_refused_with_what_helps() {
    let (f, hash) = saved();
    let answer = f.refused("invalid", "ocx_audit", verdict(&hash[..12], "pass", "x"));
    assert_eq!(answer["next_call"], json!({"tool": "ocx_audit", "arguments": verdict(&hash, "pass", "x")}));
    let answer = f.refused("invalid", "ocx_audit", verdict("trunk", "pass", "x"));
    assert_eq!(answer["next_call"]["tool"], "ocx_read");
    f.refused("not_found", "ocx_audit", verdict(&"a".repeat(64), "pass", "x"));
    f.refused("invalid", "ocx_audit", verdict(&hash, "PASS", "x"));
    f.refused("invalid", "ocx_audit", verdict(&hash, "pass", " \n "));
    f.refused("invalid", "ocx_audit", verdict(&hash, "pass", "a\u{1b}[31m"));
    assert_eq!(tags(&f, &hash), []);
}

#[test]
fn a_dry_run_gives_no_verdict() {
    let (f, hash) = saved();
    let before = f.everything();
    let mut dry = verdict(&hash, "pass", "fine");
    dry["dry_run"] = true.into();
    let answer = f.call("ocx_audit", dry);
    assert_eq!((&answer["ok"], &answer["log"][1]["op"]), (&json!(true), &json!("add_tag")), "{answer}");
    assert!(f.everything() == before);
}

#[test]
fn without_capability_i_no_verdict_is_given() {
    let (f, hash) = saved();
    become_user(&f, "rita", "o");
    let answer = f.refused("denied", "ocx_audit", verdict(&hash, "pass", "x"));
    assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("`i`")), "{answer}");
    assert_eq!(tags(&f, &hash), []);
}
