//! What a local checkout and a remote endpoint say of themselves, in each situation of the caller.

use ocx::process::Supervisor;
use ocx::tool::catalogue::TOOLS;
use ocx::tool::{Binding, CallControl, Service, call};
use serde_json::{Value, json};

use crate::support::client::{Client, initialize};
use crate::support::{Fixture, OCX, four};

const SITUATIONS: [&str; 3] = ["clone_available", "setup_feasible", "unknown_or_unavailable"];

fn remote(f: &Fixture) -> Service {
    Service::with_supervisor(f.root(), Supervisor::at(OCX)).bound(Binding::Remote)
}

/// What `ocx_context` and `ocx_status` answer on a remote endpoint to a caller that reports `caller`.
fn told(f: &Fixture, tool: &str, caller: Option<&str>) -> Value {
    let input =
        caller.map_or_else(|| json!({}), |caller| json!({"caller": caller, "caller_reason": "looked once"}));
    let answer = call(&remote(f), tool, input, &CallControl::default()).into_json();
    assert_eq!(answer["ok"], true, "{answer:#}");
    answer["result"].clone()
}

#[test]
fn a_remote_endpoint_says_where_it_acts_and_where_it_does_not() {
    let f = Fixture::with(&[("README.md", b"a\n")]);
    for tool in ["ocx_context", "ocx_status"] {
        let local = f.done(tool, json!({}));
        assert_eq!(local["server_facts"]["execution_location"], "local_checkout");
        assert!(local["guidance"]["ocx_save"].as_str().is_some_and(|s| s.contains("this local checkout")));
        let remote = told(&f, tool, None);
        assert_eq!(remote["server_facts"]["execution_location"], "remote_run");
        assert!(
            remote["guidance"]["ocx_save"].as_str().is_some_and(|s| s.contains("outside this call")),
            "{remote:#}"
        );
        assert_eq!(remote["server_facts"]["checkout_user"], "alice");
        assert!(remote["server_facts"]["branch"].as_str().is_some_and(|b| b.starts_with("agent/alice-")));
    }
}

#[test]
fn unknown_stays_remote_and_each_situation_has_its_own_words() {
    let f = Fixture::with(&[("README.md", b"a\n")]);
    for tool in ["ocx_context", "ocx_status"] {
        let silent = told(&f, tool, None);
        let [clone, setup, unknown] = SITUATIONS.map(|caller| told(&f, tool, Some(caller)));
        assert_eq!(silent["guidance"], unknown["guidance"]);
        assert_eq!(silent["caller_report"]["bounded_check"], "not_attempted");
        assert_eq!(unknown["caller_report"]["reason"], "looked once");
        let first = |told: &Value| told["guidance"]["ocx_context"].as_str().expect("words").to_owned();
        assert!(first(&clone).contains("your own clone") && first(&setup).contains("read URL"));
        let sync = |told: &Value| told["guidance"]["ocx_sync"].as_str().expect("words").to_owned();
        assert!(sync(&clone).contains("from your clone") && sync(&setup).contains("bootstrap steps"));
        assert!(sync(&unknown).contains("use ocx_save"));
        assert!(first(&unknown).starts_with("Start here"));
        assert_ne!(unknown["next_call"]["tool"], "ocx_commit_and_sync_guide");
    }
}

#[test]
fn whoever_has_or_can_make_a_clone_is_sent_to_the_guide() {
    let f = Fixture::with(&[("README.md", b"a\n")]);
    for (tool, usual) in [("ocx_context", "ocx_read"), ("ocx_status", "ocx_context")] {
        for caller in ["clone_available", "setup_feasible"] {
            let next = told(&f, tool, Some(caller))["next_call"].clone();
            assert_eq!(next["tool"], "ocx_commit_and_sync_guide");
            let guide = call(
                &remote(&f),
                "ocx_commit_and_sync_guide",
                next["arguments"].clone(),
                &CallControl::default(),
            );
            let guide = guide.into_json();
            assert_eq!(
                (&guide["ok"], &guide["result"]["caller_report"]["state"]),
                (&json!(true), &json!(caller))
            );
        }
        // In a local checkout a clone elsewhere changes nothing.
        let local = f.done(tool, json!({"caller": "setup_feasible"}));
        assert_eq!(local["next_call"]["tool"], usual);
    }
}

#[test]
fn what_acts_on_the_callers_files_is_not_done_to_a_remote_checkout() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("a.txt", "b\n");
    let before = f.everything();
    let answer = call(&remote(&f), "ocx_commit_and_sync", four("t"), &CallControl::default()).into_json();
    assert_eq!((&answer["code"], &answer["log"]), (&json!("denied"), &json!([])), "{answer:#}");
    assert_eq!(answer["next_call"], json!({"tool": "ocx_save", "arguments": four("t")}));
    assert!(f.everything() == before);
    let saved =
        call(&remote(&f), "ocx_save", answer["next_call"]["arguments"].clone(), &CallControl::default());
    assert_eq!(saved.into_json()["ok"], true);
    f.write("a.txt", "c\n");
    assert_eq!(f.done("ocx_commit_and_sync", four("t"))["committed"], true);
}

#[test]
fn the_list_of_a_remote_endpoint_is_the_same_whatever_the_caller_says() {
    let f = Fixture::with(&[("README.md", b"a\n")]);
    let mut c = Client::with(&f, &f.root(), &["--remote"]);
    let opened = c.request("initialize", initialize("2025-11-25"));
    assert!(opened["result"]["instructions"].as_str().is_some_and(|i| i.contains("`caller`")), "{opened}");
    let before = c.request("tools/list", json!({}))["result"].to_string();
    for caller in SITUATIONS {
        assert_eq!(c.call("ocx_context", json!({"caller": caller}))["ok"], true);
        assert_eq!(c.request("tools/list", json!({}))["result"].to_string(), before);
    }
    let list: Value = serde_json::from_str(&before).expect("a list");
    for (listed, tool) in list["tools"].as_array().expect("tools").iter().zip(TOOLS) {
        assert_eq!(listed["description"], Binding::Remote.description(tool.declaration()));
    }
}
