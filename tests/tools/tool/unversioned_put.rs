//! `ocx_unversioned_put`.

use serde_json::json;

use crate::support::Fixture;

/// `hello\n` and its SHA3-256.
const HELLO: &str = "aGVsbG8K";

/// Setup does not bring the capability with it.
fn fixture() -> Fixture {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.fossil(&["user", "capabilities", "alice", "sy"]);
    f
}

fn sha3(bytes: &[u8]) -> String {
    ocx::name::Hash::of(bytes).to_string()
}

#[test]
fn a_file_is_put_and_replaced_and_plain_fossil_gives_its_bytes() {
    let f = fixture();
    let put = f.done(
        "ocx_unversioned_put",
        json!({"name": "docs/hello.txt", "content": HELLO, "hash": sha3(b"hello\n")}),
    );
    assert_eq!(
        (&put["size"], &put["hash"], &put["created"]),
        (&json!(6), &json!(sha3(b"hello\n")), &json!(true))
    );
    assert_eq!((&put["pushed"], &put["replaced"]), (&json!(false), &json!(null)));
    assert_eq!(f.fossil(&["uv", "cat", "docs/hello.txt"]), "hello\n");
    let put = f.done("ocx_unversioned_put", json!({"name": "docs/hello.txt", "content": "aG8K"}));
    assert_eq!(put["replaced"], json!({"hash": sha3(b"hello\n"), "size": 6}));
    assert_eq!(f.fossil(&["uv", "cat", "docs/hello.txt"]), "ho\n");
    let got = f.done("ocx_unversioned_get", json!({"name": "docs/hello.txt"}));
    assert_eq!(got["content"], "aG8K");
}

#[test]
fn what_is_not_exactly_base64_of_what_the_hash_names_is_refused() {
    let f = fixture();
    let before = f.everything();
    for bad in [
        "aGVsbG8",
        "aGVs\nbG8K",
        "aGVsbG8K=",
        "aGVs bG8K",
        "a-_=",
        "aGVsbG9=",
        "data:text/plain;base64,aGVsbG8K",
    ] {
        let answer = f.refused("invalid", "ocx_unversioned_put", json!({"name": "x", "content": bad}));
        assert!(
            answer["stopped"].as_str().is_some_and(|s| s.contains("`content` is not base64")),
            "{answer}"
        );
    }
    let other = json!({"name": "x", "content": HELLO, "hash": sha3(b"other")});
    let answer = f.refused("invalid", "ocx_unversioned_put", other);
    assert!(answer["stopped"].as_str().is_some_and(|s| s.contains(&sha3(b"hello\n"))), "{answer}");
    f.refused("invalid", "ocx_unversioned_put", json!({"name": "x", "content": HELLO, "hash": "abc"}));
    f.refused(
        "invalid",
        "ocx_unversioned_put",
        json!({"name": "x", "content": HELLO, "hash": "a".repeat(40)}),
    );
    f.refused("invalid", "ocx_unversioned_put", json!({"name": "x"}));
    f.refused("invalid", "ocx_unversioned_put", json!({"name": "x", "hash": sha3(b"hello\n")}));
    f.refused("invalid", "ocx_unversioned_put", json!({"name": "../x", "content": HELLO}));
    f.refused("too_large", "ocx_unversioned_put", json!({"name": "x", "content": "A".repeat((1 << 20) + 4)}));
    assert!(f.everything() == before);
}

#[test]
fn the_largest_content_is_taken_and_an_empty_one_too() {
    let f = fixture();
    let put = f.done("ocx_unversioned_put", json!({"name": "x", "content": "A".repeat(1 << 20)}));
    assert_eq!(put["size"], 786_432);
    assert_eq!(f.done("ocx_unversioned_put", json!({"name": "e", "content": ""}))["size"], 0);
}

#[test]
fn the_same_content_again_without_a_remote_is_nothing_to_do() {
    let f = fixture();
    f.done("ocx_unversioned_put", json!({"name": "x", "content": HELLO}));
    f.refused("unchanged", "ocx_unversioned_put", json!({"name": "x", "content": HELLO}));
}

#[test]
fn a_dry_run_says_what_would_be_replaced_and_changes_nothing() {
    let f = fixture();
    f.done("ocx_unversioned_put", json!({"name": "x", "content": HELLO}));
    let before = f.everything();
    let dry = f.call("ocx_unversioned_put", json!({"name": "x", "content": "aG8K", "dry_run": true}));
    assert_eq!((&dry["ok"], &dry["result"]["replaced"]["size"]), (&json!(true), &json!(6)));
    assert_eq!(dry["log"][1], json!({"op": "put_unversioned", "changes": true}));
    assert!(f.everything() == before);
}

#[test]
fn without_capability_y_nothing_is_put() {
    let f = fixture();
    f.fossil(&["user", "new", "rita", "rita", "pw"]);
    f.fossil(&["user", "capabilities", "rita", "oi"]);
    f.fossil(&["user", "default", "rita"]);
    let answer = f.refused("denied", "ocx_unversioned_put", json!({"name": "x", "content": HELLO}));
    assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("`y`")), "{answer}");
    assert_eq!(f.fossil(&["uv", "list"]).trim(), "");
}
