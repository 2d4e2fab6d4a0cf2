//! Fossil's settings, and what people told Fossil of files: heeded, or named.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use ocx::checkout::{CheckIn, Checkout};
use ocx::error::Kind;
use ocx::name::{Branch, Hash, User};
use ocx::repo::Repository;
use ocx::tool::Service;
use serde_json::{Value, json};

use super::{edit, stopped};
use crate::support::{Fixture, four};

fn paths(saved: &Value) -> Vec<&str> {
    saved["changed"].as_array().expect("a list").iter().filter_map(|c| c["path"].as_str()).collect()
}

fn left_out(result: &Value) -> Vec<(&str, &str)> {
    let all = result["left_out"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(|out| Some((out["path"].as_str()?, out["why"].as_str()?))).collect()
}

/// What plain Fossil would have done or asked, as the answer of a save says it.
fn passed_over(saved: &Value) -> Vec<&str> {
    let all = saved["passed_over"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(Value::as_str).collect()
}

/// The program's own save.
fn save(f: &Fixture) -> Value {
    let answer = f.ocx(&f.root(), &["call", "ocx_save", &four("t").to_string()]);
    serde_json::from_str::<Value>(&answer).expect("JSON")
}

/// The program's answer to a save, whether it was done or not.
fn try_save(f: &Fixture) -> Value {
    let mut command = f.command(crate::support::OCX, &f.root());
    let out = command.args(["call", "ocx_save", &four("t").to_string()]).output().expect("ocx runs");
    serde_json::from_slice(&out.stdout).expect("JSON")
}

#[test]
fn c20_a_comment_in_a_versioned_setting_is_no_pattern() {
    let f = Fixture::with(&[("b.txt", b"b\n")]);
    f.write(".fossil-settings/ignore-glob", "# build (see docs/* for why)\n*.o\n");
    f.write(".fossil-settings/dotfiles", "# *\non\n");
    f.write(".fossil-settings/manifest", "# r\nu\n");
    f.write(".fossil-settings/crlf-glob", "# *.bin\n*.bat\n");
    f.write("docs/guide.md", "guide\n");
    f.write("a.o", "x\n");
    f.write(".env", "x\n");
    f.write("a.bat", "x\r\n");
    f.write("b.bin", "x\r\n");
    let saved = f.done("ocx_save", four("t"));
    let taken = paths(&saved);
    assert!(taken.contains(&"docs/guide.md") && taken.contains(&".env"), "{saved}");
    assert_eq!(left_out(&saved), [("a.o", "ignore-glob")]);
    assert!(f.path("manifest.uuid").exists() && !f.path("manifest").exists(), "{saved}");
    let [asked] = passed_over(&saved)[..] else { panic!("{saved}") };
    assert!(asked.starts_with("`b.bin` contains CR/LF line endings"), "{asked}");
    assert_eq!(f.fossil(&["changes"]), "");
    assert_eq!(f.fossil(&["extras"]), "");
}

#[test]
fn c21_dont_commit_refuses_a_save_and_is_named() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.fossil(&["settings", "dont-commit", "on"]);
    f.write("a.txt", "b\n");
    let before = f.check_ins();
    let dry = json!({"title": "t", "intent": "i", "expression": "e", "demonstrates": "d", "dry_run": true});
    for (tool, input) in [("ocx_save", four("t")), ("ocx_commit_and_sync", four("t")), ("ocx_save", dry)] {
        let answer = f.refused("refused", tool, input);
        assert!(stopped(&answer).contains("`dont-commit`"), "{answer}");
    }
    let checkout = Checkout::at(&f.root()).unwrap();
    let alice = User::parse("alice").unwrap();
    let check_in = CheckIn { comment: "x".into(), branch: None, user: alice, time: None };
    let e = checkout.check_in(&check_in, &checkout.status().unwrap()).unwrap_err();
    assert_eq!(e.kind(), Kind::Refused, "{e}");
    assert_eq!(f.check_ins(), before);
    f.fossil(&["unset", "dont-commit"]);
    f.fossil(&["settings", "--global", "dont-commit", "on"]);
    let answer = try_save(&f);
    assert!(stopped(&answer).contains("`dont-commit`"), "the program's user says so: {answer}");
    assert_eq!(f.check_ins(), before);
    assert_eq!(paths(&f.done("ocx_save", four("t"))), ["a.txt"], "a host has no user");
}

#[test]
fn c22_the_main_branch_is_opened_by_default_and_never_an_agents() {
    let f = Fixture::with(&[("a.txt", b"trunk\n")]);
    f.write("a.txt", "main\n");
    f.fossil(&["commit", "-m", "main", "--branch", "main", "--no-warnings", "--user-override", "alice"]);
    f.fossil(&["settings", "main-branch", "main"]);
    f.ocx(f.folder(), &["open", "r.fossil", "d", "--user", "alice"]);
    assert_eq!(fs::read_to_string(f.folder().join("d/a.txt")).unwrap(), "main\n");
    // Even a main branch with the name of a working branch is not saved on.
    let id = Checkout::at(&f.root()).unwrap().id().unwrap();
    let own = format!("agent/alice-{id}");
    for name in [own.as_str(), "agent/alice-0a1b2c3d"] {
        f.fossil(&["settings", "main-branch", name]);
        f.write("a.txt", format!("on {name}\n"));
        f.fossil(&["commit", "-m", "x", "--branch", name, "--no-warnings", "--user-override", "alice"]);
        f.write("a.txt", format!("after {name}\n"));
        let saved = f.done("ocx_save", four("t"));
        let branch = saved["branch"].as_str().unwrap_or_default();
        assert!(branch.starts_with("agent/alice-") && branch != name, "{saved}");
        let answer = f.call("ocx_sync", json!({"branch": name, "bundle": "AAAA"}));
        assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!("denied")), "{answer}");
        f.fossil(&["update", name]);
    }
}

