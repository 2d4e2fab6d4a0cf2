//! Bundles that are broken, foreign or forged: each is refused whole, in one line that names what is wrong, and
//! the next good bundle is imported.

use std::fs;
use std::path::Path;

use ocx::bundle::Bundle;
use ocx::bundle::{Import, Selection};
use ocx::error::{Error, Kind};
use ocx::format::packed::pack;
use ocx::name::{Branch, Hash};
use rusqlite::Connection;

use crate::support::ann;
use crate::support::clones::{Clones, add, artifact, count, forge, now};

/// Everything of the repository that an import could change.
fn counts(place: &Clones) -> Vec<i64> {
    ["blob", "delta", "phantom", "event", "tagxref", "plink", "unsent", "rcvfrom", "private"]
        .map(|table| count(place.there.path(), &format!("SELECT count(*) FROM {table}")))
        .to_vec()
}

/// Opening or importing the file fails in one line; nothing has changed, and a good bundle is taken.
#[track_caller]
fn refused(place: &Clones, file: &Path, import: &Import) -> Error {
    let before = counts(place);
    let done = Bundle::open(file).and_then(|bundle| place.there.import_bundle(&bundle, import));
    let Err(e) = done else { panic!("it was imported: {done:?}") };
    let words = e.to_string();
    assert!(!words.contains('\n') && !words.contains("SELECT") && !words.contains("INSERT"), "{words}");
    assert_eq!(counts(place), before, "{words}");
    e
}

#[track_caller]
fn refused_then_good(place: &Clones, file: &str, kind: Kind, words: &str) {
    let e = refused(place, &place.path(file), &Import::by(ann()));
    assert_eq!(e.kind(), kind, "{e}");
    assert!(e.to_string().contains(words), "{e}");
    assert!(e.hint().is_some_and(|hint| hint.ends_with('.')), "{e}");
    let good = place.bundle(&format!("{file}.good"));
    assert!(!place.import(&good).unwrap().check_ins.is_empty());
}

/// A good bundle of `place` under this name, changed by SQL.
fn forged(place: &Clones, name: &str, sql: &str) {
    place.bundle(name);
    forge(&place.path(name), sql);
}

#[test]
fn b01_a_truncated_or_foreign_file_is_refused_in_one_line() {
    let place = Clones::with_history();
    place.bundle("good.bundle");
    let good = fs::read(place.path("good.bundle")).unwrap();
    for (name, bytes) in [("cut", &good[..3000]), ("text", b"hello\n"), ("nothing", b"")] {
        fs::write(place.path(name), bytes).unwrap();
        let e = refused(&place, &place.path(name), &Import::by(ann()));
        assert!(matches!(e.kind(), Kind::Foreign | Kind::Corrupt), "{name}: {e}");
        assert!(Bundle::from_bytes(bytes).is_err(), "{name}");
    }
    fs::copy(place.here.path(), place.path("a repository")).unwrap();
    let e = refused(&place, &place.path("a repository"), &Import::by(ann()));
    assert_eq!(e.kind(), Kind::Foreign);
    assert_eq!(Bundle::open(place.dir.path()).unwrap_err().kind(), Kind::Foreign);
    let good = Bundle::from_bytes(&good).unwrap();
    assert_eq!(place.import(&good).unwrap().check_ins.len(), 12);
}

#[test]
fn b02_a_bundle_of_another_project_is_refused_naming_both() {
    let place = Clones::with_history();
    let code = place.here.store().project_code().unwrap();
    forged(&place, "b", "UPDATE bconfig SET bcvalue='0123456789abcdef' WHERE bcname='project-code'");
    refused_then_good(&place, "b", Kind::Foreign, "0123456789abcdef");
    forged(&place, "b2", "DELETE FROM bconfig");
    let e = refused(&place, &place.path("b2"), &Import::by(ann()));
    assert!(e.to_string().contains(&code), "{e}");
}

#[test]
fn b03_a_missing_basis_is_named() {
    let place = Clones::with_history();
    let missing = "7".repeat(63) + "a";
    forged(&place, "b", &format!("UPDATE bblob SET delta='{missing}' WHERE delta IS NULL"));
    refused_then_good(&place, "b", Kind::NotFound, &missing);
}

