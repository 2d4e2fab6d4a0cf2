//! Text and bytes: every byte outside the match stays.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::json;

use super::{committed, edit, manifest, stopped};
use crate::support::{Fixture, four};

/// Edits a file that holds `before` and gives what it holds then.
fn edited(before: &[u8], old: &str, new: &str) -> Vec<u8> {
    let f = Fixture::with(&[("f.txt", before)]);
    f.done("ocx_edit", edit("f.txt", old, new));
    f.bytes("f.txt")
}

#[test]
fn t02_one_bare_lf_makes_no_other_line_end_change() {
    assert_eq!(edited(b"a\r\nb\nc\r\n", "b", "B"), b"a\r\nB\nc\r\n");
}

#[test]
fn t03_text_added_after_a_line_without_end_begins_a_line_and_says_so() {
    let f = Fixture::with(&[("n.txt", b"x")]);
    let done = f.done("ocx_edit", edit("n.txt", "", "y\n"));
    assert_eq!(f.bytes("n.txt"), b"x\ny\n");
    assert!(done["note"].as_str().unwrap_or_default().contains("had no line end"), "{done}");
}

#[test]
fn t04_the_last_line_end_is_neither_added_nor_dropped() {
    let f = Fixture::with(&[("f.txt", b"a\nb")]);
    f.done("ocx_edit", edit("f.txt", "b", "B"));
    assert_eq!(f.bytes("f.txt"), b"a\nB");
    let page = f.done("ocx_read", json!({"path": "f.txt", "from": 1}));
    assert_eq!((&page["lines"], &page["last_line"], &page["text"]), (&json!(2), &json!(2), &json!("a\nB")));
}

#[test]
fn t05_a_byte_order_mark_stays() {
    assert_eq!(edited(b"\xef\xbb\xbfhello\n", "hello", "hi"), b"\xef\xbb\xbfhi\n");
}

#[test]
fn t06_a_utf_16_file_is_no_text_and_is_saved_exactly() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    let utf16 = b"\xff\xfea\0\n\0";
    f.write("u.txt", utf16);
    for (tool, input) in [("ocx_read", json!({"path": "u.txt"})), ("ocx_edit", edit("u.txt", "a", "b"))] {
        let answer = f.refused("invalid", tool, input);
        assert!(stopped(&answer).contains("binary: 6 bytes"), "{answer}");
    }
    assert_eq!(f.bytes("u.txt"), utf16);
    let saved = f.done("ocx_save", four("t"));
    assert_eq!(committed(&f, &saved["checkin"], "u.txt"), utf16);
}

#[test]
fn t07_a_latin_1_file_is_never_turned_into_replacement_characters() {
    let before = b"x = 1\n// caf\xe9\n";
    let f = Fixture::with(&[("l.txt", before)]);
    f.refused("invalid", "ocx_edit", edit("l.txt", "x = 1", "x = 2"));
    assert_eq!(f.bytes("l.txt"), before);
}

#[test]
fn t08_a_nul_in_an_argument_is_refused_and_cuts_nothing() {
    let f = Fixture::with(&[("b.txt", b"b\n")]);
    let answer = f.refused("invalid", "ocx_edit", edit("a.txt\0.png", "", "z"));
    assert!(stopped(&answer).contains("NUL"), "{answer}");
    assert!(!f.path("a.txt").exists() && !f.path("a.txt.png").exists());
    f.done("ocx_edit", edit("b.txt", "b", "c"));
    let count = f.check_ins();
    let mut save = four("t");
    save["intent"] = "ok\0rest".into();
    let answer = f.refused("invalid", "ocx_save", save);
    assert!(stopped(&answer).contains("`intent`") && stopped(&answer).contains("NUL"), "{answer}");
    assert_eq!(f.check_ins(), count);
}

#[test]
fn t09_dollar_patterns_are_plain_text() {
    let new = r#"log("$& $$ $1 $` $' \1 \n");"#;
    assert_eq!(edited(b"log(\"done\");\n", "log(\"done\");", new), format!("{new}\n").into_bytes());
}

#[test]
fn t10_tabs_are_shown_and_matched_as_tabs() {
    let f = Fixture::with(&[("t.c", b"\tif(x){\n\t\ty();\n")]);
    assert_eq!(f.done("ocx_read", json!({"path": "t.c"}))["text"], "\tif(x){\n\t\ty();\n");
    let answer = f.refused("not_found", "ocx_edit", edit("t.c", "    if(x){\n", "    if(z){\n"));
    assert!(stopped(&answer).contains("nearest is line 1") && stopped(&answer).contains("space"), "{answer}");
    assert_eq!(f.bytes("t.c"), b"\tif(x){\n\t\ty();\n");
    f.done("ocx_edit", edit("t.c", "\tif(x){\n", "\tif(z){\n"));
    assert_eq!(f.bytes("t.c"), b"\tif(z){\n\t\ty();\n");
}

