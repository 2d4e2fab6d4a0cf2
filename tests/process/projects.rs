//! Ordinary projects, and what their tests need beside the stored tree.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use ocx::cancel::Cancel;
use ocx::error::Kind;
use ocx::process::Supervisor;
use ocx::testing::{Bounds, Jobs, Outcome, StateFolder, Waiter, Which};
use serde_json::json;

use crate::HANG;
use crate::bench::{Bench, has, sandboxes};

/// The names, kinds, contents and link targets below a folder.
fn contents(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(&folder).unwrap() {
            let path = item.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                folders.push(path.clone());
            }
            let target = fs::read_link(&path).ok();
            let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            all.push(format!("{} {:o} {target:?} {content:?}", path.display(), meta.permissions().mode()));
        }
    }
    all.sort();
    all
}

#[test]
fn n14_a_rust_project_finds_its_toolchain_and_its_dependencies() {
    if !has(&["cargo"]) {
        return;
    }
    let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock")).unwrap();
    let memchr = lock.split("\n\n").find(|package| package.contains("name = \"memchr\"")).unwrap();
    let version = memchr.lines().find_map(|line| line.strip_prefix("version = ")).unwrap();
    let manifest = format!(
        "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\nmemchr = {version}\n"
    );
    let own = "[[package]]\nname = \"p\"\nversion = \"0.1.0\"\ndependencies = [\n \"memchr\",\n]\n";
    let lock = format!("version = 4\n\n{}\n\n{own}", memchr.trim());
    let source = "#[test]\nfn finds() { assert_eq!(memchr::memchr(b'b', b\"abc\"), Some(1)) }\n";
    let files = [("Cargo.toml", manifest.as_str()), ("Cargo.lock", lock.as_str()), ("src/lib.rs", source)];
    let bench = Bench::new("cargo test", &files);
    bench.passes();
    assert!(!bench.path("target").exists());
}

#[test]
fn n09_an_editable_install_means_the_stored_tree() {
    if !has(&["python3"]) {
        return;
    }
    let test = json!({"name": "unit", "command": ".venv/bin/python -c 'import p; assert p.V == 1'", "with": [".venv"]});
    let bench = Bench::declaring(test, &[("src/p.py", "V = 1\n"), (".gitignore", ".venv\n")]);
    let made = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip", ".venv"])
        .current_dir(bench.checkout.root())
        .status()
        .unwrap();
    assert!(made.success());
    // An editable install is a file that names the folder of the sources.
    let lib = bench.path(".venv/lib");
    let site = fs::read_dir(&lib).unwrap().next().unwrap().unwrap().path().join("site-packages");
    fs::write(site.join("p.pth"), bench.path("src").to_str().unwrap()).unwrap();
    bench.passes();
    bench.write("src/p.py", "V = 2\n");
    let failed = bench.fails();
    let said = failed.tail.join("\n");
    assert!(said.contains("AssertionError"), "it imports the package: {said}");
}

#[test]
fn n11_n13_node_modules_takes_writes_and_its_links_mean_the_stored_tree() {
    if !has(&["node"]) {
        return;
    }
    let command = "mkdir -p node_modules/.vite-temp && touch node_modules/.cache-x node_modules/dep/built && \
                   node t.js && [ \"$(pwd -P)\" = \"$PWD\" ]";
    let test = json!({"name": "unit", "command": command, "with": ["node_modules"]});
    let files = [
        ("packages/a/index.js", "module.exports = 1\n"),
        ("t.js", "require('assert').strictEqual(require('@x/a') + require('dep'), 3)\n"),
        (".gitignore", "node_modules\n"),
    ];
    let bench = Bench::declaring(test, &files);
    bench.write("node_modules/dep/index.js", "module.exports = 2\n");
    fs::create_dir(bench.path("node_modules/@x")).unwrap();
    symlink("../../packages/a", bench.path("node_modules/@x/a")).unwrap();
    symlink("/nowhere/else", bench.path("node_modules/out")).unwrap();
    let before = contents(&bench.path("node_modules"));
    let passed = bench.passes();
    assert_eq!(contents(&bench.path("node_modules")), before, "byte for byte the same");
    assert!(passed.notes.iter().any(|note| note.contains("node_modules/out")), "{:?}", passed.notes);
    assert!(!passed.notes.iter().any(|note| note.contains("@x/a")), "{:?}", passed.notes);
    bench.write("packages/a/index.js", "module.exports = 7\n");
    bench.fails();
}

