//! `ocx_read`.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::fixture::{Fixture, four};

#[test]
fn a_page_is_exact_and_says_where_it_goes_on() {
    let f = Fixture::with(&[("a.txt", "line\n".repeat(450).as_bytes())]);
    let page = f.done("ocx_read", json!({"path": "a.txt", "from": 201}));
    assert_eq!(
        (&page["first_line"], &page["last_line"], &page["lines"]),
        (&json!(201), &json!(400), &json!(450))
    );
    assert_eq!(
        (page["text"].as_str(), &page["next_from"]),
        (Some("line\n".repeat(200).as_str()), &json!(401))
    );
}

#[test]
fn a_read_past_the_end_gives_the_last_page_as_the_next_call() {
    let f = Fixture::with(&[("a.txt", b"1\n2\n")]);
    let answer = f.refused("invalid", "ocx_read", json!({"path": "a.txt", "from": 9}));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("2 lines"), "{answer}");
    assert_eq!(answer["next_call"], json!({"tool": "ocx_read", "arguments": {"path": "a.txt", "from": 1}}));
}

#[test]
fn t06_a_utf_16_file_is_refused_as_binary_with_its_size() {
    let f = Fixture::with(&[("u.txt", b"\xff\xfea\0\n\0")]);
    let answer = f.refused("invalid", "ocx_read", json!({"path": "u.txt"}));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("binary: 6 bytes"), "{answer}");
    f.refused("invalid", "ocx_edit", json!({"path": "u.txt", "old": "a", "new": "b"}));
    assert_eq!(f.bytes("u.txt"), b"\xff\xfea\0\n\0");
}

#[test]
fn t17_lines_end_at_lf_only_in_read_and_find_alike() {
    let f = Fixture::with(&[("r.txt", b"alpha\nbeta\rx\ngamma\n")]);
    assert_eq!(f.done("ocx_find", json!({"text": "gamma"}))["matches"][0]["line"], 3);
    let page = f.done("ocx_read", json!({"path": "r.txt", "from": 2}));
    assert_eq!(page["text"], "beta\rx\ngamma\n");
}

#[test]
fn t18_a_huge_line_is_cut_and_said_so_in_a_small_answer() {
    let mut big = vec![b'x'; 20 << 20];
    big.extend_from_slice(b"needle");
    let f = Fixture::with(&[("s.txt", b"s\n")]);
    f.write("big.js", &big);
    let answer = f.call("ocx_read", json!({"path": "big.js"}));
    assert!(
        answer["result"]["note"].as_str().unwrap_or_default().contains("20971526 bytes"),
        "{}",
        answer["result"]["note"]
    );
    assert!(answer.to_string().len() < 10_000);
    let found = f.call("ocx_find", json!({"text": "needle"}));
    assert_eq!(found["result"]["matches"][0]["line_bytes"], 20_971_526);
    assert!(found.to_string().len() < 10_000);
}

#[test]
fn p01_a_link_out_of_the_checkout_is_not_followed() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    symlink("/etc/hostname", f.path("leak")).expect("a link");
    let answer = f.refused("denied", "ocx_read", json!({"path": "leak"}));
    assert!(answer["stopped"].as_str().unwrap_or_default().contains("leak"), "{answer}");
}

#[test]
fn p03_p13_paths_that_leave_or_name_no_file_are_refused() {
    let f = Fixture::with(&[("a.txt", b"a\n")]);
    std::fs::create_dir(f.folder().join("co-evil")).expect("a folder");
    std::fs::write(f.folder().join("co-evil/s"), "secret").expect("a file");
    for path in ["../co-evil/s", "/etc/passwd", "..", ".", "a/../../b", "x//y", "x/"] {
        let answer = f.call("ocx_read", json!({"path": path}));
        assert_eq!(answer["ok"], false, "{path}");
        assert!(!answer.to_string().contains("secret"));
    }
    for plain in ["-R", "*.txt"] {
        f.refused("not_found", "ocx_read", json!({"path": plain}));
    }
}

#[test]
fn a_missing_path_names_the_nearest_one() {
    let f = Fixture::with(&[("src/main.c", b"int main;\n")]);
    let answer = f.refused("not_found", "ocx_read", json!({"path": "main.c"}));
    assert_eq!(answer["next_call"], json!({"tool": "ocx_read", "arguments": {"path": "src/main.c"}}));
    let answer = f.refused("not_found", "ocx_read", json!({"path": "zzzzzz"}));
    assert_eq!(answer["next_call"]["tool"], "ocx_find");
}

#[test]
fn a_check_in_is_read_as_it_was_and_as_what_it_changed() {
    let f = Fixture::with(&[("a.txt", b"one\ntwo\n")]);
    f.done("ocx_edit", json!({"path": "a.txt", "old": "two", "new": "2"}));
    let saved = f.done("ocx_save", four("count"));
    let parent = saved["parent"].as_str().expect("a parent");
    let old = f.done("ocx_read", json!({"path": "a.txt", "checkin": parent}));
    assert_eq!(old["text"], "one\ntwo\n");
    let changes = f.done("ocx_read", json!({"checkin": saved["checkin"]}));
    assert_eq!(changes["text"], "=== edited a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    f.refused("not_found", "ocx_read", json!({"path": "b.txt", "checkin": parent}));
    f.refused("invalid", "ocx_read", json!({}));
}

#[test]
fn a_folder_is_refused_with_what_lies_in_it() {
    let f = Fixture::with(&[("src/a.c", b"a\n"), ("src/x/b.c", b"b\n")]);
    let answer = f.refused("invalid", "ocx_read", json!({"path": "src"}));
    assert_eq!(answer["result"]["entries"], json!(["a.c", "x/ (1)"]));
    assert_eq!(f.done("ocx_context", json!({}))["top"], json!(["src/ (2)"]));
}
