//! `ocx_edit`.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::fixture::Fixture;

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old": old, "new": new})
}

#[test]
fn the_changed_lines_come_back_as_read_gives_them() {
    let f = Fixture::with(&[("a.txt", b"1\n2\n3\n4\n")]);
    let done = f.done("ocx_edit", edit("a.txt", "2\n3\n", "two\nthree\nmore\n"));
    assert_eq!(done["text"], "two\nthree\nmore\n");
    assert_eq!((&done["first_line"], &done["last_line"], &done["lines"]), (&json!(2), &json!(4), &json!(5)));
    assert_eq!(done["file_hash"], f.done("ocx_read", json!({"path": "a.txt"}))["file_hash"]);
}

#[test]
fn t01_line_ends_follow_a_crlf_file_and_the_answer_says_so() {
    let f = Fixture::with(&[("a.txt", b"one\r\ntwo\r\nthree\r\n"), ("m.txt", b"a\r\nb\nc\r\n")]);
    let done = f.done("ocx_edit", edit("a.txt", "one\ntwo", "ONE\nTWO"));
    assert!(done["note"].as_str().unwrap_or_default().contains("CR LF"));
    assert_eq!(f.bytes("a.txt"), b"ONE\r\nTWO\r\nthree\r\n");
    f.refused("not_found", "ocx_edit", edit("m.txt", "a\nb", "A\nB"));
}

#[test]
fn t02_t03_t04_t05_t09_t13_every_other_byte_stays() {
    for (before, old, new, after) in [
        (&b"a\r\nb\nc\r\n"[..], "b", "B", &b"a\r\nB\nc\r\n"[..]),
        (b"x", "", "y\n", b"x\ny\n"),
        (b"a\nb", "b", "B", b"a\nB"),
        (b"\xef\xbb\xbfhello\n", "hello", "hi", b"\xef\xbb\xbfhi\n"),
        (b"log(\"done\");\n", "log(\"done\");", "log(\"$& $$ $1 \\1\\n\");", b"log(\"$& $$ $1 \\1\\n\");\n"),
        (b"ab", "", "X", b"abX"),
    ] {
        let f = Fixture::with(&[("f.txt", before)]);
        f.done("ocx_edit", edit("f.txt", old, new));
        assert_eq!(f.bytes("f.txt"), after);
    }
}

#[test]
fn t07_a_latin_1_file_is_refused_and_stays() {
    let f = Fixture::with(&[("l.txt", b"x = 1\n// caf\xe9\n")]);
    f.refused("invalid", "ocx_edit", edit("l.txt", "x = 1", "x = 2"));
    assert_eq!(f.bytes("l.txt"), b"x = 1\n// caf\xe9\n");
}

#[test]
fn t08_a_nul_is_refused_and_makes_no_file() {
    let f = Fixture::with(&[]);
    f.refused("invalid", "ocx_edit", edit("a.txt\0.png", "", "z"));
    assert!(!f.path("a.txt").exists());
}

#[test]
fn t10_t11_a_miss_says_what_differs_and_where_to_read() {
    let f = Fixture::with(&[("t.c", b"\tif(x){\n\t\ty();\n"), ("q.txt", "don\u{2019}t stop\n".as_bytes())]);
    let answer = f.refused("not_found", "ocx_edit", edit("t.c", "    if(x){\n", "    if(z){\n"));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("line 1"), "{answer}");
    assert_eq!(answer["next_call"], json!({"tool": "ocx_read", "arguments": {"path": "t.c", "from": 1}}));
    f.refused("not_found", "ocx_edit", edit("q.txt", "don't stop", "go"));
    f.done("ocx_edit", edit("t.c", "\tif(x){\n", "\tif(z){\n"));
}

#[test]
fn more_than_one_match_names_their_lines() {
    let f = Fixture::with(&[("a.txt", b"x\ny\nx\n")]);
    let answer = f.refused("ambiguous", "ocx_edit", edit("a.txt", "x", "z"));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("1, 3"), "{answer}");
    assert!(answer["next_step"].as_str().unwrap_or_default().contains("unique"));
}

#[test]
fn t21_t22_mode_links_and_hard_links_are_kept() {
    let f = Fixture::with(&[("run.sh", b"echo a\n"), ("real.md", b"a\n")]);
    std::fs::set_permissions(f.path("run.sh"), std::fs::Permissions::from_mode(0o755)).expect("mode");
    f.done("ocx_edit", edit("run.sh", "echo a", "echo b"));
    assert_eq!(f.path("run.sh").metadata().expect("there").permissions().mode() & 0o777, 0o755);
    symlink("real.md", f.path("link.md")).expect("a link");
    f.refused("denied", "ocx_edit", edit("link.md", "a", "b"));
    std::fs::hard_link(f.path("real.md"), f.path("other.md")).expect("a link");
    f.refused("denied", "ocx_edit", edit("real.md", "a", "b"));
    assert_eq!(f.bytes("real.md"), b"a\n");
}

