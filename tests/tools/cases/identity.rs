//! Who calls: proved by a token over HTTP, by the checkout's user on the command line, and never by what a caller says.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ocx::format::Markup;
use ocx::name::User;
use ocx::record::Forum;
use ocx::repo::Repository;
use ocx::tool::catalogue::TOOLS;
use serde_json::{Value, json};

use super::{edit, stopped};
use crate::support::client::answer;
use crate::support::http::{HttpServer, LEGACY, USUAL, request};
use crate::support::served::Served;
use crate::support::{Fixture, OCX, four, required};

const ALICE: &str = "a11ce000a11ce000a11ce000";
const BOB: &str = "b0b00000b0b00000b0b00000";

/// A user with these capabilities, beside those that everyone has.
fn user(f: &Fixture, name: &str, capabilities: &str) {
    f.fossil(&["user", "new", name, name, "pw"]);
    f.fossil(&["user", "capabilities", name, capabilities]);
}

/// Writes a file that only its owner may read.
fn private(file: &Path, text: &str) {
    fs::write(file, text).expect("written");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("private");
}

/// A server whose callers prove themselves by these tokens.
fn served(f: &Fixture, tokens: &str) -> HttpServer {
    let file = f.folder().join("tokens");
    private(&file, tokens);
    HttpServer::with(f, |c| {
        c.arg("--token-file").arg(&file);
    })
}

/// What `ocx mcp` says when it does not start with these tokens.
fn refused_tokens(f: &Fixture, tokens: &str) -> String {
    let file = f.folder().join("tokens");
    private(&file, tokens);
    let mut command = f.command(OCX, &f.root());
    let output = command.args(["mcp", "--listen", "--token-file"]).arg(&file).output().expect("ocx runs");
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The answer of `ocx call` in a folder.
fn by_command(f: &Fixture, folder: &str, tool: &str, input: &Value) -> Value {
    let mut command = f.command(OCX, &f.folder().join(folder));
    command.args(["call", tool, &input.to_string()]).env("REMOTE_USER", "alice");
    let output = command.output().expect("ocx runs");
    serde_json::from_slice(&output.stdout).expect("an answer")
}

/// A thread of the forum, by its first post.
fn thread(f: &Fixture) -> String {
    let repository = Repository::open(&f.repository()).expect("a repository");
    let alice = User::parse("alice").expect("a user");
    Forum::of(&repository)
        .start("Plan", "Begin.", Markup::Markdown, &alice)
        .expect("a thread")
        .hash
        .to_string()
}

/// What a write would change: the rows that hold anything of it, and the files.
fn state(f: &Fixture) -> (Vec<i64>, Vec<(PathBuf, Vec<u8>)>) {
    let db = rusqlite::Connection::open(f.repository()).expect("a repository");
    let count = |table: &str| {
        db.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0)).expect("a count")
    };
    let rows = ["blob", "event", "tagxref", "unsent", "user"].map(count).to_vec();
    let own = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.contains("fossil") || name.starts_with(".fslckout")
    };
    (rows, f.everything().into_iter().filter(|(path, _)| !own(path)).collect())
}

#[test]
fn a02_only_proof_says_who_calls() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    user(&f, "bob", "io23");
    let s = served(&f, &format!("alice {ALICE}\nbob {BOB}\n"));
    let claims = "X-Forwarded-User: alice\r\nRemote-User: alice\r\nREMOTE_USER: alice\r\nCookie: fossil-0123=alice\r\n";
    let body = request(1, "tools/call", json!({"name": "ocx_status", "arguments": {}}));
    let unproved = s.post_with(&format!("{USUAL}{LEGACY}{claims}"), body.as_bytes());
    assert_eq!(unproved.status, 401);
    assert!(!unproved.text().contains("alice"), "{}", unproved.text());
    let proved = format!("{USUAL}{LEGACY}{claims}Authorization: Bearer {BOB}\r\n");
    let told = answer(&s.post_with(&proved, body.as_bytes()).json());
    assert_eq!(
        (&told["result"]["login"], &told["result"]["server_facts"]["login"]),
        (&json!("bob"), &json!("bob"))
    );
    assert_eq!(told["result"]["server_facts"]["checkout_user"], "alice");
    assert_eq!(s.call_as(ALICE, "ocx_status", json!({}))["result"]["login"], "alice");
    // A caller can't name itself in a field, here or by the command.
    let to = thread(&f);
    let forged = json!({"to": to, "text": "x", "user": "alice"});
    for refused in [s.call_as(BOB, "ocx_post", forged.clone()), by_command(&f, "co", "ocx_post", &forged)] {
        assert_eq!(refused["code"], "invalid");
        assert!(stopped(&refused).contains("no field `user`"), "{refused}");
    }
    let posted = s.call_as(BOB, "ocx_post", json!({"to": to, "text": "x"}));
    assert_eq!(posted["result"]["user"], "bob", "{posted}");
    assert_eq!(by_command(&f, "co", "ocx_status", &json!({}))["result"]["login"], "alice");
}

