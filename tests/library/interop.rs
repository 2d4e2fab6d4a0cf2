//! The library against plain Fossil, 2.21 and 2.28, as server and as the other hand in a checkout.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Fossil, Place, Server, ann, changes, check_in, remote, served};
use ocx::checkout::{CheckIn, Checkout, How};
use ocx::error::Kind;
use ocx::name::User;
use ocx::repo::{NewRepository, Repository};
use ocx::sync::{Outcome, Remote};

/// A clone by OCX of what `server` serves, open in a folder of its own.
fn cloned(remote: &Remote) -> Place {
    let dir = tempfile::tempdir().unwrap();
    let repository = Repository::clone_from(remote, &dir.path().join("r.fossil"), &ann()).unwrap();
    Place::of(dir, repository)
}

fn holds(server: &Path, place: &Place) -> bool {
    let server = Repository::open(server).unwrap();
    server.store().holds(&place.checkout.parent().unwrap()).unwrap()
}

/// Bytes that no compression makes smaller, the same for the same seed.
fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..size).map(|_| next()).collect()
}

fn push_pull_and_clone(fossil: Fossil) {
    let (dir, path, server) = served(fossil);
    let remote = server.remote("ann:secret");
    let place = cloned(&remote);
    place.write("a.txt", "one\n");
    let made = place.check_in("first", None).unwrap();
    assert!(!place.repository.server_holds(&remote, &made.hash).unwrap());
    assert_eq!(place.repository.push(&remote).unwrap(), Outcome::Sent { check_ins: 1, artifacts: 2 });
    assert!(place.repository.server_holds(&remote, &made.hash).unwrap());
    assert_eq!(place.repository.push(&remote).unwrap(), Outcome::NothingToSend);
    let there = Repository::open(&path).unwrap();
    let receipt = there.store().receipt(&made.hash).unwrap().unwrap();
    assert_eq!(receipt.user, "ann");
    let second = cloned(&remote);
    assert_eq!(fs::read_to_string(second.path("a.txt")).unwrap(), "one\n");

    for i in 0..7 {
        place.write("a.txt", format!("{i}\n"));
        place.check_in(&format!("edit {i}"), (i == 3).then_some("side")).unwrap();
    }
    assert_eq!(place.repository.push(&remote).unwrap(), Outcome::Sent { check_ins: 7, artifacts: 14 });
    assert_eq!(second.repository.pull(&remote).unwrap(), Outcome::Received { artifacts: 14 });
    assert_eq!(second.repository.pull(&remote).unwrap(), Outcome::NothingToReceive);
    assert!(second.repository.store().holds(&place.checkout.parent().unwrap()).unwrap());
    second.checkout.update("side").unwrap();
    assert_eq!(fs::read_to_string(second.path("a.txt")).unwrap(), "6\n");
    for &fossil in Fossil::each() {
        fossil.run(dir.path(), dir.path(), &["test-integrity", "-R", path.to_str().unwrap()]);
    }
    second.assert_whole();
}

#[test]
fn push_pull_and_clone_against_2_21() {
    push_pull_and_clone(Fossil::Reference);
}

#[test]
fn push_pull_and_clone_against_2_28() {
    push_pull_and_clone(Fossil::Own);
}

fn many_and_large(fossil: Fossil) {
    let (_dir, path, server) = served(fossil);
    let remote = server.remote("ann:secret");
    let place = cloned(&remote);
    for i in 0..1000 {
        place.write(&format!("d{}/file {i}.txt", i % 10), format!("{i}\n"));
    }
    place.check_in("a thousand", None).unwrap();
    for seed in 0..4 {
        place.write(&format!("noise{seed}"), noise(seed, 200_000));
    }
    place.check_in("large", None).unwrap();
    assert_eq!(
        place.repository.push(&remote).unwrap(),
        Outcome::Sent { check_ins: 2, artifacts: 1000 + 4 + 2 }
    );
    assert!(holds(&path, &place));
    let second = cloned(&remote);
    assert_eq!(fs::read(second.path("noise3")).unwrap(), noise(3, 200_000));
    assert_eq!(fs::read_to_string(second.path("d9/file 999.txt")).unwrap(), "999\n");
    assert_eq!(second.checkout.status().unwrap().tree_hash(), place.checkout.status().unwrap().tree_hash());
}

