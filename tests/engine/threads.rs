//! Several threads of the host, and what waits for what.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ocx::cancel::Cancel;
use ocx::engine;
use ocx::error::Kind;
use rusqlite::Connection;

use super::place::{Place, expect, save};

fn check_ins(place: &Place) -> i64 {
    let db = Connection::open(place.path()).unwrap();
    db.query_row("SELECT count(*) FROM event WHERE type='ci'", [], |row| row.get(0)).unwrap()
}

#[test]
fn two_threads_use_two_repositories_at_once() {
    let places = [Place::new(), Place::new()];
    thread::scope(|scope| {
        for place in &places {
            scope.spawn(|| {
                for n in 0..30 {
                    place.save(&format!("{n}")).unwrap();
                    assert!(place.checkout.status().unwrap().changes.is_empty());
                    expect("bad", place.fossil(&["no-such-command"]), Kind::Invalid, "unknown");
                }
            });
        }
    });
    for place in &places {
        assert_eq!(check_ins(place), 32);
        place.is_well("two threads");
        place.repository.verify().unwrap();
    }
}

#[test]
fn x02_two_threads_check_in_to_one_repository_and_nothing_is_lost() {
    let place = Place::new();
    let checkouts = [place.another_checkout("one"), place.another_checkout("two")];
    thread::scope(|scope| {
        for (at, checkout) in checkouts.iter().enumerate() {
            scope.spawn(move || {
                save(checkout, "begin", Some(&format!("branch-{at}"))).unwrap();
                for n in 0..30 {
                    save(checkout, &format!("{at} {n}"), None).unwrap();
                }
            });
        }
    });
    assert_eq!(check_ins(&place), 2 + 2 * 31);
    place.is_well("two threads");
    place.repository.verify().unwrap();
}

/// Makes every call of the engine wait while `f` runs.
fn while_the_engine_is_held(f: impl FnOnce()) {
    let elsewhere = Place::new();
    let (begun, has_begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(|| {
            engine::transaction(&elsewhere.path(), "ann", move |_| {
                begun.send(()).unwrap();
                // Whoever holds the other end lets go when it drops it.
                let _ = released.recv();
                Ok(())
            })
            .unwrap();
        });
        has_begun.recv().unwrap();
        f();
        drop(release);
    });
}

#[test]
fn a_call_that_gets_no_turn_in_time_is_busy_and_does_nothing() {
    let place = Place::new();
    let before = check_ins(&place);
    while_the_engine_is_held(|| {
        let save = || engine::with_timeout(Duration::from_millis(50), || place.save("too late"));
        expect("save", save(), Kind::Busy, "no turn came");
    });
    assert_eq!(check_ins(&place), before);
    assert_eq!(place.checkout.status().unwrap().changes.len(), 1);
    place.save("in time").unwrap();
    assert_eq!(check_ins(&place), before + 1);
    place.is_well("a late call");
}

#[test]
fn a_cancel_while_a_call_waits_for_its_turn_keeps_it_from_being_made() {
    let place = Place::new();
    let before = check_ins(&place);
    let cancel = Cancel::new();
    while_the_engine_is_held(|| {
        thread::scope(|scope| {
            let save = scope.spawn(|| engine::with_cancel(&cancel, || place.save("cancelled")));
            thread::sleep(Duration::from_millis(50));
            cancel.cancel();
            expect("save", save.join().unwrap(), Kind::Cancelled, "before it began");
        });
    });
    assert_eq!(check_ins(&place), before);
    assert_eq!(place.checkout.status().unwrap().changes.len(), 1);
    place.save("after all").unwrap();
    assert_eq!(check_ins(&place), before + 1);
    engine::with_cancel(&cancel, || engine::close(&place.path())).unwrap();
    place.is_well("a cancelled call");
}
