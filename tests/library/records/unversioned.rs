use ocx::error::Kind;
use ocx::name::UnversionedName;
use ocx::record::{UNVERSIONED_MAX, Unversioned};

use super::lines;
use crate::support::{Fossil, Place, ann};

fn name(text: &str) -> UnversionedName {
    UnversionedName::parse(text).unwrap()
}

#[test]
fn plain_fossil_reads_what_was_put_and_removed() {
    let place = Place::new();
    let files = Unversioned::of(&place.repository);
    let text = "a line\r\n".repeat(1000) + "😀";
    let put = files.put(&name("dir/a.txt"), text.as_bytes(), &ann()).unwrap();
    files.put(&name("empty"), b"", &ann()).unwrap();
    assert_eq!(put.size, text.len() as u64);
    for &fossil in Fossil::each() {
        assert_eq!(place.by(fossil, &["uv", "ls"]), "dir/a.txt\nempty\n");
        assert_eq!(place.by(fossil, &["uv", "cat", "dir/a.txt"]), text);
        assert_eq!(place.by(fossil, &["uv", "cat", "empty"]), "");
        assert!(place.by(fossil, &["uv", "list"]).contains(&put.hash.as_str()[..12]));
    }
    assert_eq!(place.sql("SELECT encoding FROM unversioned WHERE name='dir/a.txt'"), 1);
    assert_eq!(
        lines(&place, "SELECT login FROM unversioned JOIN rcvfrom USING(rcvid) JOIN user USING(uid)").len(),
        2
    );
    let before = place.by(Fossil::Own, &["uv", "hash"]);
    files.remove(&name("empty"), &ann()).unwrap();
    assert_eq!(place.fossil(&["uv", "ls"]), "dir/a.txt\n");
    assert_ne!(place.by(Fossil::Own, &["uv", "hash"]), before);
    assert_eq!(
        place.by(Fossil::Own, &["uv", "hash"]),
        place.by(Fossil::Own, &["uv", "hash", "--debug"]).lines().last().unwrap().to_owned() + "\n"
    );
    assert_eq!(files.remove(&name("empty"), &ann()).unwrap_err().kind(), Kind::NotFound);
    place.assert_whole();
}

#[test]
fn what_plain_fossil_put_is_read() {
    let place = Place::new();
    let files = Unversioned::of(&place.repository);
    for &fossil in Fossil::each() {
        for bytes in [&b"\0\x01\xff"[..], b"", &b"x".repeat(5000)] {
            place.write("f.bin", bytes);
            place.by(fossil, &["uv", "add", "f.bin"]);
            assert_eq!(files.get(&name("f.bin")).unwrap(), bytes);
        }
        place.by(fossil, &["uv", "rm", "f.bin"]);
        assert_eq!(files.get(&name("f.bin")).unwrap_err().kind(), Kind::NotFound);
        assert!(files.list().unwrap().is_empty());
    }
}

#[test]
fn s10_names_outside_the_rules_are_refused_and_bytes_come_back() {
    let place = Place::new();
    let files = Unversioned::of(&place.repository);
    let long = "n".repeat(501);
    for bad in ["a b.bin", "../x", "/abs", "n\nl", &long] {
        assert_eq!(UnversionedName::parse(bad).unwrap_err().kind(), Kind::Invalid);
        place.write("some", "x");
        let plain =
            Fossil::Own.command(place.dir.path(), place.checkout.root(), &["uv", "add", "some", "--as", bad]);
        assert!(!{ plain }.output().unwrap().status.success(), "{bad:?}");
    }
    files.put(&name("ok.bin"), &[0, 1], &ann()).unwrap();
    assert_eq!(files.get(&name("ok.bin")).unwrap(), [0, 1]);
    assert_eq!(files.list().unwrap()[0].name, "ok.bin");
}

#[test]
fn s11_a_file_dated_in_the_future_is_replaced_or_named() {
    let place = Place::new();
    let files = Unversioned::of(&place.repository);
    files.put(&name("x"), b"old", &ann()).unwrap();
    let dated = |when: &str| {
        let db = rusqlite::Connection::open(place.repository.path()).unwrap();
        db.execute("UPDATE unversioned SET mtime=strftime('%s', 'now', ?1)", [when]).unwrap();
    };
    dated("+1 year");
    let e = files.put(&name("x"), b"new", &ann()).unwrap_err();
    assert_eq!(e.kind(), Kind::Invalid);
    let year = lines(&place, "SELECT strftime('%Y-', mtime, 'unixepoch') FROM unversioned");
    assert!(e.to_string().contains(&year[0]), "{e}");
    assert_eq!(files.remove(&name("x"), &ann()).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(files.get(&name("x")).unwrap(), b"old");
    dated("+1 hour");
    let held = place.sql("SELECT mtime FROM unversioned");
    files.put(&name("x"), b"new", &ann()).unwrap();
    assert_eq!(files.get(&name("x")).unwrap(), b"new");
    assert_eq!(place.sql("SELECT mtime FROM unversioned"), held + 1);
}

#[test]
fn two_puts_within_a_second_count_in_their_order() {
    let place = Place::new();
    let files = Unversioned::of(&place.repository);
    files.put(&name("x"), b"one", &ann()).unwrap();
    let first = place.sql("SELECT mtime FROM unversioned");
    files.put(&name("x"), b"two", &ann()).unwrap();
    assert!(place.sql("SELECT mtime FROM unversioned") > first);
    files.put(&name("x"), b"two", &ann()).unwrap();
    assert_eq!(files.get(&name("x")).unwrap(), b"two");
}

#[test]
fn c19_a_file_over_the_limit_is_refused_with_the_limit() {
    let place = Place::new();
    let files = Unversioned::of(&place.repository);
    // Never touched, so that it takes no memory.
    let large = vec![0; 2_254_857_830];
    let e = files.put(&name("large"), &large, &ann()).unwrap_err();
    assert_eq!(e.kind(), Kind::TooLarge);
    assert!(e.to_string().contains(&UNVERSIONED_MAX.to_string()), "{e}");
    assert!(Unversioned::check_size(&name("x"), UNVERSIONED_MAX).is_ok());
    assert_eq!(Unversioned::check_size(&name("x"), UNVERSIONED_MAX + 1).unwrap_err().kind(), Kind::TooLarge);
    assert!(files.list().unwrap().is_empty());
    let db = rusqlite::Connection::open_in_memory().unwrap();
    let fits = |size: u64| {
        db.query_row("SELECT length(zeroblob(?1))", [i64::try_from(size).unwrap()], |_| Ok(())).is_ok()
    };
    assert!(fits(UNVERSIONED_MAX + 850) && !fits(UNVERSIONED_MAX + 851));
}

#[test]
fn damage_is_told() {
    let place = Place::new();
    let files = Unversioned::of(&place.repository);
    files.put(&name("x"), b"bytes", &ann()).unwrap();
    let set = |sql: &str| {
        let db = rusqlite::Connection::open(place.repository.path()).unwrap();
        db.execute(sql, []).unwrap();
    };
    set("UPDATE unversioned SET content=x'00'");
    assert_eq!(files.get(&name("x")).unwrap_err().kind(), Kind::Corrupt);
    set("UPDATE unversioned SET content=NULL");
    assert_eq!(files.get(&name("x")).unwrap_err().kind(), Kind::NotFound);
    assert!(!files.list().unwrap()[0].here);
    files.put(&name("x"), b"bytes", &ann()).unwrap();
    assert_eq!(files.get(&name("x")).unwrap(), b"bytes");
}
