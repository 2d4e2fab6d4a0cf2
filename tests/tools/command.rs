//! The program as a person uses it: who a command acts as, what a refusal says, and what it leaves behind.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::served::Served;
use crate::support::{Fixture, OCX};

/// Runs `ocx` in the fixture's folder. The words are all that it wrote.
fn run(f: &Fixture, args: &[&str], more: impl FnOnce(&mut Command)) -> (Output, String) {
    let mut command = f.command(OCX, f.folder());
    more(command.args(args));
    let out = command.output().expect("ocx runs");
    let words = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    (out, words)
}

fn refused(f: &Fixture, args: &[&str]) -> String {
    let (out, words) = run(f, args, |_| ());
    assert!(matches!(out.status.code(), Some(1 | 2)), "{:?}: {words}", out.status);
    words
}

/// `ocx` as the first word of a shell line.
fn shell(f: &Fixture, folder: &Path, line: &str) -> Output {
    let mut command = f.shell(folder);
    let _ = std::os::unix::fs::symlink(OCX, f.folder().join("bin/ocx"));
    command.args(["-c", line]).output().expect("a shell")
}

#[test]
fn options_before_a_word_of_fossil_are_refused_in_one_line() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    for (args, right) in [
        (&["-R", "r.fossil", "fossil", "info"][..], "ocx fossil COMMAND -R REPO"),
        (&["--user", "bob", "fossil", "wiki", "list", "-R", "r.fossil"], "ocx fossil COMMAND --user LOGIN"),
        (&["-C", "co", "-R", "r.fossil", "fossil", "info"], "ocx fossil COMMAND -R REPO"),
    ] {
        let words = refused(&f, args);
        assert!(words.contains(right) && words.lines().count() == 1, "{words}");
    }
    for args in [&["-C", "co", "fossil", "info"][..], &["-Cco", "fossil", "info"]] {
        let (out, words) = run(&f, args, |_| ());
        assert!(out.status.success() && words.contains("checkout:"), "{words}");
    }
}

#[test]
fn a_bundle_is_imported_by_the_named_login_else_the_checkouts_else_the_default_user() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    for login in ["bob", "low"] {
        f.fossil(&["user", "new", login, login, "pw"]);
    }
    let before = std::fs::read(f.repository()).expect("readable");
    f.write("a.txt", "b\n");
    f.fossil(&["commit", "-m", "more", "--no-warnings", "--user-override", "alice"]);
    f.ocx(f.folder(), &["bundle", "export", "b", "--check-in", "trunk", "-R", "r.fossil"]);
    let by = |name: &str, args: &[&str], user: Option<&str>, folder: &str| {
        let repository = f.folder().join(name);
        std::fs::write(&repository, &before).expect("written");
        if folder != "." {
            f.ocx(f.folder(), &["open", name, folder, "--user", "bob"]);
        }
        let file = f.folder().join("b").display().to_string();
        let path = repository.display().to_string();
        let words = ["-C", folder, "bundle", "import", &file].into_iter().map(str::to_owned);
        let words: Vec<String> = words.chain(args.iter().map(|word| word.replace("REPO", &path))).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (out, said) = run(&f, &words, |command| {
            match user {
                Some(user) => command.env("USER", user),
                None => command.env_remove("USER"),
            };
        });
        assert!(out.status.success(), "{said}");
        let db = rusqlite::Connection::open(&repository).expect("a repository");
        let sql = "SELECT login FROM rcvfrom JOIN user USING(uid) ORDER BY rcvid DESC LIMIT 1";
        db.query_row(sql, [], |row| row.get::<_, String>(0)).expect("a login")
    };
    for user in [Some("low"), Some("nobody-here"), None] {
        let tag = user.unwrap_or("none");
        assert_eq!(by(&format!("{tag}1.fossil"), &["-R", "REPO"], user, "."), "alice", "{user:?}");
        assert_eq!(by(&format!("{tag}2.fossil"), &["-R", "REPO", "--user", "bob"], user, "."), "bob");
        assert_eq!(by(&format!("{tag}3.fossil"), &[], user, &format!("{tag}-co")), "bob", "{user:?}");
    }
}