#[test]
fn c23_a_hook_that_is_not_run_is_named_and_a_setting_refuses_such_saves() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    fs::write(f.folder().join("before"), "touch ran\nexit 1\n").unwrap();
    f.fossil(&["hook", "add", "--type", "before-commit", "--command", "sh ../before"]);
    f.fossil(&["hook", "add", "--type", "after-receive", "--command", "mail them"]);
    f.fossil(&["hook", "add", "--type", "disabled", "--command", "never"]);
    f.write("a.txt", "b\n");
    let theirs = f.plain(&f.root()).args(["commit", "-m", "x", "--no-warnings"]).output().expect("it runs");
    assert!(!theirs.status.success() && f.path("ran").exists(), "plain Fossil runs it: {theirs:?}");
    fs::remove_file(f.path("ran")).unwrap();
    f.set("ocx-refuse-hooks", "on");
    let before = f.check_ins();
    let answer = f.refused("refused", "ocx_save", four("t"));
    assert!(
        stopped(&answer).contains("sh ../before") && stopped(&answer).contains("ocx-refuse-hooks"),
        "{answer}"
    );
    assert_eq!(f.check_ins(), before);
    f.set("ocx-refuse-hooks", "off");
    let saved = f.done("ocx_save", four("t"));
    assert!(!f.path("ran").exists());
    let named = passed_over(&saved);
    assert_eq!(
        named,
        ["the before-commit hook `sh ../before` is not run", "the after-receive hook `mail them` is not run"]
    );
}

#[test]
fn c23_an_endless_hook_is_cut_in_the_answer() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let hooks = vec![json!({"type": "before-commit", "cmd": "x\n".repeat(40_000), "seq": 1}); 50];
    f.set("hooks", &Value::from(hooks).to_string());
    f.write("a.txt", "b\n");
    let saved = f.done("ocx_save", four("t"));
    assert_eq!(saved["passed_over_of"], 50);
    assert!(saved.to_string().len() < 10_000 && !passed_over(&saved).iter().any(|line| line.contains('\n')));
}

#[test]
fn c24_the_settings_of_the_programs_user_count_and_are_only_read() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.fossil(&["settings", "allow-symlinks", "on"]);
    symlink("a.txt", f.path("link")).unwrap();
    f.fossil(&["add", "link"]);
    f.fossil(&["commit", "-m", "link", "--no-warnings", "--user-override", "alice"]);
    f.fossil(&["unset", "allow-symlinks"]);
    f.fossil(&["settings", "--global", "allow-symlinks", "on"]);
    let global = || Hash::of(&fs::read(f.folder().join(".fossil")).unwrap());
    let before = global();
    let is_link = |at: &Path| at.join("link").symlink_metadata().unwrap().is_symlink();
    f.ocx(f.folder(), &["open", "r.fossil", "d", "--user", "alice"]);
    assert!(is_link(&f.folder().join("d")), "a stored link is laid out as a link");
    let context = f.ocx(&f.root(), &["call", "ocx_context", "{}"]);
    assert_eq!(serde_json::from_str::<Value>(&context).unwrap()["result"]["changed"], json!([]));
    f.write("a.txt", "b\n");
    let saved = save(&f);
    assert_eq!(paths(&saved["result"]), ["a.txt"], "{saved}");
    assert_eq!(global(), before);
    assert!(is_link(&f.root()) && f.fossil(&["changes"]).is_empty());
    f.write("a.txt", "c\n");
    f.fossil(&["commit", "-m", "plain", "--no-warnings", "--user-override", "alice"]);
    assert!(f.fossil(&["ls"]).contains("link\n"), "plain Fossil still has it");
    let answer = f.call("ocx_context", json!({}));
    assert!(answer.to_string().contains("allow-symlinks"), "a host has no user: {answer}");
}

