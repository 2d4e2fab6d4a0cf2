//! Servers that lie, and texts that are made to hurt.

use std::fs;

use md5::Md5;
use ocx::engine::{self, Transport};
use ocx::error::Kind;
use ocx::format::packed;
use sha1::{Digest, Sha1};

use super::endings::request;
use super::place::{Place, expect};

/// Gives these replies, then none.
pub struct Replies(pub Vec<Vec<u8>>);

impl Transport for Replies {
    fn exchange(&mut self, _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        if self.0.is_empty() { None } else { Some(self.0.remove(0)) }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, b| text + &format!("{b:02x}"))
}

fn sha1(bytes: &[u8]) -> String {
    hex(&Sha1::digest(bytes))
}

fn with_z(cards: &str) -> Vec<u8> {
    format!("{cards}Z {}\n", hex(&Md5::digest(cards.as_bytes()))).into_bytes()
}

/// A card line with its content.
fn card(line: &str, content: &[u8]) -> Vec<u8> {
    [line.as_bytes(), b"\n", content, b"\n"].concat()
}

fn file(content: &[u8]) -> Vec<u8> {
    card(&format!("file {} {}", sha1(content), content.len()), content)
}

/// The content in Fossil's packed form, with a size of one's own.
fn packed_as(content: &[u8], size: u32) -> Vec<u8> {
    let mut packed = packed::pack(content).unwrap();
    packed[..4].copy_from_slice(&size.to_be_bytes());
    packed
}

fn cfile(content: &[u8], claimed: u32) -> Vec<u8> {
    let packed = packed_as(content, claimed);
    card(&format!("cfile {} {} {}", sha1(content), content.len(), packed.len()), &packed)
}

