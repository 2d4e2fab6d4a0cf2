//! What a check-in may hold: any bytes, but no control artifact, nothing too large, and whole or not at all.

use std::fs::File;
use std::process::Command;

use serde_json::{Value, json};

use super::{committed, edit, stopped};
use crate::support::{Fixture, OCX, four};

#[test]
fn c14_a_file_that_is_a_well_formed_artifact_is_neither_written_nor_saved() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.fossil(&["artifact", "current", "../manifest"]);
    let forged = std::fs::read_to_string(f.folder().join("manifest")).expect("a manifest");
    let answer = f.refused("refused", "ocx_edit", edit("fixture.txt", "", &forged));
    assert!(stopped(&answer).contains("artifact"), "{answer}");
    assert!(!f.path("fixture.txt").exists());
    f.write("fixture.txt", &forged);
    let count = f.check_ins();
    let answer = f.refused("invalid", "ocx_save", four("t"));
    assert!(stopped(&answer).contains("`fixture.txt`") && stopped(&answer).contains("artifact"), "{answer}");
    assert_eq!(f.check_ins(), count);
    f.write("fixture.txt", format!("not an artifact\n{forged}"));
    f.done("ocx_save", four("t"));
}

#[test]
fn c15_no_bytes_make_a_save_ask_or_convert() {
    let files =
        [("l1", &b"caf\xe9\n"[..]), ("zero", b"a\0b\n"), ("mix", b"a\r\nb\n"), ("crlf", b"a\r\nb\r\n")];
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    for (name, content) in files {
        f.write(name, content);
    }
    let saved = f.done("ocx_save", four("t"));
    for (name, content) in files {
        assert_eq!(committed(&f, &saved["checkin"], name), content, "{name}");
    }
}

#[test]
fn c19_a_file_over_2_gib_is_refused_by_its_size_and_nothing_is_written() {
    let f = Fixture::with(&[("a.txt", b"needle\n")]);
    let huge = File::create(f.path("huge.bin")).expect("a file");
    huge.set_len(2_254_857_830).expect("sparse");
    let count = f.check_ins();
    let answer = f.refused("invalid", "ocx_save", four("t"));
    assert!(stopped(&answer).contains("huge.bin") && stopped(&answer).contains("limit"), "{answer}");
    for (tool, input) in [("ocx_read", json!({"path": "huge.bin"})), ("ocx_edit", edit("huge.bin", "", "x"))]
    {
        let answer = f.refused("too_large", tool, input);
        assert!(stopped(&answer).contains("2254857830"), "{answer}");
    }
    assert_eq!(f.done("ocx_find", json!({"text": "needle"}))["of"], 1);
    assert_eq!(f.check_ins(), count);
}

#[test]
fn b14_a_broken_control_artifact_in_the_repository_stops_no_tool() {
    let f = Fixture::with(&[("a.txt", b"needle\n")]);
    for (name, text) in [
        ("no-hash", "C x\nD 2026-01-01T00:00:00.000\nF name\nU alice\n"),
        ("no-comment", "D 2026-01-01T00:00:00.000\nF a.txt\nU alice\n"),
    ] {
        let path = f.folder().join(name);
        std::fs::write(&path, with_z_card(text)).expect("written");
        f.fossil(&["test-content-put", path.to_str().expect("UTF-8")]);
    }
    f.fossil(&["rebuild"]);
    f.done("ocx_context", json!({}));
    assert_eq!(f.done("ocx_find", json!({"text": "needle"}))["of"], 1);
    f.done("ocx_edit", edit("a.txt", "needle", "thread"));
    let saved = f.done("ocx_save", four("t"));
    f.done("ocx_read", json!({"checkin": saved["checkin"]}));
}

fn with_z_card(text: &str) -> String {
    use md5::{Digest, Md5};
    let digest: Vec<String> = Md5::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
    format!("{text}Z {}\n", digest.concat())
}

/// Runs `ocx call` where no file may grow beyond so many blocks of 1 KiB.
fn on_a_small_disk(f: &Fixture, kib: u64, tool: &str, input: &Value) -> Value {
    // The shell counts in blocks of 512 bytes.
    let mut command: Command = f.command("sh", &f.root());
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" call {tool} -", kib * 2);
    command.args(["-c", &script, OCX]);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().expect("sh");
    let mut stdin = child.stdin.take().expect("stdin");
    std::io::Write::write_all(&mut stdin, input.to_string().as_bytes()).expect("sent");
    drop(stdin);
    let output = child.wait_with_output().expect("ended");
    serde_json::from_slice(&output.stdout).expect("an answer")
}

#[test]
fn x05_a_full_disk_leaves_the_old_bytes_and_nothing_beside_them() {
    let big = "0123456789abcde\n".repeat(10 << 16) + "needle\n";
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.write("big.txt", &big);
    let answer = on_a_small_disk(&f, 4 << 10, "ocx_edit", &edit("big.txt", "needle", "thread"));
    assert_eq!(answer["code"], "disk_full", "{answer}");
    assert!(f.bytes("big.txt") == big.as_bytes(), "the old bytes");
    let names: Vec<_> = std::fs::read_dir(f.root())
        .expect("listable")
        .map(|e| e.expect("an entry").file_name().into_string().expect("UTF-8"))
        .filter(|n| !n.starts_with(".fslckout"))
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    f.done("ocx_edit", edit("big.txt", "needle", "thread"));
}

#[test]
fn a_full_disk_refuses_the_save_whole_and_the_next_one_works() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    // Bytes that do not compress: each the middle of a growing product.
    let mut n = 88_172_645_463_325_252_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        n ^= n << 13;
        n ^= n >> 7;
        n ^= n << 17;
        n.to_le_bytes()[3]
    })
    .take(3 << 20)
    .collect();
    f.write("noise.bin", &noise);
    let count = f.check_ins();
    let answer = on_a_small_disk(&f, 1 << 10, "ocx_save", &four("t"));
    // Where a limit on sizes stands in for a full disk, SQLite calls it an error of writing.
    let code = answer["code"].as_str().unwrap_or_default();
    assert!(["disk_full", "io"].contains(&code), "{answer}");
    assert!(answer["next_step"].as_str().unwrap_or_default().contains("disk"), "{answer}");
    assert_eq!(f.check_ins(), count);
    let db = rusqlite::Connection::open(f.repository()).expect("a repository");
    let check: String = db.query_row("PRAGMA integrity_check", [], |r| r.get(0)).expect("checked");
    assert_eq!(check, "ok");
    let saved = f.done("ocx_save", four("t"));
    assert!(committed(&f, &saved["checkin"], "noise.bin") == noise);
}