#[test]
fn c24_what_a_user_set_for_all_repositories_yields_to_the_repository_and_to_the_tree() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("x.tmp", "x\n");
    f.write("x.o", "x\n");
    let seen = |f: &Fixture| {
        let answer: Value = serde_json::from_str(&f.ocx(&f.root(), &["call", "ocx_context", "{}"])).unwrap();
        left_out(&answer["result"]).iter().map(|(path, _)| (*path).to_owned()).collect::<Vec<_>>()
    };
    f.fossil(&["settings", "--global", "ignore-glob", "*.tmp"]);
    assert_eq!(seen(&f), ["x.tmp"]);
    f.fossil(&["settings", "ignore-glob", "*.o"]);
    assert_eq!(seen(&f), ["x.o"]);
    f.write(".fossil-settings/ignore-glob", "*.none\n");
    assert_eq!(seen(&f), [".fossil-settings/"]);
}

#[test]
fn c25_a_file_that_fossil_rm_took_out_leaves_the_check_in_and_stays_out() {
    let f = Fixture::with(&[("a.txt", b"a\n"), ("keep.txt", b"keep\n"), ("sub/b.txt", b"b\n")]);
    f.fossil(&["rm", "--soft", "keep.txt", "sub/b.txt"]);
    f.write("a.txt", "b\n");
    let out = [("keep.txt", "removed from the check-ins"), ("sub/b.txt", "removed from the check-ins")];
    let context = f.done("ocx_context", json!({}));
    assert_eq!(left_out(&context), out, "{context}");
    let saved = f.done("ocx_save", four("t"));
    assert_eq!((paths(&saved), left_out(&saved)), (vec!["a.txt", "keep.txt", "sub/b.txt"], out.to_vec()));
    assert_eq!(f.fossil(&["ls"]), "a.txt\n");
    assert_eq!(f.bytes("keep.txt"), b"keep\n");
    // It is as it is for plain Fossil: there, and not tracked.
    assert_eq!(f.fossil(&["extras"]), "keep.txt\nsub/b.txt\n");
    f.write("a.txt", "c\n");
    assert_eq!(paths(&f.done("ocx_save", four("t"))), ["a.txt"], "the next save does not bring it back");
    f.done("ocx_edit", edit("keep.txt", "keep", "kept"));
    let mut with = four("t");
    with["include"] = json!(["keep.txt"]);
    assert_eq!(paths(&f.done("ocx_save", with)), ["keep.txt"]);
    assert_eq!(f.fossil(&["ls"]), "a.txt\nkeep.txt\n");
    f.fossil(&["add", "sub/b.txt"]);
    assert_eq!(paths(&f.done("ocx_save", four("t"))), ["sub/b.txt"], "plain Fossil's `add` brings it back");
}

#[test]
fn c25_a_removed_file_that_went_and_came_again_is_a_new_one() {
    let f = Fixture::with(&[("a.txt", b"a\n"), ("keep.txt", b"keep\n")]);
    f.fossil(&["rm", "--soft", "keep.txt"]);
    f.done("ocx_save", four("t"));
    fs::remove_file(f.path("keep.txt")).unwrap();
    f.write("a.txt", "b\n");
    f.done("ocx_save", four("t"));
    f.write("keep.txt", "new\n");
    assert_eq!(paths(&f.done("ocx_save", four("t"))), ["keep.txt"]);
}