#[test]
fn a03_a_reader_reads_and_every_write_is_refused_before_anything_changes() {
    let f = Fixture::tested("true", &[("a.txt", b"a\n")]);
    user(&f, "rita", "o2j");
    f.ocx(f.folder(), &["open", "r.fossil", "ritas", "--user", "rita"]);
    let s = served(&f, &format!("rita {BOB}"));
    let before = state(&f);
    for (tool, input) in [
        ("ocx_context", json!({})),
        ("ocx_find", json!({"text": "a"})),
        ("ocx_read", json!({"path": "a.txt"})),
        ("ocx_wiki_read", json!({})),
        ("ocx_unversioned_list", json!({})),
        ("ocx_queue", json!({})),
        ("ocx_status", json!({})),
    ] {
        for answer in [s.call_as(BOB, tool, input.clone()), by_command(&f, "ritas", tool, &input)] {
            assert_eq!(answer["ok"], true, "{answer:#}");
        }
    }
    let writes = TOOLS.iter().map(|t| t.declaration()).filter(|d| !d.hints.read_only);
    let names: Vec<&str> = writes.clone().map(|d| d.name).collect();
    assert!(names.contains(&"ocx_save") && names.contains(&"ocx_stop") && names.len() >= 9, "{names:?}");
    for tool in writes {
        let input = required(tool);
        for answer in [s.call_as(BOB, tool.name, input.clone()), by_command(&f, "ritas", tool.name, &input)] {
            assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!("denied")), "{answer:#}");
            assert!(stopped(&answer).contains("`rita` lacks capability"), "{answer}");
            assert_eq!(answer["log"], json!([]));
        }
    }
    assert!(state(&f) == before);
}

#[test]
fn a04_no_login_and_names_that_look_like_one_write_nothing() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    user(&f, "anonymous2", "");
    for group in ["nobody", "anonymous", "Nobody", "reader"] {
        let words = refused_tokens(&f, &format!("{group} {BOB}"));
        assert!(words.contains("line 1 ") && !words.contains(BOB), "{words}");
    }
    let s = served(&f, &format!("anonymous2 {ALICE}\n\u{430}lice {BOB}\n"));
    let before = state(&f);
    let save = request(1, "tools/call", json!({"name": "ocx_save", "arguments": four("t")}));
    assert_eq!(s.post(save.as_bytes()).status, 401);
    for tool in TOOLS.iter().map(|t| t.declaration()).filter(|d| !d.hints.read_only) {
        for token in [ALICE, BOB] {
            let answer = s.call_as(token, tool.name, required(tool));
            assert_eq!(answer["code"], "denied", "{answer:#}");
        }
    }
    let unknown = s.call_as(BOB, "ocx_status", json!({}));
    assert!(stopped(&unknown).contains("no user"), "a Cyrillic letter makes another name: {unknown}");
    for name in ["nobody", "anonymous", "Developer", "admin ", " admin", "\u{430}dmin", ""] {
        let mut init = f.command(OCX, f.folder());
        assert!(!init.args(["init", "new.fossil", "--user", name]).output().expect("ocx").status.success());
    }
    for name in ["nobody", "anonymous", "admin ", "\u{430}lice"] {
        let mut open = f.command(OCX, f.folder());
        let open = open.args(["open", "r.fossil", "another", "--user", name]).output().expect("ocx");
        assert!(!open.status.success(), "{name}");
    }
    assert!(!f.folder().join("new.fossil").exists());
    fs::remove_dir_all(f.folder().join("another")).unwrap_or_default();
    assert!(state(&f) == before);
}

#[test]
fn a05_a_user_name_forges_no_card_and_is_shown_exactly() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    for name in ["bob\nU boss", "bob smith", "bob\\sU\\sboss", "bob\u{202e}"] {
        for command in [["init", "new.fossil"].as_slice(), &["open", "r.fossil", "another"]] {
            let mut program = f.command(OCX, f.folder());
            let output = program.args(command).args(["--user", name]).output().expect("ocx runs");
            assert!(!output.status.success(), "{name:?}");
        }
    }
    for line in [format!("bob smith {BOB}"), format!("bob\u{202e} {BOB}"), format!("bob\\sboss {BOB}")] {
        assert!(refused_tokens(&f, &line).contains("line 1 "));
    }
    user(&f, "z\u{eb}", "io234");
    let to = thread(&f);
    let s = served(&f, &format!("z\u{eb} {BOB}"));
    f.ocx(f.folder(), &["open", "r.fossil", "theirs", "--user", "z\u{eb}"]);
    for (way, text) in ["over HTTP", "by the command"].iter().zip(["one", "two"]) {
        let reply = json!({"to": to, "text": text});
        let (status, posted) = if *way == "over HTTP" {
            (s.call_as(BOB, "ocx_status", json!({})), s.call_as(BOB, "ocx_post", reply))
        } else {
            (by_command(&f, "theirs", "ocx_status", &json!({})), by_command(&f, "theirs", "ocx_post", &reply))
        };
        assert_eq!(status["result"]["login"], "z\u{eb}", "{way}");
        assert_eq!(posted["ok"], true, "{posted:#}");
        let artifact = f.fossil(&["artifact", posted["result"]["post"].as_str().expect("a hash")]);
        assert_eq!(
            artifact.lines().filter(|l| l.starts_with("U ")).collect::<Vec<_>>(),
            ["U z\u{eb}"],
            "{way}"
        );
    }
}