#[test]
fn a_thousand_files_and_several_requests_arrive_at_2_21() {
    many_and_large(Fossil::Reference);
}

#[test]
fn a_thousand_files_and_several_requests_arrive_at_2_28() {
    many_and_large(Fossil::Own);
}

fn each_refusal_has_its_kind(fossil: Fossil) {
    let (dir, path, server) = served(fossil);
    let remote = server.remote("ann:secret");
    let place = cloned(&remote);
    place.repository.set_remote(Some(&remote), true).unwrap();
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    for (login, kind) in
        [("ann:wrong", Kind::LoginFailed), ("carol:pw", Kind::LoginFailed), ("bob:pw", Kind::Denied)]
    {
        let e = place.repository.push(&server.remote(login)).unwrap_err();
        assert_eq!(e.kind(), kind, "{login}: {e}");
        assert!(!format!("{e} {e:?} {:?}", e.hint()).contains("wrong"), "{e:?}");
        assert!(!holds(&path, &place));
    }
    let e = place.repository.push(&Remote::parse(&server.url).unwrap()).unwrap_err();
    assert_eq!(e.kind(), Kind::Denied, "without a login: {e}");
    // bob may read.
    assert_eq!(place.repository.pull(&server.remote("bob:pw")).unwrap(), Outcome::NothingToReceive);
    let e = place.repository.pull(&server.remote("ann:wrong")).unwrap_err();
    assert_eq!(e.kind(), Kind::LoginFailed, "{e}");

    let other = Repository::create(&dir.path().join("o.fossil"), &NewRepository { user: ann() }).unwrap();
    for result in [other.push(&remote), other.pull(&remote)] {
        let e = result.unwrap_err();
        assert_eq!(e.kind(), Kind::Foreign, "{e}");
    }
    let url = server.url.clone();
    drop(server);
    for result in [place.repository.push(&remote), place.repository.pull(&remote)] {
        let e = result.unwrap_err();
        assert_eq!(e.kind(), Kind::Unreachable, "{e}");
    }
    let target = place.dir.path().join("none.fossil");
    let e = Repository::clone_from(&remote, &target, &ann()).unwrap_err();
    assert_eq!(e.kind(), Kind::Unreachable, "{e}");
    assert!(!target.exists());
    // What failed is sent once the server is back, and the remembered remote is still the same (S06).
    assert_eq!(place.repository.remote().unwrap().unwrap().url(), url);
    let server = Server::start(fossil, dir.path(), &path);
    assert_eq!(
        place.repository.push(&server.remote("ann:secret")).unwrap(),
        Outcome::Sent { check_ins: 1, artifacts: 2 }
    );
    assert_eq!(place.repository.remote().unwrap().unwrap().url(), url);
}

#[test]
fn s01_s02_s03_s06_each_refusal_of_2_21_has_its_kind() {
    each_refusal_has_its_kind(Fossil::Reference);
}

#[test]
fn s01_s02_s03_s06_each_refusal_of_2_28_has_its_kind() {
    each_refusal_has_its_kind(Fossil::Own);
}

#[test]
fn clone_says_why_a_server_refused_and_leaves_nothing() {
    for &fossil in Fossil::each() {
        let (dir, path, server) = served(fossil);
        fossil.run(
            dir.path(),
            dir.path(),
            &["user", "capabilities", "nobody", "", "-R", path.to_str().unwrap()],
        );
        fossil.run(
            dir.path(),
            dir.path(),
            &["user", "capabilities", "bob", "h", "-R", path.to_str().unwrap()],
        );
        let target = dir.path().join("c.fossil");
        for login in ["ann:wrong", "bob:pw"] {
            let e = Repository::clone_from(&server.remote(login), &target, &ann()).unwrap_err();
            let kinds = [Kind::LoginFailed, Kind::Denied];
            assert!(kinds.contains(&e.kind()), "{fossil:?} {login}: {e:?}");
            assert!(!target.exists());
        }
    }
}

