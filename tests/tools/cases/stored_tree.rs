//! What was tested is, byte for byte, what the check-in holds: whatever happens in the working folder meanwhile.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::{Fixture, OCX, four, sandboxes, until};

/// Checks out a check-in in a folder of its own, by plain Fossil.
fn fresh(f: &Fixture, saved: &Value) -> std::path::PathBuf {
    let hash = saved["checkin"].as_str().expect("a check-in");
    let folder = f.folder().join(format!("fresh-{hash}"));
    fs::create_dir(&folder).expect("a folder");
    let mut open = f.plain(&folder);
    let opened = open.args(["open", "../r.fossil", hash, "--nested"]).output().expect("it runs");
    assert!(opened.status.success(), "{opened:?}");
    folder
}

fn waiting(command: &str) -> String {
    format!("touch begun; while [ ! -e go ]; do sleep 0.02; done; {command}")
}

/// Runs the test, and `act` while it runs.
fn meanwhile(f: &Fixture, act: impl FnOnce()) -> Value {
    std::thread::scope(|s| {
        let test = s.spawn(|| f.call("ocx_test", json!({})));
        until("the test runs", || f.in_test_tree("begun").exists());
        act();
        fs::write(f.in_test_tree("go"), "").expect("written");
        test.join().expect("no panic")
    })
}

#[test]
fn g08_a_file_that_is_changed_while_the_test_runs_and_changed_back_gives_no_pass() {
    let f = Fixture::tested(&waiting("grep -q good a.txt"), &[("a.txt", b"old\n")]);
    f.write("a.txt", "bad\n");
    let answer = meanwhile(&f, || {
        f.write("a.txt", "good\n");
        f.write("a.txt", "bad\n");
    });
    assert_eq!(answer["ok"], false, "{answer}");
    f.refused("untested", "ocx_save", four("t"));
}

#[test]
fn g08_in_the_working_folder_any_write_voids_the_pass() {
    if !sandboxes() {
        return;
    }
    let f = Fixture::with(&[("a.txt", b"good\n")]);
    let test =
        json!({"tests": [{"name": "unit", "command": "touch begun; sleep 2; true", "place": "checkout"}]});
    f.write("ocx-tests.json", test.to_string());
    let answer = std::thread::scope(|s| {
        let test = s.spawn(|| f.call("ocx_test", json!({})));
        // What the test writes goes to a layer, not to the working folder.
        let begun = f.in_test_tree("../layers/place/upper/begun");
        until("the test runs", || begun.exists());
        f.write("a.txt", "bad\n");
        f.write("a.txt", "good\n");
        test.join().expect("no panic")
    });
    assert!(!f.path("begun").exists());
    assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!("untested")), "{answer}");
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("`a.txt`"), "{answer}");
    f.refused("untested", "ocx_save", four("t"));
    // Nobody writes now.
    f.done("ocx_test", json!({}));
    f.done("ocx_save", four("t"));
}

#[test]
fn v05_what_is_ignored_or_lies_outside_is_no_part_of_a_test() {
    if !sandboxes() {
        return;
    }
    let f = Fixture::tested("sh build/config.mk && cat ../outside", &[("a.txt", b"a\n")]);
    f.write(".gitignore", "build/\n");
    f.write("build/config.mk", "exit 0\n");
    fs::write(f.folder().join("outside"), "outside").expect("written");
    f.refused("untested", "ocx_test", json!({}));
    let with = |command: &str| {
        json!({"tests": [{"name": "unit", "command": command, "with": ["build"]}]}).to_string()
    };
    f.write("ocx-tests.json", with("cat ../outside"));
    f.refused("untested", "ocx_test", json!({}));
    f.write("ocx-tests.json", with("sh build/config.mk"));
    let passed = f.done("ocx_test", json!({}));
    assert!(passed["tests"][0]["with"][0].as_str().unwrap_or_default().starts_with("build "), "{passed}");
    // What is brought along is part of what the pass says.
    f.write("build/config.mk", "exit 1\n");
    f.refused("untested", "ocx_save", four("t"));
    f.refused("untested", "ocx_test", json!({}));
    f.write("build/config.mk", "exit 0\n");
    f.done("ocx_test", json!({}));
    let saved = f.done("ocx_save", four("t"));
    assert!(saved["tests"][0]["with"][0].as_str().unwrap_or_default().starts_with("build "), "{saved}");
}

