//! `ocx_commit_and_sync`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ocx::bundle::Bundle;
use ocx::process::Supervisor;
use ocx::tool::{Binding, Service};
use serde_json::{Value, json};

use super::sync::Mine;
use crate::support::served::Served;
use crate::support::{Fixture, OCX, four};

fn contents(result: &Value) -> ocx::bundle::Contents {
    let bytes = STANDARD.decode(result["bundle"].as_str().expect("base64")).expect("base64");
    assert_eq!(result["size"], bytes.len());
    let bundle = Bundle::from_bytes(&bytes).expect("a bundle");
    assert_eq!(result["bundled"]["standalone"], bundle.is_standalone());
    bundle.contents().expect("whole")
}

#[test]
fn it_has_the_gate_of_a_save_and_commits_without_a_push() {
    let f = Fixture::tested("grep -q B a.txt", &[("a.txt", b"a\n")]);
    f.done("ocx_edit", json!({"path": "a.txt", "old": "a", "new": "B"}));
    let answer = f.refused("untested", "ocx_commit_and_sync", four("t"));
    assert_eq!(answer["next_call"], json!({"tool": "ocx_test", "arguments": {"name": "unit"}}));
    f.done("ocx_test", json!({}));
    let before = f.check_ins();
    let mut dry = four("t");
    dry["dry_run"] = true.into();
    let dry = f.done("ocx_commit_and_sync", dry);
    assert_eq!((&dry["would_commit"], f.check_ins()), (&json!(true), before));
    let made = f.done("ocx_commit_and_sync", four("t"));
    assert_eq!(
        (&made["committed"], &made["pushed"], f.check_ins()),
        (&json!(true), &json!(false), before + 1)
    );
    assert_eq!((&made["tests"][0]["name"], &made["tests"][0]["passed"]), (&json!("unit"), &json!(true)));
    let contents = contents(&made);
    assert_eq!(contents.check_ins[0].hash.as_str(), made["checkin"]);
    assert_eq!(contents.check_ins[0].comment, "t\nIntent: why\nExpression: where\nDemonstrates: unit");
    let call = &made["next_call"];
    assert_eq!((&call["connection"], &call["tool"]), (&json!("configured_remote_ocx"), &json!("ocx_sync")));
    assert_eq!(call["arguments"], json!({"branch": made["branch"], "bundle": made["bundle"]}));
}

#[test]
fn with_nothing_changed_it_gives_what_is_unsent_again() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.refused("unchanged", "ocx_commit_and_sync", four("t"));
    f.done("ocx_edit", json!({"path": "a.txt", "old": "a", "new": "b"}));
    let first = f.done("ocx_commit_and_sync", four("one"));
    let count = f.check_ins();
    let again = f.done("ocx_commit_and_sync", four("other"));
    assert_eq!((&again["checkin"], f.check_ins()), (&first["checkin"], count));
    assert_eq!(again["bundled"]["check_ins"], first["bundled"]["check_ins"]);
    assert!(again["note"].as_str().is_some_and(|n| n.contains("no new check-in")), "{again:#}");
}

#[test]
fn have_leaves_out_what_is_before_it_and_must_be_held_here() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.done("ocx_edit", json!({"path": "a.txt", "old": "a", "new": "b"}));
    let first = f.done("ocx_commit_and_sync", four("one"));
    f.done("ocx_edit", json!({"path": "a.txt", "old": "b", "new": "c"}));
    let mut input = four("two");
    input["have"] = "abcd".into();
    f.refused("invalid", "ocx_commit_and_sync", input.clone());
    input["have"] = "a".repeat(64).into();
    f.refused("not_found", "ocx_commit_and_sync", input.clone());
    input["have"] = first["checkin"].clone();
    let second = f.done("ocx_commit_and_sync", input.clone());
    assert_eq!(second["bundled"]["check_ins"], json!([second["checkin"]]));
    assert_eq!(second["next_call"]["arguments"]["have"], first["checkin"]);
    let whole = f.done("ocx_commit_and_sync", four("two"));
    assert_eq!(contents(&whole).check_ins.len(), 2);
    input["have"] = second["checkin"].clone();
    let answer = f.refused("unchanged", "ocx_commit_and_sync", input);
    assert_eq!(answer["result"]["checkin"], second["checkin"]);
}

#[test]
fn a_save_sends_later_what_it_has_committed() {
    let s = Served::new();
    let mine = Mine::of(&s);
    mine.edit("a", "b");
    let made = mine.done("ocx_commit_and_sync", four("one"));
    assert!(s.on_server().is_empty());
    let saved = mine.done("ocx_save", four("one"));
    assert_eq!((&saved["checkin"], &saved["pushed"]), (&made["checkin"], &json!(true)));
    assert_eq!(s.on_server().len(), 1);
}

#[test]
fn a_second_task_lands_after_the_first() {
    let s = Served::new();
    let mine = Mine::of(&s);
    for (n, (old, new)) in [("a", "b"), ("b", "c")].into_iter().enumerate() {
        mine.edit(old, new);
        let made = mine.done("ocx_commit_and_sync", four(new));
        let answer = s.call("ocx_sync", made["next_call"]["arguments"].clone());
        assert_eq!((&answer["ok"], &answer["result"]["new"]), (&json!(true), &json!(1)), "{answer:#}");
        assert_eq!(s.on_server().len(), n + 1);
    }
}

#[test]
fn a_remote_endpoint_refuses_it_and_offers_the_save_of_its_own_checkout() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("a.txt", "longer\n");
    let before = f.check_ins();
    let session = Service::with_supervisor(f.root(), Supervisor::at(OCX)).bound(Binding::Remote);
    let mut input = four("t");
    input["have"] = f.done("ocx_context", json!({}))["parent"]["checkin"].clone();
    let answer = crate::support::answer::call(&session, "ocx_commit_and_sync", input);
    assert_eq!((&answer["code"], f.check_ins()), (&json!("denied"), before), "{answer:#}");
    assert_eq!(answer["next_call"], json!({"tool": "ocx_save", "arguments": four("t")}));
}