#[test]
fn n16_a_fetch_command_has_the_network_and_makes_what_is_missing() {
    if !sandboxes() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let fetch =
        format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo hello >&3 && mkdir -p deps && echo v > deps/x");
    let command = format!("cat deps/x && ! (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null");
    let test = json!({"name": "unit", "command": command, "with": ["deps"], "fetch": fetch});
    let bench = Bench::declaring(test, &[("Cargo.lock", "one\n"), (".gitignore", "deps\n")]);
    bench.passes();
    let mut said = String::new();
    listener.accept().unwrap().0.read_to_string(&mut said).unwrap();
    assert_eq!(said, "hello\n");
    assert!(!bench.path("deps").exists(), "it is made in the test tree's own layer");
    listener.set_nonblocking(true).unwrap();
    bench.write("a.txt", "another file\n");
    bench.passes();
    assert!(listener.accept().is_err(), "nothing is fetched again for other files");
    bench.write("Cargo.lock", "two\n");
    bench.passes();
    assert!(listener.accept().is_ok(), "other packages are fetched");
}

#[test]
fn n16_a_fetch_command_that_fails_is_no_evidence_and_says_so() {
    let test = json!({"name": "unit", "command": "true", "fetch": "echo no such package; exit 4"});
    let failed = Bench::declaring(test, &[]).fails();
    assert!(failed.in_fetch && failed.outcome == Outcome::Failed { exit: 4 });
    assert_eq!(failed.tail, ["no such package"]);
}

#[test]
fn n17_version_tools_are_told_what_they_need_and_see_no_other_checkout() {
    let command = "[ ${#OCX_PARENT} = 64 ] && [ $OCX_BRANCH = trunk ] && [ ${#OCX_TREE} = 64 ] && \
                   [ $SOURCE_DATE_EPOCH -gt 1700000000 ] && [ $SETUPTOOLS_SCM_PRETEND_VERSION = 0 ] && \
                   [ ! -e ../.git ] && [ ! -e .fslckout ]";
    let test = json!({"name": "unit", "command": command, "env": ["SETUPTOOLS_SCM_PRETEND_VERSION=0"]});
    let bench = Bench::declaring(test, &[]);
    fs::create_dir(bench.folder.path().join(".git")).unwrap();
    bench.passes();
}

#[test]
fn n23_what_with_names_and_is_not_there_is_refused_by_name_and_made_nowhere() {
    let test = json!({"name": "unit", "command": "true", "with": [".env.test", "node_modules"]});
    let bench = Bench::declaring(test, &[]);
    let before = contents(bench.checkout.root());
    let refused = bench.ask(&Cancel::new()).unwrap_err();
    assert_eq!(refused.kind(), Kind::NotFound);
    assert!(refused.to_string().contains("`.env.test`"), "{refused}");
    bench.write(".env.test", "A=1\n");
    fs::create_dir(bench.path("node_modules")).unwrap();
    bench.write(".gitignore", ".env.test\nnode_modules\n");
    let with_both = contents(bench.checkout.root());
    bench.passes();
    assert_eq!(contents(bench.checkout.root()), with_both);
    assert_eq!(with_both.len(), before.len() + 3);
}

#[test]
fn a_with_that_a_check_in_holds_or_that_leads_outside_is_refused() {
    let mut bench = Bench::new("true", &[("lib/a.txt", "a\n")]);
    bench.declare(json!({"name": "unit", "command": "true", "with": ["lib"]}));
    assert_eq!(bench.ask(&Cancel::new()).unwrap_err().kind(), Kind::Invalid);
    bench.write(".gitignore", "out\n");
    symlink("/etc", bench.path("out")).unwrap();
    for with in ["out", "out/ssl"] {
        bench.declare(json!({"name": "unit", "command": "true", "with": [with]}));
        assert_eq!(bench.ask(&Cancel::new()).unwrap_err().kind(), Kind::Invalid, "{with}");
    }
}

