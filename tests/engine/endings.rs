//! Each way in which Fossil's code itself ends a call, and each refusal of it.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ocx::checkout::{CheckIn, Checkout};
use ocx::engine::{self, Artifacts};
use ocx::error::Kind;
use ocx::name::User;

use super::place::{Place, expect, fossil, save};
use crate::support::{alone, ann};

#[test]
fn a_command_gives_its_output() {
    let dir = tempfile::tempdir().unwrap();
    let out = fossil(dir.path(), &["init", "-A", "ann", "r.fossil"]).unwrap();
    assert!(out.out.contains("project-id:"), "{out:?}");
    let out = fossil(dir.path(), &["timeline", "-R", "r.fossil"]).unwrap();
    assert!(out.out.contains("initial empty check-in"), "{out:?}");
}

#[test]
fn an_interrupt_ends_what_runs_for_ever_and_what_comes_and_close_all_lets_calls_begin_again() {
    // It ends the calls of the whole process.
    if !alone::is_alone(
        "endings::an_interrupt_ends_what_runs_for_ever_and_what_comes_and_close_all_lets_calls_begin_again",
        |_| {},
    ) {
        return;
    }
    let place = Place::new();
    let (begun, has_begun) = mpsc::channel();
    let in_sql = |begun: mpsc::Sender<()>| {
        let place = &place;
        move || {
            begun.send(()).unwrap();
            place.fossil(&["test-ocx-fail", "sql"]).map(drop)
        }
    };
    let in_c = |begun: mpsc::Sender<()>| {
        let place = &place;
        move || {
            begun.send(()).unwrap();
            place.fossil(&["test-ocx-fail", "endless"]).map(drop)
        }
    };
    thread::scope(|scope| {
        for number in 0..2 {
            let begun = begun.clone();
            let endless = if number == 0 { scope.spawn(in_sql(begun)) } else { scope.spawn(in_c(begun)) };
            has_begun.recv().unwrap();
            thread::sleep(Duration::from_millis(300));
            assert!(!endless.is_finished());
            engine::interrupt();
            expect("endless", endless.join().unwrap(), Kind::Cancelled, "interrupted");
            expect("the next", place.fossil(&["version"]).map(drop), Kind::Cancelled, "interrupted");
            engine::close_all();
            place.is_well("afterwards");
        }
    });
}

#[test]
fn each_way_of_ending_gives_an_error_and_the_next_call_works() {
    let place = Place::new();
    for (how, kind, words) in [
        ("fatal", Kind::Internal, "a fatal error"),
        ("panic", Kind::Internal, "a panic"),
        ("abort", Kind::Internal, "stopped itself"),
        ("exit", Kind::Internal, "exit code 3"),
        ("assert", Kind::Internal, "assertion failed in ocx_fail_cmd"),
        ("function", Kind::Internal, "failed inside an SQL function"),
        ("module", Kind::Internal, "failed inside an SQL function"),
        ("memory", Kind::TooLarge, "out of memory"),
        ("no-such-way", Kind::Invalid, "Usage:"),
    ] {
        expect(how, place.fossil(&["test-ocx-fail", how]), kind, words);
        place.is_well(how);
    }
}

#[test]
fn each_refusal_of_a_command_has_fossils_words_and_its_kind() {
    let place = Place::new();
    let hash = "1234567890123456789012345678901234567890";
    for (args, kind, words) in [
        (&["no-such-command"] as &[&str], Kind::Invalid, "unknown command"),
        (&["timeline", "--no-such-option"], Kind::Invalid, "--no-such-option"),
        (&["commit", "-m", "x"], Kind::Unchanged, "nothing has changed"),
        (&["update", "no-such-branch"], Kind::NotFound, "no-such-branch"),
        (&["branch", "new", "b", hash], Kind::NotFound, hash),
        (&["artifact", hash], Kind::NotFound, hash),
        (&["user", "password", "zed", "pw"], Kind::NotFound, "no such user"),
        (&["wiki", "export", "No such page"], Kind::NotFound, "No such page"),
        (&["init", "../r.fossil"], Kind::Exists, "r.fossil"),
        (&["open", "../r.fossil"], Kind::Exists, "is not empty"),
        (&["bundle", "import", "a.txt"], Kind::Foreign, "bundle"),
        (&["timeline", "-R", "no-such.fossil"], Kind::NotFound, "no-such.fossil"),
    ] {
        expect(&args.join(" "), place.fossil(args), kind, words);
        place.is_well(&args.join(" "));
    }
}