#[test]
fn a06_neither_password_nor_token_is_shown_anywhere() {
    let mut s = Served::new();
    let work = s.server_side.folder().join("work");
    let file = s.server_side.folder().join("tokens");
    private(&file, &format!("agent {BOB}\n"));
    let http = HttpServer::with(&s.server_side, |c| {
        c.current_dir(&work).arg("--token-file").arg(&file).env("OCX_LOG", "trace");
    });
    let line = fs::read(format!("/proc/{}/cmdline", http.child.id())).expect("a command line");
    let mut said = vec![String::from_utf8_lossy(&line).into_owned()];
    said.push(http.call_as(BOB, "ocx_status", json!({})).to_string());
    said.push(http.call_as(BOB, "ocx_edit", edit("a.txt", "a", "b")).to_string());
    s.stop();
    let saved = http.call_as(BOB, "ocx_save", four("t"));
    assert_eq!(saved["code"], "not_pushed", "{saved:#}");
    said.push(saved.to_string());
    said.push(http.call_as(BOB, "ocx_status", json!({})).to_string());
    let headers = format!("{USUAL}{LEGACY}Authorization: Bearer another-token-of-someone\r\n");
    let other = http.post_with(&headers, request(1, "ping", json!({})).as_bytes());
    assert_eq!(other.status, 401);
    said.push(other.head.clone() + &other.text());
    let f = &s.server_side;
    for (tool, input) in [("ocx_status", json!({})), ("ocx_save", four("t")), ("ocx_context", json!({}))] {
        let mut command = f.command(OCX, &work);
        command.args(["call", tool, &input.to_string()]).env("OCX_LOG", "trace");
        let output = command.output().expect("ocx runs");
        said.push(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned());
    }
    let started = Instant::now();
    while !http.log.lock().expect("a log").contains("ocx_save") {
        assert!(started.elapsed() < crate::support::HANG, "the log says something");
        std::thread::sleep(Duration::from_millis(20));
    }
    said.push(http.log.lock().expect("a log").clone());
    for text in said {
        for secret in ["s3cret", BOB, "another-token-of-someone"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}

#[test]
fn another_login_writes_records_as_itself_and_leaves_the_checkout_to_its_user() {
    let f = Fixture::tested("true", &[("a.txt", b"a\n")]);
    user(&f, "bob", "io23");
    let s = served(&f, &format!("{ALICE}\nbob {BOB}\n"));
    let before = state(&f);
    for (tool, input) in [
        ("ocx_edit", edit("a.txt", "a", "b")),
        ("ocx_test", json!({})),
        ("ocx_save", four("t")),
        ("ocx_commit_and_sync", four("t")),
    ] {
        let answer = s.call_as(BOB, tool, input);
        assert_eq!(answer["code"], "denied", "{answer:#}");
        assert!(stopped(&answer).contains("`alice`'s alone, and you are `bob`"), "{answer}");
    }
    assert!(state(&f) == before);
    assert_eq!(s.call_as(ALICE, "ocx_edit", edit("a.txt", "a", "b"))["ok"], true);
    let context = s.call_as(BOB, "ocx_context", json!({}))["result"].clone();
    assert_eq!((&context["user"], &context["changed"][0]["path"]), (&json!("bob"), &json!("a.txt")));
    assert_eq!(context["next_call"], Value::Null, "what is to do next in the files is alice's");
    assert_eq!(s.call_as(ALICE, "ocx_test", json!({}))["ok"], true);
    let saved = s.call_as(ALICE, "ocx_save", four("t"))["result"]["checkin"].clone();
    let verdict = json!({"checkin": saved, "verdict": "pass", "note": "fine"});
    assert_eq!(s.call_as(ALICE, "ocx_audit", verdict.clone())["ok"], false, "nobody judges their own");
    let judged = s.call_as(BOB, "ocx_audit", verdict);
    assert_eq!((&judged["ok"], &judged["result"]["user"]), (&json!(true), &json!("bob")), "{judged:#}");
}
