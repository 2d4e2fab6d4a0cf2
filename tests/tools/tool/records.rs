//! `ocx_wiki_read`, `ocx_unversioned_list` and `ocx_unversioned_get`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::support::Fixture;

fn with_page(text: &str) -> Fixture {
    let f = Fixture::with(&[("a.txt", b"one\n")]);
    f.write("page.md", text);
    f.fossil(&["wiki", "create", "How to build", "page.md", "-M", "text/x-markdown"]);
    f
}

#[test]
fn a_page_that_plain_fossil_wrote_is_read_exactly_and_by_version() {
    let f = with_page("# Build\r\n\tmake\nlast");
    let page = f.done("ocx_wiki_read", json!({"page": "How to build"}));
    assert_eq!((&page["text"], &page["lines"]), (&json!("# Build\r\n\tmake\nlast"), &json!(3)));
    assert_eq!((&page["mimetype"], &page["user"]), (&json!("text/x-markdown"), &json!("alice")));
    let first = page["version"].as_str().expect("a version").to_owned();
    f.write("page.md", "# Other\n");
    f.fossil(&["wiki", "commit", "How to build", "page.md"]);
    let page = f.done("ocx_wiki_read", json!({"page": "How to build"}));
    assert_eq!((&page["text"], &page["versions"]["of"]), (&json!("# Other\n"), &json!(2)));
    let old = f.done("ocx_wiki_read", json!({"page": "How to build", "version": first, "from": 2}));
    assert_eq!((&old["text"], &old["first_line"]), (&json!("\tmake\nlast"), &json!(2)));
}

#[test]
fn without_a_page_the_names_are_listed_and_a_wrong_one_is_steered() {
    let f = with_page("text\n");
    let list = f.done("ocx_wiki_read", json!({}));
    assert_eq!((&list["of"], &list["pages"][0]["page"]), (&json!(1), &json!("How to build")));
    let answer = f.refused("not_found", "ocx_wiki_read", json!({"page": "how-to-build"}));
    let next = json!({"tool": "ocx_wiki_read", "arguments": {"page": "How to build"}});
    assert_eq!(answer["next_call"], next);
    let answer = f.refused("not_found", "ocx_wiki_read", json!({"page": "zzz"}));
    assert_eq!(answer["next_call"], json!({"tool": "ocx_wiki_read", "arguments": {}}));
    f.refused("invalid", "ocx_wiki_read", json!({"page": "two  spaces"}));
    f.refused("invalid", "ocx_wiki_read", json!({"page": "How to build", "from": 9}));
    f.refused("invalid", "ocx_wiki_read", json!({"version": "a".repeat(64)}));
    f.refused("not_found", "ocx_wiki_read", json!({"page": "How to build", "version": "a".repeat(64)}));
}

#[test]
fn the_wiki_is_read_with_the_capability_for_it_only() {
    let f = with_page("text\n");
    for (login, capabilities) in [("nobody", ""), ("anonymous", ""), ("alice", "oi")] {
        f.fossil(&["user", "capabilities", login, capabilities]);
    }
    let answer = f.refused("denied", "ocx_wiki_read", json!({"page": "How to build"}));
    assert!(answer["stopped"].as_str().expect("words").contains("`j`"), "{answer}");
}

#[test]
fn an_unversioned_file_comes_in_parts_that_make_it_whole() {
    let f = Fixture::with(&[("a.txt", b"one\n")]);
    let bytes: Vec<u8> = (0..15_000_u32).flat_map(u32::to_le_bytes).collect();
    f.write("x.bin", &bytes);
    f.fossil(&["unversioned", "add", "x.bin", "--as", "data/x.bin"]);
    let list = f.done("ocx_unversioned_list", json!({}));
    assert_eq!((&list["of"], &list["files"][0]["name"]), (&json!(1), &json!("data/x.bin")));
    assert_eq!(list["files"][0]["size"], 60_000);
    let mut whole = Vec::new();
    let mut from = json!(0);
    while !from.is_null() {
        let part = f.done("ocx_unversioned_get", json!({"name": "data/x.bin", "from": from}));
        assert_eq!(part["hash"], list["files"][0]["hash"]);
        whole.extend(STANDARD.decode(part["content"].as_str().expect("base64")).expect("base64"));
        from = part["next_from"].clone();
    }
    assert_eq!(whole, bytes);
    let all = f.done("ocx_unversioned_get", json!({"name": "data/x.bin", "bytes": 60_000}));
    assert_eq!((&all["shown"], &all["next_from"]), (&json!(60_000), &json!(null)));
}

#[test]
fn an_unversioned_file_that_is_not_there_is_refused_with_the_nearest() {
    let f = Fixture::with(&[("a.txt", b"one\n")]);
    let answer = f.refused("not_found", "ocx_unversioned_get", json!({"name": "x.bin"}));
    assert_eq!(answer["next_call"], json!({"tool": "ocx_unversioned_list", "arguments": {}}));
    f.fossil(&["unversioned", "add", "a.txt"]);
    let answer = f.refused("not_found", "ocx_unversioned_get", json!({"name": "A.txt"}));
    assert_eq!(answer["next_call"]["arguments"], json!({"name": "a.txt"}));
    f.refused("invalid", "ocx_unversioned_get", json!({"name": "a.txt", "from": 9}));
    f.refused("invalid", "ocx_unversioned_get", json!({"name": "../a.txt"}));
}
