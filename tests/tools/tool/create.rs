//! `ocx_create`, where no node runs.

use serde_json::{Value, json};

use crate::support::{Fixture, OCX};

#[test]
fn it_says_what_was_asked_for_and_that_no_node_runs_here() {
    let f = Fixture::with(&[]);
    let before = f.everything();
    for dry_run in [true, false] {
        let answer =
            f.refused("unavailable", "ocx_create", json!({"instructions": "Review.", "dry_run": dry_run}));
        assert_eq!(answer["result"]["user"], "alice");
        let asked = json!({
            "runner": "claude", "instructions": "Review.", "wake": [{"on": "post"}], "hears": null, "network": true,
            "limits": {"wall": "1h", "cpu": "30m", "memory": "2G", "processes": 64},
        });
        assert_eq!(answer["result"]["asked"], asked);
        assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("no node runs here")), "{answer}");
        assert!(answer.get("next_call").is_none(), "no call helps: {answer}");
    }
    assert!(f.everything() == before);
}

#[test]
fn every_field_is_checked_and_named_before_anything_else() {
    let f = Fixture::with(&[]);
    for (field, value, named) in [
        ("instructions", json!("  \n"), "`instructions`"),
        ("runner", json!("gpt"), "`runner`"),
        ("wake", json!([{"on": "post"}, {"on": "check-in"}]), "`wake[1].branch`"),
        ("hears", json!(["alice", "a b"]), "`hears[1]`"),
        ("network", json!("false"), "`network`"),
        ("wall", json!("30"), "`wall`"),
        ("cpu", json!("0s"), "`cpu` must be from 1m to 168h, not 0ms"),
        ("memory", json!("2GB"), "`memory`"),
        ("memory", json!("1M"), "`memory` must be from 64M to 1024G, not 1M"),
        ("processes", json!(0), "`processes`"),
        ("limits", json!({}), "no field `limits`"),
    ] {
        let mut input = json!({"instructions": "Review."});
        input[field] = value;
        let answer = f.refused("invalid", "ocx_create", input);
        assert!(answer["stopped"].as_str().is_some_and(|s| s.contains(named)), "{named}: {answer}");
    }
    let unknown = json!({"instructions": "Review.", "hears": ["alice", "nemo"]});
    let answer = f.refused("not_found", "ocx_create", unknown);
    assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("`hears[1]`")), "{answer}");
}

#[test]
fn a_login_without_admin_or_setup_is_denied() {
    let f = Fixture::with(&[]);
    f.fossil(&["user", "new", "rita", "rita", "pw"]);
    f.fossil(&["user", "capabilities", "rita", "io"]);
    f.fossil(&["user", "default", "rita"]);
    let answer = f.refused("denied", "ocx_create", json!({"instructions": "Review."}));
    assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("`a` or `s`")), "{answer}");
    f.fossil(&["user", "capabilities", "rita", "a"]);
    f.refused("unavailable", "ocx_create", json!({"instructions": "Review."}));
}

#[test]
fn the_command_takes_lists_spans_and_switches() {
    let f = Fixture::with(&[]);
    let words = [
        "create",
        "Review.",
        "--runner",
        "codex",
        "--wake",
        "post",
        "--wake",
        "check-in:trunk",
        "--hears",
        "alice",
        "--no-network",
        "--wall",
        "90m",
        "--memory",
        "512M",
        "--processes",
        "8",
        "--json",
    ];
    let output = f.command(OCX, &f.root()).args(words).output().expect("ocx runs");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer");
    assert_eq!(answer["code"], "unavailable", "{answer:#}");
    let asked = json!({
        "runner": "codex", "instructions": "Review.",
        "wake": [{"on": "post"}, {"on": "check-in", "branch": "trunk"}], "hears": ["alice"], "network": false,
        "limits": {"wall": "90m", "cpu": "30m", "memory": "512M", "processes": 8},
    });
    assert_eq!(answer["result"]["asked"], asked);
}