/// What a proxy does with the connection after the request of this number, from 0.
type Spoil = fn(request: usize, reply: Vec<u8>) -> Option<Vec<u8>>;

/// A proxy on loopback before a server: hands each request on and lets `spoil` do something to the reply.
struct Proxy {
    url: String,
    stopped: Arc<AtomicBool>,
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Proxy {
    fn before(server: u16, delay: Duration, spoil: Spoil) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stopped = Arc::new(AtomicBool::new(false));
        let requests = Arc::new(AtomicUsize::new(0));
        let (stop, count) = (Arc::clone(&stopped), Arc::clone(&requests));
        thread::spawn(move || {
            for client in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let mut client = client.unwrap();
                let request = read_request(&mut client);
                let mut to = TcpStream::connect(("127.0.0.1", server)).unwrap();
                to.write_all(&request).unwrap();
                let mut reply = Vec::new();
                let _ = to.read_to_end(&mut reply);
                thread::sleep(delay);
                if let Some(reply) = spoil(count.fetch_add(1, Ordering::SeqCst), reply) {
                    let _ = client.write_all(&reply);
                }
            }
        });
        Self { url: format!("http://127.0.0.1:{port}"), stopped, port, requests }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn read_request(client: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    let mut part = [0; 8192];
    loop {
        let n = client.read(&mut part).unwrap();
        request.extend_from_slice(&part[..n]);
        let Some(head) = request.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&request[..head]).to_lowercase();
        let length = text
            .lines()
            .find_map(|l| l.strip_prefix("content-length:"))
            .map_or(0, |n| n.trim().parse::<usize>().unwrap());
        if n == 0 || request.len() >= head + 4 + length {
            return request;
        }
    }
}

#[test]
fn s04_a_push_whose_reply_was_lost_is_found_on_the_server() {
    for &fossil in Fossil::each() {
        let (_dir, path, server) = served(fossil);
        let place = cloned(&server.remote("ann:secret"));
        place.write("a.txt", "one\n");
        let made = place.check_in("first", None).unwrap();
        let proxy = Proxy::before(server.port, Duration::ZERO, |n, reply| (n > 0).then_some(reply));
        let outcome = place.repository.push(&remote(&proxy.url, "ann:secret")).unwrap();
        assert!(matches!(outcome, Outcome::Sent { check_ins: 1, .. }), "{outcome:?}");
        assert!(holds(&path, &place));
        assert_eq!(place.repository.push(&server.remote("ann:secret")).unwrap(), Outcome::NothingToSend);
        let there = Repository::open(&path).unwrap();
        assert_eq!(there.store().receipt(&made.hash).unwrap().unwrap().user, "ann");
        assert!(proxy.requests.load(Ordering::SeqCst) >= 2);
    }
}

#[test]
fn a_push_of_many_check_ins_asks_for_the_last_alone() {
    let (_dir, path, server) = served(Fossil::Reference);
    let place = cloned(&server.remote("ann:secret"));
    for i in 0..30 {
        place.write("a.txt", format!("{i}\n"));
        place.check_in(&format!("edit {i}"), None).unwrap();
    }
    let proxy = Proxy::before(server.port, Duration::ZERO, |_, reply| Some(reply));
    let outcome = place.repository.push(&remote(&proxy.url, "ann:secret")).unwrap();
    assert_eq!(outcome, Outcome::Sent { check_ins: 30, artifacts: 60 });
    assert!(holds(&path, &place));
    let requests = proxy.requests.load(Ordering::SeqCst);
    assert!(requests < 8, "{requests} requests");
}

