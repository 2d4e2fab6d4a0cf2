//! Texts that are made to hurt.

use std::fs;

use md5::Md5;
use ocx::engine;
use ocx::error::Kind;
use ocx::name::Hash;
use sha1::Digest;

use super::linking::link_into;
use super::place::{Place, expect};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, b| text + &format!("{b:02x}"))
}

fn with_z(cards: &str) -> Vec<u8> {
    format!("{cards}Z {}\n", hex(&Md5::digest(cards.as_bytes()))).into_bytes()
}

/// Has Fossil's code link a stored text in; the engine and the repository must be well whatever it is.
fn link(place: &Place, what: &str, text: &[u8]) -> Hash {
    let hashes = link_into(&place.path(), &[text.to_vec()]).unwrap();
    place.is_well(what);
    hashes[0]
}

/// Texts on which Fossil's own parser leaves its memory.
fn wild_artifacts() -> Vec<(&'static str, Vec<u8>)> {
    let d = "D 2026-11-30T10:23:45\n";
    let hash = "0123456789012345678901234567890123456789";
    vec![
        ("W", with_z(&format!("{d}L A\nU ann\nW 4294967295\nhello\n"))),
        ("W wrapping", with_z(&format!("{d}L A\nU ann\nW 8589934591\nhello\n"))),
        ("W signed", {
            let cards = format!("{d}L A\nU ann\nW 4294967295\nhello\n");
            [b"-----BEGIN PGP SIGNED MESSAGE-----\nW 1\n\n".as_slice(), &with_z(&cards)].concat()
        }),
        ("K", with_z(&format!("{d}G {hash}\nI {hash}\nK\nU ann\n"))),
        ("R", with_z(&format!("C x\n{d}Q +{}\nR\nU ann\n", &hash[..31]))),
        ("Z", with_z(&format!("C x\n{d}R {}\nU ann\nZ\n", &hash[..32]))),
    ]
}

#[test]
fn b14_wild_artifacts_do_not_end_the_host() {
    let place = Place::new();
    for (what, text) in wild_artifacts() {
        link(&place, what, &text);
    }
    place.repository.rebuild().unwrap();
    place.is_well("a rebuild over wild artifacts");
}

#[test]
fn b14_wild_artifacts_do_not_end_a_command() {
    let place = Place::new();
    for (what, text) in wild_artifacts() {
        fs::write(place.checkout.root().join("wild.txt"), &text).unwrap();
        let said = place.fossil(&["test-parse-manifest", "wild.txt"]).map(|o| o.out + &o.err);
        let said = said.unwrap_or_else(|e| e.to_string());
        assert!(said.to_lowercase().contains("parse failed") || said.contains("rror"), "{what}: {said}");
        fs::remove_file(place.checkout.root().join("wild.txt")).unwrap();
        place.is_well(what);
    }
    let page = with_z("D 2026-11-30T10:23:45\nL A\nU ann\nW 12\nW 4294967295\n");
    fs::write(place.checkout.root().join("page.txt"), &page).unwrap();
    let said = place.fossil(&["test-parse-manifest", "page.txt"]).unwrap();
    assert!(said.out.contains("worked"), "{said:?}");
}

/// Check-ins whose tag `parent` names no parents, on which Fossil's own function reads or writes what is not its own.
fn wild_parents(tip: &str) -> Vec<(&'static str, Vec<u8>)> {
    let check_in = |n: usize, value: &str| {
        let tags = format!("T *branch * wild{n}\nT *sym-wild{n} *\nT +parent *{value}\n");
        with_z(&format!("C wild\\s{n}\nD 2026-11-30T10:23:{n:02}\nP {tip}\n{tags}U ann\n"))
    };
    let control = |value: &str| with_z(&format!("D 2026-11-30T10:24:00\nT +parent {tip}{value}\nU ann\n"));
    vec![
        ("no value", check_in(0, "")),
        ("a word behind a hash", check_in(1, &format!(" {tip}\\sx"))),
        ("many words behind a hash", check_in(2, &format!(" {tip}{}", "\\sx".repeat(40)))),
        ("no hash", check_in(3, &format!(" {}", "z".repeat(40)))),
        ("two spaces", check_in(4, &format!(" {tip}\\s\\s{tip}"))),
        ("an empty word", check_in(5, " \\s")),
        ("a control artifact without a value", control("")),
        ("a control artifact with a short word", control(&format!(" {tip}\\s{}", &tip[1..]))),
    ]
}

