//! Repositories that are gone, held, foreign, damaged, or on a full disk.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use ocx::engine;
use ocx::error::{Kind, Result};
use ocx::repo::{NewRepository, Repository};
use rusqlite::Connection;

use super::place::{Place, expect, fossil, integrity};
use crate::support::alone;
use crate::support::ann;

fn timeline(path: &Path) -> Result<engine::Output> {
    fossil(Path::new("/"), &["timeline", "-R", path.to_str().unwrap()])
}

#[test]
fn a_missing_repository_is_named() {
    let place = Place::new();
    let path = place.dir.path().join("missing.fossil");
    expect("command", timeline(&path), Kind::NotFound, "missing.fossil");
    expect("warm", engine::set_remote(&path, None, None), Kind::NotFound, "missing.fossil");
    expect("open", Repository::open(&path).map(drop), Kind::NotFound, "missing.fossil");
    place.is_well("a missing repository");
}

#[test]
fn x03_a_repository_that_another_connection_holds_is_busy() {
    let place = Place::new();
    for (mode, path) in [("WAL", place.path()), ("DELETE", copy(&place, "delete.fossil"))] {
        let other = Connection::open(&path).unwrap();
        for lock in ["IMMEDIATE", "EXCLUSIVE"] {
            other.execute_batch(&format!("BEGIN {lock}")).unwrap();
            let e = engine::set_remote(&path, Some("http://127.0.0.1:1/"), None);
            expect(&format!("{mode} {lock}"), e, Kind::Busy, "locked");
            other.execute_batch("ROLLBACK").unwrap();
            place.is_well(lock);
        }
    }
}

#[test]
fn a_file_that_is_no_repository_is_foreign() {
    let place = Place::new();
    let text = place.dir.path().join("text.fossil");
    fs::write(&text, "no database at all\n".repeat(100)).unwrap();
    expect("text", timeline(&text), Kind::Foreign, "text.fossil");
    expect("text, warm", engine::set_remote(&text, None, None), Kind::Foreign, "text.fossil");
    let other = place.dir.path().join("other.fossil");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES(1)").unwrap();
    expect("other", timeline(&other), Kind::Foreign, "other.fossil");
    expect("other, warm", engine::set_remote(&other, None, None), Kind::Foreign, "other.fossil");
    let empty = place.dir.path().join("empty.fossil");
    fs::write(&empty, "").unwrap();
    expect("empty", timeline(&empty), Kind::Foreign, "empty.fossil");
    let folder = place.dir.path().join("folder.fossil");
    fs::create_dir(&folder).unwrap();
    expect("folder", timeline(&folder), Kind::NotFound, "specify the repository");
    expect("folder, warm", engine::set_remote(&folder, None, None), Kind::Foreign, "folder.fossil");
    place.is_well("foreign files");
}

/// A copy of the repository, without a log.
fn copy(place: &Place, name: &str) -> std::path::PathBuf {
    let copy = place.dir.path().join(name);
    Repository::clone_file(&place.path(), &copy, &ann()).unwrap();
    engine::close(&copy).unwrap();
    let db = Connection::open(&copy).unwrap();
    db.query_row("PRAGMA journal_mode=DELETE", [], |_| Ok(())).unwrap();
    copy
}

#[test]
fn a_truncated_or_overwritten_repository_is_corrupt() {
    let place = Place::new();
    for n in 0..50 {
        place.save(&format!("content {n}\n").repeat(100)).unwrap();
    }
    let short = copy(&place, "short.fossil");
    let size = fs::metadata(&short).unwrap().len();
    fs::OpenOptions::new().write(true).open(&short).unwrap().set_len(size / 2).unwrap();
    expect("short", timeline(&short), Kind::Corrupt, "malformed");
    expect("short, warm", engine::set_remote(&short, Some("http://h/"), None), Kind::Corrupt, "malformed");
    let mut failed = 0;
    for page in 2..12 {
        let wild = copy(&place, &format!("wild{page}.fossil"));
        let mut bytes = fs::read(&wild).unwrap();
        bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
        fs::write(&wild, bytes).unwrap();
        let results = [
            timeline(&wild).map(drop),
            fossil(Path::new("/"), &["rebuild", wild.to_str().unwrap()]).map(drop),
            engine::set_remote(&wild, Some("http://127.0.0.1:1/"), None),
        ];
        for e in results.into_iter().filter_map(Result::err) {
            assert_eq!(e.kind(), Kind::Corrupt, "page {page}: {e}");
            failed += 1;
        }
    }
    assert!(failed > 5, "{failed}");
    place.is_well("damaged repositories");
}