#[test]
fn s04_a_push_of_which_nothing_is_heard_stays_unsent_and_is_resumed() {
    let (_dir, path, server) = served(Fossil::Reference);
    let place = cloned(&server.remote("ann:secret"));
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    let proxy = Proxy::before(server.port, Duration::ZERO, |_, _| None);
    let e = place.repository.push(&remote(&proxy.url, "ann:secret")).unwrap_err();
    assert_eq!(e.kind(), Kind::Unreachable, "{e}");
    // The server has stored it; the next push says that it is there and makes no second one.
    assert!(holds(&path, &place));
    let outcome = place.repository.push(&server.remote("ann:secret")).unwrap();
    assert!(matches!(outcome, Outcome::NothingToSend | Outcome::Sent { check_ins: 1, .. }), "{outcome:?}");
    assert_eq!(place.repository.push(&server.remote("ann:secret")).unwrap(), Outcome::NothingToSend);
}

#[test]
fn a_slow_server_is_waited_for_without_a_lock_on_the_repository() {
    let (_dir, path, server) = served(Fossil::Reference);
    let place = cloned(&server.remote("ann:secret"));
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    let proxy = Proxy::before(server.port, Duration::from_millis(900), |_, reply| Some(reply));
    let remote = remote(&proxy.url, "ann:secret");
    let repository = place.repository.clone();
    let push = thread::spawn(move || repository.push(&remote).unwrap());
    thread::sleep(Duration::from_millis(300));
    let db = rusqlite::Connection::open(place.repository.path()).unwrap();
    db.busy_timeout(Duration::ZERO).unwrap();
    db.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
    assert!(matches!(push.join().unwrap(), Outcome::Sent { check_ins: 1, .. }));
    assert!(holds(&path, &place));
}

#[test]
fn s05_a_redirect_elsewhere_is_refused_naming_the_target() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    for target in ["file:///etc/passwd", "ssh://-oProxyCommand=x/", "http://other.invalid/x"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let reply = format!(
            "HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            read_request(&mut client);
            client.write_all(reply.as_bytes()).unwrap();
        });
        let e = place.repository.push(&remote(&url, "ann:secret")).unwrap_err();
        server.join().unwrap();
        assert_eq!(e.kind(), Kind::Refused, "{e}");
        let named = target.split("://").nth(1).unwrap().split('/').next().unwrap();
        assert!(e.to_string().contains(named) || e.to_string().contains(target), "{e}");
        assert!(place.repository.remote().unwrap().is_none());
    }
}

#[test]
fn a_lying_server_is_refused_and_the_repository_stays_whole() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    for reply in ["", "x", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", "HTTP/1.1 500 No\r\n\r\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            read_request(&mut client);
            let _ = client.write_all(reply.as_bytes());
        });
        let e = place.repository.push(&remote(&format!("http://127.0.0.1:{port}"), "ann:x")).unwrap_err();
        server.join().unwrap();
        assert!(matches!(e.kind(), Kind::Refused | Kind::Unreachable), "{reply}: {e:?}");
    }
    place.assert_whole();
}

#[test]
fn s09_what_is_private_stays_here() {
    for &fossil in Fossil::each() {
        let (_dir, path, server) = served(fossil);
        let remote = server.remote("ann:secret");
        let place = cloned(&remote);
        place.write("secret.txt", "private\n");
        place.fossil(&["add", "secret.txt"]);
        place.fossil(&["commit", "--private", "-m", "hidden", "--no-warnings"]);
        let hidden = place.checkout.parent().unwrap();
        assert_eq!(place.repository.push(&remote).unwrap(), Outcome::NothingToSend);
        assert!(!holds(&path, &place));
        place.write("secret.txt", "more\n");
        let e = place.check_in("on top of it", None).unwrap_err();
        assert_eq!(e.kind(), Kind::Denied, "{e}");
        // A clone of the file leaves it out too.
        let copy = Repository::clone_file(
            place.repository.path(),
            &place.dir.path().join("copy.fossil"),
            &place.user,
        )
        .unwrap();
        assert!(!copy.store().holds(&hidden).unwrap());
        place.assert_whole();
    }
}

