//! Fossil's settings: the table of them, and those that the library reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ocx::checkout::{CheckIn, Checkout};
use ocx::name::Hash;
use ocx::repo::Repository;
use ocx::repo::setting::{Here, OWN, SETTINGS, VARIABLES, declared};
use ocx::sync::{Remote, SyncOptions};

use crate::support::fossil::served;
use crate::support::{Fossil, OCX, Place, ann};

const README: &str = include_str!("../../README.md");

/// Settings that Fossil leaves out of itself if it is built without Tcl and TH1, as here.
const UNBUILT: [&str; 4] = ["tcl", "tcl-setup", "th1-docs", "th1-hooks"];

fn names(here: Here) -> BTreeSet<&'static str> {
    SETTINGS.iter().filter(|setting| setting.here == here).map(|setting| setting.name).collect()
}

#[test]
fn every_setting_that_fossil_declares_is_in_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let theirs = Fossil::Own.run(dir.path(), dir.path(), &["help", "-s"]);
    let theirs: BTreeSet<&str> = theirs.split_whitespace().collect();
    let ours: BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    let missing: Vec<_> = theirs.difference(&ours).collect();
    assert!(theirs.len() > 100 && missing.is_empty(), "not in the table: {missing:?}");
    let more: Vec<&str> = ours.difference(&theirs).copied().collect();
    assert_eq!(more, UNBUILT, "not Fossil's");
    for name in theirs {
        let help = Fossil::Own.run(dir.path(), dir.path(), &["help", name]);
        let first = help.lines().next().unwrap_or_default();
        assert!(first.starts_with(&format!("Setting: \"{name}\"")), "{first}");
        let setting = declared(name).unwrap();
        assert_eq!(setting.versionable, first.contains("versionable"), "{first}");
    }
}

/// The names between backticks.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_readme_says_of_each_setting_what_the_table_says() {
    let section = README.split("\n## Fossil's settings\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut said: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in rows {
        let (setting, here) = row.split_once(" | ").unwrap();
        let word = here.split(['.', ' ']).next().unwrap();
        said.entry(word).or_default().extend(setting.trim_end_matches('`').split("`, `"));
    }
    let heeded: BTreeSet<&str> = names(Here::Heeded).into_iter().chain(VARIABLES).collect();
    assert_eq!(said["heeded"], heeded);
    assert_eq!(said["named"], names(Here::Named));
    assert_eq!(said["OCX's"], BTreeSet::from(OWN));
    assert_eq!(said.len(), 3, "{said:?}");
    let rest = section.split("Without meaning here").nth(1).unwrap();
    assert_eq!(quoted(rest), names(Here::WithoutMeaning));
}

/// Every file of the library and its text.
fn sources() -> Vec<(PathBuf, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
                found.push((path, code));
            }
        }
    }
    found
}

#[test]
fn a_setting_is_read_if_and_only_if_the_table_says_that_it_counts() {
    let counted: BTreeSet<&str> =
        names(Here::Heeded).into_iter().chain(names(Here::Named)).chain(VARIABLES).chain(OWN).collect();
    let mut read = BTreeSet::new();
    for (path, text) in sources() {
        if path.ends_with("repo/setting/declared.rs") {
            continue;
        }
        for name in SETTINGS.iter().map(|setting| setting.name).chain(VARIABLES).chain(OWN) {
            for call in ["value(", "is_on(", "is_off(", "setting(", "list(", "variable("] {
                if text.contains(&format!("{call}\"{name}\"")) {
                    read.insert(name);
                }
            }
        }
        for name in ["crlf-glob", "crnl-glob"] {
            if text.contains(&format!("\"{name}\"")) && text.contains("list(crlf)") {
                read.insert(name);
            }
        }
        if text.contains("is_on(REFUSE_HOOKS)") {
            read.extend(OWN);
        }
        if path.ends_with("tests.rs") {
            continue;
        }
        let asks = text.contains("FROM config WHERE name=?1") || text.contains("FROM global_config");
        let is_reader = path.ends_with("repo/store/setting.rs") || path.ends_with("repo/setting/global.rs");
        assert!(!asks || is_reader, "{} reads settings by hand", path.display());
    }
    assert_eq!(read, counted);
}

