//! `ocx_sync`, with bundles that another clone made.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ocx::process::Supervisor;
use ocx::tool::Service;
use serde_json::{Value, json};

use crate::support::served::Served;
use crate::support::{Fixture, OCX, four};

/// A clone of one's own beside the server's, to commit in.
pub struct Mine<'a> {
    session: Service,
    f: &'a Fixture,
}

impl<'a> Mine<'a> {
    pub fn of(s: &'a Served) -> Self {
        let f = &s.server_side;
        let url = format!("http://agent:s3cret@127.0.0.1:{}/", s.port);
        f.ocx(f.folder(), &["clone", &url, "mine.fossil", "--save-password"]);
        f.ocx(f.folder(), &["open", "mine.fossil", "mine", "--user", "agent"]);
        Self { session: Service::with_supervisor(f.folder().join("mine"), Supervisor::at(OCX)), f }
    }

    pub fn call(&self, tool: &str, input: Value) -> Value {
        crate::support::answer::call(&self.session, tool, input)
    }

    #[track_caller]
    pub fn done(&self, tool: &str, input: Value) -> Value {
        let answer = self.call(tool, input);
        assert_eq!(answer["ok"], true, "{answer:#}");
        answer["result"].clone()
    }

    pub fn edit(&self, old: &str, new: &str) {
        self.done("ocx_edit", json!({"path": "a.txt", "old": old, "new": new}));
    }