#[test]
fn what_ocx_writes_survives_rebuild_and_sync_by_both() {
    for &fossil in Fossil::each() {
        let (dir, path, server) = served(fossil);
        let place = cloned(&server.remote("ann:secret"));
        place.write("a b/é.txt", "one\n");
        place.write("-dash", "");
        place.write("star*.txt", "x");
        place.check_in("first\ncomment with \\ and\ttab", None).unwrap();
        place.write("-dash", "now");
        place.check_in("branch", Some("side")).unwrap();
        let repository = place.repository.path().to_str().unwrap().to_owned();
        let url = server.url.replace("http://", "http://ann:secret@");
        let other = if fossil == Fossil::Reference { Fossil::Own } else { Fossil::Reference };
        for client in [other, fossil] {
            let before = (place.by(client, &["ls"]), place.by(client, &["timeline", "-t", "ci"]));
            place.by(client, &["rebuild", &repository]);
            place.assert_whole();
            place.by(client, &["sync", &url, "--once"]);
            assert_eq!((place.by(client, &["ls"]), place.by(client, &["timeline", "-t", "ci"])), before);
            assert_eq!(
                place.by(client, &["cat", "-dash"].map(|a| if a == "-dash" { "./-dash" } else { a })),
                "now"
            );
            assert!(place.by(client, &["branch", "list"]).contains("* side"));
            assert!(place.by(client, &["tag", "list"]).contains("trunk"));
            assert_eq!(place.by(client, &["changes"]), "");
            assert!(place.by(client, &["timeline", "-t", "ci"]).contains("first comment with \\ and tab"));
        }
        assert!(holds(&path, &place));
        for &fossil in Fossil::each() {
            fossil.run(dir.path(), dir.path(), &["rebuild", path.to_str().unwrap()]);
            fossil.run(dir.path(), dir.path(), &["test-integrity", "-R", path.to_str().unwrap()]);
        }
    }
}

#[test]
fn three_hands_take_turns_in_one_checkout() {
    let place = Place::new();
    let mut expected = BTreeMap::new();
    for turn in 0..9 {
        let name = format!("f{}.txt", turn % 4);
        let content = format!("turn {turn}\n");
        place.write(&name, &content);
        expected.insert(name.clone(), content);
        assert_eq!(place.changes().len(), 1, "turn {turn}");
        match turn % 3 {
            0 => drop(place.check_in(&format!("turn {turn}"), None).unwrap()),
            hand => {
                let fossil = Fossil::BOTH[hand - 1];
                place.by(fossil, &["addremove"]);
                let comment = format!("turn {turn}");
                place.by(fossil, &["commit", "-m", &comment, "--no-warnings", "--hash"]);
            }
        }
        assert_eq!(place.changes(), []);
        for &fossil in Fossil::each() {
            assert_eq!(place.by(fossil, &["changes", "--hash"]), "", "turn {turn} {fossil:?}");
            assert_eq!(place.by(fossil, &["extras"]), "");
            let parent = place.checkout.parent().unwrap();
            assert!(place.by(fossil, &["status"]).contains(&parent.as_str()[..40]));
        }
    }
    for (name, content) in &expected {
        assert_eq!(&place.by(Fossil::Own, &["cat", name]), content);
    }
    assert_eq!(place.check_ins(), 10);
    place.assert_whole();
}

