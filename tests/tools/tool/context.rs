//! `ocx_context`, and every tool where there is no checkout.

use ocx::tool::{CallControl, Service, call};
use serde_json::json;

use crate::support::{Fixture, four, required};

#[test]
fn it_tells_branch_changes_tests_and_who_calls() {
    let f = Fixture::tested("true", &[("README.md", b"hello\n")]);
    f.write("new.txt", "new\n");
    let context = f.done("ocx_context", json!({}));
    assert_eq!(context["changed"], json!([{"path": "new.txt", "how": "added"}]));
    assert_eq!(context["tests"], json!([{"name": "unit", "command": "true", "standing": "not run"}]));
    assert_eq!((&context["user"], &context["server_facts"]["login"]), (&json!("alice"), &json!("alice")));
    assert_eq!(context["next_call"], json!({"tool": "ocx_test", "arguments": {}}));
    f.done("ocx_test", json!({}));
    let context = f.done("ocx_context", json!({}));
    assert_eq!(context["tests"][0]["standing"], "passed");
    assert_eq!(context["next_call"], json!({"tool": "ocx_read", "arguments": {"path": "README.md"}}));
}

#[test]
fn an_unknown_caller_stays_unknown_and_a_report_is_repeated() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let report = f.done("ocx_context", json!({}))["caller_report"].clone();
    assert_eq!(
        (&report["state"], &report["bounded_check"]),
        (&json!("unknown_or_unavailable"), &json!("not_attempted"))
    );
    let given = json!({"caller": "clone_available", "caller_reason": "there is a clone in ~/x"});
    let report = f.done("ocx_context", given)["caller_report"].clone();
    assert_eq!(
        (&report["state"], &report["reason"]),
        (&json!("clone_available"), &json!("there is a clone in ~/x"))
    );
    f.refused("invalid", "ocx_context", json!({"caller": "maybe"}));
}

#[test]
fn a_saved_check_in_without_a_remote_stays_listed_as_not_pushed() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("a.txt", "b\n");
    let saved = f.done("ocx_save", four("t"));
    assert_eq!(f.done("ocx_context", json!({}))["not_pushed"], json!([saved["checkin"]]));
}

#[test]
fn without_a_checkout_every_tool_says_how_to_open_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let session = Service::at(folder.path());
    for tool in ocx::tool::catalogue::TOOLS {
        let name = tool.declaration().name;
        let answer = call(&session, name, required(tool.declaration()), &CallControl::default()).into_json();
        assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!("not_found")), "{answer}");
        assert!(answer["next_step"].as_str().unwrap_or_default().contains("ocx open"), "{answer}");
    }
}