#[test]
fn b04_a_basis_without_content_is_refused() {
    let place = Clones::with_history();
    let phantom = "8".repeat(63) + "a";
    let db = Connection::open(place.there.path()).unwrap();
    db.execute("INSERT INTO blob(rcvid,size,uuid,content) VALUES(0,-1,?1,NULL)", [&phantom]).unwrap();
    db.execute("INSERT INTO phantom VALUES(?1)", [db.last_insert_rowid()]).unwrap();
    drop(db);
    forged(&place, "b", &format!("UPDATE bblob SET delta='{phantom}' WHERE delta IS NULL"));
    refused_then_good(&place, "b", Kind::NotFound, "without its content");
}

#[test]
fn b06_imported_check_ins_are_public_and_are_sent() {
    let place = Clones::with_history();
    place.import(&place.bundle("b")).unwrap();
    assert_eq!(count(place.there.path(), "SELECT count(*) FROM private"), 0);
    let unsent = "SELECT count(*) FROM unsent JOIN event ON objid=rid WHERE type='ci'";
    assert_eq!(count(place.there.path(), unsent), 12);
}

#[test]
fn b07_the_same_bundle_twice_is_a_success_that_brings_nothing() {
    let place = Clones::with_history();
    let bundle = place.bundle("b");
    let first = place.import(&bundle).unwrap();
    let before = counts(&place);
    let second = place.import(&bundle).unwrap();
    assert_eq!((second.artifacts, second.present), (0, first.artifacts));
    assert!(second.check_ins.is_empty());
    let after = counts(&place);
    assert_eq!(before[..7], after[..7]);
}

#[test]
fn b09_content_that_has_not_its_hash_is_refused() {
    let place = Clones::with_history();
    let wrong = "6".repeat(60) + "beef";
    forged(
        &place,
        "b",
        &format!("UPDATE bblob SET uuid='{wrong}' WHERE blobid=(SELECT max(blobid) FROM bblob)"),
    );
    refused_then_good(&place, "b", Kind::Corrupt, &wrong);
}

/// A bundle of one's own check-ins on one's own branch is taken, and with any other control artifact it is not.
#[test]
fn b10_control_artifacts_beyond_the_run_are_refused() {
    let place = Clones::with_history();
    let root = place.root();
    let import = Import { only: Some((ann(), Branch::parse("side").unwrap())), ..Import::by(ann()) };
    let parent = place.here.store().resolve("trunk").unwrap();
    // The history has six check-ins on trunk, which are not on the branch.
    let trunk = Selection::range(root, parent);
    place.here.export_bundle(&place.path("trunk"), &trunk).unwrap();
    let e = refused(&place, &place.path("trunk"), &import);
    assert!(e.to_string().contains("on branch `trunk`"), "{e}");
    let bundle = Bundle::open(&place.path("trunk")).unwrap();
    place.import(&bundle).unwrap();

    let files = "F a.txt a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a\n";
    let check_in = |user: &str, tags: &str, parent: &Hash| {
        artifact(&format!("C x\nD {}\n{files}P {parent}\n{tags}U {user}\n", now()))
    };
    let side = "T *branch * side\nT *sym-side *\nT -sym-trunk *\n";
    let good = check_in("ann", side, &parent);
    for (name, content, words) in [
        ("user", check_in("bob", side, &parent), "by `bob`"),
        ("trunk2", check_in("ann", "", &parent), "on branch `trunk`"),
        ("other", check_in("ann", "T *branch * main\n", &parent), "`T *branch * main`"),
        ("tag", artifact(&format!("D 2030-01-01T00:00:00\nT +closed {parent}\nU ann\n")), "no check-in"),
        ("wiki", artifact("D 2030-01-01T00:00:00\nL Page\nU ann\nW 2\nhi\n"), "no check-in"),
        ("stray", b"a file that no check-in has".to_vec(), "not a file"),
    ] {
        let file = place.path(name);
        fs::copy(place.path("trunk"), &file).unwrap();
        forge(&file, "DELETE FROM bblob");
        add(&file, b"");
        add(&file, &good);
        let hash = add(&file, &content);
        let e = refused(&place, &file, &import);
        assert!(e.to_string().contains(words) && e.to_string().contains(hash.as_str()), "{name}: {e}");
        assert_eq!(e.kind(), Kind::Denied, "{name}: {e}");
    }
    assert_eq!(place.there.store().resolve("trunk").unwrap(), parent);
    forge(&place.path("trunk"), "DELETE FROM bblob");
    add(&place.path("trunk"), b"");
    add(&place.path("trunk"), &good);
    let bundle = Bundle::open(&place.path("trunk")).unwrap();
    assert_eq!(place.there.import_bundle(&bundle, &import).unwrap().check_ins, [Hash::of(&good)]);
}

