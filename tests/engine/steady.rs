//! What the engine leaves as it was: memory, descriptors, and all that a process has only once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use ocx::error::Kind;
use ocx::repo::Repository;
use ocx::sync::Remote;

use super::place::{Place, expect, fossil};
use crate::support::alone;
use crate::support::ann;

/// Under a sanitizer, freed memory is kept back and everything is slow.
const SANITIZED: bool = option_env!("OCX_SANITIZE").is_some();

fn status(key: &str) -> String {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|l| l.starts_with(&format!("{key}:"))).unwrap_or_default();
    line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
}

fn resident_kb() -> i64 {
    status("VmRSS").trim_end_matches(" kB").parse().unwrap()
}

/// The open descriptors and what they are, without the one that lists them.
fn descriptors() -> Vec<String> {
    let list = fs::read_dir("/proc/self/fd").unwrap();
    let mut names: Vec<_> = list
        .filter_map(|e| Some(fs::read_link(e.ok()?.path()).ok()?.display().to_string()))
        .filter(|name| !name.starts_with("/proc/"))
        .collect();
    names.sort();
    names
}

/// One round of everything, in `calls` calls.
fn mixture(place: &Place, nowhere: &Remote, calls: usize) {
    for n in 0..calls {
        match n % 50 {
            0 => drop(place.save(&format!("{n}")).unwrap()),
            1 => drop(place.checkout.status().unwrap()),
            2 => drop(place.fossil(&["timeline", "-n", "3"]).unwrap()),
            3 => drop(expect("sync", place.repository.push(nowhere), Kind::Unreachable, "127.0.0.1")),
            4 => drop(expect("bad", place.fossil(&["artifact", "nowhere"]), Kind::NotFound, "nowhere")),
            5 => drop(place.fossil(&["wiki", "list"]).unwrap()),
            6 => drop(expect("pull", place.repository.pull(nowhere), Kind::Unreachable, "127.0.0.1")),
            7 => drop(expect(
                "assert",
                fossil(Path::new("/"), &["test-ocx-fail", "assert"]),
                Kind::Internal,
                "",
            )),
            8 => drop(place.repository.set_remote(Some(nowhere), false)),
            9 => drop(Repository::open(&place.dir.path().join("none")).unwrap_err()),
            k if k % 2 == 0 => drop(fossil(Path::new("/"), &["version"]).unwrap()),
            _ => drop(place.repository.remote().unwrap()),
        }
    }
}

#[test]
fn ten_thousand_mixed_calls_hold_no_more_memory_and_no_descriptor() {
    if !alone::is_alone("steady::ten_thousand_mixed_calls_hold_no_more_memory_and_no_descriptor", |_| {}) {
        return;
    }
    let place = Place::new();
    let nowhere = Remote::parse("http://127.0.0.1:1/").unwrap();
    let calls = if SANITIZED { 500 } else { 10_000 };
    mixture(&place, &nowhere, calls / 4);
    let (before_kb, before) = (resident_kb(), descriptors());
    let begun = Instant::now();
    mixture(&place, &nowhere, calls);
    let growth_kb = resident_kb() - before_kb;
    let took = begun.elapsed();
    println!(
        "{calls} calls took {took:?}; {before_kb} kB grew by {growth_kb} kB; {} descriptors",
        before.len()
    );
    assert_eq!(descriptors(), before);
    if !SANITIZED {
        assert!(growth_kb < 2048, "{growth_kb} kB more after {calls} calls");
    }
    place.is_well("ten thousand calls");
}

/// What all threads of the process share, and how it stands.
fn process() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for key in ["Umask", "Uid", "Gid", "Groups", "SigBlk", "SigIgn", "SigCgt", "Seccomp", "NoNewPrivs"] {
        all.insert(key.to_owned(), status(key));
    }
    all.insert("limits".into(), fs::read_to_string("/proc/self/limits").unwrap());
    all.insert("directory".into(), std::env::current_dir().unwrap().display().to_string());
    all.insert("root".into(), fs::read_link("/proc/self/root").unwrap().display().to_string());
    all.insert("group".into(), rustix::process::getpgrp().as_raw_nonzero().to_string());
    all.insert("children".into(), children());
    for (name, value) in std::env::vars_os() {
        all.insert(format!("${}", name.display()), value.display().to_string());
    }
    all
}

fn children() -> String {
    let tasks = fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
    tasks.map(|t| fs::read_to_string(t.path().join("children")).unwrap_or_default()).collect()
}

#[test]
fn nothing_that_the_process_has_only_once_is_touched() {
    let test = "steady::nothing_that_the_process_has_only_once_is_touched";
    let home = tempfile::tempdir().unwrap();
    let is_child = alone::is_alone(test, |command| {
        command.env("HOME", home.path()).env_remove("FOSSIL_HOME").env_remove("XDG_CONFIG_HOME");
        command
            .env("TZ", "America/St_Johns")
            .env("LC_ALL", "C.UTF-8")
            .env("EDITOR", "false")
            .env("USER", "zed");
    });
    if !is_child {
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "the home folder was written to");
        return;
    }
    let place = Place::new();
    let before = process();
    everything(&place);
    assert_eq!(process(), before);
    place.is_well("everything");
}

/// Operations of each kind, those among them that plain Fossil does with signals, limits and files of its own.
fn everything(place: &Place) {
    let nowhere = Remote::parse("http://127.0.0.1:1/").unwrap();
    mixture(place, &nowhere, 50);
    let root = place.checkout.root();
    fs::write(root.join("page.txt"), "text\n").unwrap();
    for args in [
        &["settings", "autosync", "off"] as &[&str],
        &["settings", "--global", "editor", "vi"],
        &["wiki", "create", "Page", "page.txt"],
        &["uv", "add", "page.txt"],
        &["branch", "new", "b", "trunk"],
        &["bundle", "export", "b.bundle", "--branch", "trunk"],
        &["all", "list"],
        &["sqlar", "trunk", "t.sqlar"],
        &["tarball", "trunk", "t.tar.gz"],
        &["diff"],
        &["status"],
        &["user", "list"],
        &["info"],
        &["commit", "-m", "no such editor", "--edit"],
        &["ui"],
        &["server", "--port", "1"],
        &["backoffice", "--nodelay"],
        &["sync", "http://127.0.0.1:1/"],
        &["test-ocx-fail", "abort"],
    ] {
        // Some of them fail here: what counts is what they leave.
        let _ = place.fossil(args);
    }
    let clone = place.dir.path().join("clone.fossil");
    Repository::clone_file(&place.path(), &clone, &ann()).unwrap().rebuild().unwrap();
}

#[test]
fn nothing_is_written_to_the_standard_streams() {
    let test = "steady::nothing_is_written_to_the_standard_streams";
    if std::env::var("OCX_TEST_ALONE").is_ok_and(|name| name == test) {
        if std::env::var_os("OCX_TEST_IDLE").is_none() {
            everything(&Place::new());
        }
        return;
    }
    let said = |idle: bool| {
        let mut command = alone::command(test);
        if idle {
            command.env("OCX_TEST_IDLE", "1");
        }
        let out = command.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let words = |bytes: Vec<u8>| {
            let said = String::from_utf8(bytes).unwrap();
            said.split("finished in").next().unwrap_or_default().to_owned()
        };
        (words(out.stdout), words(out.stderr))
    };
    assert_eq!(said(false), said(true));
}
