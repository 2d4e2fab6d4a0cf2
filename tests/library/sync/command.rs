//! `ocx push`, `ocx pull` and `ocx clone`, as people and scripts call them.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::front::{Authority, Front};
use crate::support::{Fossil, served};

/// Runs `ocx` with these words; gives its exit code, what it wrote and what it complained of.
fn ocx(home: &Path, dir: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ocx"));
    command.args(words).current_dir(dir).env("HOME", home).env("OCX_PASSWORD", "secret").env("USER", "ann");
    let out = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn the_commands_say_what_was_done_in_words_and_in_json() {
    let (dir, _path, server) = served(Fossil::Reference);
    let home = dir.path();
    let authority = Authority::new("own");
    std::fs::write(home.join("ca.pem"), &authority.pem).unwrap();
    let front = Front::secure(server.port, authority.server("127.0.0.1", 2020, 2090));
    let url = format!("https://ann@127.0.0.1:{}/", front.port);
    let (code, _, err) = ocx(home, home, &["clone", &url, "c.fossil"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("issuer"), "{err}");
    let (code, out, err) = ocx(home, home, &["clone", &url, "c.fossil", "--ca-file", "ca.pem"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let (code, _, err) = ocx(home, home, &["open", "c.fossil", "work", "--user", "ann"]);
    assert_eq!(code, 0, "{err}");
    let work = home.join("work");
    std::fs::write(work.join("a.txt"), "one\n").unwrap();
    Fossil::Own.run(home, &work, &["add", "a.txt"]);
    Fossil::Own.run(home, &work, &["commit", "-m", "first", "--no-warnings", "--nosync"]);
    let ca = ["--ca-file", "../ca.pem"];
    let words = |first: &[&'static str]| [first, &ca].concat();
    let (code, out, err) = ocx(home, &work, &words(&["push"]));
    assert_eq!((code, err.as_str()), (0, ""));
    let place = url.replace("ann@", "");
    assert_eq!(out, format!("With {place}: sent 1 check-ins, 2 artifacts.\n"));
    let (code, out, _) = ocx(home, &work, &words(&["pull", "--push", "--json", "--unversioned"]));
    let said: Value = serde_json::from_str(&out).unwrap();
    let nothing = json!({"artifacts": 0});
    let files = json!({"sent": [], "received": [], "replaced": []});
    assert_eq!((code, said), (0, json!({"sent": nothing, "received": nothing, "unversioned": files})));
    let (code, out, _) = ocx(home, home, &["pull", "-R", "c.fossil", "--ca-file", "ca.pem"]);
    assert_eq!((code, out), (0, format!("With {place}: nothing to receive.\n")));
}

#[test]
fn a_command_that_fails_says_why_what_to_do_and_never_the_password() {
    let (dir, _path, server) = served(Fossil::Own);
    let home = dir.path();
    let url = server.url.replace("http://", "http://ann@");
    assert_eq!(ocx(home, home, &["clone", &url, "c.fossil"]).0, 0);
    drop(server);
    let (code, out, err) = ocx(home, home, &["push", "-R", "c.fossil"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("cannot reach") && err.lines().count() == 2 && !err.contains("secret"), "{err}");
    let (code, _, err) = ocx(home, home, &["pull", "-R", "c.fossil", "--timeout", "0"]);
    assert_eq!(code, 2, "{err}");
    let (code, _, err) = ocx(home, home, &["init", "new.fossil"]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = ocx(home, home, &["pull", "-R", "new.fossil"]);
    assert_eq!(code, 1);
    assert!(err.contains("remembers no server"), "{err}");
}

#[test]
fn a_tool_pushes_through_the_proxy_and_with_the_certificates_of_the_environment() {
    let (dir, path, server) = served(Fossil::Own);
    let home = dir.path();
    let authority = Authority::new("own");
    std::fs::write(home.join("ca.pem"), &authority.pem).unwrap();
    let front = Front::secure(server.port, authority.server("127.0.0.1", 2020, 2090));
    // ann:tunnel
    let proxy = Front::proxy("Basic YW5uOnR1bm5lbA==");
    let url = format!("https://ann@127.0.0.1:{}/", front.port);
    let ca = ["--ca-file", "ca.pem"];
    assert_eq!(ocx(home, home, &[&["clone", &url, "c.fossil"][..], &ca].concat()).0, 0);
    assert_eq!(ocx(home, home, &["open", "c.fossil", "work", "--user", "ann"]).0, 0);
    let page = |name: &str, no_proxy: &str| {
        let input = json!({"page": name, "old": "", "new": "text\n"}).to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_ocx"));
        command.args(["call", "ocx_wiki_edit", &input]).current_dir(home.join("work")).env("HOME", home);
        command.env("OCX_PASSWORD", "secret").env("SSL_CERT_FILE", home.join("ca.pem"));
        command.env("HTTPS_PROXY", format!("http://ann:tunnel@127.0.0.1:{}", proxy.port));
        command.env_remove("https_proxy").env_remove("no_proxy").env("NO_PROXY", no_proxy);
        let out = command.output().unwrap();
        serde_json::from_slice::<Value>(&out.stdout).unwrap()
    };
    let answer = page("One", "example.org");
    assert_eq!(answer["result"]["pushed"], true, "{answer:#}");
    assert!(!answer.to_string().contains("tunnel"));
    let used = proxy.requests();
    assert!(used > 0);
    let answer = page("Two", "example.org, 127.0.0.1");
    assert_eq!(answer["result"]["pushed"], true, "{answer:#}");
    assert_eq!(proxy.requests(), used, "that host is reached directly");
    drop(server);
    let db = rusqlite::Connection::open(&path).unwrap();
    let pages = "SELECT count(*) FROM tag WHERE tagname GLOB 'wiki-*'";
    assert_eq!(db.query_row(pages, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
}