#[test]
fn an_artifact_that_does_not_inflate_is_an_error() {
    let place = Place::new();
    let hash = place.save("some content\n").unwrap().hash;
    let wild = copy(&place, "wild.fossil");
    for content in
        ["x'00'", "zeroblob(3)", "x'0000000a0102030405060708'", "x'ffffffff789c'", "zeroblob(5000)"]
    {
        let db = Connection::open(&wild).unwrap();
        db.execute(&format!("UPDATE blob SET content={content} WHERE uuid=?1"), [hash.as_str()]).unwrap();
        drop(db);
        let (dir, wild) = (place.dir.path(), wild.to_str().unwrap());
        // Fossil gives what it has; what matters is that it reads no memory that is not its own.
        let shown = fossil(dir, &["artifact", hash.as_str(), "-R", wild]);
        assert!(shown.is_ok() || shown.is_err_and(|e| e.kind() == Kind::TooLarge), "{content}");
        let out = fossil(dir, &["test-integrity", "-R", wild]);
        assert!(out.is_err() || !out.unwrap().out.contains("0 errors"), "{content}");
    }
    place.is_well("damaged artifacts");
}

#[test]
fn a_repository_that_goes_away_between_two_calls_is_noticed() {
    let place = Place::new();
    let gone = copy(&place, "gone.fossil");
    engine::set_remote(&gone, None, None).unwrap();
    fs::remove_file(&gone).unwrap();
    expect("gone", engine::set_remote(&gone, None, None), Kind::NotFound, "gone.fossil");
    fs::create_dir(&gone).unwrap();
    expect("folder", engine::set_remote(&gone, None, None), Kind::Foreign, "gone.fossil");
    fs::remove_dir(&gone).unwrap();
    place.is_well("a repository that went away");
}

#[test]
fn a_repository_that_may_only_be_read_is_not_written() {
    let test = "damage::a_repository_that_may_only_be_read_is_not_written";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.fossil");
    let is_child = alone::is_alone(test, |command| {
        Repository::create(&path, &NewRepository { user: ann() }).unwrap();
        engine::close(&path).unwrap();
        Connection::open(&path).unwrap().query_row("PRAGMA journal_mode=DELETE", [], |_| Ok(())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
        if rustix::process::geteuid().is_root() {
            unprivileged(command, test, dir.path());
        }
        command.env("OCX_TEST_REPOSITORY", &path);
    });
    if is_child {
        let path = std::env::var("OCX_TEST_REPOSITORY").unwrap();
        let e = engine::set_remote(Path::new(&path), Some("http://127.0.0.1:1/"), None);
        expect("write", e, Kind::Denied, "readonly");
        assert!(timeline(Path::new(&path)).unwrap().out.contains("initial empty check-in"));
    }
}

/// Root may write everywhere, so the child becomes nobody, with a program that nobody may read.
fn unprivileged(command: &mut Command, test: &str, dir: &Path) {
    let program = dir.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    chown(&program, Some(65534), Some(65534)).unwrap();
    let mut other = Command::new(&program);
    other.args(alone::command(test).get_args());
    for (name, value) in alone::command(test).get_envs() {
        other.env(name, value.unwrap());
    }
    other.uid(65534).gid(65534).current_dir("/");
    *command = other;
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let test = "damage::a_full_disk_is_an_error_and_loses_nothing";
    // The shell sets the limit: 2 MB for each file, told by EFBIG as the signal is ignored.
    let limited = |command: &mut Command| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f 4096; exec \"$0\" \"$@\""]);
        shell.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            shell.env(name, value.unwrap());
        }
        *command = shell;
    };
    if !alone::is_alone(test, limited) {
        return;
    }
    let place = Place::new();
    let noise = |seed: u64| -> String {
        let mut x = seed | 1;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            char::from(b' ' + u8::try_from(x % 90).unwrap())
        };
        (0..400_000).map(|_| next()).collect()
    };
    let mut stored = 0;
    let e = loop {
        match place.save(&noise(0x1234_5678 + 2 * stored)) {
            Ok(_) => stored += 1,
            Err(e) => break e,
        }
        assert!(stored < 50, "the limit is not kept");
    };
    assert!(matches!(e.kind(), Kind::DiskFull | Kind::Io), "{e}");
    assert!(e.to_string().contains("disk"), "{e}");
    assert!(stored > 0, "{e}");
    assert_eq!(integrity(&place.path()), "ok");
    let out = place.fossil(&["timeline", "-n", "1"]).unwrap();
    assert!(out.out.contains("save"), "{out:?}");
    place.repository.verify().unwrap();
}
