//! Disks that fail, and power that goes, at each single step of what is written: the repository opens again,
//! nothing acknowledged is missing, nothing half-done shows.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod changes;
mod disk;
#[path = "../support/mod.rs"]
mod support;
mod vfs;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::support::{Fossil, Place, ann, changes, check_in};
use disk::{Image, Loss};
use libsqlite3_sys as sqlite;
use ocx::checkout::{Checkout, How};
use ocx::error::{Kind, Result};
use ocx::name::Hash;
use ocx::repo::{NewRepository, Repository};
use vfs::{Fault, Op, Watch};

/// More than any operation of these tests has steps of one kind.
const STEPS_MAX: usize = 2000;

/// How the repository keeps its transactions whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Journal {
    /// As OCX makes them.
    WriteAhead,
    /// As plain Fossil makes them.
    Rollback,
}

impl Journal {
    const BOTH: [Self; 2] = [Self::WriteAhead, Self::Rollback];
}

/// A checkout with a few files of history, whose every database is watched.
fn place(journal: Journal) -> (Watch, Place) {
    let dir = tempfile::tempdir().unwrap();
    let watch = Watch::over(dir.path());
    let path = dir.path().join("r.fossil");
    let repository = match journal {
        Journal::WriteAhead => Repository::create(&path, &NewRepository { user: ann() }).unwrap(),
        Journal::Rollback => {
            Fossil::Reference.run(dir.path(), dir.path(), &["init", "-A", "ann", "r.fossil"]);
            Repository::open(&path).unwrap()
        }
    };
    let place = Place::of(dir, repository);
    for (path, text) in [("a.txt", "one\n"), ("dir/b.txt", "two\n"), ("c.txt", "three\n")] {
        place.write(path, text.repeat(50));
        place.check_in(path, None).unwrap();
    }
    (watch, place)
}

/// What a power loss left, in a folder of its own, with the files of `place` beside it.
fn restored(place: &Place, image: &Image) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for path in ["a.txt", "dir/b.txt", "c.txt"] {
        let to = dir.path().join("work").join(path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(place.path(path), to).unwrap();
    }
    for (path, bytes) in image {
        fs::write(dir.path().join(path), bytes).unwrap();
    }
    let state = rusqlite::Connection::open(dir.path().join("work/.fslckout")).unwrap();
    let moved = dir.path().join("r.fossil");
    let sql = "UPDATE vvar SET value=?1 WHERE name='repository'";
    assert_eq!(state.execute(sql, [moved.to_str().unwrap()]).unwrap(), 1);
    // What follows from where a checkout lies shall be as there: its id, and the place in the notes.
    let id = place.checkout.id().unwrap();
    state.execute("REPLACE INTO vvar(name,value) VALUES('ocx-id',?1)", [id]).unwrap();
    let repository = rusqlite::Connection::open(&moved).unwrap();
    let (was, is) =
        (where_it_lies(&place.path(".fslckout")), where_it_lies(&dir.path().join("work/.fslckout")));
    repository.execute("UPDATE rcvfrom SET nonce=replace(nonce, ?1, ?2)", [was, is]).unwrap();
    dir
}

/// The words of a note for the database of a checkout.
fn where_it_lies(database: &Path) -> String {
    let meta = fs::metadata(database).unwrap();
    let made = meta.created().unwrap().duration_since(UNIX_EPOCH).unwrap();
    format!("{:x}-{:x}-{:x}", meta.dev(), meta.ino(), made.as_nanos())
}

fn assert_intact(repository: &Path) {
    let db = rusqlite::Connection::open(repository).unwrap();
    let found: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
    Repository::open(repository).unwrap().verify().unwrap();
}

/// Of a check-in `made` after `before` the image has all or nothing, and the checkout knows which; the work goes on.
fn assert_all_or_nothing(
    place: &Place,
    image: &Image,
    before: &Hash,
    made: &Hash,
    acknowledged: bool,
) -> bool {
    let dir = restored(place, image);
    assert_intact(&dir.path().join("r.fossil"));
    let checkout = Checkout::at(&dir.path().join("work")).unwrap();
    let is_there = checkout.repository().store().holds(made).unwrap();
    assert!(is_there || !acknowledged, "an acknowledged check-in is missing");
    if is_there {
        assert_eq!(&checkout.parent().unwrap(), made);
        assert_eq!(changes(&checkout), []);
    } else {
        assert_eq!(&checkout.parent().unwrap(), before);
        assert_eq!(changes(&checkout), [("a.txt".to_owned(), How::Edited)]);
        check_in(&checkout, "once more", None).unwrap();
    }
    fs::write(checkout.root().join("c.txt"), "the next\n").unwrap();
    check_in(&checkout, "the next", None).unwrap();
    assert_eq!(changes(&checkout), []);
    is_there
}

