//! What goes on while a server is waited for, and how the wait is ended.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ocx::cancel::Cancel;
use ocx::error::Kind;
use ocx::repo::Repository;
use ocx::sync::{Outcome, SyncOptions};

use super::cloned;
use crate::support::front::{Front, ask, request};
use crate::support::{Fossil, ann, remote, served};

/// A front that answers when it is let go on.
fn waiting(server: u16) -> (Front, Arc<AtomicBool>) {
    let go_on = Arc::new(AtomicBool::new(false));
    let may = Arc::clone(&go_on);
    // One after the other: a fresh server of 2.21 stumbles over two first requests at once.
    let turn = Mutex::new(());
    let front = Front::new(move |mut line, count| {
        let Some(request) = request(&mut line) else { return };
        count.requests.fetch_add(1, Ordering::SeqCst);
        let start = Instant::now();
        while !may.load(Ordering::SeqCst) && start.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_millis(5));
        }
        let reply = {
            let _turn = turn.lock().unwrap();
            ask(server, &request)
        };
        let _ = line.write_all(&reply);
    });
    (front, go_on)
}

fn until_asked(front: &Front) {
    while front.requests() == 0 {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_second_writer_gets_in_while_any_sync_waits_for_its_server() {
    for options in [SyncOptions::push(), SyncOptions::pull(), SyncOptions::both().with_unversioned()] {
        let (_dir, _path, server) = served(Fossil::Reference);
        let place = cloned(&server.remote("ann:secret"));
        place.write("a.txt", "one\n");
        place.check_in("first", None).unwrap();
        let (front, go_on) = waiting(server.port);
        let remote = remote(&front.url(), "ann:secret");
        thread::scope(|scope| {
            let sync = scope.spawn(|| place.repository.sync(&remote, &options));
            until_asked(&front);
            let db = rusqlite::Connection::open(place.repository.path()).unwrap();
            db.busy_timeout(Duration::ZERO).unwrap();
            db.execute_batch(
                "BEGIN IMMEDIATE; INSERT INTO config(name,value,mtime) VALUES('x','y',0); COMMIT",
            )
            .unwrap();
            assert!(!sync.is_finished());
            go_on.store(true, Ordering::SeqCst);
            sync.join().unwrap().unwrap();
        });
        place.assert_whole();
    }
}

#[test]
fn a_sync_under_way_is_cancelled_from_another_thread_and_what_is_unsent_stays() {
    for options in [SyncOptions::push(), SyncOptions::pull(), SyncOptions::both()] {
        let (dir, _path, server) = served(Fossil::Own);
        let place = cloned(&server.remote("ann:secret"));
        place.write("a.txt", "one\n");
        place.check_in("first", None).unwrap();
        let (front, _go_on) = waiting(server.port);
        let remote = remote(&front.url(), "ann:secret");
        let cancel = Cancel::new();
        let options = options.until(&cancel);
        thread::scope(|scope| {
            let sync = scope.spawn(|| place.repository.sync(&remote, &options));
            until_asked(&front);
            cancel.cancel();
            assert_eq!(sync.join().unwrap().unwrap_err().kind(), Kind::Cancelled);
        });
        let requests = front.requests();
        assert_eq!(place.repository.sync(&remote, &options).unwrap_err().kind(), Kind::Cancelled);
        let target = dir.path().join("c.fossil");
        let e = Repository::clone_with(&remote, &target, &ann(), &options).unwrap_err();
        assert_eq!(e.kind(), Kind::Cancelled);
        assert!(!target.exists());
        assert_eq!(front.requests(), requests, "nothing is sent after a cancel");
        place.assert_whole();
        let sent = place.repository.push(&server.remote("ann:secret")).unwrap();
        assert_eq!(sent, Outcome::Sent { check_ins: 1, artifacts: 2 });
    }
}

#[test]
fn cancelling_one_sync_ends_no_other_on_the_same_connection() {
    let (_dir, _path, server) = served(Fossil::Reference);
    let (one, two) = (cloned(&server.remote("ann:secret")), cloned(&server.remote("ann:secret")));
    for (place, branch) in [(&one, "one"), (&two, "two")] {
        place.write("a.txt", branch);
        place.check_in(branch, Some(branch)).unwrap();
    }
    let (front, go_on) = waiting(server.port);
    let remote = remote(&front.url(), "ann:secret");
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let ended = scope.spawn(|| one.repository.sync(&remote, &SyncOptions::push().until(&cancel)));
        until_asked(&front);
        let goes_on = scope.spawn(|| two.repository.push(&remote));
        while front.requests() < 2 {
            thread::sleep(Duration::from_millis(5));
        }
        cancel.cancel();
        assert_eq!(ended.join().unwrap().unwrap_err().kind(), Kind::Cancelled);
        go_on.store(true, Ordering::SeqCst);
        assert_eq!(goes_on.join().unwrap().unwrap(), Outcome::Sent { check_ins: 1, artifacts: 2 });
    });
}

/// Neither the engine nor another server's sync waits for a server that does not answer.
#[test]
fn m09_v21_check_ins_and_syncs_with_other_servers_go_on_while_a_server_is_silent() {
    let (_dir, _path, server) = served(Fossil::Own);
    let real = server.remote("ann:secret");
    let (one, two) = (cloned(&real), cloned(&real));
    one.write("a.txt", "one\n");
    one.check_in("first", Some("one")).unwrap();
    for options in [SyncOptions::push(), SyncOptions::pull(), SyncOptions::both().with_unversioned()] {
        let (front, go_on) = waiting(server.port);
        let silent = remote(&front.url(), "ann:secret");
        thread::scope(|scope| {
            let waits = scope.spawn(|| one.repository.sync(&silent, &options));
            until_asked(&front);
            for place in [&one, &two] {
                place.write("a.txt", format!("meanwhile {options:?} {place:p}\n"));
                place.check_in("meanwhile", None).unwrap();
            }
            // The same repository too, with a server that answers.
            two.repository.sync(&real, &SyncOptions::both()).unwrap();
            one.repository.sync(&real, &SyncOptions::both()).unwrap();
            let target = one.dir.path().join(format!("{:?}.fossil", options.push));
            drop(Repository::clone_from(&real, &target, &ann()).unwrap());
            std::fs::remove_file(target).unwrap();
            assert!(!waits.is_finished());
            go_on.store(true, Ordering::SeqCst);
            waits.join().unwrap().unwrap();
        });
    }
    for place in [&one, &two, &one] {
        place.repository.sync(&real, &SyncOptions::both()).unwrap();
        place.assert_whole();
    }
    assert_eq!(one.check_ins(), two.check_ins());
}