#[test]
fn v17_a_setting_of_the_tree_makes_no_folder_outside_it() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let base = f.fossil(&["info"]);
    let base = base.lines().find_map(|line| line.strip_prefix("checkout:")).expect("a check-in");
    let base = base.split_whitespace().next().expect("a hash").to_owned();
    f.fossil(&["settings", "allow-symlinks", "on"]);
    fs::create_dir(f.folder().join("away")).unwrap();
    symlink("../away", f.path("link")).unwrap();
    f.fossil(&["add", "link"]);
    for (at, named) in ["../OUT/x", "a/../../OUT", "link/x"].into_iter().enumerate() {
        // Plain Fossil would make the folder at its next update.
        f.write(".fossil-settings/empty-dirs", format!("# folders\nfine '{named}'\n"));
        f.fossil(&["add", ".fossil-settings/empty-dirs"]);
        f.fossil(&["commit", "-m", "x", "--no-warnings", "--user-override", "alice"]);
        let (repository, alice) = (Repository::open(&f.repository()).unwrap(), User::parse("alice").unwrap());
        let dir = f.folder().join(format!("d{at}"));
        let e = Checkout::open(&repository, &dir, None, Some(&alice)).unwrap_err();
        assert_eq!(e.kind(), Kind::Denied, "{e}");
        assert!(e.to_string().contains(named) && !dir.exists(), "{e}");
        let checkout = Checkout::at(&f.root()).unwrap();
        f.fossil(&["update", &base]);
        for gone in ["OUT", "away/x"] {
            let _ = fs::remove_dir_all(f.folder().join(gone));
        }
        let _ = checkout.update("trunk");
        assert!(!f.folder().join("OUT").exists() && !f.folder().join("away/x").exists(), "{named}");
        assert_eq!(f.bytes("a.txt"), b"a\n");
        f.fossil(&["revert"]);
        f.fossil(&["update", "trunk"]);
    }
}

#[test]
fn v17_an_empty_folder_in_the_tree_is_made() {
    let f = Fixture::with(&[("a.txt", b"a\n"), (".fossil-settings/empty-dirs", b"# ours\nempty/one/ two\n")]);
    f.ocx(f.folder(), &["open", "r.fossil", "d", "--user", "alice"]);
    assert!(f.folder().join("d/empty/one").is_dir() && f.folder().join("d/two").is_dir());
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.fossil(&["settings", "--global", "empty-dirs", "mine a.txt/x"]);
    f.ocx(f.folder(), &["open", "r.fossil", "d", "--user", "alice"]);
    assert!(f.folder().join("d/mine").is_dir(), "the program's user wants it");
    assert_eq!(fs::read(f.folder().join("d/a.txt")).unwrap(), b"a\n", "a file in the way stays");
}

#[test]
fn names_that_differ_in_case_are_one_name_where_the_settings_say_so() {
    let f = Fixture::with(&[("README.md", b"a\n")]);
    f.write("readme.MD", "b\n");
    f.fossil(&["settings", "case-sensitive", "off"]);
    let answer = f.refused("invalid", "ocx_save", four("t"));
    assert!(
        stopped(&answer).contains("readme.MD") && stopped(&answer).contains("`case-sensitive`"),
        "{answer}"
    );
    f.fossil(&["addremove"]);
    assert_eq!(f.fossil(&["changes"]), "", "plain Fossil does not add it");
    f.fossil(&["settings", "case-sensitive", "on"]);
    assert_eq!(paths(&f.done("ocx_save", four("t"))), ["readme.MD"]);
}

#[test]
fn dont_push_of_the_programs_user_counts_for_commands_too() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.fossil(&["settings", "--global", "dont-push", "on"]);
    let mut command = f.command(crate::support::OCX, f.folder());
    let url = "http://alice:pw@127.0.0.1:1/";
    let out = command.args(["push", url, "-R", "r.fossil"]).output().expect("ocx runs");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && said.contains("`dont-push`"), "{said}");
}

#[test]
fn a_service_without_a_checkout_knows_its_users_settings_too() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.fossil(&["settings", "--global", "main-branch", "agent/alice-0a1b2c3d"]);
    let branch = Branch::parse("agent/alice-0a1b2c3d").unwrap();
    let input = json!({"branch": branch.as_str(), "bundle": "AAAA"});
    let service = || Service::of_repository(f.repository()).acting_as(User::parse("alice").unwrap());
    let answer = crate::support::answer::call(&service(), "ocx_sync", input.clone());
    assert_ne!(answer["code"], "denied", "a host has no user: {answer}");
    let service = service().with_global_settings(Some(f.folder().join(".fossil")));
    let answer = crate::support::answer::call(&service, "ocx_sync", input);
    assert_eq!(answer["code"], "denied", "{answer}");
}
