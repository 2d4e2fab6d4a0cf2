//! `ocx_test`.

use serde_json::json;

use crate::support::{Fixture, OCX, four, until};

#[test]
fn the_answer_is_ok_only_when_every_test_passed() {
    let f = Fixture::with(&[]);
    f.write(
        "ocx-tests.json",
        r#"{"tests":[{"name":"good","command":"echo fine"},{"name":"bad","command":"echo no; exit 3"}]}"#,
    );
    let answer = f.refused("untested", "ocx_test", json!({}));
    let tests = &answer["result"]["tests"];
    assert_eq!(
        (&tests[0]["passed"], &tests[1]["passed"]),
        (&json!(false), &json!(true)),
        "failed ones first"
    );
    assert_eq!((&tests[0]["output"], &tests[1]["output"]), (&json!("no\n"), &json!("fine\n")));
    assert!(
        answer["stopped"].as_str().unwrap_or_default().contains("`bad` failed with exit status 3"),
        "{answer}"
    );
    assert_eq!(f.done("ocx_test", json!({"name": "good"}))["tests"].as_array().map(Vec::len), Some(1));
    f.refused("not_found", "ocx_test", json!({"name": "godo"}));
}

#[test]
fn without_declared_tests_there_is_nothing_to_run() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let answer = f.refused("not_found", "ocx_test", json!({}));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("ocx-tests.json"));
}

#[test]
fn t15_r06_output_is_valid_text_and_the_answer_small() {
    let f = Fixture::tested(
        r"for i in $(seq 300); do printf '%040d\360\237\230\200\360b\033[31m\n' $i; done",
        &[],
    );
    let answer = f.call("ocx_test", json!({}));
    assert_eq!(answer["ok"], true, "{answer:#}");
    assert!(answer.to_string().len() < 11_000, "{}", answer.to_string().len());
    assert_eq!(answer["result"]["tests"][0]["of"], 300);
    let log = f.done("ocx_test", json!({"name": "unit", "log_from": 5}));
    assert!(log["text"].as_str().unwrap_or_default().contains("0005"), "{log:#}");
    assert_eq!(log["lines"], 300);
}

#[test]
fn an_edit_while_a_test_runs_is_made_and_is_not_tested() {
    let f = Fixture::tested("touch begun; while [ ! -e go ]; do sleep 0.05; done", &[("a.txt", b"a\n")]);
    f.write("b.txt", "b\n");
    std::thread::scope(|s| {
        let test = s.spawn(|| f.call("ocx_test", json!({})));
        until("the test runs", || f.in_test_tree("begun").exists());
        // An edit does not wait for a test: this one ends only after it.
        f.done("ocx_edit", json!({"path": "a.txt", "old": "a", "new": "b"}));
        std::fs::write(f.in_test_tree("go"), "").expect("written");
        let answer = test.join().expect("no panic");
        assert_eq!(answer["ok"], true, "it passed on the files that it started with: {answer:#}");
    });
    f.refused("untested", "ocx_save", four("t"));
    f.done("ocx_edit", json!({"path": "a.txt", "old": "b", "new": "a"}));
    f.done("ocx_save", four("t"));
}

#[test]
fn t32_the_test_that_failed_gets_the_room_and_stands_first() {
    let f = Fixture::with(&[]);
    let mut tests: Vec<_> = (0..39).map(|n| json!({"name": format!("t{n}"), "command": "true"})).collect();
    tests
        .push(json!({"name": "bad", "command": "for i in $(seq 10); do printf '%0500d\n' $i; done; exit 1"}));
    f.write("ocx-tests.json", json!({ "tests": tests }).to_string());
    let answer = f.refused("untested", "ocx_test", json!({}));
    let first = &answer["result"]["tests"][0];
    assert_eq!(
        (&first["name"], &first["shown"], &first["of"]),
        (&json!("bad"), &json!(10), &json!(10)),
        "{first}"
    );
    assert!(answer.to_string().len() < 14_000, "{}", answer.to_string().len());
}

#[test]
fn t34_a_test_that_ran_into_its_limit_names_the_limit_and_its_field() {
    let f = Fixture::with(&[]);
    f.write("ocx-tests.json", r#"{"tests":[{"name":"slow","command":"sleep 60","timeout":"1s"}]}"#);
    let answer = f.refused("untested", "ocx_test", json!({}));
    let said = format!("{} {}", answer["stopped"], answer["next_step"]);
    for word in ["1s", "`timeout`", "ocx-tests.json"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn t35_a_variable_that_is_withheld_is_named_and_can_be_declared() {
    let f = Fixture::with(&[]);
    let declared =
        |env: &str| format!(r#"{{"tests":[{{"name":"u","command":"test \"$DATABASE_URL\" = db"{env}}}]}}"#);
    let run = || {
        let mut test = f.command(OCX, &f.root());
        let test = test.args(["test", "--json"]).env("DATABASE_URL", "db").output().expect("it runs");
        serde_json::from_slice::<serde_json::Value>(&test.stdout).expect("JSON")
    };
    f.write("ocx-tests.json", declared(""));
    let failed = run();
    let withheld = failed["result"]["withheld"].as_array().cloned().unwrap_or_default();
    assert!(withheld.contains(&json!("DATABASE_URL")), "{failed}");
    assert!(!failed.to_string().contains("\"db\""), "only the name");
    f.write("ocx-tests.json", declared(r#","env":["DATABASE_URL"]"#));
    let passed = run();
    assert_eq!(
        (&passed["ok"], &passed["result"]["tests"][0]["with"]),
        (&json!(true), &json!(["$DATABASE_URL"])),
        "{passed}"
    );
}

#[test]
fn v05_a_list_of_tests_that_a_save_leaves_out_is_none() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write(".gitignore", "ocx-tests.json\n");
    f.write("ocx-tests.json", r#"{"tests":[{"name":"u","command":"true"}]}"#);
    let answer = f.refused("invalid", "ocx_test", json!({}));
    let stopped = answer["stopped"].as_str().unwrap_or_default();
    assert!(stopped.contains("ocx-tests.json") && stopped.contains(".gitignore"), "{answer}");
    f.write("b.txt", "b\n");
    f.refused("invalid", "ocx_save", four("t"));
}
