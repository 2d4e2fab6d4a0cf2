//! `ocx_status`.

use serde_json::json;

use crate::fixture::Fixture;

#[test]
fn it_tells_who_and_where_the_caller_is() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let status = f.done("ocx_status", json!({}));
    assert_eq!(status["login"], "alice");
    assert!(status["capabilities"].as_str().is_some_and(|c| c.contains('s')), "{status:#}");
    assert_eq!(status["repository"]["file"], "r.fossil");
    assert!(f.fossil(&["info"]).contains(status["repository"]["project_code"].as_str().expect("a code")));
    assert_eq!(status["host"].as_str(), Some(rustix::system::uname().nodename().to_string_lossy().as_ref()));
    assert_eq!(status["next_call"], json!({"tool": "ocx_context", "arguments": {}}));
    f.done("ocx_context", status["next_call"]["arguments"].clone());
}

#[test]
fn its_facts_and_the_callers_report_are_those_of_context() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let given = json!({"caller": "setup_feasible", "caller_reason": "fossil is installed"});
    let (status, context) = (f.done("ocx_status", given.clone()), f.done("ocx_context", given.clone()));
    for part in ["server_facts", "caller_report"] {
        assert_eq!(status[part], context[part]);
        assert!(status[part].is_object());
    }
    assert_eq!(status["next_call"]["arguments"], given);
    f.refused("invalid", "ocx_status", json!({"caller": "maybe"}));
}

#[test]
fn a_login_without_any_capability_may_ask_and_hears_what_it_lacks() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    for who in ["nobody", "anonymous"] {
        f.fossil(&["user", "capabilities", who, ""]);
    }
    f.fossil(&["user", "new", "nil", "nil", "pw"]);
    f.fossil(&["user", "capabilities", "nil", ""]);
    f.fossil(&["user", "default", "nil"]);
    let status = f.done("ocx_status", json!({}));
    assert_eq!((&status["login"], &status["capabilities"]), (&json!("nil"), &json!("")));
    assert!(status["next_call"].is_null() && status["blocker"].as_str().is_some_and(|b| b.contains("`o`")));
    f.refused("denied", "ocx_context", json!({}));
}