    /// Plain Fossil, in this clone.
    #[track_caller]
    pub fn fossil(&self, args: &[&str]) -> String {
        let output = self.f.plain(&self.f.folder().join("mine")).args(args).output().expect("runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The branch as plain Fossil bundles it.
    pub fn plain_bundle(&self, branch: &str) -> String {
        self.fossil(&["bundle", "export", "../plain.bundle", "--branch", branch, "--standalone"]);
        let bytes = std::fs::read(self.f.folder().join("plain.bundle")).expect("a bundle");
        std::fs::remove_file(self.f.folder().join("plain.bundle")).expect("removed");
        STANDARD.encode(bytes)
    }
}

#[track_caller]
fn done(answer: &Value) -> Value {
    assert_eq!(answer["ok"], true, "{answer:#}");
    answer["result"].clone()
}

#[test]
fn what_was_committed_elsewhere_lands_on_the_server_and_comes_back() {
    let s = Served::new();
    let mine = Mine::of(&s);
    let base = mine.done("ocx_context", json!({}))["parent"]["checkin"].clone();
    mine.edit("a", "b");
    let mut input = four("one");
    input["have"] = base.clone();
    let made = mine.done("ocx_commit_and_sync", input);
    let call = made["next_call"].clone();
    assert_eq!((&call["connection"], &call["tool"]), (&json!("configured_remote_ocx"), &json!("ocx_sync")));
    let dry = {
        let mut input = call["arguments"].clone();
        input["dry_run"] = true.into();
        s.call("ocx_sync", input)
    };
    assert_eq!((&dry["ok"], &dry["result"]["new"]), (&json!(true), &json!(1)), "{dry:#}");
    assert!(s.on_server().is_empty());
    let answer = s.call("ocx_sync", call["arguments"].clone());
    let mut log = dry["log"].clone();
    log.as_array_mut().expect("a log").push(json!({"op": "export_bundle", "changes": false}));
    assert_eq!(answer["log"], log);
    let result = done(&answer);
    assert_eq!((&result["new"], &result["pushed"]), (&json!(1), &json!(true)), "{result:#}");
    let landed = &result["landed"][0];
    assert_eq!(
        (&landed["checkin"], &landed["title"], &landed["new"]),
        (&made["checkin"], &json!("one"), &json!(true))
    );
    assert!(landed["link"].as_str().is_some_and(|l| l.ends_with(made["checkin"].as_str().expect("a hash"))));
    assert!(landed["receipt"].is_null() && result["no_receipt"].is_string());
    assert_eq!(s.on_server()[0].0, made["checkin"].as_str().expect("a hash"));
    assert_eq!(result["descendants"]["check_ins"], json!([made["checkin"]]));
    assert_eq!(
        std::fs::read(s.server_side.folder().join("work/a.txt")).expect("a file"),
        b"a\n",
        "untouched"
    );

    // The same again: nothing new, and the same list.
    let again = done(&s.call("ocx_sync", call["arguments"].clone()));
    assert_eq!((&again["new"], &again["landed"][0]["new"]), (&json!(0), &json!(false)));
    assert_eq!(again["descendants"]["check_ins"], result["descendants"]["check_ins"]);
}

#[test]
fn have_alone_gives_what_is_newer_and_imports_and_sends_nothing() {
    let s = Served::new();
    let mine = Mine::of(&s);
    let base = mine.done("ocx_context", json!({}))["parent"]["checkin"].clone();
    s.edit("a", "theirs");
    let saved = done(&s.call("ocx_save", four("theirs")));
    let ask = json!({"branch": "agent/agent-0a1b2c3d", "have": base, "form": "fossil"});
    let answer = s.call("ocx_sync", ask);
    assert_eq!(answer["log"], json!([{"op": "export_bundle", "changes": false}]));
    let back = done(&answer)["descendants"].clone();
    assert_eq!((&back["check_ins"], &back["form"]), (&json!([saved["checkin"]]), &json!("fossil")));
    let bytes = STANDARD.decode(back["bundle"].as_str().expect("base64")).expect("base64");
    assert_eq!(back["size"], bytes.len());
    std::fs::write(s.server_side.folder().join("back.bundle"), bytes).expect("written");
    mine.fossil(&["bundle", "import", "../back.bundle", "--publish"]);
    let cat = mine.fossil(&["cat", "a.txt", "-r", saved["checkin"].as_str().expect("a hash")]);
    assert_eq!(cat, "theirs\n");
    // Of the newest there is nothing newer.
    let none = done(&s.call("ocx_sync", json!({"branch": "b", "have": saved["checkin"]})));
    assert_eq!((&none["descendants"]["of"], &none["descendants"]["bundle"]), (&json!(0), &json!(null)));
}

#[test]
fn a_bundle_that_was_not_sent_is_sent_once_by_the_same_call() {
    let mut s = Served::new();
    let call = {
        let mine = Mine::of(&s);
        mine.edit("a", "b");
        mine.done("ocx_commit_and_sync", four("one"))["next_call"]["arguments"].clone()
    };
    s.stop();
    let first = s.call("ocx_sync", call.clone());
    assert_eq!((&first["code"], &first["result"]["new"]), (&json!("not_pushed"), &json!(1)), "{first:#}");
    assert_eq!(first["next_call"], json!({"tool": "ocx_sync", "arguments": call}));
    s.start();
    let again = done(&s.call("ocx_sync", call));
    assert_eq!((&again["new"], &again["pushed"]), (&json!(0), &json!(true)), "{again:#}");
    assert_eq!(s.on_server().len(), 1);
}

#[test]
fn check_ins_of_plain_fossil_land_with_four_lines_and_are_refused_without() {
    let s = Served::new();
    let mine = Mine::of(&s);
    let commit = |message: &str, file: &str, branch: &str| {
        std::fs::write(s.server_side.folder().join("mine").join(file), "x\n").expect("written");
        mine.fossil(&["add", file]);
        let name = ["--nosync", "--branch", branch, "--user-override", "agent", "-m", message];
        mine.fossil(&[&["commit"][..], &name].concat());
        mine.plain_bundle(branch)
    };
    let bad = commit("one line", "b.txt", "agent/agent-00000001");
    let answer = s.call("ocx_sync", json!({"branch": "agent/agent-00000001", "bundle": bad}));
    assert_eq!(answer["code"], "invalid", "{answer:#}");
    assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("one line, not four")), "{answer:#}");
    mine.fossil(&["update", "trunk", "--nosync"]);
    let message = "t\nIntent: why\nExpression: where\nDemonstrates: unit\n";
    let good = commit(message, "c.txt", "agent/agent-00000002");
    let answer = s.call("ocx_sync", json!({"branch": "agent/agent-00000001", "bundle": good}));
    assert_eq!(answer["code"], "denied", "{answer:#}");
    let result = done(&s.call("ocx_sync", json!({"branch": "agent/agent-00000002", "bundle": good})));
    assert_eq!((&result["new"], &result["landed"][0]["title"]), (&json!(1), &json!("t")));
    assert_eq!(s.on_server().len(), 1);
    // A verdict on it travels in later bundles, and brings nothing that is not here.
    s.server_side.fossil(&["tag", "add", "audited", "agent/agent-00000002"]);
    mine.fossil(&["pull"]);
    done(&s.call(
        "ocx_sync",
        json!({"branch": "agent/agent-00000002", "bundle": mine.plain_bundle("agent/agent-00000002")}),
    ));
}

#[test]
fn c07_c08_a_check_in_that_would_fork_or_reopen_its_branch_is_refused() {
    let s = Served::new();
    let mine = Mine::of(&s);
    mine.edit("a", "b");
    let first = mine.done("ocx_commit_and_sync", four("one"));
    done(&s.call("ocx_sync", first["next_call"]["arguments"].clone()));
    mine.edit("b", "c");
    let second = mine.done("ocx_commit_and_sync", four("two"));
    done(&s.call("ocx_sync", second["next_call"]["arguments"].clone()));
    mine.fossil(&["update", first["checkin"].as_str().expect("a hash"), "--nosync"]);
    let branch = first["branch"].as_str().expect("a branch").to_owned();
    let message = "t\nIntent: why\nExpression: where\nDemonstrates: unit";
    let commit = |file: &str, more: &[&str]| {
        std::fs::write(s.server_side.folder().join("mine").join(file), "x\n").expect("written");
        mine.fossil(&["add", file]);
        mine.fossil(&[&["commit", "--nosync", "--user-override", "agent", "-m", message][..], more].concat());
        json!({"branch": branch, "bundle": mine.plain_bundle(&branch)})
    };
    let answer = s.call("ocx_sync", commit("d.txt", &["--allow-fork"]));
    assert_eq!(answer["code"], "would_fork", "{answer:#}");
    assert_eq!(s.on_server().len(), 2);
    s.server_side.fossil(&["tag", "add", "closed", "--raw", second["checkin"].as_str().expect("a hash")]);
    s.server_side.ocx(&s.server_side.folder().join("work"), &["pull"]);
    mine.fossil(&["update", second["checkin"].as_str().expect("a hash"), "--nosync"]);
    mine.fossil(&["purge", "checkins", "tip"]);
    let answer = s.call("ocx_sync", commit("e.txt", &[]));
    assert_eq!(answer["code"], "closed", "{answer:#}");
    assert_eq!(s.on_server().len(), 2);
}