/// Contents of many kinds, by file name.
fn contents() -> Vec<(String, Vec<u8>)> {
    let utf16 =
        |text: &str| [vec![0xFF, 0xFE], text.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat();
    let big =
        |text: &str| [vec![0xFE, 0xFF], text.encode_utf16().flat_map(u16::to_be_bytes).collect()].concat();
    let plain: [&[u8]; 16] = [
        b"",
        b"a\n",
        b"a\r\n",
        b"a\r\nb\n",
        b"a\rb\r",
        b"\r",
        b"a\r\r\n",
        b"\r\n\r",
        b"\0",
        b"a\0\r\n",
        b"\xE9\n",
        b"\xC3\xA9\r\n",
        b"\xC0\x80\n",
        b"\xED\xA0\x80\n",
        b"\xF5\x80\x80\x80\n",
        b"\xE9\r\n",
    ];
    let mut all: Vec<Vec<u8>> = plain.iter().map(|content| content.to_vec()).collect();
    all.extend([
        utf16("a\n"),
        utf16("a\r\n"),
        utf16("a\rb"),
        utf16("a\0"),
        utf16(""),
        big("a\r\nb\n"),
        big("\u{e9}"),
    ]);
    all.extend([32_766, 32_767, 32_768].map(|long| b"a".repeat(long)));
    all.extend([32_766, 32_767].map(|long| [b"a".repeat(long), b"\n".to_vec()].concat()));
    all.extend([16_382, 16_383, 16_384].map(|long| utf16(&"a".repeat(long))));
    all.extend([utf16("a\n").into_iter().chain([0]).collect(), b"\xEF\xBB\xBFa\n".to_vec()]);
    all.into_iter().enumerate().map(|(at, content)| (format!("f{at:02}.txt"), content)).collect()
}

#[test]
fn what_plain_fossil_asks_of_a_file_is_what_ocx_names() {
    let place = Place::new();
    let files = contents();
    for (path, content) in &files {
        place.write(path, content);
        place.write(&format!("crlf/{path}"), content);
        place.write(&format!("text/{path}"), content);
        place.write(&format!("both/{path}"), content);
        place.write(&format!("bin/{path}"), content);
    }
    for (name, globs) in [
        ("crlf-glob", "# ours\ncrlf/* both/*"),
        ("encoding-glob", "text/*,both/*"),
        ("binary-glob", "'bin/*'"),
    ] {
        place.write(&format!(".fossil-settings/{name}"), globs);
    }
    place.fossil(&["settings", "large-file-size", "32767"]);
    place.fossil(&["addremove", "--dotfiles"]);
    for &fossil in Fossil::each() {
        let theirs = place.by(fossil, &["test-commit-warning"]);
        let theirs: BTreeMap<String, String> = theirs
            .lines()
            .filter_map(|line| line.strip_prefix("1\t")?.split_once('\t'))
            .map(|(path, why)| (path.to_owned(), why.to_owned()))
            .collect();
        let lines = place.checkout.would_be_asked(&place.checkout.status().unwrap()).unwrap();
        let ours: BTreeMap<String, String> = lines
            .iter()
            .map(|line| {
                let (path, why) = line.strip_prefix('`').unwrap().split_once("` ").unwrap();
                let why = why.split(';').next().unwrap();
                let why = why.strip_prefix("contains ").unwrap_or("oversize");
                (path.to_owned(), why.to_owned())
            })
            .collect();
        assert!(theirs.len() > 60, "{theirs:?}");
        // A release that knows no `large-file-size` finds long lines in what is too large.
        let knows_size = theirs.values().any(|why| why == "oversize");
        for (path, _) in files.iter().flat_map(|(path, content)| {
            ["", "crlf/", "text/", "both/", "bin/"].map(|folder| (format!("{folder}{path}"), content))
        }) {
            if knows_size || ours.get(&path).is_none_or(|why| why != "oversize") {
                assert_eq!(ours.get(&path), theirs.get(&path), "{fossil:?} {path}");
            }
        }
    }
}

#[test]
fn content_that_is_known_by_its_sha1_is_not_stored_again() {
    let place = Place::by_plain_fossil(&["--sha1"]);
    place.write("a.txt", "the same\n");
    place.check_in("old", None).unwrap();
    let names = |path: &str| {
        let store = place.repository.store();
        let files = store.files(&store.resolve("trunk").unwrap()).unwrap();
        files.get(path).unwrap().hash
    };
    let old = names("a.txt");
    assert!(!old.is_sha3());
    let held = |hash: &Hash| place.sql(&format!("SELECT count(*) FROM blob WHERE uuid='{hash}'"));
    let new = Hash::of(b"the same\n");
    let mut stored = Vec::new();
    for (policy, path) in [("sha3", "b.txt"), ("sha3-only", "c.txt")] {
        place.fossil(&["hash-policy", policy]);
        place.write(path, "the same\n");
        place.write(&format!("other-{path}"), format!("other {policy}\n"));
        place.check_in(policy, None).unwrap();
        stored.push((names(path), held(&new)));
        assert!(names(&format!("other-{path}")).is_sha3());
    }
    assert_eq!(stored, [(old, 0), (new, 1)]);
    // So does plain Fossil.
    place.fossil(&["hash-policy", "sha3"]);
    place.write("e.txt", "other sha3\n");
    place.fossil(&["add", "e.txt"]);
    place.fossil(&["commit", "-m", "plain", "--no-warnings"]);
    assert_eq!(names("e.txt"), names("other-b.txt"));
    place.assert_whole();
}

/// Runs `ocx` in a folder as somebody who may write nowhere.
fn as_nobody(folder: &Path, args: &[&str]) -> Option<std::process::Output> {
    let mut command = if rustix::process::getuid().is_root() {
        // The program may lie where nobody else looks.
        let program = folder.join("ocx");
        fs::copy(OCX, &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program);
        command
    } else {
        std::process::Command::new(OCX)
    };
    command.args(args).current_dir(folder).env("HOME", folder).env("FOSSIL_HOME", folder);
    command.output().inspect_err(|e| eprintln!("not run as an ordinary user: {e}")).ok()
}

#[test]
fn a_repository_where_nothing_can_be_written_can_be_read() {
    let Place { dir, repository, checkout, .. } = Place::named("a ? #%.fossil");
    let outer = tempfile::tempdir().unwrap();
    let user = ann();
    fs::write(checkout.root().join("a.txt"), "one\n").unwrap();
    let check_in = CheckIn { comment: "a".into(), branch: None, user, time: None };
    let made = checkout.check_in(&check_in, &checkout.status().unwrap()).unwrap();
    let folder = outer.path().join("shelf");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("a ? #%.fossil");
    Repository::clone_file(repository.path(), &file, &ann()).unwrap();
    drop((checkout, repository, dir));
    assert!(!folder.join("a ? #%.fossil-wal").exists(), "what was written is in the file");
    let modes = |file_mode, folder_mode| {
        fs::set_permissions(&file, fs::Permissions::from_mode(file_mode)).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(folder_mode)).unwrap();
    };
    fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o755)).unwrap();
    modes(0o444, 0o555);
    let bundle = outer.path().join("out");
    fs::create_dir(&bundle).unwrap();
    fs::set_permissions(&bundle, fs::Permissions::from_mode(0o777)).unwrap();
    let run = |args: &[&str]| {
        let args = [args, &["-R", "shelf/a ? #%.fossil"]].concat();
        let out = as_nobody(outer.path(), &args)?;
        Some((out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()))
    };
    let Some((done, said)) = run(&["call", "ocx_status", "{}"]) else { return modes(0o644, 0o755) };
    assert!(done && said.contains("\"ok\":true"), "{said}");
    let hash = made.hash;
    let (done, said) = run(&["bundle", "export", "out/b", "--branch", "trunk"]).unwrap();
    assert!(done && bundle.join("b").exists(), "{hash}: {said}");
    let (done, said) = run(&["call", "ocx_queue", "{}"]).unwrap();
    assert!(done, "{said}");
    let edit = r##"{"page":"P","old":"","new":"# x\n"}"##;
    let (done, said) = run(&["call", "ocx_wiki_edit", edit]).unwrap();
    assert!(!done && said.contains("\"code\":\"denied\""), "{said}");
    modes(0o644, 0o755);
}

