//! Calls on a repository file without a checkout: records are read and written, and what acts on files is refused.

use std::path::PathBuf;
use std::process::Command;

use ocx::checkout::{CheckIn, Checkout};
use ocx::format::Markup;
use ocx::name::{Branch, User};
use ocx::record::{Forum, Users};
use ocx::repo::{NewRepository, Repository};
use ocx::tool::{Acts, CallControl, Catalogue, Service, call};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::{Client, initialize};
use crate::support::{Fixture, OCX, answer, four, required};

/// A repository of `alice`, with a check-in of hers on a branch and a forum thread, and the login `bob`.
struct Alone {
    folder: TempDir,
    repository: Repository,
    check_in: String,
    post: String,
}

fn user(name: &str) -> User {
    User::parse(name).expect("a user")
}

impl Alone {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let alice = user("alice");
        let new = NewRepository { user: alice.clone() };
        let repository = Repository::create(&folder.path().join("r.fossil"), &new).expect("made");
        let checkout = Checkout::open(&repository, &folder.path().join("away/co"), None, Some(&alice));
        let checkout = checkout.expect("a checkout");
        std::fs::write(checkout.root().join("a.txt"), "one\n").expect("written");
        let made = CheckIn {
            comment: "add a".into(),
            branch: Some(Branch::parse("agent/alice-0a1b2c3d").expect("a branch")),
            user: alice.clone(),
            time: None,
        };
        let made = checkout.check_in(&made, &checkout.status().expect("a status")).expect("a check-in");
        let forum = Forum::of(&repository);
        let post = forum.start("Plan", "Begin.", Markup::Markdown, &alice).expect("a thread");
        Users::of(&repository).create(&user("bob"), "oi234jkfy", "", None, &alice).expect("a user");
        Self { folder, repository, check_in: made.hash.to_string(), post: post.hash.to_string() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("r.fossil")
    }

    fn service(&self) -> Service {
        Service::of_repository(self.path())
    }

    fn call_as(&self, login: &str, tool: &str, input: Value) -> Value {
        answer::call(&self.service().acting_as(user(login)), tool, input)
    }

    /// The result as `bob`; a dry run before it writes nothing.
    #[track_caller]
    fn done(&self, tool: &str, input: Value) -> Value {
        let mut dry = input.clone();
        dry["dry_run"] = true.into();
        let before = self.artifacts();
        let answer = self.call_as("bob", tool, dry);
        assert_eq!((&answer["ok"], self.artifacts()), (&json!(true), before), "{answer:#}");
        let answer = self.call_as("bob", tool, input);
        assert_eq!(answer["ok"], true, "{answer:#}");
        answer["result"].clone()
    }

    /// How many artifacts and unversioned files there are.
    fn artifacts(&self) -> i64 {
        let db = rusqlite::Connection::open(self.path()).expect("a repository");
        let count = |sql| db.query_row(sql, [], |r| r.get::<_, i64>(0)).unwrap_or(0);
        count("SELECT count(*) FROM blob") + count("SELECT count(*) FROM unversioned")
    }

    /// `ocx -R REPO ...`, in a folder that is no checkout.
    fn ocx(&self, args: &[&str]) -> (bool, String) {
        let path = self.path();
        let mut command = Command::new(OCX);
        command.current_dir(self.folder.path()).env("HOME", self.folder.path()).env_remove("FOSSIL_USER");
        let out = command.arg("-R").arg(path).args(args).output().expect("ocx runs");
        let words = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        (out.status.success(), words)
    }
}

#[test]
fn the_wiki_is_written_and_read() {
    let a = Alone::new();
    let made = a.done("ocx_wiki_edit", json!({"page": "Plan", "old": "", "new": "Begin.\n"}));
    assert_eq!((&made["user"], &made["pushed"]), (&json!("bob"), &json!(false)));
    assert_eq!(a.done("ocx_wiki_read", json!({"page": "Plan"}))["text"], "Begin.\n");
    let (ok, shown) = a.ocx(&["wiki-read", "Plan"]);
    assert!(ok && shown.contains("Begin."), "{shown}");
}

#[test]
fn a_check_in_is_read_queued_and_judged() {
    let a = Alone::new();
    let queue = a.done("ocx_queue", json!({}));
    assert_eq!(queue["check_ins"]["first"][0]["checkin"], a.check_in.as_str());
    let read = a.done("ocx_read", json!({"checkin": a.check_in}));
    assert!(read["text"].as_str().is_some_and(|text| text.contains("+one")), "{read:#}");
    assert_eq!(a.done("ocx_read", json!({"checkin": a.check_in, "path": "a.txt"}))["text"], "one\n");
    let verdict = json!({"checkin": a.check_in, "verdict": "pass", "note": "reads well"});
    assert_eq!(a.done("ocx_audit", verdict)["user"], "bob");
    assert_eq!(a.done("ocx_queue", json!({}))["check_ins"]["of"], 0);
}

