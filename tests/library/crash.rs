//! Processes that are killed at any moment of a check-in or push: what they acknowledged is kept, and
//! the next one finds a checkout that says where it stands.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{Fossil, Place, ann, changes, check_in, remote, served};
use ocx::checkout::{Checkout, How};
use ocx::error::Kind;
use ocx::name::Hash;
use ocx::repo::Repository;
use ocx::sync::Outcome;

/// How often a child is killed.
const ROUNDS: usize = 40;

/// The child: checks in, and pushes where it is told a server, until it is killed.
#[test]
#[ignore = "runs for ever in a process of its own, started and killed by the other tests"]
fn check_in_for_ever() {
    let root = std::env::var("OCX_TEST_CHECKOUT").unwrap();
    let checkout = Checkout::at(Path::new(&root)).unwrap();
    let remote = std::env::var("OCX_TEST_URL").ok().map(|url| remote(&url, "ann:secret"));
    for step in 0.. {
        let text = format!("process {} step {step}", std::process::id());
        fs::write(checkout.root().join(format!("f{}.txt", step % 5)), &text).unwrap();
        let made = check_in(&checkout, &text, None).unwrap();
        acknowledge("made", &made.hash);
        if let Some(remote) = &remote {
            checkout.repository().push(remote).unwrap();
            acknowledge("pushed", &made.hash);
        }
    }
}

fn acknowledge(what: &str, hash: &Hash) {
    let mut out = std::io::stdout();
    writeln!(out, "\n{what} {hash}").unwrap();
    out.flush().unwrap();
}

/// What the children said that they had done.
#[derive(Default)]
struct Said {
    made: Vec<Hash>,
    pushed: Vec<Hash>,
    /// How many of those made were looked for.
    checked: usize,
}

impl Said {
    /// Runs a child for `time` and kills it; what else it said is an error of its own.
    fn hear_of_child(&mut self, checkout: &Path, url: Option<&str>, time: Duration) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "crash::check_in_for_ever", "--ignored", "--nocapture"])
            .env("OCX_TEST_CHECKOUT", checkout)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(url) = url {
            command.env("OCX_TEST_URL", url);
        }
        let mut child = command.spawn().unwrap();
        thread::sleep(time);
        child.kill().unwrap();
        let out = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(!error.contains("panicked"), "{error}");
        for line in String::from_utf8_lossy(&out.stdout).lines() {
            match line.split_once(' ') {
                Some(("made", hash)) => self.made.extend(Hash::parse(hash)),
                Some(("pushed", hash)) => self.pushed.extend(Hash::parse(hash)),
                _ => {}
            }
        }
    }
}

