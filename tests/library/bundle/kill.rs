//! `kill -9` during an import: all of it is there, or nothing.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::OCX;
use crate::support::clones::{Clones, count, derived, text};

#[test]
fn a_process_killed_in_an_import_leaves_all_or_nothing() {
    let place = Clones::new();
    for i in 0..80 {
        place.edit(&format!("f{}.txt", i % 5), &text(i));
        place.edit("all.txt", &text(i * 3 + 1));
        place.save(&format!("edit {i}"), None);
    }
    place.bundle("b");
    let import = || {
        let mut command = Command::new(OCX);
        command.args(["bundle", "import", "b", "-R", "there.fossil", "--user", "ann"]);
        command
            .current_dir(place.dir.path())
            .env("HOME", place.dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    ocx::engine::close_all();
    std::fs::copy(place.there.path(), place.path("empty.fossil")).unwrap();
    let started = Instant::now();
    assert!(import().status().unwrap().success());
    let whole = started.elapsed();
    let (mut nothing, mut all) = (0, 0);
    for round in 0..16_u32 {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", place.there.path().display()));
        }
        std::fs::copy(place.path("empty.fossil"), place.there.path()).unwrap();
        let mut child = import().spawn().unwrap();
        std::thread::sleep(whole * round / 14 + Duration::from_millis(1));
        // It may have ended already.
        let _ = child.kill();
        child.wait().unwrap();
        let check: String = rusqlite::Connection::open(place.there.path())
            .unwrap()
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
        match count(place.there.path(), "SELECT count(*) FROM event WHERE type='ci'") {
            1 => nothing += 1,
            81 => all += 1,
            other => panic!("{other} check-ins are there"),
        }
        let blobs = count(place.there.path(), "SELECT count(*) FROM blob");
        assert!(blobs == 1 || blobs > 200, "{blobs} artifacts are there");
    }
    eprintln!("{nothing} imports were cut short, {all} were whole");
    assert!(import().status().unwrap().success());
    assert_eq!(derived(place.here.path()), derived(place.there.path()));
}