#[test]
fn descendants_over_the_limit_are_refused_after_the_bundle_has_landed() {
    let s = Served::new();
    let mine = Mine::of(&s);
    let base = mine.done("ocx_context", json!({}))["parent"]["checkin"].clone();
    // Bytes that do not compress.
    let noise: Vec<u8> = std::iter::successors(Some(88_172_645_463_325_252_u64), |n| {
        let n = n ^ (n << 13);
        let n = n ^ (n >> 7);
        Some(n ^ (n << 17))
    })
    .map(|n| n.to_le_bytes()[3])
    .take(3 << 20)
    .collect();
    std::fs::write(s.server_side.folder().join("mine/noise.bin"), noise).expect("written");
    let answer = mine.call("ocx_commit_and_sync", four("noise"));
    assert_eq!(
        (&answer["code"], &answer["result"]["committed"]),
        (&json!("too_large"), &json!(true)),
        "{answer:#}"
    );
    assert!(answer["stopped"].as_str().is_some_and(|s| s.contains("2097152")), "{answer:#}");
    let branch = answer["result"]["branch"].as_str().expect("a branch").to_owned();
    assert!(answer["next_step"].as_str().is_some_and(|s| s.contains(&format!("--branch {branch} --wire"))));
    let f = &s.server_side;
    f.ocx(&f.folder().join("mine"), &["bundle", "export", "../push.bundle", "--branch", &branch, "--wire"]);
    let bundle = STANDARD.encode(std::fs::read(f.folder().join("push.bundle")).expect("a bundle"));
    let answer = s.call("ocx_sync", json!({"branch": branch, "bundle": bundle, "have": base}));
    assert_eq!(
        (&answer["code"], &answer["result"]["pushed"]),
        (&json!("too_large"), &json!(true)),
        "{answer:#}"
    );
    assert_eq!(s.on_server().len(), 1);
    done(&s.call("ocx_sync", json!({"branch": branch, "bundle": bundle})));
}

#[test]
fn neither_trunk_nor_an_unsafe_name_is_taken_nor_a_call_that_asks_for_nothing() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let have = f.done("ocx_context", json!({}))["parent"]["checkin"].clone();
    f.refused("denied", "ocx_sync", json!({"branch": "trunk", "have": have}));
    f.refused("invalid", "ocx_sync", json!({"branch": "beef", "have": have}));
    f.refused("invalid", "ocx_sync", json!({"branch": "-R", "have": have}));
    f.refused("invalid", "ocx_sync", json!({"branch": "side"}));
    f.refused("invalid", "ocx_sync", json!({"have": have}));
    let short = &have.as_str().expect("a hash")[..10];
    let answer = f.refused("invalid", "ocx_sync", json!({"branch": "side", "have": short}));
    assert_eq!(answer["next_call"]["arguments"]["have"], have);
    f.done("ocx_sync", answer["next_call"]["arguments"].clone());
}

#[test]
fn a_dry_run_changes_no_byte_and_without_a_remote_the_receipt_is_of_this_repository() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.fossil(&["clone", "../r.fossil", "../mine.fossil", "--no-open"]);
    f.ocx(f.folder(), &["open", "mine.fossil", "mine", "--user", "alice"]);
    let mine =
        Mine { session: Service::with_supervisor(f.folder().join("mine"), Supervisor::at(OCX)), f: &f };
    mine.edit("a", "b");
    let mut input = mine.done("ocx_commit_and_sync", four("one"))["next_call"]["arguments"].clone();
    input["dry_run"] = true.into();
    // Of files that are no longer fresh, a look could remember what it has seen.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let before = f.everything();
    let dry = f.done("ocx_sync", input.clone());
    assert_eq!((&dry["new"], f.everything() == before), (&json!(1), true), "{dry:#}");
    input["dry_run"] = false.into();
    let done = f.done("ocx_sync", input);
    assert_eq!((&done["pushed"], &done["landed"][0]["receipt"]["user"]), (&json!(false), &json!("alice")));
    assert_eq!(f.bytes("a.txt"), b"a\n");
}
