//! The faults of plain Fossil with bundles, each shown beside OCX doing it right.

use std::fs;

use ocx::bundle::Bundle;
use ocx::bundle::Selection;
use ocx::error::Kind;
use ocx::format::packed::pack;
use ocx::name::{Branch, Hash};
use rusqlite::Connection;

use crate::support::Fossil;
use crate::support::clones::{Clones, add, artifact, assert_whole, count, derived, forge, now, said, text};

const CHECK_INS: &str = "SELECT count(*) FROM event WHERE type='ci'";

/// Plain Fossil takes only rows whose basis is new too, and says nothing of the others.
#[test]
fn no_row_is_dropped_because_its_basis_is_here_already() {
    let place = Clones::with_history();
    place.here.export_bundle(&place.path("tip"), &Selection::one(place.tip())).unwrap();
    let bundle = place.bundle("all");
    let import = |file: &str, repository: &str| {
        place.fossil(&["bundle", "import", "--publish", file, "-R", repository]);
    };
    fs::copy(place.there.path(), place.path("plain.fossil")).unwrap();
    import("tip", "plain.fossil");
    import("all", "plain.fossil");
    let dropped = count(&place.path("plain.fossil"), CHECK_INS);
    assert!(dropped < 13, "plain Fossil takes all {dropped}: this test shows nothing any more");

    place.import(&Bundle::open(&place.path("tip")).unwrap()).unwrap();
    let imported = place.import(&bundle).unwrap();
    assert_eq!(imported.check_ins.len(), 11);
    assert_eq!(count(place.there.path(), CHECK_INS), 13);
    assert_eq!(count(place.there.path(), "SELECT count(*) FROM phantom"), 0);
    assert_eq!(count(place.there.path(), "SELECT count(*) FROM blob WHERE size<0"), 0);
    assert_whole(&place, place.there.path());
    assert_eq!(derived(place.here.path()), derived(place.there.path()));
}

/// Plain Fossil takes as basis what has the highest number, on whatever branch that is.
#[test]
fn a_bundle_builds_only_on_what_its_receiver_holds() {
    let place = Clones::new();
    place.edit("a.txt", &text(1));
    let base = place.save("base", None).hash;
    place.import(&place.bundle("start")).unwrap();
    place.edit("a.txt", &text(2));
    place.save("elsewhere", Some("other"));
    place.checkout.update(base.as_str()).unwrap();
    place.edit("a.txt", &text(3));
    place.save("wanted", Some("side"));

    place.fossil(&["bundle", "export", "plain", "--branch", "side", "-R", "here.fossil"]);
    let plain =
        place.by(Fossil::Reference, &["bundle", "import", "--publish", "plain", "-R", "there.fossil"]);
    assert!(!plain.status.success(), "plain Fossil can import it: this test shows nothing any more");

    let side = Selection::branch(Branch::parse("side").unwrap());
    for (name, selection) in [("ours", side.clone()), ("lean", side.for_one_who_has(base))] {
        place.here.export_bundle(&place.path(name), &selection).unwrap();
        place.import(&Bundle::open(&place.path(name)).unwrap()).unwrap();
    }
    assert_eq!(count(place.there.path(), CHECK_INS), 3);
    assert_whole(&place, place.there.path());
}

/// Plain Fossil adds to the file, and what has a number that is taken is lost.
#[test]
fn an_existing_file_is_never_written_to() {
    let place = Clones::with_history();
    place.bundle("b");
    let before = fs::read(place.path("b")).unwrap();
    let again = place.here.export_bundle(&place.path("b"), &Selection::one(place.tip())).unwrap_err();
    assert_eq!(again.kind(), Kind::Exists);
    assert_eq!(
        Bundle::open(&place.path("b")).unwrap().save_wire(&place.path("b")).unwrap_err().kind(),
        Kind::Exists
    );
    assert_eq!(fs::read(place.path("b")).unwrap(), before);
    let left: Vec<_> = fs::read_dir(place.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".ocx-tmp-")), "{left:?}");
}

/// A delta that gives `content` whatever its basis is.
fn delta(content: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";
    let number = |mut value: u32| {
        let mut digits = Vec::new();
        loop {
            digits.insert(0, DIGITS[(value & 63) as usize]);
            value >>= 6;
            if value == 0 {
                return String::from_utf8(digits).unwrap();
            }
        }
    };
    let sum = content.chunks(4).fold(0_u32, |sum, chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        sum.wrapping_add(u32::from_be_bytes(word))
    });
    let size = number(u32::try_from(content.len()).unwrap());
    [format!("{size}\n{size}:").as_bytes(), content, format!("{};", number(sum)).as_bytes()].concat()
}

