//! What Fossil's linking code does with hostile values, handed to it without the judge: the process lives, and the
//! repository stays whole. What only the judge stands against is tried in `fuzz/values.rs` and `transfer`.

use std::path::Path;
use std::time::Instant;

use ocx::engine;
use ocx::error::Result;
use ocx::format::packed;
use ocx::name::Hash;
use rusqlite::Connection;

use super::fuzz::sealed;
use super::place::{Place, integrity, save};

const DATE: &str = "D 2026-11-30T10:23:45\n";

/// So many, or few under a sanitizer, where everything is slow and no call may wait for another for a minute.
fn scaled(count: u32) -> u32 {
    if option_env!("OCX_SANITIZE").is_some() { count / 20 } else { count }
}

fn link(place: &Place, artifacts: &[Vec<u8>]) -> Result<Vec<Hash>> {
    link_into(&place.path(), artifacts)
}

/// Stores artifacts as they are, and has them linked in as one set.
pub fn link_into(path: &Path, artifacts: &[Vec<u8>]) -> Result<Vec<Hash>> {
    let hashes: Vec<Hash> = artifacts.iter().map(|text| Hash::of(text)).collect();
    engine::close(path).unwrap();
    let db = Connection::open(path).unwrap();
    let mut rids = Vec::new();
    for (text, hash) in artifacts.iter().zip(&hashes) {
        let sql = "INSERT INTO blob(rcvid,size,uuid,content) VALUES(1,?1,?2,?3)
                   ON CONFLICT(uuid) DO UPDATE SET size=excluded.size, content=excluded.content RETURNING rid";
        let row = (i64::try_from(text.len()).unwrap(), hash.as_str(), packed::pack(text).unwrap());
        let rid: i64 = db.query_row(sql, row, |row| row.get(0)).unwrap();
        db.execute("DELETE FROM phantom WHERE rid=?1", [rid]).unwrap();
        rids.push(rid);
    }
    drop(db);
    engine::transaction(path, "ann", move |t| {
        t.crosslink(&rids.iter().map(|rid| (*rid, &b""[..])).collect::<Vec<_>>())
    })?;
    Ok(hashes)
}

fn text(cards: &str) -> Vec<u8> {
    sealed(cards.as_bytes())
}