#[test]
fn the_call_that_helps_is_a_command_line_to_paste() {
    let f = Fixture::with(&[("it's.txt", b"\ta 'b' $c\nend\n")]);
    let args = ["-C", "co", "edit", "it's.txt", "--old", "    a 'b' $c", "--new", "    x"];
    let words = refused(&f, &args);
    let line = words.split("next_call:\n").nth(1).unwrap_or_else(|| panic!("{words}")).trim_end();
    assert!(line.starts_with(r"ocx -C co edit 'it'\''s.txt' --"), "{line}");
    let out = shell(&f, f.folder(), line);
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(f.bytes("it's.txt"), b"\tx\nend\n");
    let words = refused(&f, &["-C", "co", "find", ""]);
    assert!(!words.contains("next_call"), "{words}");
}

#[test]
fn hints_name_what_a_person_has_here() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    std::fs::create_dir(f.folder().join("full")).expect("a folder");
    std::fs::write(f.folder().join("full/x"), "x").expect("written");
    for (args, with, without) in [
        (&["-R", "r.fossil", "push", "http://bob@127.0.0.1:1/"][..], "OCX_PASSWORD", "token"),
        (&["-R", "/none.fossil", "status"], "Check the path", "ocx_find"),
        (&["-R", "r.fossil", "--user", "nosuch", "status"], "call as another", "token"),
        (&["open", "r.fossil", "full"], "Name an empty folder", "--force"),
    ] {
        let words = refused(&f, args);
        assert!(words.contains(with) && !words.contains(without), "{words}");
    }
}

#[test]
fn a_save_that_is_not_sent_for_lack_of_a_password_says_where_one_is_looked_for() {
    let s = Served::new();
    let f = &s.server_side;
    let url = format!("http://agent@127.0.0.1:{}/", s.port);
    let (cloned, words) = run(f, &["clone", &url, "own.fossil"], |command| {
        command.env("OCX_PASSWORD", "s3cret");
    });
    assert!(cloned.status.success(), "{words}");
    f.ocx(f.folder(), &["open", "own.fossil", "own", "--user", "agent"]);
    std::fs::write(f.folder().join("own/new.txt"), "x").expect("written");
    let save = ["save", "--title", "t", "--intent", "i", "--expression", "e", "--demonstrates", "d"];
    let words = refused(f, &[&["-C", "own"], &save[..]].concat());
    assert!(words.contains("OCX_PASSWORD") && words.contains("next_call:\nocx -C own save "), "{words}");
}

#[test]
fn no_command_leaves_a_write_ahead_log_with_content() {
    let f = Fixture::with(&[]);
    let folder = f.folder().join("logs");
    std::fs::create_dir(&folder).expect("a folder");
    let save = ["save", "--title", "t", "--intent", "i", "--expression", "e", "--demonstrates", "d"];
    let in_checkout = |args: &[&'static str]| [&["-C", "w"], args].concat();
    for args in [
        vec!["init", "x.fossil", "--user", "ann"],
        vec!["open", "x.fossil", "w"],
        in_checkout(&["status"]),
        in_checkout(&["context"]),
        in_checkout(&["edit", "a.txt", "--old", "", "--new", "a\n"]),
        in_checkout(&save),
        in_checkout(&["update"]),
        vec!["-R", "x.fossil", "wiki-edit", "Plan", "--old", "", "--new", "x"],
    ] {
        f.ocx(&folder, &args);
        // Not even an empty one.
        for end in ["-wal", "-shm"] {
            assert!(!folder.join(format!("x.fossil{end}")).exists(), "{args:?} leaves {end}");
        }
    }
}

#[test]
fn the_size_of_a_bundle_is_that_of_its_file() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    for form in [&[][..], &["--wire"]] {
        let name = format!("b{}", form.len());
        let args = [&["bundle", "export", &name, "--check-in", "trunk", "-R", "r.fossil"], form].concat();
        f.ocx(f.folder(), &args);
        let size = std::fs::metadata(f.folder().join(&name)).expect("a file").len();
        let listed = f.ocx(f.folder(), &["bundle", "ls", &name, "--json"]);
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        assert_eq!(listed["size"], size, "{listed}");
        assert!(f.ocx(f.folder(), &["bundle", "verify", &name]).contains(&format!("{size} in the file")));
    }
}