#[test]
fn a_nul_is_refused_wherever_it_stands() {
    let place = Place::new();
    expect("argument", place.fossil(&["timeline\0", "x"]), Kind::Invalid, "NUL");
    expect("directory", fossil(Path::new("/\0"), &["version"]), Kind::Invalid, "NUL");
    expect("user", engine::command(Path::new("/"), &["version"], Some("a\0")), Kind::Invalid, "NUL");
    expect("URL", engine::set_remote(&place.path(), Some("http://a\0"), None), Kind::Invalid, "NUL");
    place.is_well("NUL");
}

fn artifacts(place: &Place, parent: &str) -> Artifacts {
    let branch = "trunk".to_owned();
    let (manifest, manifest_hash) = (b"no manifest\n".to_vec(), "1".repeat(64));
    let parent = match parent {
        "" => place.checkout.parent().unwrap().to_string(),
        other => other.to_owned(),
    };
    let (user, contents) = ("ann".to_owned(), Vec::new());
    Artifacts {
        user,
        parent,
        branch,
        allow_fork: false,
        contents,
        manifest,
        manifest_hash,
        private: false,
        note: None,
    }
}

#[test]
fn each_refusal_of_a_check_in_leaves_nothing() {
    let place = Place::new();
    let other = place.another_checkout("other");
    place.save("second").unwrap();
    expect("fork", save(&other, "fork", None), Kind::WouldFork, "second leaf");
    place.is_well("fork");
    let unknown = Artifacts { user: "zed".into(), ..artifacts(&place, "") };
    expect("user", engine::check_in(&place.path(), unknown), Kind::NotFound, "zed");
    let orphan = artifacts(&place, &"a".repeat(40));
    expect("parent", engine::check_in(&place.path(), orphan), Kind::NotFound, "aaaa");
    let wild = artifacts(&place, "");
    expect("manifest", engine::check_in(&place.path(), wild), Kind::Invalid, "manifest");
    let tip = place.checkout.parent().unwrap();
    place.fossil(&["tag", "add", "--raw", "closed", tip.as_str()]).unwrap();
    expect("closed", place.save("on a closed leaf"), Kind::Closed, "closed");
    place.fossil(&["tag", "cancel", "--raw", "closed", tip.as_str()]).unwrap();
    place.is_well("closed");
    let early = CheckIn {
        comment: "early".into(),
        branch: None,
        user: ann(),
        time: Some("2001-01-01T00:00:00.000".into()),
    };
    fs::write(place.checkout.root().join("a.txt"), "early").unwrap();
    let e = place.checkout.check_in(&early, &place.checkout.status().unwrap());
    expect("time", e, Kind::Invalid, "behind");
    place.is_well("time");
}

#[test]
fn a_user_that_the_repository_lacks_is_named() {
    let place = Place::new();
    let zed = User::parse("zed").unwrap();
    let e = Checkout::open(&place.repository, &place.dir.path().join("z"), None, Some(&zed));
    expect("open", e, Kind::NotFound, "zed");
    place.is_well("open");
}

/// A panic of what runs within a call, and a call to the engine from there.
#[test]
fn a_panic_in_a_transaction_goes_on_in_the_caller_and_the_engine_lives() {
    let place = Place::new();
    let path = place.path();
    let panics =
        || engine::transaction(&path, "ann", |_| -> ocx::error::Result<()> { panic!("the work gives up") });
    let panic = std::panic::catch_unwind(panics).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the work gives up"));
    place.is_well("a panic");
    let inner = engine::transaction(&path, "ann", |_| Ok(fossil(Path::new("/"), &["version"]).map(drop)));
    expect("inner", inner.unwrap(), Kind::Invalid, "the work of an engine call");
    place.is_well("a call from a call");
}