#[test]
fn v01_a_parent_tag_that_names_no_parents_ends_no_process_and_moves_no_check_in() {
    let place = Place::new();
    let tip = place.checkout.parent().unwrap();
    for (what, text) in wild_parents(tip.as_str()) {
        let hash = link(&place, what, &text);
        assert!(place.repository.store().holds(&hash).unwrap(), "{what}");
    }
    place.repository.rebuild().unwrap();
    place.is_well("a rebuild over wild parents");
    let db = rusqlite::Connection::open(place.path()).unwrap();
    let standing = "SELECT count(*) FROM tagxref WHERE tagid=10";
    assert_eq!(db.query_row(standing, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    // One that another program left in the repository.
    let sql = "INSERT INTO tagxref(tagid,tagtype,srcid,origid,value,mtime,rid)
               SELECT 10, 1, rid, rid, ?1, 2461000, rid FROM blob WHERE uuid=?2";
    for (n, value) in [None, Some(format!("{tip} x")), Some(String::new())].into_iter().enumerate() {
        db.execute(sql, (value, tip.as_str())).unwrap();
        let page = with_z(&format!("D 2026-11-30T10:23:45\nL P{n}\nU ann\nW 2\nhi\n"));
        link(&place, "a stored parent", &page);
        assert_eq!(db.query_row(standing, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    }
}

#[test]
fn v01_a_parent_tag_that_names_parents_still_moves_a_check_in() {
    let place = Place::new();
    let first = place.checkout.parent().unwrap();
    let second = place.save("second").unwrap().hash;
    let third = place.save("third").unwrap().hash;
    let text = with_z(&format!("D 2026-11-30T10:23:45\nT +parent {third} {first}\\s{second}\nU ann\n"));
    link(&place, "a new parent", &text);
    assert_eq!(place.repository.store().check_in(&third).unwrap().parents, [first, second]);
}

#[test]
fn a_looped_or_lying_bundle_is_an_error() {
    let place = Place::new();
    place.fossil(&["bundle", "export", "b.bundle", "--branch", "trunk", "--standalone"]).unwrap();
    let whole = place.checkout.root().join("b.bundle");
    for (what, change) in [
        ("claimed size", "UPDATE bblob SET data=x'ffffffff789c0300'"),
        ("cut data", "UPDATE bblob SET data=substr(data,1,9)"),
        ("short data", "UPDATE bblob SET data=x'00'"),
        ("null data", "UPDATE bblob SET data=NULL"),
        ("a delta of garbage", "UPDATE bblob SET delta=1 WHERE blobid>1"),
        ("a loop", "UPDATE bblob SET delta=CASE blobid WHEN 1 THEN 2 ELSE 1 END"),
        ("itself", "UPDATE bblob SET delta=blobid"),
        ("an unknown basis", "UPDATE bblob SET delta='aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'"),
        ("a known basis", "UPDATE bblob SET delta=(SELECT uuid FROM bblob LIMIT 1)"),
    ] {
        let path = place.checkout.root().join("wild.bundle");
        fs::copy(&whole, &path).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch(change).unwrap();
        let new = place.dir.path().join("new.fossil");
        let new = new.to_str().unwrap();
        place.fossil(&["init", "-A", "ann", new]).unwrap();
        let _ = place.fossil(&["bundle", "import", "wild.bundle", "-R", new]);
        let _ = place.fossil(&["bundle", "ls", "wild.bundle", "--details"]);
        let _ = place.fossil(&["bundle", "cat", "wild.bundle", "aaaa"]);
        fs::remove_file(new).unwrap();
        place.is_well(what);
    }
}

#[test]
fn a_loop_among_purged_artifacts_is_an_error() {
    let place = Place::new();
    super::place::save(&place.checkout, "to be purged", Some("gone")).unwrap();
    place.fossil(&["update", "trunk"]).unwrap();
    place.fossil(&["purge", "checkins", "--explain", "gone"]).unwrap();
    place.fossil(&["purge", "checkins", "gone"]).unwrap();
    engine::close(&place.path()).unwrap();
    let db = rusqlite::Connection::open(place.path()).unwrap();
    assert!(db.execute("UPDATE purgeitem SET srcid=piid", []).unwrap() > 0);
    let id: i64 = db.query_row("SELECT peid FROM purgeevent", [], |row| row.get(0)).unwrap();
    let uuid: String = db.query_row("SELECT uuid FROM purgeitem", [], |row| row.get(0)).unwrap();
    drop(db);
    let e = place.fossil(&["purge", "cat", &uuid]);
    expect("cat", e, Kind::Corrupt, "delta loop");
    let _ = place.fossil(&["purge", "undo", &id.to_string()]);
    place.is_well("a loop");
}
