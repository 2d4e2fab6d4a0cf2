//! A dry run says what would be done and changes not one byte.

use serde_json::{Value, json};

use crate::support::{Fixture, four};

#[test]
fn a_dry_run_of_every_tool_leaves_checkout_and_repository_byte_identical() {
    let f = Fixture::tested("touch ran", &[("a.txt", b"a\n")]);
    f.write("a.txt", "b\n");
    let mut save = four("t");
    save["dry_run"] = true.into();
    let parent = f.done("ocx_context", json!({}))["parent"]["checkin"].clone();
    let edit = |path: &str, old: &str| json!({"path": path, "old": old, "new": "c\n", "dry_run": true});
    let calls: Vec<(&str, Value)> = vec![
        ("ocx_context", json!({"dry_run": true})),
        ("ocx_find", json!({"text": "b", "dry_run": true})),
        ("ocx_read", json!({"path": "a.txt", "dry_run": true})),
        ("ocx_edit", edit("a.txt", "b\n")),
        ("ocx_edit", edit("new/file.txt", "")),
        ("ocx_test", json!({"dry_run": true})),
        ("ocx_save", save.clone()),
        ("ocx_commit_and_sync", save),
        ("ocx_commit_and_sync_guide", json!({"dry_run": true})),
        ("ocx_sync", json!({"branch": "side", "have": parent, "dry_run": true})),
        ("ocx_status", json!({"dry_run": true})),
        ("ocx_queue", json!({"dry_run": true})),
    ];
    // Of files that are no longer fresh, a look could remember what it has seen.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let before = f.everything();
    for (tool, input) in calls {
        let answer = f.call(tool, input);
        assert_eq!(answer["dry_run"], true, "{answer}");
        if !["ocx_save", "ocx_commit_and_sync"].contains(&tool) {
            assert_eq!(answer["ok"], true, "{answer}");
        }
        let after = f.everything();
        let differ: Vec<_> = before.iter().zip(&after).filter(|(b, a)| b != a).map(|(b, _)| &b.0).collect();
        assert!(before == after, "{tool} changed {differ:?}");
    }
}

#[test]
fn its_log_and_result_are_those_of_the_real_run() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let mut input = json!({"path": "a.txt", "old": "a", "new": "b", "dry_run": true});
    let dry = f.call("ocx_edit", input.clone());
    input["dry_run"] = false.into();
    let real = f.call("ocx_edit", input);
    assert_eq!((&dry["log"], &dry["result"]), (&real["log"], &real["result"]));
    assert_eq!(real["log"][1], json!({"op": "write_file", "changes": true}));
    let mut save = four("t");
    save["dry_run"] = true.into();
    let dry = f.call("ocx_save", save);
    let real = f.call("ocx_save", four("t"));
    assert_eq!((&dry["ok"], &dry["log"]), (&real["ok"], &real["log"]));
    assert_eq!(dry["result"]["branch"], real["result"]["branch"]);
}
