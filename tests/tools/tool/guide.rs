//! `ocx_commit_and_sync_guide`: its steps are run as they stand, by a shell and plain Fossil.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::served::Served;
use crate::support::{Fixture, four};

#[track_caller]
fn guide(s: &Served, input: Value) -> Value {
    let answer = s.call("ocx_commit_and_sync_guide", input);
    assert_eq!(answer["ok"], true, "{answer:#}");
    answer["result"].clone()
}

/// Runs the steps in a folder, with the edit where it belongs; gives what the last one prints.
#[track_caller]
fn run(s: &Served, steps: &Value, folder: &Path, edit: &str) -> String {
    let mut script = String::from("set -e\n");
    for step in steps.as_array().expect("steps") {
        assert_eq!(step["where"], "local shell");
        if step["name"] == "edit" {
            script.extend(["{ ", edit, "\n} >&2\n"]);
        }
        let end = if step["name"] == "print" { "" } else { " >&2" };
        let run = step["run"].as_str().expect("a command");
        script.extend(["{ :\n", run, "\n}", end, "\n"]);
    }
    let mut command = s.server_side.shell(folder);
    let output = command.args(["-c", &script]).output().expect("a shell");
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("base64")
}

#[track_caller]
fn lands(s: &Served, guide: &Value, bundle: String) -> Value {
    let mut call = guide["then"]["arguments"].clone();
    call["bundle"] = bundle.into();
    let answer = s.call(guide["then"]["tool"].as_str().expect("a tool"), call);
    assert_eq!((&answer["ok"], &answer["result"]["new"]), (&json!(true), &json!(1)), "{answer:#}");
    answer["result"].clone()
}

#[test]
fn the_steps_from_nothing_make_a_bundle_that_lands() {
    let s = Served::new();
    let tests = r#"{"tests":[{"name":"unit","command":"grep -q 'longer' a.txt | cat"}]}"#;
    s.server_side.write("ocx-tests.json", tests);
    s.server_side.fossil(&["add", "ocx-tests.json"]);
    s.server_side.fossil(&["commit", "-m", "a test", "--no-warnings"]);
    s.server_side.ocx(&s.server_side.folder().join("work"), &["pull"]);
    s.server_side.ocx(&s.server_side.folder().join("work"), &["update", "trunk"]);
    s.server_side.fossil(&["user", "capabilities", "nobody", "go"]);
    let mut input = four("It's $HOME `x`");
    input["caller"] = "setup_feasible".into();
    let guide = guide(&s, input);
    assert_eq!((&guide["read_url_verified"], &guide["blockers"]), (&json!(true), &json!([])), "{guide:#}");
    assert!(!guide.to_string().contains("s3cret") && !guide["read_url"].to_string().contains('@'));
    assert!(guide["tests"].as_str().is_some_and(|t| t.contains("does not run the tests again")));
    assert!(guide["steps"].to_string().contains("'grep -q '\\\\''longer'\\\\'' a.txt | cat'"), "{guide:#}");
    let folder = s.server_side.folder().join("fresh");
    std::fs::create_dir(&folder).expect("a folder");
    let bundle = run(
        &s,
        &guide["steps"],
        &folder,
        "printf 'longer\\n' > a.txt; printf 'n\\n' > n.txt; fossil add n.txt",
    );
    let result = lands(&s, &guide, bundle);
    assert_eq!(result["landed"][0]["title"], "It's $HOME `x`");
    assert_eq!(result["descendants"]["form"], "fossil");
    let landed = result["landed"][0]["checkin"].as_str().expect("a hash").to_owned();
    assert_eq!(s.on_server()[0].0, landed);
    assert_eq!(s.server_side.fossil(&["cat", "a.txt", "-r", &landed]), "longer\n");
    assert_eq!(s.server_side.fossil(&["cat", "n.txt", "-r", &landed]), "n\n");
}

#[test]
fn with_a_clone_the_steps_begin_in_it() {
    let s = Served::new();
    s.server_side.fossil(&["user", "capabilities", "nobody", "go"]);
    let f = &s.server_side;
    let url = format!("http://127.0.0.1:{}/", s.port);
    f.ocx(f.folder(), &["clone", &url, "own.fossil", "--user", "alice"]);
    f.ocx(f.folder(), &["open", "own.fossil", "own"]);
    let mut input = four("t");
    input["caller"] = "clone_available".into();
    let guide = guide(&s, input);
    assert_eq!(guide["steps"][0]["name"], "look_first");
    let bundle = run(&s, &guide["steps"], &f.folder().join("own"), "printf 'longer\\n' > a.txt");
    lands(&s, &guide, bundle);
    assert_eq!(s.on_server().len(), 1);
}

#[test]
fn a_part_that_was_not_given_stops_the_shell_by_its_name() {
    let s = Served::new();
    s.server_side.fossil(&["user", "capabilities", "nobody", "go"]);
    let guide = guide(&s, json!({"title": "t"}));
    let steps = guide["steps"].as_array().expect("steps");
    let message = steps.iter().find(|step| step["name"] == "message").expect("a step");
    let mut command = s.server_side.shell(s.server_side.folder());
    let output = command.args(["-c", message["run"].as_str().expect("a command")]).output().expect("a shell");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("INTENT"), "{output:?}");
}

#[test]
fn what_stands_in_the_way_of_a_clone_is_said_and_the_remote_route_is_offered() {
    let mut s = Served::new();
    for (capabilities, words) in [("", "without a login"), ("o", "without a login")] {
        for nobody in ["nobody", "anonymous"] {
            s.server_side.fossil(&["user", "capabilities", nobody, capabilities]);
        }
        let told = guide(&s, four("t"));
        assert_eq!((&told["read_url_verified"], &told["steps"]), (&json!(false), &json!([])), "{told:#}");
        assert!(told["blockers"][0].as_str().is_some_and(|b| b.contains(words)), "{told:#}");
        assert_eq!(told["next_call"], json!({"tool": "ocx_context", "arguments": {}}));
    }
    s.stop();
    let told = guide(&s, four("t"));
    assert!(told["blockers"][0].as_str().is_some_and(|b| b.contains("not known")), "{told:#}");
    let mut input = four("t");
    input["caller"] = "clone_available".into();
    let told = guide(&s, input);
    assert!(told["steps"].as_array().is_some_and(|steps| steps.iter().all(|step| step["name"] != "pull")));
}

#[test]
fn without_a_remote_there_is_no_url_and_a_reader_is_told_what_it_lacks() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let told = f.done("ocx_commit_and_sync_guide", json!({}));
    assert_eq!((&told["read_url"], &told["read_url_verified"]), (&json!(null), &json!(false)));
    assert!(told["blockers"][0].as_str().is_some_and(|b| b.contains("no remote")), "{told:#}");
    f.fossil(&["user", "new", "rita", "rita", "pw"]);
    f.fossil(&["user", "capabilities", "rita", "o"]);
    f.fossil(&["user", "default", "rita"]);
    let told = f.done("ocx_commit_and_sync_guide", json!({"caller": "clone_available"}));
    assert!(told["blockers"].to_string().contains("lacks capability `i`"), "{told:#}");
    f.refused("invalid", "ocx_commit_and_sync_guide", json!({"title": " "}));
}
