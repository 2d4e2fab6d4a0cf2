//! What a bundle may cost: it is bounded by the bytes that came, and a cancel ends the work on it.

use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ocx::bundle::{Bundle, Import, Selection};
use ocx::cancel::Cancel;
use ocx::engine::with_cancel;
use ocx::error::{Error, Kind};
use ocx::format::packed::pack;
use ocx::name::Hash;
use rusqlite::Connection;

use crate::support::ann;
use crate::support::clones::{Clones, assert_whole, count};

const MIB: usize = 1 << 20;

#[track_caller]
fn assert_too_large(refused: Result<impl Sized, Error>) {
    let refused = refused.err().expect("it is taken");
    assert_eq!(refused.kind(), Kind::TooLarge, "{refused}");
    assert!(refused.hint().is_some(), "{refused} says nothing to do");
}

/// Adds an artifact that claims a size, with data that need not fit it.
fn claim(bundle: &Connection, number: usize, size: usize) {
    let sql = "INSERT INTO bblob(uuid,sz,delta,notes,data) VALUES(?1,?2,NULL,'',?3)";
    let hash = Hash::of(&number.to_be_bytes());
    let size = i64::try_from(size).unwrap();
    bundle.execute(sql, (hash.as_str(), size, pack(b"little").unwrap())).unwrap();
}

#[test]
fn v09_a_bundle_that_expands_to_far_more_than_it_has_in_sum_is_refused_before_it_is_expanded() {
    let place = Clones::with_history();
    drop(place.bundle("b"));
    let db = Connection::open(place.path("b")).unwrap();
    for number in 0..20 {
        claim(&db, number, 60 * MIB);
    }
    drop(db);
    assert_too_large(Bundle::open(&place.path("b")));
    assert_too_large(Bundle::from_bytes(&std::fs::read(place.path("b")).unwrap()));
}

#[test]
fn v09_what_takes_far_more_memory_than_came_is_refused_before_it_is_expanded() {
    let place = Clones::with_history();
    drop(place.bundle("b"));
    claim(&Connection::open(place.path("b")).unwrap(), 0, 400 * MIB);
    let bundle = Bundle::open(&place.path("b")).unwrap();
    assert_too_large(bundle.contents());
    assert_too_large(place.import(&bundle));
    assert_eq!(count(place.there.path(), "SELECT count(*) FROM event"), 1);
}

/// One number of the wire form.
fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value.to_le_bytes()[0] | 128);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}

#[test]
fn v09_a_wire_form_that_would_fill_the_disk_is_refused() {
    let mut wire = b"OCXBNDL1".to_vec();
    let mut frame = zstd::Encoder::new(&mut wire, 3).unwrap();
    frame.write_all(&number(0)).unwrap();
    let zeros = vec![0; MIB];
    for id in 1..=40_usize {
        let hash = Hash::of(&id.to_be_bytes());
        for part in [&[0][..], &number(id), &number(64), hash.as_str().as_bytes()] {
            frame.write_all(part).unwrap();
        }
        for part in [&number(MIB)[..], &number(0), &number(MIB), &zeros] {
            frame.write_all(part).unwrap();
        }
    }
    frame.write_all(&[255]).unwrap();
    frame.finish().unwrap();
    assert!(wire.len() < 50_000, "{}", wire.len());
    assert_too_large(Bundle::from_bytes(&wire));
}

#[test]
fn v09_a_cancel_in_the_middle_of_verifying_ends_it() {
    let place = Clones::with_history();
    drop(place.bundle("b"));
    // The same again and again, so that it is verified for much longer than it is made.
    let (content, hash) = (pack(&vec![0; MIB]).unwrap(), Hash::of(&vec![0; MIB]));
    let db = Connection::open(place.path("b")).unwrap();
    for _ in 0..300 {
        let sql = "INSERT INTO bblob(uuid,sz,delta,notes,data) VALUES(?1,?2,NULL,'',?3)";
        db.execute(sql, (hash.as_str(), i64::try_from(MIB).unwrap(), &content)).unwrap();
    }
    drop(db);
    let bundle = Bundle::open(&place.path("b")).unwrap();
    let cancel = Cancel::new();
    let from_elsewhere = cancel.clone();
    let cancelling = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        from_elsewhere.cancel();
        Instant::now()
    });
    let refused = with_cancel(&cancel, || bundle.contents()).unwrap_err();
    let ended = Instant::now();
    assert_eq!(refused.kind(), Kind::Cancelled);
    let waited = ended.saturating_duration_since(cancelling.join().unwrap());
    assert!(waited < Duration::from_secs(20), "{waited:?}");
}

#[test]
fn v09_a_cancel_in_the_middle_of_an_import_leaves_nothing() {
    let place = Clones::with_history();
    let bundle = place.bundle("b");
    let blobs = || count(place.there.path(), "SELECT count(*) FROM blob");
    let (before, cancel) = (blobs(), Cancel::new());
    let from_inside = cancel.clone();
    let progress = move |done, _| {
        if done == 5 {
            from_inside.cancel();
        }
    };
    let import = Import { progress: Some(Arc::new(progress)), ..Import::by(ann()) };
    let refused = with_cancel(&cancel, || place.there.import_bundle(&bundle, &import)).unwrap_err();
    assert_eq!(refused.kind(), Kind::Cancelled);
    assert_eq!(blobs(), before);
    place.import(&bundle).unwrap();
    assert_whole(&place, place.there.path());
}

#[test]
fn v09_a_cancelled_export_leaves_no_file() {
    let place = Clones::with_history();
    let cancel = Cancel::new();
    let from_inside = cancel.clone();
    let selection = Selection::descendants(place.root()).with_progress(Arc::new(move |done, _| {
        if done == 5 {
            from_inside.cancel();
        }
    }));
    let refused = with_cancel(&cancel, || place.here.export_bundle(&place.path("b"), &selection));
    assert_eq!(refused.unwrap_err().kind(), Kind::Cancelled);
    assert!(!place.path("b").exists());
    place.bundle("b").save_wire(&place.path("w")).unwrap();
    for name in ["b", "w"] {
        let opened = with_cancel(&cancel, || Bundle::open(&place.path(name)));
        assert_eq!(opened.unwrap_err().kind(), Kind::Cancelled);
    }
}