#[test]
fn b10_file_content_that_is_a_control_artifact_is_refused() {
    let place = Clones::with_history();
    place.bundle("b");
    let forged = artifact("C x\nD 2030-01-01T00:00:00\nU boss\n");
    let hash = Hash::of(&forged);
    let parent = place.tip();
    let holder = artifact(&format!("C y\nD 2030-01-01T00:00:00\nF innocent.txt {hash}\nP {parent}\nU ann\n"));
    add(&place.path("b"), &forged);
    add(&place.path("b"), &holder);
    refused_then_good(&place, "b", Kind::Invalid, hash.as_str());
}

#[test]
fn b11_only_two_plain_tables_are_read() {
    let place = Clones::with_history();
    for (name, sql) in [
        ("view", "ALTER TABLE bblob RENAME TO real; CREATE VIEW bblob AS SELECT * FROM real"),
        ("trigger", "CREATE TRIGGER t AFTER INSERT ON bconfig BEGIN SELECT 1; END"),
        ("table", "CREATE TABLE blob(rid)"),
        ("index", "CREATE INDEX i ON bblob(uuid)"),
        (
            "generated",
            "DROP TABLE bblob; CREATE TABLE bblob(blobid INTEGER PRIMARY KEY, uuid TEXT, sz INT, delta ANY,
             notes TEXT, data BLOB AS (zeroblob(1000000)))",
        ),
        ("column", "ALTER TABLE bblob ADD COLUMN more"),
        ("virtual", "DROP TABLE bconfig; CREATE VIRTUAL TABLE bconfig USING fts5(bcname, bcvalue)"),
        (
            "recursive",
            "DROP TABLE bconfig; CREATE VIEW bconfig AS WITH RECURSIVE n(bcname, bcvalue) AS
             (SELECT 1, 2 UNION ALL SELECT bcname+1, 2 FROM n) SELECT * FROM n",
        ),
    ] {
        forged(&place, name, sql);
        let e = refused(&place, &place.path(name), &Import::by(ann()));
        assert_eq!(e.kind(), Kind::Foreign, "{name}: {e}");
        assert!(e.to_string().contains("not a plain bundle"), "{name}: {e}");
    }
    assert_eq!(place.import(&place.bundle("good")).unwrap().check_ins.len(), 12);
}

#[test]
fn b12_a_delta_whose_lengths_overflow_is_refused() {
    let place = Clones::with_history();
    place.bundle("b");
    let db = Connection::open(place.path("b")).unwrap();
    let basis: i64 =
        db.query_row("SELECT blobid FROM bblob WHERE delta IS NULL", [], |row| row.get(0)).unwrap();
    let sql = "INSERT INTO bblob(uuid,sz,delta,notes,data) VALUES(?1,?2,?3,'',?4)";
    for (i, delta) in ["3~~~~~\n1@0,0;", "5\n3~~~~~@3~~~~~,0;", "5\n5@3~~~~~,0;"].iter().enumerate() {
        db.execute("DELETE FROM bblob WHERE notes=''", []).unwrap();
        let (hash, data) = (Hash::of(&[i.to_le_bytes()[0]]), pack(delta.as_bytes()).unwrap());
        db.execute(sql, (hash.as_str(), 5, basis, data)).unwrap();
        let e = refused(&place, &place.path("b"), &Import::by(ann()));
        assert!(matches!(e.kind(), Kind::Corrupt | Kind::TooLarge), "{e}");
    }
}

#[test]
fn b13_a_declared_gigabyte_is_refused_before_inflating() {
    let place = Clones::with_history();
    let sql = "UPDATE bblob SET data=CAST(x'FFFFFFF0' || substr(data, 5) AS BLOB), sz=10
               WHERE blobid=(SELECT blobid FROM bblob WHERE delta IS NULL)";
    forged(&place, "b", sql);
    refused_then_good(&place, "b", Kind::TooLarge, "declares 4294967280 bytes");
    forged(&place, "b2", "UPDATE bblob SET sz=4000000000");
    let e = refused(&place, &place.path("b2"), &Import::by(ann()));
    assert_eq!(e.kind(), Kind::TooLarge);
    forged(&place, "b3", "UPDATE bblob SET sz=-1");
    assert_eq!(refused(&place, &place.path("b3"), &Import::by(ann())).kind(), Kind::Invalid);
}