#[test]
fn n10_a_tree_belongs_to_the_path_under_which_tests_see_it() {
    if !sandboxes() {
        return;
    }
    let bench = Bench::new("pwd; [ ! -e out ] && touch out", &[]);
    let sandboxed = bench.passes();
    assert_eq!(sandboxed.tail, [bench.checkout.root().to_str().unwrap()]);
    let supervisor = Supervisor::at(env!("CARGO_BIN_EXE_ocx")).without_sandboxes();
    let state = StateFolder::at(bench.folder.path().join("state"));
    let open = Bench { jobs: Jobs::new(Arc::clone(&bench.checkout), supervisor, state), ..bench };
    let result = open.passes();
    assert_eq!(result.tail, [open.test_tree().to_str().unwrap()]);
    assert!(result.emptied.as_deref().is_some_and(|why| why.contains("see it at")), "{result:?}");
    assert!(result.run.unsandboxed.is_some(), "it says that there was no sandbox");
}

#[test]
fn n10_a_moved_checkout_begins_with_an_empty_tree() {
    let bench = Bench::new("[ ! -e out ] && touch out", &[]);
    bench.passes();
    let moved = bench.folder.path().join("moved");
    fs::rename(bench.checkout.root(), &moved).unwrap();
    let checkout = Arc::new(ocx::checkout::Checkout::at(&moved).unwrap());
    let state = StateFolder::at(bench.folder.path().join("state"));
    let jobs = Jobs::new(Arc::clone(&checkout), Supervisor::at(env!("CARGO_BIN_EXE_ocx")), state);
    assert!(Bench { checkout, jobs, ..bench }.passes().run.fresh);
}

#[test]
fn n19_what_a_test_leaves_stands_in_no_ones_way() {
    if !has(&["python3"]) {
        return;
    }
    let nest = "import os\nos.chdir('t')\nfor i in range(3000):\n os.mkdir('d'); os.chdir('d')";
    let command = format!(
        "[ -f t ] || {{ mkdir -p t/ro/x; mkfifo t/f; python3 -c \"{nest}\"; chmod 000 t/ro/x t/ro; }}"
    );
    let mut bench = Bench::new(&command, &[]);
    bench.passes();
    bench.write("t", "a stored file\n");
    bench.passes();
    fs::remove_file(bench.path("t")).unwrap();
    bench.passes();
    bench.declare(json!({"name": "unit", "command": command, "fresh": true}));
    for _ in 0..2 {
        bench.passes();
    }
}

#[test]
fn n29_the_tree_that_was_not_used_for_longest_makes_room_and_a_deleted_checkouts_goes() {
    let command = "head -c 3000000 /dev/zero > made";
    let first = Bench::new(command, &[]);
    let state = StateFolder::at(first.folder.path().join("state"));
    let supervisor = || Supervisor::at(env!("CARGO_BIN_EXE_ocx"));
    first.passes();
    let other = Bench::new(command, &[]);
    let second = Bench { jobs: Jobs::new(Arc::clone(&other.checkout), supervisor(), state.clone()), ..other };
    second.passes();
    let made = |bench: &Bench| {
        let root = bench.checkout.root().to_str().unwrap().as_bytes();
        let mut parts = fs::read_dir(state.path()).unwrap().map(|item| item.unwrap().path());
        let own = parts.find(|part| fs::read(part.join("root")).is_ok_and(|r| r == root));
        own.is_some_and(|part| part.join("tree/made").exists())
    };
    // What is looked at after a run is done once the lock can be had again.
    crate::until(|| {
        state.make_room(Bounds { total: 5_000_000, free: 0 }).unwrap() == [first.checkout.root()]
    });
    assert!(!made(&first) && made(&second), "the longest unused goes first");
    let taken = second.jobs.taken().unwrap();
    assert!(taken.own >= 3_000_000 && taken.all >= taken.own, "{taken:?}");
    let gone = second.checkout.root().to_owned();
    drop(second);
    assert_eq!(state.make_room(Bounds { total: u64::MAX, free: 0 }).unwrap(), [gone]);
    assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1);
    first.passes();
}