/// A circle of `plink`: a check-in that is its own ancestor.
pub fn circles(db: &Connection) -> i64 {
    let sql = "WITH RECURSIVE up(cid, pid) AS (SELECT cid, pid FROM plink
                 UNION SELECT up.cid, plink.pid FROM up JOIN plink ON plink.cid=up.pid)
               SELECT count(*) FROM up WHERE cid=pid";
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn count(place: &Place, sql: &str) -> i64 {
    Connection::open(place.path()).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Nothing is damaged, and check-ins can still be made. They go to a branch of their own: what was linked in may have
/// gone on from the tip.
fn lives(place: &Place, after: &str) {
    assert_eq!(integrity(&place.path()), "ok", "after {after}");
    assert_eq!(circles(&Connection::open(place.path()).unwrap()), 0, "after {after}");
    let branch = format!("after-{}", count(place, "SELECT count(*) FROM blob"));
    save(&place.checkout, &branch, Some(&branch)).unwrap_or_else(|e| panic!("after {after}: {e}"));
    let out = place.fossil(&["timeline", &branch, "-n", "1"]).unwrap();
    assert!(out.out.contains(&branch), "after {after}: {out:?}");
}

fn parents(place: &Place, of: &Hash) -> Vec<Hash> {
    place.repository.store().check_in(of).unwrap().parents
}

#[test]
fn a_parent_tag_makes_no_circle() {
    let place = Place::new();
    let first = place.checkout.parent().unwrap();
    let second = place.save("second").unwrap().hash;
    let third = place.save("third").unwrap().hash;
    let tag = |of: &Hash, value: &str| text(&format!("{DATE}T +parent {of} {value}\nU ann\n"));
    for (what, of, value) in [
        ("itself", &second, second.to_string()),
        ("its child", &second, third.to_string()),
        ("the last", &first, third.to_string()),
        ("a right one and its child", &second, format!("{first}\\s{third}")),
    ] {
        let before = parents(&place, of);
        link(&place, &[tag(of, &value)]).unwrap();
        assert_eq!(parents(&place, of), before, "{what}");
        assert_eq!(circles(&Connection::open(place.path()).unwrap()), 0, "{what}");
        lives(&place, what);
    }
    place.repository.rebuild().unwrap();
    assert_eq!(circles(&Connection::open(place.path()).unwrap()), 0);
    lives(&place, "a rebuild over circles");
}

/// By itself, each step is right: only the last one closes the circle.
#[test]
fn a_parent_tag_makes_no_circle_with_what_comes_later() {
    let place = Place::new();
    let first = place.checkout.parent().unwrap();
    let second = place.save("second").unwrap().hash;
    let late = text(&format!("C late\n{DATE}P {second}\nU ann\n"));
    let child = text(&format!("C child\n{DATE}P {}\nU ann\n", Hash::of(&late)));
    let child_hash = link(&place, &[child]).unwrap()[0];
    for parent in [Hash::of(&late), child_hash] {
        link(&place, &[text(&format!("{DATE}T +parent {second} {parent}\nU ann\n"))]).unwrap();
        assert_eq!(parents(&place, &second), [first]);
    }
    link(&place, &[late]).unwrap();
    assert_eq!(parents(&place, &second), [first]);
    assert_eq!(circles(&Connection::open(place.path()).unwrap()), 0);
    lives(&place, "a late circle");
}

/// Fossil's function then reads the first hash of a card that is not there.
#[test]
fn a_check_in_without_parents_gets_one_parent_by_tag_and_not_two() {
    let place = Place::new();
    let first = place.checkout.parent().unwrap();
    let second = place.save("second").unwrap().hash;
    let root = text(&format!("C root\n{DATE}U ann\n"));
    let late = text(&format!("C late\n{DATE}P {first}\nU ann\n"));
    let of = link(&place, &[root]).unwrap()[0];
    for value in [format!("{first}\\s{}", Hash::of(&late)), format!("{first}\\s{second}")] {
        link(&place, &[text(&format!("{DATE}T +parent {of} {value}\nU ann\n"))]).unwrap();
    }
    link(&place, &[late]).unwrap();
    assert!(parents(&place, &of).is_empty());
    lives(&place, "two parents of a root");
    link(&place, &[text(&format!("D 2026-11-30T10:24:45\nT +parent {of} {second}\nU ann\n"))]).unwrap();
    assert_eq!(parents(&place, &of), [second]);
    lives(&place, "one parent of a root");
}

#[test]
fn a_parent_tag_that_came_first_counts_once_its_parents_are_here() {
    let place = Place::new();
    let first = place.checkout.parent().unwrap();
    let second = place.save("second").unwrap().hash;
    let late = text(&format!("C late\n{DATE}P {first}\nU ann\n"));
    link(&place, &[text(&format!("{DATE}T +parent {second} {}\nU ann\n", Hash::of(&late)))]).unwrap();
    assert_eq!(parents(&place, &second), [first]);
    let late = link(&place, &[late]).unwrap()[0];
    assert_eq!(parents(&place, &second), [late]);
    place.repository.rebuild().unwrap();
    assert_eq!(parents(&place, &second), [late]);
    lives(&place, "a new parent");
}

/// Each of these is refused or left unlinked by the judge. Whoever stored them unjudged must not end the process.
#[test]
fn hostile_values_of_each_kind_end_no_process() {
    let place = Place::new();
    let tip = place.checkout.parent().unwrap();
    let no = "0123456789abcdef0123456789abcdef01234567";
    let ticket = |fields: &str| text(&format!("{DATE}{fields}K {no}\nU ann\n"));
    let tags = |sign: char, n: usize| {
        (0..n).fold(String::new(), |text, n| text + &format!("T {sign}x{n:05} {tip}\n"))
    };
    let members = (0..scaled(200_000)).fold(String::new(), |text, n| text + &format!("M {n:040x}\n"));
    for (what, artifact) in [
        ("no comment", text(&format!("{DATE}P {tip}\nU ann\n"))),
        ("no date that lasts", text(&format!("C x\nD now\nP {tip}\nU ann\n"))),
        ("the year 9999", text(&format!("C x\nD 9999-12-31T23:59:59\nP {tip}\nU ann\n"))),
        ("before our time", text(&format!("C x\nD -4713-12-31\nP {tip}\nU ann\n"))),
        ("a baseline that is nowhere", text(&format!("B {no}\nC x\n{DATE}P {tip}\nU ann\n"))),
        ("cherrypicks of nothing", text(&format!("C x\n{DATE}P {tip}\nQ +{no}\nQ -{no} {no}\nU ann\n"))),
        (
            "a prior name that was none",
            text(&format!("C x\n{DATE}F b.txt {no} w gone.txt\nP {tip}\nU ann\n")),
        ),
        ("the same parent twice", text(&format!("C x\n{DATE}P {tip} {tip}\nU ann\n"))),
        ("many tags", text(&format!("{DATE}{}U ann\n", tags('+', 3000)))),
        ("many propagating tags", text(&format!("{DATE}{}U ann\n", tags('*', 3000)))),
        ("a private tag", text(&format!("{DATE}T +private {no}\nU ann\n"))),
        ("a date that is cancelled", text(&format!("{DATE}T -date {no}\nU ann\n"))),
        ("a date without a value", text(&format!("{DATE}T +date {no}\nU ann\n"))),
        ("a page's tag", text(&format!("{DATE}T +wiki-Home {tip} 5\nU ann\n"))),
        ("a page after it", text(&format!("{DATE}L Home\nU ann\nW 2\nhi\n"))),
        ("a page that follows a check-in", text(&format!("{DATE}L Other\nP {tip}\nU ann\nW 2\nhi\n"))),
        ("a ticket's own columns", ticket("J +tkt_id 1\nJ tkt_id 7\nJ tkt_uuid x\n")),
        ("a field twice", ticket("J +title a\nJ title b\n")),
        ("a field that is SQL", ticket("J \"title\"=1;-- a\nJ ');-- b\nJ title=(select b\n")),
        ("a field of many quotes", ticket("J title ''';DROP\\sTABLE\\sticket;--\n")),
        ("a technote of no time", text(&format!("C x\n{DATE}E 0001-01-01 {no}\nU ann\nW 1\na\n"))),
        (
            "a technote of all time",
            text(&format!("C x\n{DATE}E 9999-12-31T23:59:59 {no}\nP {tip}\nU ann\nW 1\na\n")),
        ),
        ("an attachment to nothing", text(&format!("A a.txt Nowhere {no}\n{DATE}U ann\n"))),
        ("an attachment to a check-in", text(&format!("A a.txt {tip} {no}\n{DATE}U ann\n"))),
        ("a post that answers a check-in", text(&format!("{DATE}G {tip}\nI {tip}\nU ann\nW 2\nhi\n"))),
        ("a post that answers nothing", text(&format!("{DATE}G {no}\nI {no}\nU ann\nW 2\nhi\n"))),
        ("a large cluster", text(&members)),
        ("a NUL", text(&format!("C x\n{DATE}P {tip}\0{tip}\nU ann\n"))),
        (
            "no UTF-8",
            sealed(&[b"C \xff\n", DATE.as_bytes(), b"F \xfe ", no.as_bytes(), b"\nU \xff\n"].concat()),
        ),
    ] {
        let _ = link(&place, &[artifact]).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(
            count(&place, "SELECT count(*) FROM (SELECT 1 FROM event GROUP BY objid HAVING count(*)>1)"),
            0,
            "{what}"
        );
    }
    lives(&place, "all of them");
    place.repository.rebuild().unwrap();
    lives(&place, "a rebuild over all of them");
}

/// Fossil stores the name as it stands and looks it up in lowercase, so that the second one is a failure: reason
/// enough for the judge to keep it out.
#[test]
fn a_hash_in_uppercase_is_one_that_fossils_code_does_not_find_again() {
    let place = Place::new();
    let upper = "0123456789ABCDEF0123456789ABCDEF01234567";
    let tag = |n: u32| text(&format!("D 2026-11-30T10:23:{n:02}\nT +note {upper}\nU ann\n"));
    link(&place, &[tag(1)]).unwrap();
    assert!(link(&place, &[tag(2)]).is_err());
    lives(&place, "a hash in uppercase");
}

/// Each of a chain of baselines amends the one before; Fossil's code goes one step.
#[test]
fn a_chain_of_baselines_is_one_step_deep() {
    let place = Place::new();
    let mut before = place.checkout.parent().unwrap();
    let mut chain = Vec::new();
    for n in 0..scaled(2000) {
        let artifact = text(&format!("B {before}\nC {n}\n{DATE}P {before}\nU ann\n"));
        before = Hash::of(&artifact);
        chain.push(artifact);
    }
    chain.reverse();
    link(&place, &chain).unwrap();
    lives(&place, "a chain of baselines");
}

/// Two deltas on each, of which the second goes on: Fossil's own function calls itself for it.
fn store_chain(db: &Connection, depth: u32) -> Vec<u8> {
    let content = |n: u32| format!("{n:8} {}\n", "the same in each ".repeat(10)).into_bytes();
    // Copies all but the first word of the basis.
    let delta = |n: u32| {
        let text = content(n);
        let (size, all) = (base64(text.len()), base64(text.len() - 8));
        format!("{size}\n8:{n:8}{all}@8,{};", fossil_sum(&text)).into_bytes()
    };
    let insert = |n: u32, source: i64, packed: Vec<u8>| {
        let text = content(n);
        let sql = "INSERT INTO blob(rcvid,size,uuid,content) VALUES(1,?1,?2,?3)";
        db.prepare_cached(sql)
            .unwrap()
            .execute((i64::try_from(text.len()).unwrap(), Hash::of(&text).as_str(), packed))
            .unwrap();
        let rid = db.last_insert_rowid();
        db.prepare_cached("INSERT INTO delta(rid,srcid) VALUES(?1,?2)")
            .unwrap()
            .execute([rid, source])
            .unwrap();
        rid
    };
    let first = content(0);
    db.execute("INSERT INTO blob(rcvid,size,uuid) VALUES(0,-1,?1)", [Hash::of(&first).as_str()]).unwrap();
    let mut basis = db.last_insert_rowid();
    db.execute("INSERT INTO phantom VALUES(?1)", [basis]).unwrap();
    for n in 0..depth {
        insert(2 * n + 1, basis, packed::pack(&delta(2 * n + 1)).unwrap());
        basis = insert(2 * n + 2, basis, packed::pack(&delta(2 * n + 2)).unwrap());
    }
    first
}

/// A number as deltas have it.
fn base64(n: usize) -> String {
    const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";
    let high = if n >= 64 { base64(n / 64) } else { String::new() };
    high + &char::from(DIGITS[n % 64]).to_string()
}

/// The sum at the end of a delta.
fn fossil_sum(text: &[u8]) -> String {
    let word = |part: &[u8]| {
        part.iter().enumerate().fold(0u32, |sum, (n, byte)| sum | u32::from(*byte) << (24 - 8 * n))
    };
    base64(text.chunks(4).fold(0u32, |sum, part| sum.wrapping_add(word(part))) as usize)
}

#[test]
fn v11_a_chain_of_contents_that_waits_for_its_basis_is_linked_in_in_constant_stack() {
    let depth = scaled(50_000);
    let place = Place::new();
    engine::close(&place.path()).unwrap();
    let mut db = Connection::open(place.path()).unwrap();
    let transaction = db.transaction().unwrap();
    let first = store_chain(&transaction, depth);
    transaction.commit().unwrap();
    drop(db);
    let begun = Instant::now();
    place.save(&String::from_utf8(first).unwrap()).unwrap();
    // Much too long for anything but work that grows with the square.
    assert!(begun.elapsed().as_secs() < 600, "{:?}", begun.elapsed());
    assert_eq!(count(&place, "SELECT count(*) FROM phantom"), 0);
    lives(&place, "a chain");
}

/// A ticket change and an attachment wait; the first may be linked in only between two marks, the second only once.
#[test]
fn v11_what_waits_is_linked_in_once_whatever_its_kind() {
    let place = Place::new();
    let no = "0123456789abcdef0123456789abcdef01234567";
    let page = format!("{DATE}L Page\nU ann\nW 400\n{}\n", "a".repeat(400));
    let waiting = [
        text(&format!("{DATE}J title x\nK {no}\nU ann\n")),
        text(&format!("A a.txt Page {no}\n{DATE}U ann\n")),
        text(&page),
    ];
    link(&place, &waiting).unwrap();
    let before = count(&place, "SELECT count(*) FROM event");
    // They become deltas from a content that is not here, and unknown to the derived tables but for one.
    let basis = "the basis that is yet to come\n".repeat(3);
    let db = Connection::open(place.path()).unwrap();
    engine::close(&place.path()).unwrap();
    db.execute("INSERT INTO blob(rcvid,size,uuid) VALUES(0,-1,?1)", [Hash::of(basis.as_bytes()).as_str()])
        .unwrap();
    let source = db.last_insert_rowid();
    db.execute("INSERT INTO phantom VALUES(?1)", [source]).unwrap();
    for text in &waiting {
        let delta =
            format!("{}\n{}:{}", base64(text.len()), base64(text.len()), String::from_utf8_lossy(text));
        let delta = format!("{delta}{};", fossil_sum(text));
        let hash = Hash::of(text);
        let packed = packed::pack(delta.as_bytes()).unwrap();
        db.execute("UPDATE blob SET content=?1 WHERE uuid=?2", (packed, hash.as_str())).unwrap();
        db.execute("INSERT INTO delta SELECT rid, ?1 FROM blob WHERE uuid=?2", (source, hash.as_str()))
            .unwrap();
    }
    db.execute(
        "DELETE FROM event WHERE type IN ('t','w') AND objid NOT IN (SELECT attachid FROM attachment)",
        [],
    )
    .unwrap();
    drop(db);
    place.save(&basis).unwrap();
    assert_eq!(count(&place, "SELECT count(*) FROM event"), before + 1);
    assert_eq!(count(&place, "SELECT count(*) FROM attachment"), 1);
    lives(&place, "what waited");
}
