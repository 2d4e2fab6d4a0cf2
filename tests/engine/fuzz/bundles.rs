//! Bundles, in SQLite's form and on the wire: what is taken in is whole, what is refused leaves nothing.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use ocx::bundle::Bundle;
use ocx::bundle::{Import, Selection};
use ocx::checkout::{CheckIn, Checkout};
use ocx::format::packed;
use ocx::name::{Hash, User};
use ocx::repo::{NewRepository, Repository};
use proptest::prelude::*;
use tempfile::TempDir;

use super::config;
use super::mutate::mutated;

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A repository, and bundles of check-ins that it lacks.
pub struct Seeds {
    folder: TempDir,
    /// A check-in that both have.
    pub base: Hash,
    pub plain: Vec<Vec<u8>>,
    wire: Vec<Vec<u8>>,
}

pub static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let repository = Repository::create(&at("pristine.fossil"), &NewRepository { user: ann() }).unwrap();
    let work = Checkout::open(&repository, &at("work"), None, Some(&ann())).unwrap();
    let check_in = |work: &Checkout, text: String| {
        fs::write(work.root().join("a.txt"), text).unwrap();
        let made = CheckIn { comment: "step".into(), branch: None, user: ann(), time: None };
        work.check_in(&made, &work.status().unwrap()).unwrap().hash
    };
    let base = check_in(&work, "line\n".repeat(200));
    // Closed, it is one file that can be copied.
    drop(work);
    ocx::engine::close(repository.path()).unwrap();
    let there = Repository::clone_file(repository.path(), &at("there.fossil"), &ann()).unwrap();
    let work = Checkout::open(&there, &at("there"), None, Some(&ann())).unwrap();
    let tip = [1, 2, 3].map(|n| check_in(&work, format!("{n}\n").repeat(100) + &"line\n".repeat(100)))[2];
    let mut seeds = Seeds { folder, base, plain: Vec::new(), wire: Vec::new() };
    let selections = [
        Selection::range(base, tip),
        Selection::one(tip),
        Selection::descendants(base).for_one_who_has(base),
    ];
    for (n, selection) in selections.iter().enumerate() {
        let path = seeds.folder.path().join(format!("{n}.bundle"));
        there.export_bundle(&path, selection).unwrap();
        let mut wire = Vec::new();
        Bundle::open(&path).unwrap().write_wire(&mut wire).unwrap();
        seeds.plain.push(fs::read(&path).unwrap());
        seeds.wire.push(wire);
    }
    seeds
});

pub fn ann() -> User {
    User::parse("ann").unwrap()
}

/// A copy of the repository, one for each thread and taken anew each time.
pub fn target() -> PathBuf {
    let name = format!("{:?}.fossil", std::thread::current().id());
    let path = SEEDS.folder.path().join(name);
    ocx::engine::close(&path).unwrap();
    for extra in ["-wal", "-shm"] {
        let _ = fs::remove_file(path.with_extension(format!("fossil{extra}")));
    }
    fs::copy(SEEDS.folder.path().join("pristine.fossil"), &path).unwrap();
    path
}

fn artifacts(path: &PathBuf) -> i64 {
    let db = rusqlite::Connection::open(path).unwrap();
    db.query_row("SELECT count(*) FROM blob WHERE size>=0", [], |row| row.get(0)).unwrap()
}

/// Imports `bytes`; true when they were taken for a bundle and taken in.
fn is_taken(bytes: &[u8]) -> bool {
    let Ok(bundle) = Bundle::from_bytes(bytes) else { return false };
    let _listed = bundle.contents();
    let path = target();
    let repository = Repository::open(&path).unwrap();
    let before = artifacts(&path);
    let imported = repository.import_bundle(&bundle, &Import::by(ann()));
    let new = imported.as_ref().map_or(0, |imported| i64::try_from(imported.artifacts).unwrap());
    assert_eq!(artifacts(&path), before + new);
    repository.verify().unwrap();
    imported.is_ok()
}

/// A bundle that also holds this text, right in all but what it says. It speaks of a check-in that is there.
fn with_artifact(bundle: &[u8], text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text).replace(&"a".repeat(64), SEEDS.base.as_str());
    let text = super::sealed(text.as_bytes());
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bundle).unwrap();
    let db = rusqlite::Connection::open(file.path()).unwrap();
    let sql = "INSERT INTO bblob(uuid,sz,delta,notes,data) VALUES(?1,?2,NULL,'',?3)";
    let size = i64::try_from(text.len()).unwrap();
    db.execute(sql, (Hash::of(&text).as_str(), size, packed::pack(&text).unwrap())).unwrap();
    drop(db);
    fs::read(file.path()).unwrap()
}

/// The wire form with what is in its frame changed by `change`.
fn reframed(wire: &[u8], change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let at = wire.windows(4).position(|w| w == ZSTD).unwrap();
    let mut made = wire[..at].to_vec();
    made.extend(zstd::encode_all(&*change(unframed(wire)), 1).unwrap());
    made
}

fn unframed(wire: &[u8]) -> Vec<u8> {
    let at = wire.windows(4).position(|w| w == ZSTD).unwrap();
    let mut out = Vec::new();
    let mut frame = zstd::Decoder::new(&wire[at..]).unwrap();
    frame.window_log_max(31).unwrap();
    std::io::Read::read_to_end(&mut frame, &mut out).unwrap();
    out
}

#[test]
fn the_seeds_are_taken_in() {
    for bytes in SEEDS.plain.iter().chain(&SEEDS.wire) {
        assert!(is_taken(bytes));
    }
    assert!(is_taken(&reframed(&SEEDS.wire[0], |inner| inner)));
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_damaged_bundle_file_is_refused_or_whole(bytes in mutated(SEEDS.plain.clone())) {
        is_taken(&bytes);
    }

    /// Fossil's code links it in while it is still being looked at.
    #[test]
    fn a_strange_artifact_in_a_bundle_is_refused_or_linked_in(text in mutated(super::artifacts())) {
        is_taken(&with_artifact(&SEEDS.plain[0], &text));
    }

    #[test]
    fn a_damaged_wire_form_is_refused_or_whole(bytes in mutated(SEEDS.wire.clone())) {
        is_taken(&bytes);
    }

    #[test]
    fn what_a_wire_frame_holds_is_not_trusted(inner in mutated(SEEDS.wire.iter().map(|w| unframed(w)).collect())) {
        is_taken(&reframed(&SEEDS.wire[0], |_| inner));
    }
}