/// Passes connections to an address of the sixth version on to a port of this machine. Nothing if there is none.
fn on_ipv6(port: u16) -> Option<u16> {
    let listener = TcpListener::bind("[::1]:0").inspect_err(|e| eprintln!("no IPv6 here: {e}")).ok()?;
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for line in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { return };
            let (mut from, mut to) = (server.try_clone().unwrap(), line.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            std::thread::spawn(move || {
                let _ = io::copy(&mut &line, &mut &server);
                let _ = server.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    Some(own)
}

#[test]
fn plain_fossil_in_the_program_syncs_with_the_ipv6_url_that_a_clone_remembers() {
    let (dir, path, server) = served(Fossil::Reference);
    let Some(port) = on_ipv6(server.port) else { return };
    let remote = Remote::parse(&format!("http://ann:secret@[::1]:{port}/")).unwrap();
    let clone = dir.path().join("clone.fossil");
    let repository = Repository::clone_with(&remote, &clone, &ann(), &SyncOptions::default()).unwrap();
    repository.set_remote(Some(&remote), true).unwrap();
    assert_eq!(repository.remote().unwrap().unwrap().url(), remote.url());
    let checkout = Checkout::open(&repository, &dir.path().join("work"), None, Some(&ann())).unwrap();
    fs::write(checkout.root().join("a.txt"), "one\n").unwrap();
    let check_in = CheckIn { comment: "a".into(), branch: None, user: ann(), time: None };
    let made = checkout.check_in(&check_in, &checkout.status().unwrap()).unwrap();
    // No stock release syncs with an address of this kind, whatever it remembers. It reads it as the right one.
    let said = Fossil::Reference.run(dir.path(), checkout.root(), &["remote"]);
    assert!(said.contains("%3A%3A1") || said.contains("//ann@::1"), "{said}");
    Fossil::Own.run(dir.path(), checkout.root(), &["push"]);
    assert!(Repository::open(&path).unwrap().store().holds(&made.hash).unwrap());
    Fossil::Own.run(dir.path(), checkout.root(), &["pull"]);
    assert_eq!(repository.remote().unwrap().unwrap().url(), remote.url());
    // What this project's plain Fossil remembers itself is read here.
    for login in ["", "ann:secret@"] {
        let theirs = dir.path().join(format!("theirs{}.fossil", login.len()));
        let url = format!("http://{login}[::1]:{port}/");
        Fossil::Own.run(dir.path(), dir.path(), &["clone", &url, theirs.to_str().unwrap()]);
        assert_eq!(Repository::open(&theirs).unwrap().remote().unwrap().unwrap().url(), remote.url());
    }
}