#[test]
fn a_writer_beside_test_and_save_gets_nothing_untested_saved() {
    let f = Fixture::tested(
        "grep -qx good a.txt && grep -qx good b/c.txt",
        &[("a.txt", b"0\n"), ("b/c.txt", b"0\n")],
    );
    let stop = AtomicBool::new(false);
    let mut made = 0;
    std::thread::scope(|s| {
        s.spawn(|| {
            for word in ["good\n", "evil\n"].iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                f.write("a.txt", word);
                f.write("b/c.txt", word);
                std::thread::sleep(std::time::Duration::from_millis(3));
            }
        });
        for _ in 0..15 {
            if f.call("ocx_test", json!({}))["ok"] == true {
                let saved = f.call("ocx_save", four("t"));
                if saved["ok"] == true {
                    made += 1;
                    let folder = fresh(&f, &saved["result"]);
                    for name in ["a.txt", "b/c.txt"] {
                        assert_eq!(fs::read(folder.join(name)).expect("a file"), b"good\n", "{saved}");
                    }
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    eprintln!("{made} made beside the writer");
    f.write("a.txt", "good\n");
    f.write("b/c.txt", "good\n");
    f.call("ocx_test", json!({}));
    f.call("ocx_save", four("t"));
    let tip = f.done("ocx_context", json!({}))["changed"].clone();
    assert_eq!(tip, json!([]), "at rest it is saved");
}

#[test]
fn a_write_through_a_mapping_a_link_or_a_second_name_reaches_no_test_tree() {
    if !sandboxes() {
        return;
    }
    let f = Fixture::tested(&waiting("grep -qx good a.txt && [ ! -e link/x ]"), &[("a.txt", b"0\n")]);
    f.fossil(&["settings", "allow-symlinks", "on"]);
    f.write("a.txt", "evil\n");
    let outside = f.folder().join("outside");
    fs::create_dir(&outside).expect("a folder");
    fs::write(outside.join("x"), "").expect("written");
    symlink(&outside, f.path("link")).expect("a link");
    fs::hard_link(f.path("a.txt"), f.folder().join("second")).expect("a second name");
    let answer = meanwhile(&f, || {
        // The second name of the file in the working folder is none of the file in the test tree.
        fs::write(f.folder().join("second"), "good\n").expect("written");
    });
    assert_eq!(answer["ok"], false, "{answer}");
    fs::write(f.folder().join("second"), "evil\n").expect("written");
    let mapped = "import mmap; m = mmap.mmap(open('a.txt', 'r+b').fileno(), 0); m[0:4] = b'good'; m.flush()";
    let answer = meanwhile(&f, || {
        let python =
            std::process::Command::new("python3").args(["-c", mapped]).current_dir(f.root()).status();
        if !python.is_ok_and(|done| done.success()) {
            f.write("a.txt", "good\n");
        }
    });
    assert_eq!(answer["ok"], false, "{answer}");
    fs::remove_file(f.folder().join("second")).expect("removed");
    let answer = meanwhile(&f, || ());
    assert_eq!(answer["ok"], true, "{answer}");
    let saved = f.done("ocx_save", four("t"));
    assert_eq!(saved["tree"], answer["result"]["tree"]);
    let folder = fresh(&f, &saved);
    assert_eq!(fs::read(folder.join("a.txt")).expect("a file"), b"good\n");
}

#[test]
fn g10_what_a_test_makes_is_never_saved_and_the_first_run_passes() {
    let f = Fixture::tested(
        "mkdir -p target/debug && date > target/debug/out && date > stamp.txt",
        &[("a.txt", b"a\n")],
    );
    f.write(".gitignore", "/target\n");
    f.write("b.txt", "b\n");
    f.done("ocx_test", json!({}));
    let saved = f.done("ocx_save", four("t"));
    assert!(!f.path("target").exists() && !f.path("stamp.txt").exists());
    let folder = fresh(&f, &saved);
    assert!(
        !folder.join("target").exists()
            && !folder.join("stamp.txt").exists()
            && folder.join("b.txt").exists()
    );
}

#[test]
fn g12_a_test_that_writes_the_same_files_each_time_passes_at_once() {
    let f = Fixture::tested("date +%N > stamp.txt; date +%N >> a.txt", &[("a.txt", b"a\n")]);
    f.write("b.txt", "b\n");
    f.done("ocx_test", json!({}));
    f.done("ocx_save", four("t"));
}

#[test]
fn v06_a_test_reaches_neither_evidence_nor_repository_nor_checkout() {
    if !sandboxes() {
        return;
    }
    let script = "for name in ../r.fossil .fslckout ../.local ../home; do [ -e $name ] && { echo \"$name\"; exit 0; }; done; exit 1";
    let f = Fixture::tested(script, &[("a.txt", b"a\n")]);
    f.write("b.txt", "b\n");
    let answer = f.refused("untested", "ocx_test", json!({}));
    assert_eq!(answer["result"]["sandboxed"], true, "{answer}");
    // In the working folder the databases are hidden as well.
    let hidden =
        "[ -s .fslckout ] && exit 0; [ -e ../r.fossil ] && exit 0; echo x > .fslckout-journal; exit 1";
    f.write(
        "ocx-tests.json",
        json!({"tests": [{"name": "u", "command": hidden, "place": "checkout"}]}).to_string(),
    );
    f.refused("untested", "ocx_test", json!({}));
    assert!(!f.path(".fslckout-journal").exists());
    f.done("ocx_status", json!({}));
}

#[test]
fn v12_the_variables_of_ocx_are_out_of_a_tests_sight() {
    if !sandboxes() {
        return;
    }
    let f = Fixture::tested("tr '\\0' '\\n' < /proc/$PPID/environ; env; ls /proc", &[]);
    let mut test = f.command(OCX, &f.root());
    let test = test
        .args(["test"])
        .env("OCX_PASSWORD", "hunter2")
        .env("OCX_TOKEN", "hunter3")
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&test.stdout).into_owned();
    assert!(said.contains("PATH=") && !said.contains("hunter"), "{said}");
}

#[test]
fn the_evidence_is_told_also_when_a_save_only_sends() {
    if !sandboxes() {
        return;
    }
    let f = Fixture::tested("true", &[("a.txt", b"a\n")]);
    f.write("b.txt", "b\n");
    f.done("ocx_test", json!({}));
    let saved = f.done("ocx_save", four("t"));
    let evidence = json!([{"name": "unit", "passed": true, "fresh": true, "sandboxed": true}]);
    assert_eq!(saved["tests"], evidence);
    let again = f.done("ocx_commit_and_sync", four("t"));
    assert_eq!((&again["checkin"], &again["tests"]), (&saved["checkin"], &evidence), "{again}");
}

#[test]
fn v05_a_fetch_command_changes_no_stored_file_and_leaves_none() {
    if !sandboxes() {
        return;
    }
    let f = Fixture::with(&[("a.txt", b"bad\n")]);
    for fetch in ["echo good > a.txt", "rm a.txt; ln -s b a.txt; echo good > b", "echo x > extra"] {
        let command = "grep -q good a.txt || [ -e extra ]";
        let test = json!({"tests": [{"name": "unit", "command": command, "fetch": fetch}]});
        f.write("ocx-tests.json", test.to_string());
        f.refused("untested", "ocx_test", json!({}));
    }
}

#[test]
fn v05_what_a_declaration_says_of_variables_shows_nothing_more_of_the_machine() {
    if !sandboxes() {
        return;
    }
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let secret = f.folder().join("secret");
    fs::create_dir_all(secret.join("bin")).expect("a folder");
    fs::write(secret.join("key"), "key").expect("written");
    fs::write(secret.join("bin/key"), "key").expect("written");
    let at = secret.to_str().expect("text");
    for name in
        ["HOME", "PATH", "CARGO_HOME", "UV_CACHE_DIR", "GOMODCACHE", "NVM_DIR", "PYENV_ROOT", "RUSTUP_HOME"]
    {
        let command = format!("/usr/bin/test -e {at}/key || /usr/bin/test -e {at}/bin/key");
        let test = json!({"name": "unit", "command": command, "env": [format!("{name}={at}")]});
        f.write("ocx-tests.json", json!({"tests": [test]}).to_string());
        let answer = f.refused("untested", "ocx_test", json!({}));
        assert_eq!(answer["result"]["sandboxed"], true, "{answer}");
    }
    for value in ["/", "/usr", "/proc", "/x/../y"] {
        for name in ["HOME", "GOMODCACHE", "PATH", "TMPDIR"] {
            let test = json!({"name": "unit", "command": "/bin/true", "env": [format!("{name}={value}")]});
            f.write("ocx-tests.json", json!({"tests": [test]}).to_string());
            assert_eq!(f.done("ocx_test", json!({}))["sandboxed"], true, "{name}={value}");
        }
    }
}

#[test]
fn v06_links_that_a_test_leaves_in_its_home_lead_nobody_outside() {
    if !sandboxes() {
        return;
    }
    let f = Fixture::with(&[]);
    let outside = f.folder().join("outside");
    fs::create_dir(&outside).expect("a folder");
    let at = outside.display();
    let command = format!("ln -sfn {at}/npmrc ~/.npmrc; [ -e ~/.cargo ] || ln -sfn {at} ~/.cargo");
    f.write("ocx-tests.json", json!({"tests": [{"name": "unit", "command": command}]}).to_string());
    for round in 0..3 {
        // The user's own settings and caches come to be between the runs.
        fs::write(f.folder().join(".npmrc"), format!("registry={round}\n")).expect("written");
        f.write("n.txt", format!("{round}\n"));
        let mut test = f.command(OCX, &f.root());
        let test = test.arg("test").output().expect("it runs");
        assert!(test.status.success(), "{test:?}");
        fs::create_dir_all(f.folder().join(".cargo/registry")).expect("a folder");
    }
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0);
}

#[test]
fn n50_an_odd_home_of_the_caller_costs_no_sandbox() {
    if !sandboxes() {
        return;
    }
    let f = Fixture::tested("true", &[]);
    let state = f.folder().join("state");
    for home in
        ["/", "/usr", "/etc", "/proc", "/dev", "/dev/null", "/sys/devices/system", "/nowhere", "/tmp/.."]
    {
        let mut test = f.command(OCX, &f.root());
        let test = test
            .args(["test", "--json"])
            .env("HOME", home)
            .env("OCX_STATE", &state)
            .env("TMPDIR", "/nowhere");
        let answer: Value = serde_json::from_slice(&test.output().expect("it runs").stdout).expect("JSON");
        assert_eq!(
            (&answer["ok"], &answer["result"]["sandboxed"]),
            (&json!(true), &json!(true)),
            "{home}: {answer}"
        );
    }
}
