//! `ocx_status`.

use serde_json::json;

use crate::support::Fixture;
use crate::support::served::Served;

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
    let (mut status, mut context) =
        (f.done("ocx_status", given.clone()), f.done("ocx_context", given.clone()));
    for told in [&mut status, &mut context] {
        let publication = told["server_facts"]["publication"].take();
        assert_eq!((&publication["state"], &publication["source"]), (&json!("unknown"), &json!("not_asked")));
    }
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

/// What a clone's `ocx_status` says of its server.
fn publication(s: &Served) -> serde_json::Value {
    let answer = s.call("ocx_status", json!({}));
    assert_eq!(answer["ok"], true, "{answer:#}");
    assert_eq!(answer["log"][1], json!({"op": "ask_server", "changes": false}));
    assert_eq!(answer["result"]["server_facts"]["capabilities_source"], "local_repository");
    assert!(!answer.to_string().contains("s3cret"), "{answer:#}");
    let told = answer["result"]["server_facts"]["publication"].clone();
    assert_eq!(told["login"], "agent", "{told}");
    assert!(told["reason"].as_str().is_some_and(|r| !r.is_empty()), "{told}");
    told
}

#[test]
fn whether_the_server_takes_pushes_is_asked_of_the_server() {
    let mut s = Served::new();
    let state = |s: &Served| publication(s)["state"].clone();
    assert_eq!(state(&s), "granted");
    // The login may do everything in its own clone; that says nothing of the server.
    s.server_side.fossil(&["user", "capabilities", "agent", "go"]);
    assert_eq!((state(&s), &publication(&s)["source"]), (json!("denied"), &json!("remote_server")));
    s.server_side.fossil(&["user", "capabilities", "agent", "gio"]);
    assert_eq!(state(&s), "granted");
    s.server_side.fossil(&["user", "password", "agent", "another"]);
    assert_eq!(state(&s), "denied");
    s.server_side.set("project-code", &"0".repeat(40));
    let foreign = publication(&s);
    assert_eq!((&foreign["state"], &foreign["source"]), (&json!("unknown"), &json!("remote_server")));
    assert!(foreign["reason"].as_str().is_some_and(|r| r.contains("project")), "{foreign}");
    s.stop();
    assert_eq!((state(&s), &publication(&s)["source"]), (json!("unknown"), &json!("no_answer")));
}

#[test]
fn a_dry_run_asks_no_server_and_asking_leaves_nothing_behind() {
    let s = Served::new();
    let dry = s.call("ocx_status", json!({"dry_run": true}));
    assert_eq!(dry["log"][1]["op"], "ask_server");
    assert_eq!(dry["result"]["server_facts"]["publication"]["source"], "not_asked");
    let before = s.server_side.everything();
    publication(&s);
    assert!(s.server_side.everything() == before);
}
