//! What a server lets fall without a word, and what is not sent for a setting here.

use ocx::error::Kind;
use ocx::repo::Repository;
use ocx::sync::{Outcome, SyncOptions};

use super::cloned;
use crate::support::{Fossil, ann, served};

/// Two contents at once: one that the server has shunned, and one that it takes.
#[test]
fn s12_a_push_of_what_the_server_has_shunned_names_it_and_breaks_no_later_clone() {
    for &fossil in Fossil::each() {
        let (dir, path, server) = served(fossil);
        let place = cloned(&server.remote("ann:secret"));
        place.write("s.txt", "secret\n");
        place.write("good.txt", "good\n");
        let made = place.check_in("both", None).unwrap();
        let files = place.repository.store().files(&made.hash).unwrap();
        let shunned = files.iter().find(|(path, _)| path.as_str() == "s.txt").unwrap().1.hash;
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute("INSERT INTO shun(uuid, mtime) VALUES(?1, 0)", [shunned.as_str()]).unwrap();
        drop(db);
        let e = place.repository.push(&server.remote("ann:secret")).unwrap_err();
        assert_eq!(e.kind(), Kind::NotPushed, "{e}");
        assert!(e.to_string().contains("`s.txt`") && !e.to_string().contains("good.txt"), "{e}");
        assert!(e.hint().unwrap().contains("shunned"), "{e:?}");
        assert!(place.repository.server_holds(&server.remote("ann:secret"), &made.hash).unwrap());
        // It was said, and the next push has nothing to send.
        let next = place.repository.push(&server.remote("ann:secret")).unwrap();
        assert_eq!(next, Outcome::NothingToSend);
        let clone =
            Repository::clone_from(&server.remote("ann:secret"), &dir.path().join("later.fossil"), &ann());
        let clone = clone.unwrap();
        assert!(clone.store().holds(&made.hash).unwrap());
        assert!(!clone.store().holds(&shunned).unwrap());
        let pulled = clone.sync(&server.remote("ann:secret"), &SyncOptions::pull()).unwrap();
        assert_eq!(pulled.received, Some(Outcome::NothingToReceive));
    }
}

#[test]
fn a_pull_says_what_the_server_does_not_give() {
    let (_dir, path, server) = served(Fossil::Own);
    let (one, two) = (cloned(&server.remote("ann:secret")), cloned(&server.remote("ann:secret")));
    one.write("s.txt", "secret\n");
    let made = one.check_in("with a secret", None).unwrap();
    one.repository.push(&server.remote("ann:secret")).unwrap();
    let content = one.repository.store().files(&made.hash).unwrap().values().next().unwrap().hash;
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute("INSERT INTO shun(uuid, mtime) VALUES(?1, 0)", [content.as_str()]).unwrap();
    drop(db);
    let pulled = two.repository.sync(&server.remote("ann:secret"), &SyncOptions::pull()).unwrap();
    assert_eq!(pulled.gaps, [content]);
    assert!(pulled.to_string().contains(content.short()), "{pulled}");
    assert!(two.repository.store().holds(&made.hash).unwrap());
}

#[test]
fn s13_where_dont_push_is_on_nothing_is_sent_and_the_setting_is_named() {
    let (_dir, _path, server) = served(Fossil::Own);
    let place = cloned(&server.remote("ann:secret"));
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    place.fossil(&["settings", "dont-push", "on"]);
    for options in [SyncOptions::push(), SyncOptions::both()] {
        let e = place.repository.sync(&server.remote("ann:secret"), &options).unwrap_err();
        assert_eq!(e.kind(), Kind::Refused);
        assert!(e.to_string().contains("dont-push"), "{e}");
        assert!(e.hint().unwrap().contains("Turn that setting off"), "{e:?}");
    }
    assert_eq!(place.repository.pull(&server.remote("ann:secret")).unwrap(), Outcome::NothingToReceive);
    place.fossil(&["settings", "dont-push", "off"]);
    let sent = place.repository.push(&server.remote("ann:secret")).unwrap();
    assert_eq!(sent, Outcome::Sent { check_ins: 1, artifacts: 2 });
}

/// Only the child of a private check-in is public, or a check-in with children is shunned.
#[test]
fn a_check_in_whose_parent_the_server_does_not_give_is_cloned_and_pulled_with_the_gap() {
    for &fossil in Fossil::each() {
        let (dir, path, server) = served(fossil);
        let before = cloned(&server.remote("ann:secret"));
        let place = cloned(&server.remote("ann:secret"));
        let mut made = Vec::new();
        for n in 0..3 {
            place.write("a.txt", format!("{n}\n"));
            made.push(place.check_in(&format!("{n}"), None).unwrap().hash);
        }
        place.repository.push(&server.remote("ann:secret")).unwrap();
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute("INSERT INTO shun(uuid, mtime) VALUES(?1, 0)", [made[1].as_str()]).unwrap();
        drop(db);
        let remote = server.remote("ann:secret");
        let clone = Repository::clone_from(&remote, &dir.path().join("later.fossil"), &ann()).unwrap();
        assert!(clone.store().holds(&made[2]).unwrap() && !clone.store().holds(&made[1]).unwrap());
        assert_eq!(clone.store().phantoms().unwrap(), [made[1]]);
        let pulled = before.repository.sync(&remote, &SyncOptions::pull()).unwrap();
        assert_eq!(pulled.gaps, [made[1]]);
        for repository in [&clone, &before.repository] {
            assert!(repository.store().holds(&made[2]).unwrap());
            let again = repository.sync(&remote, &SyncOptions::pull()).unwrap();
            assert_eq!(again.received, Some(Outcome::NothingToReceive));
        }
    }
}
