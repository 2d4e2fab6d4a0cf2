//! Push, pull, sync and clone in both directions with both Fossils.

use ocx::checkout::CheckIn;
use ocx::error::Kind;
use ocx::repo::Repository;
use ocx::sync::{Outcome, SyncOptions};

use super::{assert_derived, cloned};
use crate::support::{Fossil, ann, served};

fn both_ways(fossil: Fossil) {
    let (dir, path, server) = served(fossil);
    let remote = server.remote("ann:secret");
    let (one, two) = (cloned(&remote), cloned(&remote));
    let both = SyncOptions::both();
    for step in 0..3 {
        one.write("one.txt", format!("one {step}\n"));
        one.check_in(&format!("one {step}"), (step == 0).then_some("one")).unwrap();
        two.write("two.txt", format!("two {step}\n"));
        two.check_in(&format!("two {step}"), (step == 0).then_some("two")).unwrap();
    }
    let synced = one.repository.sync(&remote, &both).unwrap();
    assert_eq!(synced.sent, Some(Outcome::Sent { check_ins: 3, artifacts: 6 }));
    assert_eq!(synced.received, Some(Outcome::NothingToReceive));
    assert_eq!(synced.unversioned, None);
    let synced = two.repository.sync(&remote, &both).unwrap();
    assert_eq!(synced.to_string(), "sent 3 check-ins, 6 artifacts; received 6 artifacts");
    let synced = one.repository.sync(&remote, &both).unwrap();
    assert_eq!(synced.to_string(), "nothing to send; received 6 artifacts");
    assert_eq!(
        one.repository.sync(&remote, &both).unwrap().to_string(),
        "nothing to send; nothing to receive"
    );
    assert_eq!((one.check_ins(), two.check_ins()), (7, 7));

    // Plain Fossil's clone sends too, and all have the same.
    let url = server.url.replace("http://", "http://ann:secret@");
    let home = dir.path();
    for &client in Fossil::each() {
        let file = format!("{client:?}.fossil");
        client.run(home, home, &["clone", "--once", &url, &file, "-A", "ann"]);
        let tree = home.join(format!("{client:?}"));
        std::fs::create_dir(&tree).unwrap();
        client.run(home, &tree, &["open", &format!("../{file}"), "--user", "ann"]);
        std::fs::write(tree.join("plain.txt"), format!("{client:?}\n")).unwrap();
        client.run(home, &tree, &["add", "plain.txt"]);
        let branch = format!("plain{client:?}");
        client.run(home, &tree, &["commit", "-m", "by plain Fossil", "--no-warnings", "--branch", &branch]);
        client.run(home, &tree, &["sync", &url, "--once"]);
        let outcome = one.repository.pull(&remote).unwrap();
        assert_eq!(outcome, Outcome::Received { artifacts: 2 });
        assert_derived(home, &home.join(&file));
    }
    drop(server);
    assert_derived(home, &path);
    for place in [&one, &two] {
        assert_derived(place.dir.path(), place.repository.path());
        place.assert_whole();
    }
}

#[test]
fn sync_goes_both_ways_with_2_21_and_leaves_what_a_rebuild_leaves() {
    both_ways(Fossil::Reference);
}

#[test]
fn sync_goes_both_ways_with_2_28_and_leaves_what_a_rebuild_leaves() {
    both_ways(Fossil::Own);
}

#[test]
fn s03_a_sync_by_a_login_that_may_only_read_receives_and_says_that_it_did_not_send() {
    for &fossil in Fossil::each() {
        let (_dir, _path, server) = served(fossil);
        let place = cloned(&server.remote("bob:pw"));
        let other = cloned(&server.remote("ann:secret"));
        other.write("a.txt", "one\n");
        other.check_in("first", Some("other")).unwrap();
        other.repository.push(&server.remote("ann:secret")).unwrap();
        place.write("b.txt", "two\n");
        let made = place.check_in("mine", None).unwrap();
        let e = place.repository.sync(&server.remote("bob:pw"), &SyncOptions::both()).unwrap_err();
        assert_eq!(e.kind(), Kind::Denied, "{fossil:?}: {e:?}");
        assert_eq!(place.check_ins(), 3, "what the other had made is here");
        assert!(!place.repository.server_holds(&server.remote("bob:pw"), &made.hash).unwrap());
        let sent = place.repository.push(&server.remote("ann:secret")).unwrap();
        assert_eq!(sent, Outcome::Sent { check_ins: 1, artifacts: 2 });
    }
}

#[test]
fn s09_private_check_ins_go_along_only_when_asked_and_allowed() {
    for &fossil in Fossil::each() {
        let (dir, path, server) = served(fossil);
        let remote = server.remote("ann:secret");
        let place = cloned(&remote);
        place.write("a.txt", "public\n");
        place.check_in("public", None).unwrap();
        place.write("a.txt", "private\n");
        place.by(fossil, &["commit", "--private", "-m", "private", "--no-warnings"]);
        let there = || check_ins(&path);
        assert_eq!(place.repository.push(&remote).unwrap(), Outcome::Sent { check_ins: 1, artifacts: 2 });
        assert_eq!(there(), 2);
        let private = SyncOptions::push().with_private();
        let e = place.repository.sync(&server.remote("bob:pw"), &private).unwrap_err();
        assert_eq!(e.kind(), Kind::Denied, "{e:?}");
        assert_eq!(there(), 2);
        let caps = |caps: &str| {
            fossil.run(
                dir.path(),
                dir.path(),
                &["user", "capabilities", "ann", caps, "-R", path.to_str().unwrap()],
            )
        };
        caps("sx");
        let synced = place.repository.sync(&remote, &private).unwrap();
        assert_eq!(synced.sent, Some(Outcome::Sent { check_ins: 1, artifacts: 2 }), "{fossil:?}");
        assert_eq!(there(), 3);
        let other = cloned(&remote);
        assert_eq!(other.check_ins(), 2, "a clone does not bring what is private");
        other.repository.sync(&remote, &SyncOptions::pull().with_private()).unwrap();
        assert_eq!(other.check_ins(), 3);
        assert_eq!(other.sql("SELECT count(*) FROM private"), place.sql("SELECT count(*) FROM private"));
        let whole = dir.path().join("whole.fossil");
        let whole = Repository::clone_with(&remote, &whole, &ann(), &private).unwrap();
        assert_eq!(check_ins(whole.path()), 3);
        place.assert_whole();
    }
}

#[test]
fn a_fork_that_came_by_pull_is_there_for_all_to_see() {
    let (_dir, _path, server) = served(Fossil::Own);
    let remote = server.remote("ann:secret");
    let (one, two) = (cloned(&remote), cloned(&remote));
    for place in [&one, &two] {
        place.write("a.txt", place.dir.path().to_str().unwrap());
        let new = CheckIn { comment: "same parent".into(), branch: None, user: ann(), time: None };
        place.checkout.check_in(&new, &place.checkout.status().unwrap()).unwrap();
        place.repository.push(&remote).unwrap();
    }
    one.repository.pull(&remote).unwrap();
    let leaves = "SELECT count(*) FROM leaf";
    assert_eq!((one.sql(leaves), two.sql(leaves)), (2, 1));
}

/// How many check-ins a repository file has.
fn check_ins(path: &std::path::Path) -> i64 {
    let db = rusqlite::Connection::open(path).unwrap();
    db.query_row("SELECT count(*) FROM event WHERE type='ci'", [], |row| row.get(0)).unwrap()
}