#[test]
fn b14_a_control_artifact_with_a_missing_field_leaves_the_repository_answering() {
    let place = Clones::with_history();
    place.bundle("b");
    let parent = place.tip();
    for cards in [
        format!("C x\nD 2030-01-01T00:00:00\nF name\nP {parent}\nU ann\n"),
        format!("D 2030-01-01T00:00:00\nP {parent}\nU ann\n"),
        "D 2030-01-01T00:00:00\nU ann\n".to_owned(),
        format!("B {parent}\nC x\nD 2030-01-01T00:00:00\nF a.txt\nP {parent}\nU ann\n"),
    ] {
        add(&place.path("b"), &artifact(&cards));
    }
    // Refused or stored: what matters is that everything still answers.
    let _ = place.import(&Bundle::open(&place.path("b")).unwrap());
    place.import(&place.bundle("good")).unwrap();
    assert!(place.fossil(&["timeline", "-R", "there.fossil"]).contains("a better comment"));
    place.there.verify().unwrap();
    place.there.rebuild().unwrap();
}

#[test]
fn b15_a_missing_bundle_is_told_and_not_made() {
    let place = Clones::new();
    let path = place.path("nosuch.bundle");
    assert_eq!(Bundle::open(&path).unwrap_err().kind(), Kind::NotFound);
    assert!(!path.exists());
}

#[test]
fn b16_have_is_a_full_hash_of_a_check_in_that_is_here() {
    for text in ["zzzz", "abcd", "trunk", ""] {
        assert_eq!(Hash::parse(text).unwrap_err().kind(), Kind::Invalid, "{text}");
    }
    let place = Clones::with_history();
    let unknown = Hash::of(b"unknown");
    let file = place.here.store().files(&place.tip()).unwrap().values().next().unwrap().hash;
    for hash in [unknown, file] {
        for selection in [
            Selection::descendants(hash),
            Selection::one(place.tip()).for_one_who_has(hash),
            Selection::one(hash),
        ] {
            let e = place.here.export_bundle(&place.path("b"), &selection).unwrap_err();
            assert_eq!(e.kind(), Kind::NotFound, "{selection:?}: {e}");
            assert!(!place.path("b").exists());
        }
    }
}

#[test]
fn s09_a_public_check_in_on_a_private_parent_is_refused() {
    let place = Clones::with_history();
    place.import(&place.bundle("start")).unwrap();
    place.edit("a.txt", "new\n");
    let made = place.save("later", None);
    place.here.export_bundle(&place.path("b"), &Selection::one(made.hash)).unwrap();
    // The parent is private in the receiving repository.
    let db = Connection::open(place.there.path()).unwrap();
    let tip = "INSERT INTO private SELECT rid FROM blob WHERE uuid=?1";
    let parent = place.here.store().check_in(&made.hash).unwrap().parents[0];
    db.execute(tip, [parent.as_str()]).unwrap();
    drop(db);
    let e = refused(&place, &place.path("b"), &Import::by(ann()));
    assert_eq!(e.kind(), Kind::Denied);
    assert!(e.to_string().contains(parent.as_str()), "{e}");
    // And nothing private goes out.
    let all = Selection::descendants(place.root());
    let exported = place.there.export_bundle(&place.path("all"), &all).unwrap();
    assert!(!exported.check_ins.contains(&parent));
    let alone = place.there.export_bundle(&place.path("alone"), &Selection::one(parent)).unwrap_err();
    assert_eq!(alone.kind(), Kind::Denied);
}

#[test]
fn c19_a_content_over_the_limit_is_refused_with_the_limit() {
    let place = Clones::with_history();
    forged(&place, "b", "UPDATE bblob SET sz=2254857830 WHERE blobid=(SELECT max(blobid) FROM bblob)");
    refused_then_good(&place, "b", Kind::TooLarge, "more than 999934464");
}

#[test]
fn a_shunned_artifact_is_not_taken_in() {
    let place = Clones::with_history();
    let tip = place.tip();
    place.bundle("b");
    let db = Connection::open(place.there.path()).unwrap();
    db.execute("INSERT INTO shun(uuid,mtime) VALUES(?1,1)", [tip.as_str()]).unwrap();
    drop(db);
    let e = refused(&place, &place.path("b"), &Import::by(ann()));
    assert_eq!(e.kind(), Kind::Denied);
    assert!(e.to_string().contains(tip.as_str()), "{e}");
}
