//! The engine alone: every way that Fossil's code can end gives an error, and the next call works.

use std::path::Path;

use ocx::engine;
use ocx::error::Kind;

fn fossil(dir: &Path, args: &[&str]) -> ocx::error::Result<engine::Output> {
    engine::command(dir, args, Some("ann"))
}

#[test]
fn a_command_gives_its_output() {
    let dir = tempfile::tempdir().unwrap();
    let out = fossil(dir.path(), &["init", "-A", "ann", "r.fossil"]).unwrap();
    assert!(out.out.contains("project-id:"), "{out:?}");
    let out = fossil(dir.path(), &["timeline", "-R", "r.fossil"]).unwrap();
    assert!(out.out.contains("initial empty check-in"), "{out:?}");
}

#[test]
fn each_way_of_failing_gives_an_error_and_the_next_call_works() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, words) in [
        ("fatal", "a fatal error"),
        ("panic", "a panic"),
        ("abort", "stopped itself"),
        ("exit", "exit code 3"),
        ("assert", "assertion failed in ocx_fail_cmd"),
        ("function", "failed inside an SQL function"),
        ("memory", "out of memory"),
    ] {
        let e = fossil(dir.path(), &["test-ocx-fail", kind]).unwrap_err();
        assert!(e.to_string().contains(words), "{kind}: {e}");
        assert!(fossil(dir.path(), &["version"]).unwrap().out.contains("2.28"));
    }
    let e = fossil(dir.path(), &["no-such-command"]).unwrap_err();
    assert_eq!(e.kind(), Kind::Invalid);
}