#[test]
fn a_post_is_answered_and_an_unversioned_file_kept() {
    let a = Alone::new();
    let made = a.done("ocx_post", json!({"to": a.post, "text": "It is done."}));
    assert_eq!((&made["user"], &made["thread"]), (&json!("bob"), &json!(a.post)));
    a.done("ocx_unversioned_put", json!({"name": "a.bin", "content": "AAEC"}));
    assert_eq!(a.done("ocx_unversioned_list", json!({}))["files"][0]["name"], "a.bin");
    assert_eq!(a.done("ocx_unversioned_get", json!({"name": "a.bin"}))["content"], "AAEC");
}

#[test]
fn status_tells_who_calls_and_that_there_is_no_checkout() {
    let a = Alone::new();
    let status = a.done("ocx_status", json!({}));
    assert_eq!(status["login"], "bob");
    let facts = &status["server_facts"];
    assert_eq!(facts["execution_location"], "local_repository");
    assert_eq!((&facts["checkout_id"], &facts["base"]), (&Value::Null, &Value::Null));
    assert_eq!(status["next_call"]["tool"], "ocx_queue");
}

#[test]
fn the_guide_starts_from_the_newest_of_trunk() {
    let a = Alone::new();
    let guide = a.done("ocx_commit_and_sync_guide", json!({"caller": "clone_available"}));
    let tip = a.repository.store().resolve("trunk").expect("a tip");
    assert_eq!(guide["base"], tip.as_str());
    assert!(guide["branch"].as_str().is_some_and(|b| b.starts_with("agent/bob-")), "{guide:#}");
    let again = a.done("ocx_commit_and_sync_guide", json!({}));
    assert_eq!((&again["branch"], &again["next_call"]["tool"]), (&guide["branch"], &json!("ocx_status")));
}

#[test]
fn a_bundle_of_descendants_is_given() {
    let a = Alone::new();
    let trunk = a.repository.store().resolve("trunk").expect("a tip");
    let given = a.done("ocx_sync", json!({"branch": "agent/bob-00000000", "have": trunk.as_str()}));
    assert_eq!(given["descendants"]["check_ins"], json!([a.check_in]));
}

#[test]
fn what_acts_on_files_is_refused_with_what_to_do() {
    let a = Alone::new();
    let refused = |tool: &str, input: Value| {
        let answer = a.call_as("alice", tool, input);
        assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!("not_found")), "{answer:#}");
        let stopped = answer["stopped"].as_str().unwrap_or_default();
        assert!(stopped.starts_with("this call needs a checkout"), "{answer:#}");
        assert!(answer["next_step"].as_str().unwrap_or_default().contains("ocx open"), "{answer:#}");
        answer
    };
    let mut count = 0;
    for tool in Catalogue::whole().declarations().filter(|tool| tool.acts != Acts::OnRecords) {
        let mut input = required(tool);
        if tool.name == "ocx_save" || tool.name == "ocx_commit_and_sync" {
            input = four("t");
        }
        let answer = refused(tool.name, input.clone());
        assert_eq!(answer["next_call"], json!({"tool": "ocx_status", "arguments": {}}));
        input["dry_run"] = true.into();
        refused(tool.name, input);
        count += 1;
    }
    assert_eq!(count, 6);
    refused("ocx_read", json!({"path": "a.txt"}));
    // A call that is refused in any case is not put right.
    let answer = a.call_as("alice", "ocx_edit", json!({"file_path": "a.txt", "new": "x"}));
    assert_eq!((&answer["code"], &answer["next_call"]), (&json!("invalid"), &Value::Null), "{answer:#}");
    let (ok, words) = a.ocx(&["edit", "a.txt", "--old", "one", "--new", "two"]);
    assert!(!ok && words.contains("needs a checkout"), "{words}");
}

/// The tools that are refused here and that a text names.
fn refused_tools(text: &str) -> Vec<String> {
    let refused: Vec<&str> = Catalogue::whole()
        .declarations()
        .filter(|tool| tool.acts != Acts::OnRecords)
        .map(|tool| tool.name)
        .collect();
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
    words.filter(|word| refused.contains(word)).map(str::to_owned).collect()
}