/// Milliseconds that differ from round to round.
fn some_time(round: usize, from: u64, to: u64) -> Duration {
    let mixed = (round as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    Duration::from_millis(from + mixed % (to - from))
}

/// A checkout that a child was killed in says where it stands, and what is in it was not lost.
fn assert_sound(place: &Place, said: &mut Said) -> bool {
    let checkout = Checkout::at(place.checkout.root()).unwrap();
    let parent = checkout.parent().unwrap();
    let store = checkout.repository().store();
    assert!(store.leaf(&parent).unwrap(), "the checkout stands on the last check-in");
    if let Some(recovered) = checkout.recovered() {
        assert_eq!(recovered, parent);
    }
    for hash in &said.made[said.checked..] {
        assert!(store.holds(hash).unwrap(), "{hash} was acknowledged");
    }
    said.checked = said.made.len();
    for (path, _) in changes(&checkout) {
        // What differs was written and not checked in: its text is that of no check-in.
        let text = fs::read_to_string(place.path(&path)).unwrap();
        let known = format!("SELECT count(*) FROM event WHERE comment='{text}'");
        assert_eq!(place.sql(&known), 0, "{path}: {text}");
    }
    checkout.recovered().is_some()
}

/// No check-in holds the same files as its parent, and none stands beside another.
fn assert_no_duplicates(place: &Place) {
    let files = |hash: &Hash| place.repository.store().files(hash).unwrap();
    let mut hash = Checkout::at(place.checkout.root()).unwrap().parent().unwrap();
    let mut comments = BTreeSet::new();
    let mut count = 1;
    while let Some(parent) = place.repository.store().check_in(&hash).unwrap().parents.first().copied() {
        assert_ne!(files(&hash), files(&parent), "{hash}");
        assert!(comments.insert(place.repository.store().check_in(&hash).unwrap().comment));
        hash = parent;
        count += 1;
    }
    assert_eq!(count, place.check_ins(), "the history is one line");
}

#[test]
fn x04_a_check_in_killed_at_any_time_is_whole_or_not_there() {
    let place = Place::new();
    let mut said = Said::default();
    let mut recovered = 0;
    for round in 0..ROUNDS {
        said.hear_of_child(place.checkout.root(), None, some_time(round, 40, 140));
        recovered += usize::from(assert_sound(&place, &mut said));
        let db = rusqlite::Connection::open(place.repository.path()).unwrap();
        let found: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(found, "ok");
    }
    assert!(said.made.len() > ROUNDS / 4, "{} check-ins were made", said.made.len());
    eprintln!("{} check-ins acknowledged, {recovered} of {ROUNDS} kills made good", said.made.len());
    for hash in &said.made {
        assert!(place.repository.store().check_in(hash).is_ok(), "{hash} was acknowledged");
    }
    place.assert_whole();
    assert_no_duplicates(&place);
    let checkout = Checkout::at(place.checkout.root()).unwrap();
    fs::write(place.path("last.txt"), "last\n").unwrap();
    check_in(&checkout, "the last", None).unwrap();
    for &fossil in Fossil::each() {
        assert_eq!(place.by(fossil, &["changes", "--hash"]), "");
        assert_eq!(place.by(fossil, &["extras"]), "");
    }
}

#[test]
fn x04_a_push_killed_at_any_time_is_resumed() {
    let (dir, path, server) = served(Fossil::Reference);
    let home = tempfile::tempdir().unwrap();
    let remote = server.remote("ann:secret");
    let repository = Repository::clone_from(&remote, &home.path().join("r.fossil"), &ann()).unwrap();
    let place = Place::of(home, repository);
    let mut said = Said::default();
    for round in 0..ROUNDS / 4 {
        said.hear_of_child(place.checkout.root(), Some(&server.url), some_time(round, 80, 400));
        assert_sound(&place, &mut said);
    }
    assert!(!said.pushed.is_empty());
    let there = Repository::open(&path).unwrap();
    for hash in &said.pushed {
        assert!(there.store().holds(hash).unwrap(), "{hash} was acknowledged as pushed");
    }
    let outcome = place.repository.push(&remote).unwrap();
    assert!(matches!(outcome, Outcome::Sent { .. } | Outcome::NothingToSend), "{outcome:?}");
    let tip = Checkout::at(place.checkout.root()).unwrap().parent().unwrap();
    assert!(there.store().holds(&tip).unwrap());
    assert_eq!(place.repository.push(&remote).unwrap(), Outcome::NothingToSend);
    let db = rusqlite::Connection::open(&path).unwrap();
    let check_ins: i64 =
        db.query_row("SELECT count(*) FROM event WHERE type='ci'", [], |row| row.get(0)).unwrap();
    assert_eq!(check_ins, place.check_ins());
    Fossil::Reference.run(dir.path(), dir.path(), &["test-integrity", "-R", path.to_str().unwrap()]);
    place.assert_whole();
    assert_no_duplicates(&place);
}

#[test]
fn a_check_in_that_the_checkout_could_not_follow_is_made_good() {
    for at_once in [true, false] {
        let place = Place::new();
        place.write("a.txt", "one\n");
        let repository = rusqlite::Connection::open(place.repository.path()).unwrap();
        let state = rusqlite::Connection::open(place.path(".fslckout")).unwrap();
        let made = loop {
            repository.execute_batch("BEGIN IMMEDIATE").unwrap();
            let made = thread::scope(|scope| {
                let check_in = scope.spawn(|| place.check_in("first", None));
                // It should wait for the repository by then; only now the checkout is locked too.
                thread::sleep(Duration::from_millis(200));
                state.execute_batch("BEGIN IMMEDIATE").unwrap();
                repository.execute_batch("ROLLBACK").unwrap();
                check_in.join().unwrap()
            });
            match made {
                Err(e) if e.kind() == Kind::Busy => state.execute_batch("ROLLBACK").unwrap(),
                made => break made.unwrap(),
            }
        };
        state.execute_batch("ROLLBACK").unwrap();
        let stands: String = state
            .query_row("SELECT value FROM vvar WHERE name='checkout-hash'", [], |row| row.get(0))
            .unwrap();
        assert_ne!(stands, made.hash.as_str(), "the test wants a checkout that was left behind");
        if at_once {
            assert_eq!(place.changes(), []);
        } else {
            let next = Checkout::at(place.checkout.root()).unwrap();
            assert_eq!(next.recovered(), Some(made.hash));
            assert_eq!(changes(&next), []);
            assert_eq!(Checkout::at(place.checkout.root()).unwrap().recovered(), None);
        }
        assert_eq!(place.checkout.parent().unwrap(), made.hash);
        assert_eq!(place.fossil(&["changes", "--hash"]), "");
        place.write("a.txt", "two\n");
        place.check_in("second", None).unwrap();
        assert_eq!(place.check_ins(), 3);
    }
}

/// Lets the checkout's database forget what has happened in the repository since it held `fingerprint`.
fn forget_since(checkout: &Path, fingerprint: &str) {
    let state = rusqlite::Connection::open(checkout.join(".fslckout")).unwrap();
    assert_eq!(state.execute("UPDATE vvar SET value=?1 WHERE name='fingerprint'", [fingerprint]).unwrap(), 1);
}

fn fingerprint(checkout: &Path) -> String {
    let state = rusqlite::Connection::open(checkout.join(".fslckout")).unwrap();
    state.query_row("SELECT value FROM vvar WHERE name='fingerprint'", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_checkout_that_went_elsewhere_is_not_moved_by_an_old_note() {
    let place = Place::new();
    let empty = place.checkout.parent().unwrap();
    place.write("a.txt", "one\n");
    let first = place.check_in("first", None).unwrap();
    let known = fingerprint(place.checkout.root());
    place.write("a.txt", "two\n");
    place.check_in("second", None).unwrap();
    for there in [&empty, &first.hash] {
        place.checkout.update(there.as_str()).unwrap();
        let next = Checkout::at(place.checkout.root()).unwrap();
        assert_eq!(next.recovered(), None);
        assert_eq!(next.parent().unwrap(), *there);
        assert_eq!(changes(&next), []);
    }
    place.checkout.update(empty.as_str()).unwrap();
    forget_since(place.checkout.root(), &known);
    let next = Checkout::at(place.checkout.root()).unwrap();
    assert_eq!(next.recovered(), None);
    assert_eq!(next.parent().unwrap(), empty);
}

/// Copies a checkout, whose processes have ended, file by file.
fn copied(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_copy_of_a_checkout_follows_only_what_its_files_bear_out() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write("b.txt", "one\n");
    let first = place.check_in("first", None).unwrap();
    let copy = place.dir.path().join("copy");
    copied(place.checkout.root(), &copy);
    place.write("a.txt", "two\n");
    fs::remove_file(place.path("b.txt")).unwrap();
    let second = place.check_in("second", None).unwrap();
    let opened = || Checkout::at(&copy).unwrap();
    assert_eq!((opened().recovered(), opened().parent().unwrap()), (None, first.hash));
    fs::write(copy.join("a.txt"), "mine\n").unwrap();
    fs::remove_file(copy.join("b.txt")).unwrap();
    assert_eq!(opened().recovered(), None);
    assert_eq!(check_in(&opened(), "mine", None).unwrap_err().kind(), Kind::WouldFork);
    fs::write(copy.join("a.txt"), "two\n").unwrap();
    assert_eq!(opened().recovered(), Some(second.hash));
    assert_eq!(changes(&opened()), []);
}

#[test]
fn a_checkout_that_lost_several_check_ins_finds_the_last() {
    let place = Place::new();
    let (empty, known) = (place.checkout.parent().unwrap(), fingerprint(place.checkout.root()));
    let mut last = empty;
    for text in ["one\n", "two\n", "three\n"] {
        place.write("a.txt", text);
        last = place.check_in(text, None).unwrap().hash;
    }
    // As the database was before the first of them, but for the rows of its files.
    let state = rusqlite::Connection::open(place.path(".fslckout")).unwrap();
    let number = place.sql(&format!("SELECT rid FROM blob WHERE uuid='{empty}'"));
    state
        .execute_batch(&format!(
            "PRAGMA foreign_keys=0; UPDATE vvar SET value={number} WHERE name='checkout'; DELETE FROM vfile;"
        ))
        .unwrap();
    state.execute("UPDATE vvar SET value=?1 WHERE name='checkout-hash'", [empty.as_str()]).unwrap();
    forget_since(place.checkout.root(), &known);
    place.write("a.txt", "four\n");
    let next = Checkout::at(place.checkout.root()).unwrap();
    assert_eq!(next.recovered(), Some(last));
    assert_eq!(changes(&next), [("a.txt".to_owned(), How::Edited)]);
    check_in(&next, "four", None).unwrap();
    place.assert_whole();
    assert_eq!(place.fossil(&["changes", "--hash"]), "");
}

/// The child: clones, or pulls, over and over until it is killed.
#[test]
#[ignore = "runs for ever in a process of its own, started and killed by the other tests"]
fn receive_for_ever() {
    let folder = std::env::var("OCX_TEST_FOLDER").unwrap();
    let server = remote(&std::env::var("OCX_TEST_URL").unwrap(), "ann:secret");
    if let Ok(file) = std::env::var("OCX_TEST_PULL") {
        Repository::open(Path::new(&file)).unwrap().pull(&server).unwrap();
        return;
    }
    for step in 0.. {
        let path = Path::new(&folder).join(format!("{}-{step}.fossil", std::process::id()));
        Repository::clone_from(&server, &path, &ann()).unwrap();
    }
}

/// Runs a child that receives for `time`, and kills it.
fn receive(folder: &Path, url: &str, pull: Option<&Path>, time: Duration) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crash::receive_for_ever", "--ignored", "--nocapture"]);
    command.env("OCX_TEST_FOLDER", folder).env("OCX_TEST_URL", url).stdout(Stdio::null());
    if let Some(file) = pull {
        command.env("OCX_TEST_PULL", file);
    }
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(time);
    child.kill().unwrap();
    let out = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(!error.contains("panicked"), "{error}");
}

#[test]
fn x04_a_clone_killed_at_any_time_is_whole_or_not_there() {
    let (_dir, path, server) = served(Fossil::Reference);
    let home = tempfile::tempdir().unwrap();
    let repository =
        Repository::clone_from(&server.remote("ann:secret"), &home.path().join("r.fossil"), &ann()).unwrap();
    let place = Place::of(home, repository);
    for step in 0..30 {
        place.write(&format!("f{}.txt", step % 7), format!("line {step}\n").repeat(300));
        place.check_in(&format!("step {step}"), None).unwrap();
    }
    place.repository.push(&server.remote("ann:secret")).unwrap();
    let clones = tempfile::tempdir().unwrap();
    for round in 0..ROUNDS / 4 {
        receive(clones.path(), &server.url, None, some_time(round, 60, 700));
    }
    let mut whole = 0;
    for file in fs::read_dir(clones.path()).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if file.path().extension().is_some_and(|end| end == "fossil") {
            let clone = Repository::open(&file.path()).unwrap();
            clone.verify().unwrap();
            assert!(clone.store().holds(&place.checkout.parent().unwrap()).unwrap());
            whole += 1;
        }
    }
    eprintln!("{whole} clones were finished");
    assert!(Repository::open(&path).unwrap().store().holds(&place.checkout.parent().unwrap()).unwrap());
}

#[test]
fn x04_a_pull_killed_at_any_time_leaves_a_whole_repository_and_goes_on() {
    let (_dir, _path, server) = served(Fossil::Own);
    let remote = server.remote("ann:secret");
    let open = |name: &str| {
        let home = tempfile::tempdir().unwrap();
        let repository = Repository::clone_from(&remote, &home.path().join(name), &ann()).unwrap();
        Place::of(home, repository)
    };
    let (writer, reader) = (open("w.fossil"), open("r.fossil"));
    for round in 0..ROUNDS / 4 {
        for step in 0..5 {
            writer.write(&format!("f{step}.txt"), format!("line {round}\n").repeat(200));
            writer.check_in(&format!("round {round} step {step}"), None).unwrap();
        }
        writer.repository.push(&remote).unwrap();
        let file = reader.repository.path();
        receive(reader.dir.path(), &server.url, Some(file), some_time(round, 20, 250));
        let db = rusqlite::Connection::open(file).unwrap();
        let found: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(found, "ok");
    }
    reader.assert_whole();
    reader.repository.pull(&remote).unwrap();
    assert_eq!(reader.check_ins(), writer.check_ins());
    assert!(reader.repository.store().holds(&writer.checkout.parent().unwrap()).unwrap());
    reader.assert_whole();
}