#[test]
fn n29_a_tree_whose_test_runs_is_never_emptied() {
    let bench = Bench::new("touch begun; while [ ! -e go ]; do sleep 0.02; done; [ -e begun ]", &[]);
    let state = StateFolder::at(bench.folder.path().join("state"));
    std::thread::scope(|scope| {
        let run = scope.spawn(|| bench.passes());
        crate::until(|| state.path().exists() && bench.test_tree().join("begun").exists());
        assert!(state.make_room(Bounds { total: 0, free: u64::MAX }).unwrap().is_empty());
        fs::write(bench.test_tree().join("go"), "").unwrap();
        run.join().unwrap();
    });
}

#[test]
fn t33_a_line_that_is_longer_than_what_is_kept_says_its_true_length() {
    let bench = Bench::new("head -c 100000000 /dev/zero | tr '\\0' x; exit 1", &[]);
    let failed = bench.fails();
    assert!(failed.tail[0].ends_with("[cut: a line of 100000000 bytes]"), "{}", failed.tail[0].len());
    let log = bench.jobs.log("unit", 1, 5).unwrap();
    assert!(log.lines[0].1.ends_with("[cut: a line of 100000000 bytes]"), "{:?}", log.lines[0].1.len());
}

#[test]
fn t33_the_processes_that_were_left_are_all_counted() {
    let bench = Bench::new("for i in $(seq 80); do sleep 600 & done", &[]);
    assert_eq!(bench.passes().left_behind.len(), 80);
}

/// A package manager's registry is needed, so this is tried where `OCX_FULL` is set.
fn with_network(tools: &[&str]) -> bool {
    std::env::var_os("OCX_FULL").is_some() && has(tools)
}