#[test]
fn no_answer_and_no_description_sends_to_a_tool_that_is_refused_here() {
    let a = Alone::new();
    for tool in a.service().offered().all() {
        let said = a.service().description(tool);
        assert_eq!(refused_tools(&said), [""; 0], "{said}");
        assert!(said.lines().count() == 2 && said.contains("\nNeeds: "), "{said}");
    }
    let mut calls: Vec<(&str, Value)> = vec![
        ("ocx_read", json!({"checkin": a.check_in, "path": "gone.txt"})),
        ("ocx_read", json!({"checkin": a.check_in, "path": "/etc/a.txt"})),
        ("ocx_read", json!({"checkin": a.check_in, "path": "./a.txt"})),
        ("ocx_read", json!({"path": "./a.txt"})),
        ("ocx_read", json!({"file_path": "a.txt"})),
        ("ocx_read", json!({"checkin": "nosuch"})),
        ("ocx_contxt", json!({})),
        ("ocx_grep", json!({"pattern": "x"})),
        ("bash", json!({})),
        ("ocx_audit", json!({"checkin": "0".repeat(40), "verdict": "pass", "note": "n"})),
        ("ocx_commit_and_sync_guide", json!({"caller": "clone_available"})),
    ];
    for tool in Catalogue::whole().declarations() {
        calls.extend([json!({}), required(tool), json!({"x": 1}), json!([])].map(|input| (tool.name, input)));
        let mut old = required(tool);
        for field in tool.fields.iter().filter(|field| field.required) {
            old[field.name] = "\u{7f}-none".into();
        }
        calls.push((tool.name, old));
    }
    for (login, (tool, input)) in calls.iter().flat_map(|call| [("alice", call), ("bob", call)]) {
        let mut answer = a.call_as(login, tool, input.clone());
        // What was called may be named in saying that it is refused.
        let own = answer["stopped"].take();
        answer["tool"].take();
        let step = answer["next_step"].as_str().unwrap_or("done.").to_owned();
        assert!(step.ends_with(['.', '?']) && !step.is_empty(), "{own}: {answer:#}");
        // The caller's own clone is another place.
        if *tool != "ocx_commit_and_sync_guide" {
            let own_words = refused_tools(&answer.to_string()).into_iter().filter(|name| name != tool);
            assert_eq!(own_words.collect::<Vec<_>>(), [""; 0], "{tool} {input}: {own}: {answer:#}");
        }
        if let Some(next) = answer.get("next_call").filter(|next| !next.is_null()) {
            let name = next["tool"].as_str().expect("a tool");
            let after = a.call_as(login, name, next["arguments"].clone());
            assert!(!after["stopped"].to_string().contains("needs a checkout"), "{answer:#}\n{after:#}");
        }
    }
}

#[test]
fn a_server_without_a_checkout_lists_what_it_offers() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let repository = f.repository().display().to_string();
    let mut client = Client::with(&f, f.folder(), &["-R", &repository]);
    let opened = client.request("initialize", initialize("2025-11-25"));
    assert_eq!(opened["result"]["serverInfo"]["title"], "OCX: tools for a Fossil repository");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(list.as_array().map(Vec::len), Some(14), "{list:#}");
    for tool in list.as_array().into_iter().flatten() {
        let said = format!("{} {}", tool["name"], tool["description"]);
        assert_eq!(refused_tools(&said), [""; 0], "{said}");
    }
    let refused = client.call("ocx_edit", json!({"path": "a.txt", "old": "a", "new": "b"}));
    assert!(refused["stopped"].to_string().contains("needs a checkout"), "{refused}");
}

#[test]
fn the_login_is_the_named_one_else_the_repositorys_own() {
    let a = Alone::new();
    let login = |args: &[&str]| {
        let (ok, answer) = a.ocx(args);
        assert!(ok, "{answer}");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        answer["result"]["login"].clone()
    };
    assert_eq!(login(&["status", "--json"]), "alice", "the first who may do everything");
    assert_eq!(login(&["--user", "bob", "call", "ocx_status"]), "bob");
    assert_eq!(login(&["status", "--user", "bob", "--json"]), "bob");
    let db = rusqlite::Connection::open(a.path()).expect("a repository");
    db.execute("REPLACE INTO config(name, value, mtime) VALUES('default-user', 'bob', 1)", []).expect("set");
    assert_eq!(login(&["status", "--json"]), "bob", "the default user");
    for (name, code) in [("nemo", "denied"), ("bob", "denied")] {
        let tool = if name == "bob" { "ocx_create" } else { "ocx_status" };
        assert_eq!(a.call_as(name, tool, json!({"instructions": "x"}))["ok"], false);
        let input = if name == "bob" { json!({"instructions": "x"}) } else { json!({}) };
        assert_eq!(a.call_as(name, tool, input)["code"], code, "{name}");
    }
    let (ok, words) = a.ocx(&["--user", "anonymous", "status"]);
    assert!(!ok && words.contains("nobody's login"), "{words}");
}

#[test]
fn commands_that_need_a_checkout_take_no_repository() {
    let a = Alone::new();
    let (ok, words) = a.ocx(&["update"]);
    assert!(!ok && words.contains("no use for `-R`"), "{words}");
    let (ok, words) = a.ocx(&["pull", "--user", "bob"]);
    assert!(!ok && words.contains("no use for `--user`"), "{words}");
}

#[test]
fn a_repository_that_is_not_there_is_said_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::of_repository(folder.path().join("none.fossil"));
    let answer = call(&service, "ocx_status", json!({}), &CallControl::default()).into_json();
    assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!("not_found")), "{answer:#}");
}
