//! Unversioned files: both ways, newest wins, and what happened is said.

use std::fs;
use std::path::Path;

use ocx::error::Kind;
use ocx::repo::Repository;
use ocx::sync::{SyncOptions, UnversionedChanges};

use super::cloned;
use crate::support::front::{Front, request};
use crate::support::{Fossil, Place, ann, remote, served};

/// Puts an unversioned file by plain Fossil, with the time that it gets.
fn put(fossil: Fossil, home: &Path, repository: &Path, name: &str, content: &[u8], date: &str) {
    fs::write(home.join("content"), content).unwrap();
    let repository = repository.to_str().unwrap();
    let args = ["unversioned", "add", "content", "--as", name, "--mtime", date, "-R", repository];
    fossil.run(home, home, &args);
}

fn content(fossil: Fossil, place: &Place, name: &str) -> String {
    place.by(fossil, &["unversioned", "cat", name, "-R", place.repository.path().to_str().unwrap()])
}

fn put_here(fossil: Fossil, place: &Place, name: &str, content: &[u8], date: &str) {
    put(fossil, place.dir.path(), place.repository.path(), name, content, date);
}

#[test]
fn unversioned_files_go_both_ways_only_when_asked() {
    for &fossil in Fossil::each() {
        let (dir, path, server) = served(fossil);
        fossil.run(
            dir.path(),
            dir.path(),
            &["user", "capabilities", "ann", "sy", "-R", path.to_str().unwrap()],
        );
        let remote = server.remote("ann:secret");
        let (one, two) = (cloned(&remote), cloned(&remote));
        put_here(fossil, &one, "a.bin", b"a\n", "2026-01-01T00:00:00");
        put(fossil, dir.path(), &path, "b/c.bin", b"\0\x01", "2026-01-02T00:00:00");
        one.repository.sync(&remote, &SyncOptions::both()).unwrap();
        assert_eq!(one.sql("SELECT count(*) FROM unversioned"), 1);
        let with = SyncOptions::both().with_unversioned();
        let changes = one.repository.sync(&remote, &with).unwrap().unversioned.unwrap();
        assert_eq!((changes.sent, changes.received), (vec!["a.bin".into()], vec!["b/c.bin".to_owned()]));
        let changes = two.repository.sync(&remote, &with).unwrap().unversioned.unwrap();
        assert_eq!(changes.received, ["a.bin", "b/c.bin"]);
        assert_eq!(content(fossil, &two, "a.bin"), "a\n");
        assert_eq!(content(fossil, &two, "b/c.bin"), "\0\u{1}");
        let synced = two.repository.sync(&remote, &with).unwrap();
        assert!(synced.to_string().ends_with("unversioned files are the same"), "{synced}");
        // A deletion goes along as well.
        let file = one.repository.path().to_str().unwrap();
        one.by(fossil, &["unversioned", "rm", "a.bin", "-R", file]);
        let changes = one.repository.sync(&remote, &with).unwrap().unversioned.unwrap();
        let listed = |place: &Place| {
            place.by(fossil, &["unversioned", "ls", "-R", place.repository.path().to_str().unwrap()])
        };
        assert_eq!(listed(&one).trim(), "b/c.bin", "{changes:?}");
        let whole = dir.path().join("whole.fossil");
        let whole = Repository::clone_with(&remote, &whole, &ann(), &with).unwrap();
        let listed =
            fossil.run(dir.path(), dir.path(), &["unversioned", "ls", "-R", whole.path().to_str().unwrap()]);
        assert!(listed.contains("b/c.bin"), "{listed}");
        two.assert_whole();
    }
}

#[test]
fn s11_a_newer_unversioned_file_on_the_server_wins_and_that_is_said() {
    for &fossil in Fossil::each() {
        let (dir, path, server) = served(fossil);
        fossil.run(
            dir.path(),
            dir.path(),
            &["user", "capabilities", "ann", "sy", "-R", path.to_str().unwrap()],
        );
        let remote = server.remote("ann:secret");
        let place = cloned(&remote);
        put(fossil, dir.path(), &path, "x", b"from the future\n", "2036-01-01T00:00:00");
        put_here(fossil, &place, "x", b"mine\n", "2026-01-01T00:00:00");
        put_here(fossil, &place, "y", b"mine too\n", "2026-01-01T00:00:00");
        let synced = place.repository.sync(&remote, &SyncOptions::both().with_unversioned()).unwrap();
        let changes = synced.unversioned.clone().unwrap();
        assert_eq!(changes.sent, ["y"], "{fossil:?}");
        assert_eq!(changes.received, ["x"]);
        assert_eq!(changes.replaced, ["x"], "what was here is gone, and that is said");
        assert!(synced.to_string().contains("newer than here: x"), "{synced}");
        assert_eq!(content(fossil, &place, "x"), "from the future\n");
    }
}

#[test]
fn unversioned_files_that_a_login_may_not_write_are_named_and_stay() {
    for &fossil in Fossil::each() {
        let (dir, path, server) = served(fossil);
        fossil.run(
            dir.path(),
            dir.path(),
            &["user", "capabilities", "bob", "gio", "-R", path.to_str().unwrap()],
        );
        let remote = server.remote("bob:pw");
        let place = cloned(&remote);
        put_here(fossil, &place, "a.bin", b"a\n", "2026-01-01T00:00:00");
        let with = SyncOptions::both().with_unversioned();
        let e = place.repository.sync(&remote, &with).unwrap_err();
        assert_eq!(e.kind(), Kind::Denied, "{e:?}");
        assert!(e.to_string().contains("`a.bin`"), "{e}");
        assert_eq!(content(fossil, &place, "a.bin"), "a\n");
        let there = rusqlite::Connection::open(&path).unwrap();
        let tables = "SELECT count(*) FROM sqlite_schema WHERE name='unversioned'";
        if there.query_row(tables, [], |row| row.get::<_, i64>(0)).unwrap() > 0 {
            let sql = "SELECT count(*) FROM unversioned";
            assert_eq!(there.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
        }
    }
}

#[test]
fn s10_a_server_that_names_unversioned_files_against_the_rules_stores_nothing_here() {
    let hash = ocx::name::Hash::of(b"x");
    for name in ["a b.bin", "../x", "/abs", "a//b", ""] {
        let place = Place::new();
        let front = Front::new(move |mut line, _| {
            use std::io::Write;
            if request(&mut line).is_none() {
                return;
            }
            let cards = format!(
                "pragma uv-push-ok\nuvigot {name} 99999999999 {hash} 1\nuvfile {name} 99999999999 {hash} 1 0\nx"
            );
            let _ = write!(
                line,
                "HTTP/1.1 200 OK\r\nContent-Type: application/x-fossil-uncompressed\r\nContent-Length: {}\r\n\r\n{cards}",
                cards.len()
            );
        });
        let remote = remote(&front.url(), "ann:secret");
        let ended = place.repository.sync(&remote, &SyncOptions::pull().with_unversioned());
        let is_left_out = |files: &UnversionedChanges| files.is_empty() && files.left_out == [name];
        let is_well = match &ended {
            Ok(synced) => synced.unversioned.as_ref().is_some_and(is_left_out),
            Err(e) => e.kind() == Kind::Refused,
        };
        assert!(is_well, "{name}: {ended:?}");
        assert_eq!(place.sql("SELECT count(*) FROM sqlite_schema WHERE name='unversioned'"), 0, "{name}");
        place.assert_whole();
    }
}