#[test]
fn undo_after_a_check_in_does_no_harm() {
    for &fossil in Fossil::each() {
        let place = Place::new();
        place.write("a.txt", "one\n");
        let first = place.check_in("first", None).unwrap();
        place.write("a.txt", "two\n");
        place.check_in("second", None).unwrap();
        place.by(fossil, &["update", first.hash.as_str()]);
        place.write("b.txt", "b\n");
        let side = place.check_in("side", Some("side")).unwrap();
        // Nothing that was before the check-in may be undone after it.
        let out = fossil.command(place.dir.path(), place.checkout.root(), &["undo"]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(said.contains("nothing to undo") || said.contains("no undo"), "{said}");
        assert_eq!(place.checkout.parent().unwrap(), side.hash);
        assert_eq!(place.changes(), []);
        assert_eq!(fs::read_to_string(place.path("a.txt")).unwrap(), "one\n");
        assert_eq!(fs::read_to_string(place.path("b.txt")).unwrap(), "b\n");
    }
}

#[test]
fn a_merge_that_is_pending_becomes_a_parent() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    let base = place.check_in("base", None).unwrap();
    place.write("side.txt", "side\n");
    let side = place.check_in("side", Some("side")).unwrap();
    place.checkout.update(base.hash.as_str()).unwrap();
    place.write("main.txt", "main\n");
    let main = place.check_in("main", None).unwrap();
    place.fossil(&["merge", "side"]);
    let merge = place.check_in("merge", None).unwrap();
    let manifest = place.repository.store().manifest(&merge.hash).unwrap();
    assert_eq!(manifest.parents, [main.hash, side.hash]);
    assert_eq!(place.fossil(&["cat", "side.txt"]), "side\n");
    assert_eq!(place.fossil(&["changes"]), "");
    assert_eq!(place.sql("SELECT count(*) FROM plink WHERE NOT isprim"), 1);

    place.write("pick.txt", "pick\n");
    let picked = place.check_in("pick me", Some("other")).unwrap();
    place.checkout.update("trunk").unwrap();
    place.fossil(&["merge", "--cherrypick", picked.hash.as_str()]);
    let made = place.check_in("picked", None).unwrap();
    let manifest = place.repository.store().manifest(&made.hash).unwrap();
    assert_eq!(manifest.parents, [merge.hash]);
    assert_eq!(manifest.cherrypicks.len(), 1);
    assert_eq!(manifest.cherrypicks[0].target, picked.hash);
    place.fossil(&["merge", "--backout", made.hash.as_str()]);
    let made = place.check_in("taken back", None).unwrap();
    assert!(place.repository.store().manifest(&made.hash).unwrap().cherrypicks[0].backout);
    assert!(!place.path("pick.txt").exists());
    place.assert_whole();
    place.fossil(&["rebuild", place.repository.path().to_str().unwrap()]);
    assert_eq!(place.sql("SELECT count(*) FROM cherrypick"), 2);
}

#[test]
fn repositories_of_the_sha1_era_keep_their_hashes() {
    for args in [["--sha1"].as_slice(), &[]] {
        let place = Place::by_plain_fossil(args);
        place.write("a.txt", "one\n");
        if args.is_empty() {
            place.fossil(&["hash-policy", "sha1"]);
        }
        let made = place.check_in("first", None).unwrap();
        assert_eq!(made.hash.as_str().len(), 40, "{args:?}");
        place.write("b.txt", "two\n");
        place.fossil(&["add", "b.txt"]);
        place.fossil(&["commit", "-m", "by fossil", "--no-warnings"]);
        assert_eq!(place.changes(), []);
        // A new policy gives new content new names and leaves the old ones.
        place.fossil(&["hash-policy", "sha3"]);
        place.write("b.txt", "three\n");
        let made = place.check_in("sha3", None).unwrap();
        assert_eq!(made.hash.as_str().len(), 64);
        assert_eq!(place.fossil(&["changes", "--hash"]), "");
        let lengths: Vec<_> = {
            let status = place.checkout.status().unwrap();
            status.files.values().map(|f| f.hash.as_str().len()).collect()
        };
        assert_eq!(lengths, [40, 64]);
        place.assert_whole();
    }
}

#[test]
fn auto_hash_policy_turns_to_sha3_once_a_sha3_name_is_there() {
    let place = Place::by_plain_fossil(&["--sha1"]);
    place.fossil(&["hash-policy", "auto"]);
    place.write("a.txt", "one\n");
    let made = place.check_in("first", None).unwrap();
    assert_eq!(made.hash.as_str().len(), 40);
    place.fossil(&["hash-policy", "sha3"]);
    place.write("a.txt", "two\n");
    place.check_in("second", None).unwrap();
    place.fossil(&["hash-policy", "auto"]);
    place.write("a.txt", "three\n");
    let made = place.check_in("third", None).unwrap();
    assert_eq!(made.hash.as_str().len(), 64);
}