#[test]
fn a_power_loss_at_any_moment_of_a_check_in_leaves_all_of_it_or_nothing() {
    for journal in Journal::BOTH {
        power_goes(journal);
    }
}

fn power_goes(journal: Journal) {
    let (watch, place) = place(journal);
    for round in 0..2 {
        place.write("a.txt", format!("round {round}\n").repeat(100));
        let before = place.checkout.parent().unwrap();
        let (made, pictures) = watch.pictures(|| place.check_in("a round", None).unwrap());
        assert!(pictures.len() > 5, "{} pictures", pictures.len());
        let there = pictures
            .iter()
            .filter(|image| assert_all_or_nothing(&place, image, &before, &made.hash, false))
            .count();
        eprintln!("{journal:?}: {} pictures, the check-in is in {there}", pictures.len());
        assert!(there < pictures.len(), "the first pictures are from before it");
        for loss in [Loss::All, Loss::Some(1), Loss::Some(2), Loss::Some(3), Loss::None] {
            assert_all_or_nothing(&place, &watch.picture(loss), &before, &made.hash, true);
        }
    }
}

/// Every single operation of one kind fails once, in a check-in each, with all after it or alone.
fn each_fails(journal: Journal, op: Op, code: i32) {
    let (watch, place) = place(journal);
    for lasting in [false, true] {
        for nth in 0..STEPS_MAX {
            let count = place.check_ins();
            place.write("a.txt", format!("{op:?} {code} {lasting} {nth}\n").repeat(20));
            let fault = Fault { op, code, nth, lasting };
            let (made, failed) = watch.with(fault, || place.check_in("with a fault", None));
            assert_sound_after(&place, count, &made);
            if failed == 0 {
                made.unwrap();
                eprintln!("{journal:?} {op:?}: {nth} steps");
                assert!(nth > 0, "the fault was never met");
                break;
            }
            assert!(nth + 1 < STEPS_MAX);
        }
    }
    place.assert_whole();
    assert_eq!(place.by(Fossil::Reference, &["changes", "--hash"]), "");
}

/// What the call said is so, and the same work can be done now.
fn assert_sound_after(place: &Place, count: i64, made: &Result<ocx::checkout::CheckedIn>) {
    let checkout = Checkout::at(place.checkout.root()).unwrap();
    match made {
        Ok(made) => {
            assert_eq!(place.check_ins(), count + 1);
            assert_eq!(checkout.parent().unwrap(), made.hash);
        }
        Err(e) => {
            assert!(
                matches!(e.kind(), Kind::Io | Kind::DiskFull | Kind::Busy | Kind::Corrupt),
                "{:?}: {e}",
                e.kind()
            );
            match checkout.recovered() {
                Some(_) => assert_eq!(place.check_ins(), count + 1),
                None => assert_eq!(place.check_ins(), count),
            }
        }
    }
    match check_in(&checkout, "without a fault", None) {
        Ok(_) => assert!(made.is_err()),
        Err(e) => assert_eq!(e.kind(), Kind::Unchanged, "{e}"),
    }
    assert_eq!(place.check_ins(), count + 1);
    assert_eq!(changes(&checkout), []);
}

#[test]
fn each_write_may_fail_or_find_the_disk_full() {
    each_fails(Journal::WriteAhead, Op::Write, sqlite::SQLITE_FULL);
    each_fails(Journal::Rollback, Op::Write, sqlite::SQLITE_IOERR_WRITE);
}

#[test]
fn each_sync_may_fail() {
    for journal in Journal::BOTH {
        each_fails(journal, Op::Sync, sqlite::SQLITE_IOERR_FSYNC);
    }
}

#[test]
fn each_read_may_fail() {
    for journal in Journal::BOTH {
        each_fails(journal, Op::Read, sqlite::SQLITE_IOERR_READ);
    }
}

/// A write-ahead log is there already; a rollback journal comes and goes with each transaction.
#[test]
fn each_making_and_removal_of_a_journal_may_fail() {
    each_fails(Journal::Rollback, Op::Open, sqlite::SQLITE_CANTOPEN);
    each_fails(Journal::Rollback, Op::Remove, sqlite::SQLITE_IOERR_DELETE);
}