#[test]
fn n11_vitest_in_a_workspace_passes_with_its_packages_fetched() {
    if !with_network(&["node", "npm"]) {
        return;
    }
    let test = json!({
        "name": "unit",
        "command": "npx vitest run 2>&1",
        "with": ["node_modules"],
        "fetch": "npm install --no-audit --no-fund 2>&1"
    });
    let files = [
        (
            "package.json",
            r#"{"name":"w","private":true,"workspaces":["packages/*"],"devDependencies":{"vitest":"^3"}}"#,
        ),
        ("packages/a/package.json", r#"{"name":"@x/a","version":"1.0.0","type":"module","main":"index.js"}"#),
        ("packages/a/index.js", "export const v = 'good'\n"),
        (
            "packages/a/a.test.js",
            "import { expect, test } from 'vitest'\nimport { v } from '@x/a'\n\
             test('v', () => expect(v).toBe('good'))\n",
        ),
        (".gitignore", "node_modules\n"),
    ];
    let bench = Bench::declaring(test, &files);
    let passed = bench.passes();
    assert!(passed.tail.iter().any(|line| line.contains("1 passed")), "{:?}", passed.tail);
    assert!(!bench.path("node_modules").exists());
    bench.write("packages/a/index.js", "export const v = 'evil'\n");
    bench.fails();
    bench.write("packages/a/index.js", "export const v = 'good'\n");
    bench.passes();
}

#[test]
fn n09_pytest_in_a_fetched_environment_with_an_editable_install_passes() {
    if !with_network(&["python3"]) {
        return;
    }
    let fetch = "python3 -m venv .venv && .venv/bin/pip install -q pytest setuptools wheel && \
                 .venv/bin/pip install -q --no-build-isolation -e . 2>&1";
    let test = json!({
        "name": "unit",
        "command": ".venv/bin/python -m pytest -q 2>&1",
        "with": [".venv"],
        "fetch": fetch,
        "env": ["PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT", "PIP_TRUSTED_HOST"]
    });
    let files = [
        (
            "pyproject.toml",
            "[build-system]\nrequires = [\"setuptools\"]\nbuild-backend = \"setuptools.build_meta\"\n\
             [project]\nname = \"p\"\nversion = \"1\"\n[tool.setuptools]\npackage-dir = {\"\" = \"src\"}\n",
        ),
        ("src/p/__init__.py", "import inspect\nV = 'good'\ndef f():\n    return inspect.getsource(f)\n"),
        ("tests/test_p.py", "import p\ndef test_v():\n    assert p.V == 'good' and 'getsource' in p.f()\n"),
        (".gitignore", ".venv\n*.egg-info\n"),
    ];
    let bench = Bench::declaring(test, &files);
    bench.passes();
    bench.write("src/p/__init__.py", "V = 'evil'\n");
    bench.fails();
}

#[test]
fn v06_evidence_is_never_kept_where_the_tools_of_the_checkout_can_write() {
    let bench = Bench::new("true", &[]);
    for folder in ["state", "a/b/state"] {
        let supervisor = Supervisor::at(env!("CARGO_BIN_EXE_ocx"));
        let state = StateFolder::at(bench.path(folder));
        let jobs = Jobs::new(Arc::clone(&bench.checkout), supervisor, state);
        let mut waiter = Waiter { limit: HANG, cancel: &Cancel::new(), progress: &mut |_| () };
        let refused = jobs.test(&bench.declared(), &Which::All, &mut waiter).unwrap_err();
        assert_eq!(refused.kind(), Kind::Unavailable, "{refused}");
        assert!(!bench.path(folder).exists());
    }
    bench.passes();
}

#[test]
fn n19_what_a_test_does_to_its_folders_breaks_no_later_run() {
    if !sandboxes() {
        return;
    }
    for harm in [
        "chmod 0 .",
        "chmod 0 ~",
        "rm -rf ~/.npmrc; mkdir -p ~/.npmrc/x",
        "rm -f ~/.gitconfig; mkfifo ~/.gitconfig",
        "mv ~/.cargo ~/.c2 && touch ~/.cargo; true",
        "mv ~/.npm ~/.n2 && ln -s / ~/.npm; true",
        "mv ~/.cargo ~/.c3 && mkdir ~/.cargo && ln -s / ~/.cargo/registry; true",
        "rm -f ocx-tests.json; mkdir -p ocx-tests.json/x; chmod 0 ocx-tests.json",
    ] {
        let bench = Bench::new(harm, &[("a.txt", "a\n")]);
        for _ in 0..3 {
            let passed = bench.passes();
            assert_eq!(passed.run.unsandboxed, None, "{harm}");
        }
    }
}

#[test]
fn v05_a_test_in_the_working_folder_says_so_and_counts_only_as_long_as_nothing_there_changes() {
    if !sandboxes() {
        return;
    }
    let test = json!({"name": "unit", "command": "grep good out/x", "place": "checkout"});
    let bench = Bench::declaring(test, &[(".gitignore", "out\n"), ("out/x", "good\n")]);
    let passed = bench.passes();
    assert!(!passed.run.fresh && passed.run.brought[0].starts_with("the working folder "), "{passed:?}");
    let declared = bench.declared();
    let counts = || {
        bench.jobs.evidence(declared.tests(), &bench.checkout.status().unwrap()).unwrap()[0].pass.is_some()
    };
    assert!(counts());
    bench.write("out/x", "evil\n");
    assert!(!counts(), "an ignored file is part of what was tested");
    bench.fails();
    let test = json!({"name": "unit", "command": "touch begun; sleep 2", "place": "checkout"});
    let mut bench = bench;
    bench.declare(test);
    let result = std::thread::scope(|scope| {
        let run = scope.spawn(|| bench.run());
        crate::until(|| bench.state_of_checkout().join("layers/place/upper/begun").exists());
        bench.write("out/x", "good\n");
        bench.write("out/x", "evil\n");
        run.join().unwrap()
    });
    assert!(!result.passed() && result.void.is_some(), "{result:?}");
}

#[test]
fn n22_a_test_with_namespaces_of_its_own_makes_none_of_control_groups() {
    if !sandboxes() || !has(&["unshare"]) {
        return;
    }
    let test = json!({"name": "unit", "command": "unshare -Ur true && ! unshare -UrC true", "nested": true});
    assert_eq!(Bench::declaring(test, &[]).passes().run.brought, ["namespaces of its own"]);
    Bench::new("! unshare -Ur true", &[]).passes();
}

#[test]
fn n19_rules_that_a_test_gives_its_folders_do_not_outlive_them() {
    if !sandboxes() || !has(&["python3"]) {
        return;
    }
    // By default, whatever is made below has no permissions.
    let acl = "import os, struct\nv = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', t, 0, 0xffffffff) for t in (1, 4, 32))\n\
               for d in ('.', os.path.expanduser('~')):\n  os.setxattr(d, 'system.posix_acl_default', v)";
    let command = "python3 acl.py; mkdir -p x/y && cat sub/*/n* && ls ~";
    let bench = Bench::new(command, &[("acl.py", acl), ("sub/a/n0", "0\n")]);
    let run = || {
        let result = bench.run();
        assert!(result.run.unsandboxed.is_none(), "{result:?}");
        result
    };
    run();
    bench.write("sub/b/n1", "1\n");
    run();
    fs::remove_file(bench.path("sub/a/n0")).unwrap();
    fs::write(bench.path("acl.py"), "").unwrap();
    bench.passes();
    bench.write("sub/c/n2", "2\n");
    bench.passes();
}

#[test]
fn n16_what_tests_did_to_what_was_fetched_stands_in_no_later_fetchs_way() {
    if !sandboxes() {
        return;
    }
    let test = json!({"name": "unit", "command": "cat mk/x && { ln -sfn / mk/x; chmod 0 mk; true; }", "with": ["mk"], "fetch": "echo v > mk/x"});
    let bench = Bench::declaring(test, &[("Cargo.lock", "1\n"), (".gitignore", "mk\n")]);
    bench.passes();
    for round in 2..4 {
        bench.write("Cargo.lock", &format!("{round}\n"));
        bench.passes();
    }
    // A folder that comes and goes in the checkout takes the fetched one with it.
    bench.write("mk/x", "own\n");
    bench.passes();
    fs::remove_dir_all(bench.path("mk")).unwrap();
    bench.passes();
}

#[test]
fn n50_a_machine_that_has_no_namespace_left_at_this_moment_runs_no_test() {
    const INSIDE: &str = "OCX_TEST_FEW_NAMESPACES";
    if std::env::var_os(INSIDE).is_some() {
        let bench = Bench::new("touch ran", &[]);
        let refused = bench.ask(&Cancel::new()).unwrap_err();
        assert_eq!(refused.kind(), Kind::Unavailable, "{refused}");
        assert!(!bench.state_of_checkout().join("tree/ran").exists());
    } else if sandboxes() && has(&["unshare"]) {
        let this = std::env::current_exe().unwrap();
        let name = "projects::n50_a_machine_that_has_no_namespace_left_at_this_moment_runs_no_test";
        // One namespace may be made, and it is made and kept.
        let script = "echo 1 > /proc/sys/user/max_user_namespaces && { unshare -U sleep 600 & } && sleep 0.3 && \
                      \"$0\" --exact \"$1\"; ended=$?; kill %1; exit $ended";
        let ran = std::process::Command::new("unshare")
            .args(["-Ur", "bash", "-c", script])
            .args([this.to_str().unwrap(), name])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    }
}

#[test]
fn n25_no_limit_of_ocx_refuses_a_test_its_processes_and_threads() {
    if !has(&["python3"]) {
        return;
    }
    let threads = "import threading\ngo = threading.Event()\nall = [threading.Thread(target=go.wait) for _ in range(300)]\n\
                   for t in all: t.start()\ngo.set()\nfor t in all: t.join()";
    let command = "python3 threads.py && for i in $(seq 150); do sleep 0.2 & done; wait";
    Bench::new(command, &[("threads.py", threads)]).passes();
}