#[test]
fn delta_manifests_are_read_and_followed() {
    for &fossil in Fossil::each() {
        let place = Place::new();
        for i in 0..60 {
            place.write(&format!("f{i}.txt"), format!("{i}\n"));
        }
        place.check_in("first", None).unwrap();
        for edit in 0..4 {
            place.write("f3.txt", format!("edit {edit}\n"));
            fs::remove_file(place.path(&format!("f{}.txt", 10 + edit))).unwrap();
            place.by(fossil, &["addremove"]);
            place.by(fossil, &["commit", "--delta", "-m", "delta", "--no-warnings", "--hash"]);
            let parent = place.checkout.parent().unwrap();
            assert!(place.repository.store().manifest(&parent).unwrap().baseline.is_some());
            assert_eq!(place.changes(), []);
        }
        place.write("f3.txt", "by ocx\n");
        place.check_in("whole again", None).unwrap();
        assert_eq!(place.fossil(&["ls"]).lines().count(), 56);
        assert_eq!(place.fossil(&["changes", "--hash"]), "");
        place.assert_whole();
    }
}

#[test]
fn a_checkout_whose_repository_was_replaced_by_a_clone_goes_on() {
    let (_dir, _path, server) = served(Fossil::Reference);
    let remote = server.remote("ann:secret");
    let place = cloned(&remote);
    for i in 0..5 {
        place.write(&format!("f{i}.txt"), format!("{i}\n"));
        place.check_in(&format!("edit {i}"), None).unwrap();
    }
    place.repository.push(&remote).unwrap();
    let parent = place.checkout.parent().unwrap();
    // The clone numbers its artifacts otherwise.
    let fresh = place.dir.path().join("fresh.fossil");
    let clone = Repository::clone_from(&remote, &fresh, &User::parse("ann").unwrap()).unwrap();
    let number = |repository: &Repository| -> i64 {
        let db = rusqlite::Connection::open(repository.path()).unwrap();
        db.query_row("SELECT rid FROM blob WHERE uuid=?1", [parent.as_str()], |row| row.get(0)).unwrap()
    };
    assert_ne!(number(&clone), number(&place.repository), "the test needs other numbers");
    drop(clone);
    let old = place.repository.path().to_owned();
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", old.display()));
        let from = format!("{}{end}", fresh.display());
        if Path::new(&from).exists() {
            fs::rename(from, format!("{}{end}", old.display())).unwrap();
        }
    }
    let checkout = Checkout::at(place.checkout.root()).unwrap();
    assert_eq!(checkout.parent().unwrap(), parent);
    assert_eq!(changes(&checkout), []);
    fs::write(place.path("f1.txt"), "changed\n").unwrap();
    let made = check_in(&checkout, "on the clone", None).unwrap();
    for &fossil in Fossil::each() {
        assert_eq!(place.by(fossil, &["changes", "--hash"]), "");
        assert!(place.by(fossil, &["status"]).contains(&made.hash.as_str()[..40]));
        assert_eq!(place.by(fossil, &["cat", "f1.txt"]), "changed\n");
        assert_eq!(place.by(fossil, &["cat", "f2.txt"]), "2\n");
        assert_eq!(place.by(fossil, &["cat", "f2.txt", "-r", "current"]), "2\n");
    }
    // Update must not read the wrong contents by their old numbers.
    checkout.update(parent.as_str()).unwrap();
    assert_eq!(fs::read_to_string(place.path("f1.txt")).unwrap(), "1\n");
    assert_eq!(changes(&checkout), []);
}