#[test]
fn p02_p05_p07_p08_p09_p15_paths_that_must_not_be_written_are_refused() {
    let f = Fixture::with(&[]);
    let out = f.folder().join("out");
    std::fs::create_dir(&out).expect("a folder");
    symlink(&out, f.path("out")).expect("a link");
    for path in [
        "out/new.txt",
        ".FSLCKOUT-wal",
        "_fossil_",
        "dir/_FOSSIL_",
        ".fslckout",
        "a\nb",
        "dir\r/x",
        "a.",
        "b ",
        "back\\slash.txt",
    ] {
        let answer = f.call("ocx_edit", edit(path, "", "x"));
        assert_eq!(answer["ok"], false, "{path:?}");
        assert!(!answer["stopped"].as_str().unwrap_or_default().contains('\n'));
    }
    assert!(!out.join("new.txt").exists());
}

#[test]
fn p17_glob_characters_and_a_leading_dash_are_plain() {
    let f = Fixture::with(&[("starX.txt", b"x\n")]);
    f.done("ocx_edit", edit("star*.txt", "", "new\n"));
    f.done("ocx_edit", edit("-dash.txt", "", "new\n"));
    assert_eq!((f.bytes("starX.txt"), f.bytes("-dash.txt")), (b"x\n".to_vec(), b"new\n".to_vec()));
}

#[test]
fn a_stale_file_hash_is_refused_with_the_read_that_helps() {
    let f = Fixture::with(&[("a.txt", b"1\n2\n")]);
    let hash = f.done("ocx_read", json!({"path": "a.txt"}))["file_hash"].clone();
    f.done("ocx_edit", json!({"path": "a.txt", "old": "1", "new": "one", "file_hash": hash}));
    let answer = f.refused(
        "changed",
        "ocx_edit",
        json!({"path": "a.txt", "old": "2", "new": "two", "file_hash": hash}),
    );
    assert_eq!(answer["next_call"], json!({"tool": "ocx_read", "arguments": {"path": "a.txt"}}));
    assert_eq!(f.bytes("a.txt"), b"one\n2\n");
}

#[test]
fn c14_text_that_fossil_would_take_for_an_artifact_is_refused() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.fossil(&["artifact", "current", "m.out"]);
    let manifest = String::from_utf8(f.bytes("m.out")).expect("text");
    std::fs::remove_file(f.path("m.out")).expect("gone");
    let answer = f.refused("refused", "ocx_edit", edit("fixture.txt", "", &manifest));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("artifact"), "{answer}");
    assert!(!f.path("fixture.txt").exists());
}

#[test]
fn nothing_to_change_is_refused() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.refused("unchanged", "ocx_edit", edit("a.txt", "a", "a"));
}

#[test]
fn x01_two_edits_at_once_are_both_there() {
    let f = Arc::new(Fixture::with(&[("f.txt", b"")]));
    for round in 0..50 {
        f.write("f.txt", "50\n75\n");
        std::thread::scope(|s| {
            for (old, new) in [("50", "A"), ("75", "B")] {
                let f = Arc::clone(&f);
                s.spawn(move || f.done("ocx_edit", edit("f.txt", old, new)));
            }
        });
        assert_eq!(f.bytes("f.txt"), b"A\nB\n", "round {round}");
    }
}

#[test]
fn a03_a_reader_reads_and_every_write_is_refused_before_anything_changes() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    f.fossil(&["user", "new", "rita", "rita", "pw"]);
    f.fossil(&["user", "capabilities", "rita", "o"]);
    f.fossil(&["user", "default", "rita"]);
    f.done("ocx_read", json!({"path": "a.txt"}));
    f.done("ocx_context", json!({}));
    for (tool, input) in [
        ("ocx_edit", edit("a.txt", "a", "b")),
        ("ocx_test", json!({})),
        ("ocx_save", crate::fixture::four("t")),
    ] {
        let answer = f.refused("denied", tool, input);
        assert!(
            answer["stopped"].as_str().unwrap_or_default().contains("`rita` lacks capability `i`"),
            "{answer}"
        );
    }
    assert_eq!(f.bytes("a.txt"), b"a\n");
}