/// Syncs with a server that gives `reply`; the engine and the repository must be well whatever it is.
fn sync(place: &Place, what: &str, reply: Vec<u8>) {
    let path = place.path();
    let _ = engine::sync(&path, request(Replies(vec![reply])));
    place.is_well(what);
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
fn b14_wild_artifacts_from_a_server_do_not_end_the_host() {
    let place = Place::new();
    for (what, text) in wild_artifacts() {
        sync(&place, what, file(&text));
        sync(&place, what, cfile(&text, u32::try_from(text.len()).unwrap()));
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
        sync(&place, what, file(&text));
        assert!(place.repository.store().holds(&sha1(&text).parse().unwrap()).unwrap(), "{what}");
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
        sync(&place, "a stored parent", file(&page));
        assert_eq!(db.query_row(standing, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    }
}

#[test]
fn v01_a_clone_with_wild_parents_is_whole_or_an_error() {
    let place = Place::new();
    let tip = "0123456789012345678901234567890123456789";
    for (what, text) in wild_parents(tip) {
        let path = place.dir.path().join("clone.fossil");
        let tail = format!("push {tip} {tip}\nclone_seqno 0\n");
        let mut clone = request(Replies(vec![[file(&text), tail.into_bytes()].concat(), Vec::new()]));
        clone.push = false;
        let _ = engine::clone(&path, clone);
        for end in ["", "-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(format!("{}{end}", path.display()));
        }
        place.is_well(what);
    }
}

#[test]
fn v01_a_parent_tag_that_names_parents_still_moves_a_check_in() {
    let place = Place::new();
    let first = place.checkout.parent().unwrap();
    let second = place.save("second").unwrap().hash;
    let third = place.save("third").unwrap().hash;
    let text = with_z(&format!("D 2026-11-30T10:23:45\nT +parent {third} {first}\\s{second}\nU ann\n"));
    sync(&place, "a new parent", file(&text));
    assert_eq!(place.repository.store().check_in(&third).unwrap().parents, [first, second]);
}

#[test]
fn lies_about_lengths_are_refused() {
    let place = Place::new();
    let tip = place.checkout.parent().unwrap();
    let some = b"some content of no great size\n".as_slice();
    let hash = sha1(some);
    let delta = |delta: &[u8]| card(&format!("file {hash} {tip} {}", delta.len()), delta);
    for (what, reply) in [
        ("file too long", card(&format!("file {hash} 2147483647"), some)),
        ("file negative", card(&format!("file {hash} -5"), some)),
        ("file overflowing", card(&format!("file {hash} 99999999999999999999"), some)),
        ("file of another hash", card(&format!("file {} {}", "a".repeat(40), some.len()), some)),
        ("cfile too long", card(&format!("cfile {hash} 30 2147483647"), some)),
        ("cfile empty", card(&format!("cfile {hash} 30 0"), b"")),
        ("cfile that is not packed", card(&format!("cfile {hash} 30 {}", some.len()), some)),
        ("cfile of 4 GB", cfile(some, u32::MAX)),
        ("cfile of 2 GB", cfile(some, 0x7fff_fff0)),
        ("cfile of less", cfile(some, 3)),
        ("cfile of a little more", cfile(some, 60)),
        ("delta without a size", delta(b"@@@@")),
        ("delta that is empty", format!("file {hash} {tip} 0\n").into_bytes()),
        ("delta of an absent length", format!("file {hash} {tip} 77\n").into_bytes()),
        ("cfile delta that is empty", format!("cfile {hash} {tip} 5 0\n").into_bytes()),
        ("delta of 2 GB", delta(b"1~~~~z\n1:x0;")),
        ("delta of 4 GB", delta(b"3~~~~~\n1:x0;")),
        ("delta that copies from behind", delta(b"A\nA@~~~~,0;")),
        ("delta that inserts more", delta(b"3~~~~\n3~~~~:x")),
        ("delta that just ends", delta(b"5\n5:abcde")),
        ("uvfile too long", card(&format!("uvfile x 1 {hash} 2147483647 0"), some)),
        ("config too long", card("config /user 2147483647", some)),
        ("config negative", card("config css -7", some)),
        ("clone_seqno", b"clone_seqno 99999999999999\n".to_vec()),
        (
            "igot without hash",
            b"igot\nigot x\ngimme\ngimme zz\nfile\ncfile\nuvigot\nuvfile\nuvgimme\nconfig\n".to_vec(),
        ),
        (
            "message without text",
            b"message\nerror\ncookie\npragma\nprivate\nlogin\npush\npull\nreqconfig\n".to_vec(),
        ),
        ("escapes at the end", b"message a\\\nerror \\\n".to_vec()),
        ("nothing", Vec::new()),
        ("NULs", vec![0; 5000]),
        ("one endless word", vec![b'x'; 3 << 20]),
        ("words without end", b"a ".repeat(100_000)),
    ] {
        sync(&place, what, reply);
    }
    place.repository.verify().unwrap();
}

/// Fossil keeps a delta whose basis is yet to come; while it has not come, the repository is not whole.
#[test]
fn a_delta_whose_basis_never_comes_is_found_by_verify() {
    let place = Place::new();
    let hash = sha1(b"some content of no great size\n");
    let dangling = card(&format!("file {hash} {} 12", "b".repeat(40)), b"5\n5:abcde0;xx");
    sync(&place, "delta from nothing", dangling);
    assert_eq!(place.repository.verify().unwrap_err().kind(), Kind::Corrupt);
}

/// It is kept unseen while it waits, so it is looked into when the basis comes; if wrong, it is unknown again.
#[test]
fn a_delta_that_comes_before_its_basis_is_compared_with_its_hash() {
    let place = Place::new();
    let basis = b"some content of no great size\n";
    let delta = |content: &[u8]| card(&format!("file {} {} 11", sha1(content), sha1(basis)), b"5\n5:abcde0;");
    let replies = vec![[delta(b"abcde"), delta(b"forged")].concat(), file(basis)];
    let _ = engine::sync(&place.path(), request(Replies(replies)));
    place.is_well("a delta before its basis");
    let holds = |content: &[u8]| place.repository.store().holds(&sha1(content).parse().unwrap()).unwrap();
    assert!(holds(basis) && holds(b"abcde"));
    assert!(!holds(b"forged"));
    place.repository.verify().unwrap();
}

/// Replies that are nearly right: one or a few bytes of a whole reply changed.
#[test]
fn nearly_right_replies_do_no_harm() {
    let place = Place::new();
    let tip = place.checkout.parent().unwrap();
    let mut whole = b"pragma server-version 22800 20260311 113146\n".to_vec();
    whole.extend(format!("igot {tip}\nigot {} 1\ngimme {tip}\nprivate\n", "c".repeat(64)).into_bytes());
    for (_, text) in wild_artifacts() {
        whole.extend(file(&text));
    }
    whole.extend(cfile(b"content\n", 8));
    let delta = b"3\n3:abc0;";
    whole.extend(card(&format!("file {} {tip} {}", sha1(b"abc"), delta.len()), delta));
    whole.extend(b"message some\\swords\nuvigot x 1 - 0\ncookie abc\n");
    let mut x = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        usize::try_from(x % below as u64).unwrap()
    };
    for _ in 0..300 {
        let mut reply = whole.clone();
        for _ in 0..=next(4) {
            let at = next(reply.len());
            match next(4) {
                0 => reply[at] = b"0129 \n\0\xff-az"[next(11)],
                1 => drop(reply.remove(at)),
                2 => reply.insert(at, b"0 \n9"[next(4)]),
                _ => reply.truncate(at + 1),
            }
        }
        let _ = engine::sync(&place.path(), request(Replies(vec![reply])));
    }
    place.is_well("nearly right replies");
    place.repository.verify().unwrap();
}

/// Names a new artifact in each reply, so that there is always one more thing to ask for.
struct Endless(u32);

impl Transport for Endless {
    fn exchange(&mut self, _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        self.0 += 1;
        (self.0 < 200).then(|| format!("igot {}\n", sha1(&self.0.to_be_bytes())).into_bytes())
    }
}

#[test]
fn a_server_that_never_ends_is_ended_by_the_transport() {
    let place = Place::new();
    assert!(!engine::sync(&place.path(), request(Endless(0))).unwrap());
    place.is_well("an endless server");
}

#[test]
fn a_clone_of_garbage_is_an_error() {
    let place = Place::new();
    let code = "0123456789012345678901234567890123456789";
    let tail = format!("push {code} {code}\nclone_seqno 0\n");
    for (what, body) in [
        ("nothing", Vec::new()),
        ("garbage", b"<html>no\n".to_vec()),
        ("error", b"error no\\ssuch\\sproject\n".to_vec()),
        ("bomb", [cfile(b"abc", u32::MAX), tail.clone().into_bytes()].concat()),
        ("cut", card(&format!("file {code} 500"), b"x")),
    ] {
        let path = place.dir.path().join("clone.fossil");
        let mut clone = request(Replies(vec![body.clone(), body]));
        clone.push = false;
        assert!(engine::clone(&path, clone).is_err(), "{what}");
        for end in ["", "-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(format!("{}{end}", path.display()));
        }
        place.is_well(what);
    }
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