/// Plain Fossil keeps a statement and a stack frame open for each level.
#[test]
fn a_chain_of_nine_thousand_deltas_is_taken_in() {
    const DEPTH: i64 = 9_000;
    let place = Clones::with_history();
    place.bundle("b");
    let content = |i: i64| format!("version {i} of a file\n").into_bytes();
    {
        let mut db = Connection::open(place.path("b")).unwrap();
        let all = db.transaction().unwrap();
        all.execute("DELETE FROM bblob", []).unwrap();
        let sql = "INSERT INTO bblob(blobid,uuid,sz,delta,notes,data) VALUES(?1,?2,?3,?4,'',?5)";
        // The deepest comes first: no order of rows is relied on.
        for i in (0..DEPTH).rev() {
            let (bytes, basis) = (content(i), (i > 0).then_some(DEPTH - i + 1));
            let data = pack(&if i == 0 { bytes.clone() } else { delta(&bytes) }).unwrap();
            let hash = Hash::of(&bytes);
            let size = i64::try_from(bytes.len()).unwrap();
            all.execute(sql, (DEPTH - i, hash.as_str(), size, basis, data)).unwrap();
        }
        all.commit().unwrap();
    }
    let bundle = Bundle::open(&place.path("b")).unwrap();
    let imported = place.import(&bundle).unwrap();
    assert_eq!(i64::try_from(imported.artifacts).unwrap(), DEPTH);
    let last = Hash::of(&content(DEPTH - 1));
    assert_eq!(place.there.store().content(&last).unwrap(), content(DEPTH - 1));
}

#[test]
fn deltas_that_run_in_a_circle_are_refused_at_once() {
    let place = Clones::with_history();
    for (name, sql) in [
        ("itself", "UPDATE bblob SET delta=blobid"),
        ("zero", "UPDATE bblob SET blobid=0, delta=0 WHERE blobid=(SELECT max(blobid) FROM bblob)"),
        ("two", "UPDATE bblob SET delta=(SELECT max(blobid) FROM bblob) WHERE delta IS NULL"),
        ("outside", "UPDATE bblob SET delta=99999 WHERE delta IS NULL"),
    ] {
        place.bundle(name);
        forge(&place.path(name), sql);
        assert_eq!(Bundle::open(&place.path(name)).unwrap_err().kind(), Kind::Invalid, "{name}");
    }
}

/// The column has no type of its own, so SQLite turns such a hash into a number, and the hash is lost.
#[test]
fn a_basis_whose_hash_has_become_a_number_is_refused() {
    let place = Clones::with_history();
    place.bundle("b");
    forge(
        &place.path("b"),
        &format!("UPDATE bblob SET delta='{}' WHERE delta IS NULL", "1234567890".repeat(4)),
    );
    let e = Bundle::open(&place.path("b")).unwrap_err();
    assert_eq!(e.kind(), Kind::Invalid);
    assert!(e.to_string().contains("is no artifact hash"), "{e}");
}

#[test]
fn nothing_of_a_bundle_reaches_the_terminal_as_a_command() {
    let place = Clones::new();
    place.edit("a.txt", "x\n");
    place.save("evil \u{1b}[2J\u{1b}]0;title\u{7} comment", None);
    place.bundle("b");
    forge(&place.path("b"), "UPDATE bblob SET notes=char(27)||'[2J'");
    let listed = said(&place.ocx(&["bundle", "ls", "b"]));
    assert!(listed.contains("evil") && !listed.contains(['\u{1b}', '\u{7}']), "{listed:?}");
}

/// Plain Fossil's process ends with the first, and loses or hides what the others name.
#[test]
fn v01_from_a_person_too_a_tag_whose_value_fossil_would_trust_is_refused_whole() {
    let place = Clones::with_history();
    let root = place.root();
    for (n, (sigil, card)) in [
        ('+', "parent".to_owned()),
        ('+', format!("parent {root} x")),
        ('*', "parent x".to_owned()),
        ('+', "date".to_owned()),
        ('+', "date now".to_owned()),
        ('-', "date".to_owned()),
        ('+', "private".to_owned()),
        ('-', "private".to_owned()),
    ]
    .into_iter()
    .enumerate()
    {
        let (name, value) = card.split_once(' ').unwrap_or((&card, ""));
        let value = if value.is_empty() { String::new() } else { format!(" {}", value.replace(' ', "\\s")) };
        let cards = [
            format!("D {}\nT {sigil}{name} {root}{value}\nU ann\n", now()),
            format!("C x\nD {}\nP {root}\nT {sigil}{name} *{value}\nU ann\n", now()),
        ];
        for (kind, cards) in cards.into_iter().enumerate() {
            let file = format!("b{n}{kind}");
            place.bundle(&file);
            let hash = add(&place.path(&file), &artifact(&cards));
            let before = derived(place.there.path());
            let e = place.import(&Bundle::open(&place.path(&file)).unwrap()).unwrap_err();
            assert_eq!(e.kind(), Kind::Invalid, "{cards}: {e}");
            let words = [hash.as_str(), &format!("`T {sigil}{name} ")];
            assert!(words.iter().all(|words| e.to_string().contains(words)), "{cards}: {e}");
            assert_eq!(derived(place.there.path()), before, "{cards}");
        }
    }
    assert_eq!(count(place.there.path(), "SELECT count(*) FROM private"), 0);
    place.import(&place.bundle("good")).unwrap();
    assert_whole(&place, place.there.path());
}