#[test]
fn update_over_the_same_files_that_fossil_edited_gives_conflicts_by_name() {
    let place = Place::new();
    place.write("a.txt", "1\n2\n3\n");
    place.write("b.txt", "1\n");
    let first = place.check_in("first", None).unwrap();
    place.write("a.txt", "1\nmine\n3\n");
    fs::remove_file(place.path("b.txt")).unwrap();
    place.check_in("second", None).unwrap();
    place.checkout.update(first.hash.as_str()).unwrap();
    assert_eq!(place.changes(), []);
    place.write("a.txt", "1\nyours\n3\n");
    place.write("b.txt", "1\nmore\n");
    place.write("untracked.txt", "kept\n");
    let updated = place.checkout.update("trunk").unwrap();
    assert!(updated.conflicts.contains(&"a.txt".to_owned()), "{updated:?}");
    assert!(fs::read_to_string(place.path("a.txt")).unwrap().contains("yours"));
    assert_eq!(fs::read_to_string(place.path("untracked.txt")).unwrap(), "kept\n");
    assert!(place.changes().contains(&("untracked.txt".into(), How::Added)));
}

#[test]
fn a_receipt_names_the_login_and_not_who_the_check_in_claims() {
    for &fossil in Fossil::each() {
        let (dir, path, server) = served(fossil);
        let caps = ["user", "capabilities", "bob", "goi", "-R", path.to_str().unwrap()];
        fossil.run(dir.path(), dir.path(), &caps);
        let place = cloned(&server.remote("ann:secret"));
        place.write("a.txt", "one\n");
        let status = place.checkout.status().unwrap();
        let by_ann = CheckIn { comment: "by ann".into(), branch: None, user: ann(), time: None };
        let made = place.checkout.check_in(&by_ann, &status).unwrap();
        place.repository.push(&server.remote("bob:pw")).unwrap();
        let there = Repository::open(&path).unwrap();
        assert_eq!(there.store().receipt(&made.hash).unwrap().unwrap().user, "bob");
        assert_eq!(there.store().check_in(&made.hash).unwrap().user, "ann");
    }
}

#[test]
fn plain_fossil_is_whole_as_a_subcommand() {
    let place = Place::new();
    let (home, root) = (place.dir.path(), place.checkout.root());
    let run = |args: &[&str]| place.by(Fossil::Own, args);
    assert!(run(&["version"]).contains("2.28"));
    assert!(run(&["help"]).contains("fossil help"));
    place.write("a.txt", "one\n");
    run(&["add", "a.txt"]);
    run(&["commit", "-m", "by the command", "--no-warnings"]);
    assert_eq!(run(&["sql", "SELECT count(*) FROM event"]).trim(), "2");
    assert!(run(&["json", "version"]).contains("manifestUuid"));
    assert!(run(&["timeline"]).contains("by the command"));
    place.write("a.txt", "one more\n");
    assert!(run(&["diff"]).contains("+one more"));
    run(&["uv", "add", "a.txt"]);
    assert_eq!(run(&["uv", "cat", "a.txt"]), "one more\n");
    run(&["wiki", "create", "Page", "a.txt"]);
    assert_eq!(run(&["wiki", "export", "Page"]).trim(), "one more");
    run(&["bundle", "export", "b.bundle", "--branch", "trunk"]);
    assert!(run(&["bundle", "ls", "b.bundle"]).contains("check-in to trunk by ann"));
    // It starts itself by its own name and the word before the command.
    assert!(run(&["all", "info"]).contains("project-code"));
    let repository = format!("file://{}", place.repository.path().display());
    run(&["clone", &repository, "clone.fossil"]);
    let gone = Fossil::Own.command(home, root, &["no-such-command"]).output().unwrap();
    assert_eq!(gone.status.code(), Some(1));
    let mut http = Command::new(env!("CARGO_BIN_EXE_ocx"));
    let mut child = http
        .args(["fossil", "http"])
        .arg(place.repository.path())
        .env("FOSSIL_HOME", home)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"GET /timeline HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).starts_with("HTTP/1.0 200"), "{out:?}");
}