#[test]
fn t11_curly_quotes_and_no_break_spaces_are_not_folded() {
    let before = "don\u{2019}t\u{a0}stop\n";
    let f = Fixture::with(&[("q.txt", before.as_bytes())]);
    f.refused("not_found", "ocx_edit", edit("q.txt", "don't stop", "go"));
    assert_eq!(f.bytes("q.txt"), before.as_bytes());
    f.done("ocx_edit", edit("q.txt", "stop", "\u{2019}"));
    assert_eq!(f.bytes("q.txt"), "don\u{2019}t\u{a0}\u{2019}\n".as_bytes());
}

#[test]
fn t13_an_empty_old_adds_once_at_the_end() {
    assert_eq!(edited(b"ab", "", "X"), b"abX");
}

#[test]
fn t15_a_long_line_is_cut_between_characters_in_find_and_test_alike() {
    let emoji = "\u{1f600}".repeat(40);
    let command = format!("for i in $(seq 300); do echo '{emoji}'; done");
    let f = Fixture::tested(&command, &[]);
    f.write("long.txt", format!("{}needle{}\n", "\u{1f600}".repeat(2_500), "\u{1f600}".repeat(2_500)));
    for (tool, input) in [("ocx_test", json!({})), ("ocx_find", json!({"text": "needle"}))] {
        let answer = f.call(tool, input);
        assert_eq!(answer["ok"], true, "{answer}");
        let text = answer.to_string();
        assert!(text.len() < 11_000 && !text.contains('\u{fffd}'), "{tool}: {} bytes", text.len());
    }
    let found = f.done("ocx_find", json!({"text": "needle"}));
    assert!(found["matches"][0]["text"].as_str().unwrap_or_default().contains("needle"), "{found}");
    assert_eq!(found["matches"][0]["line_bytes"], 20_006);
}

#[test]
fn t20_a_text_to_find_is_no_option_and_no_pattern() {
    let f = Fixture::with(&[("a.txt", b"--pre=/bin/sh\n-v\na.*[\nplain\n")]);
    for (text, lines) in
        [("--pre=/bin/sh", vec![1]), ("-v", vec![2]), ("a.*[", vec![3]), ("\n", vec![1, 2, 3, 4])]
    {
        let found = f.done("ocx_find", json!({"text": text}));
        let at: Vec<u64> =
            found["matches"].as_array().expect("a list").iter().filter_map(|m| m["line"].as_u64()).collect();
        assert_eq!(at, lines, "{text:?}");
    }
    let answer = f.refused("invalid", "ocx_find", json!({"text": ""}));
    assert!(stopped(&answer).contains("`text` is empty"), "{answer}");
}

#[test]
fn t21_the_executable_bit_stays_in_the_file_and_in_the_manifest() {
    let f = Fixture::with(&[("run.sh", b"echo a\n")]);
    std::fs::set_permissions(f.path("run.sh"), std::fs::Permissions::from_mode(0o755)).expect("mode");
    f.done("ocx_edit", edit("run.sh", "echo a", "echo b"));
    assert_eq!(f.path("run.sh").metadata().expect("there").permissions().mode() & 0o777, 0o755);
    let saved = f.done("ocx_save", four("t"));
    let manifest = manifest(&f, &saved["checkin"]);
    let card = manifest.lines().find(|l| l.starts_with("F run.sh ")).expect("a card");
    assert!(card.ends_with(" x"), "{card}");
}

#[test]
fn t22_links_are_refused_by_name_and_nothing_is_parted() {
    let f = Fixture::with(&[("real.md", b"a\n"), ("hard.md", b"a\n")]);
    symlink("real.md", f.path("link.md")).expect("a link");
    let answer = f.refused("denied", "ocx_edit", edit("link.md", "a", "b"));
    assert!(stopped(&answer).contains("link.md"), "{answer}");
    assert!(f.path("link.md").symlink_metadata().expect("there").is_symlink());
    std::fs::hard_link(f.path("hard.md"), f.path("other.md")).expect("a link");
    let answer = f.refused("denied", "ocx_edit", edit("hard.md", "a", "b"));
    assert!(stopped(&answer).contains("hard.md"), "{answer}");
    assert_eq!(f.path("hard.md").metadata().expect("there").nlink(), 2);
    assert_eq!((f.bytes("real.md"), f.bytes("hard.md")), (b"a\n".to_vec(), b"a\n".to_vec()));
}

#[test]
fn text_with_pasted_line_numbers_is_told_apart() {
    let f = Fixture::with(&[("a.txt", b"one\ntwo\nthree\n")]);
    let answer = f.refused("not_found", "ocx_edit", edit("a.txt", "2: two\n3: three\n", "x\n"));
    assert!(stopped(&answer).contains("line 2") && stopped(&answer).contains("number"), "{answer}");
}
