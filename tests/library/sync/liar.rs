//! Servers that answer something else than they should: each has its outcome, and nothing here is lost by it.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use ocx::error::{Error, Kind};
use ocx::repo::Repository;
use ocx::sync::{Connection, Limits, Outcome, Reach, Remote, SyncOptions};

use super::cloned;
use crate::support::front::{Front, ask, request};
use crate::support::{Fossil, Place, ann, remote, served};

/// A front that gives these bytes for every request, and closes.
fn saying(reply: impl Into<Vec<u8>>) -> Front {
    let reply = reply.into();
    Front::new(move |mut line, _| {
        if request(&mut line).is_some() {
            let _ = line.write_all(&reply);
        }
    })
}

fn ok(content_type: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn cards(text: &str) -> Vec<u8> {
    ok("application/x-fossil-uncompressed", text.as_bytes())
}

fn quick() -> Limits {
    Limits {
        whole: Duration::from_secs(3),
        stall: Duration::from_millis(700),
        reply_bytes: 1 << 20,
        ..Limits::default()
    }
}

fn over(url: &str, limits: Limits) -> Remote {
    remote(url, "ann:secret").over(Connection::new(&Reach { limits, ..Reach::default() }).unwrap())
}

/// What pull, sync, clone and at last push say to a server.
fn each_error(place: &Place, remote: &Remote) -> Vec<Error> {
    let target = place.dir.path().join("liar.fossil");
    let errors = vec![
        place.repository.pull(remote).unwrap_err(),
        place.repository.sync(remote, &SyncOptions::both().with_unversioned()).unwrap_err(),
        Repository::clone_from(remote, &target, &ann()).unwrap_err(),
        place.repository.push(remote).unwrap_err(),
    ];
    assert!(!target.exists());
    assert!(std::fs::read_dir(place.dir.path()).unwrap().flatten().all(|f| {
        let name = f.file_name().into_string().unwrap();
        !name.contains("liar.fossil")
    }));
    errors
}

#[test]
fn each_odd_reply_has_its_outcome_and_loses_nothing() {
    let (_dir, _path, server) = served(Fossil::Reference);
    let place = cloned(&server.remote("ann:secret"));
    place.write("a.txt", "one\n");
    let made = place.check_in("first", None).unwrap();
    let long = vec![b'x'; 2 << 20];
    let huge =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/x-fossil\r\nContent-Length: 99999999999\r\n\r\nx";
    for (what, reply, kinds) in [
        ("nothing", vec![], &[Kind::Unreachable][..]),
        ("one byte", b"H".to_vec(), &[Kind::Unreachable, Kind::Refused]),
        ("continue", b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), &[Kind::Unreachable]),
        ("another protocol", b"SSH-2.0-x\r\n\r\n".to_vec(), &[Kind::Unreachable, Kind::Refused]),
        ("half a head", b"HTTP/1.1 200 OK\r\nContent-".to_vec(), &[Kind::Unreachable]),
        ("truncated", ok("application/x-fossil", &[0; 40])[..100].to_vec(), &[Kind::Unreachable]),
        ("status", b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_vec(), &[Kind::Refused]),
        ("busy", b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_vec(), &[Kind::Busy]),
        ("a page", ok("text/html", b"<h1>Hello</h1>"), &[Kind::Refused]),
        ("a page in cards", cards("<html>"), &[Kind::Refused]),
        ("too long", ok("application/x-fossil-uncompressed", &long), &[Kind::TooLarge]),
        ("a huge length", huge.to_vec(), &[Kind::Unreachable, Kind::TooLarge]),
        ("not packed", ok("application/x-fossil", b"\0\0\0\x09xxxxxxxxx"), &[Kind::Refused]),
        ("words", cards("error no\\sfive-line\\scomments\n"), &[Kind::Refused]),
        ("login", cards("error login\\sfailed\n"), &[Kind::LoginFailed]),
        ("no right", cards("error not\\sauthorized\\sto\\sdo\\sthat\n"), &[Kind::Denied]),
        ("project", cards("error wrong\\sproject\n"), &[Kind::Foreign]),
        ("locked", cards("error Database\\serror:\\sdatabase\\sis\\slocked\n"), &[Kind::Busy]),
    ] {
        let front = saying(reply);
        for e in each_error(&place, &over(&front.url(), quick())) {
            assert!(kinds.contains(&e.kind()), "{what}: {e:?}");
            assert!(e.hint().is_some(), "{what}: {e:?}");
            assert!(!format!("{e:?}").contains("secret"), "{what}: {e:?}");
        }
    }
    place.assert_whole();
    let sent = place.repository.push(&server.remote("ann:secret")).unwrap();
    assert_eq!(sent, Outcome::Sent { check_ins: 1, artifacts: 2 });
    assert!(place.repository.server_holds(&server.remote("ann:secret"), &made.hash).unwrap());
}

#[test]
fn a_server_that_says_words_is_repeated_word_for_word() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    let front = saying(cards("error a\\scomment\\sneeds\\sfour\\slines\n"));
    let e = place.repository.push(&over(&front.url(), quick())).unwrap_err();
    assert_eq!(e.kind(), Kind::Refused);
    assert!(e.to_string().contains("a comment needs four lines"), "{e}");
}

#[test]
fn a_server_that_takes_all_and_keeps_nothing_is_found_out() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    let front = saying(cards("# thank you\n"));
    for _ in 0..2 {
        let e = place.repository.push(&over(&front.url(), quick())).unwrap_err();
        assert_eq!(e.kind(), Kind::NotPushed, "{e:?}");
    }
}

#[test]
fn a_reply_without_a_length_is_taken_to_its_end() {
    let (_dir, _path, server) = served(Fossil::Own);
    let port = server.port;
    let front = Front::new(move |mut line, _| {
        let Some(request) = request(&mut line) else { return };
        let reply = ask(port, &request);
        let Some(end) = reply.windows(4).position(|w| w == b"\r\n\r\n") else { return };
        let head = String::from_utf8_lossy(&reply[..end]).into_owned();
        let kept: Vec<_> = head.lines().filter(|l| !l.to_lowercase().starts_with("content-length")).collect();
        let _ = line.write_all(&[kept.join("\r\n").as_bytes(), &reply[end..]].concat());
    });
    assert_eq!(cloned(&remote(&front.url(), "ann:secret")).check_ins(), 1);
}

#[test]
fn a_server_that_always_wants_one_more_round_is_left() {
    let place = Place::new();
    // New names again and again: each makes the client ask once more.
    let front = Front::new(|mut line, count| {
        while request(&mut line).is_some() {
            let n = count.requests.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let reply = cards(&format!("igot {n:064x}\n"));
            if line.write_all(&reply).is_err() {
                return;
            }
        }
    });
    let cancel = ocx::cancel::Cancel::new();
    let stop = cancel.clone();
    let ended = thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(Duration::from_secs(2));
            stop.cancel();
        });
        place.repository.sync(&over(&front.url(), quick()), &SyncOptions::pull().until(&cancel))
    });
    if let Err(e) = ended {
        assert!(matches!(e.kind(), Kind::Cancelled | Kind::Refused), "{e:?}");
    }
    place.assert_whole();
}

#[test]
fn a_server_that_is_silent_ends_at_the_limit() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    let front = Front::new(|mut line, _| {
        let _ = request(&mut line);
        let _ = request(&mut line);
    });
    for e in each_error(&place, &over(&front.url(), quick())) {
        assert_eq!(e.kind(), Kind::TimedOut, "{e:?}");
    }
}

#[test]
fn s08_a_server_that_drips_ends_a_push_at_the_limit_while_other_calls_are_answered() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    let front = Front::new(|mut line: TcpStream, _| {
        if request(&mut line).is_none() {
            return;
        }
        for byte in ok("application/x-fossil", &[0; 4000]) {
            if line.write_all(&[byte]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(30));
        }
    });
    let remote = over(&front.url(), Limits { whole: Duration::from_secs(2), ..quick() });
    thread::scope(|scope| {
        let push = scope.spawn(|| place.repository.push(&remote).unwrap_err());
        while front.lines() == 0 {
            thread::sleep(Duration::from_millis(5));
        }
        let mut answered = 0;
        while !push.is_finished() {
            place.write("b.txt", format!("{answered}\n"));
            place.check_in(&format!("meanwhile {answered}"), None).unwrap();
            answered += 1;
        }
        assert!(answered > 1, "{answered} check-ins were made meanwhile");
        assert_eq!(push.join().unwrap().kind(), Kind::TimedOut);
    });
    place.assert_whole();
}

/// The words and the content of each card of a clone's reply, with where its name stands.
fn compressed_files(body: &[u8]) -> Vec<(usize, Vec<String>)> {
    let (mut at, mut found) = (0, Vec::new());
    while at < body.len() {
        let end = body[at..].iter().position(|b| *b == b'\n').map_or(body.len(), |n| at + n);
        let words: Vec<_> = String::from_utf8_lossy(&body[at..end]).split(' ').map(str::to_owned).collect();
        let size = if words[0] == "cfile" { words.last().unwrap().parse().unwrap() } else { 0 };
        if words.len() == 5 {
            found.push((at + "cfile ".len(), words));
        }
        at = end + 1 + size;
    }
    found
}

#[test]
fn a_clone_in_which_two_artifacts_changed_their_names_is_refused_and_removed() {
    for &fossil in Fossil::each() {
        let (dir, path, server) = served(fossil);
        let place = cloned(&server.remote("ann:secret"));
        let mut lines: Vec<String> = (0..300).map(|n| format!("line {n}\n")).collect();
        for n in 0..8 {
            lines[n * 20] = format!("changed {n}\n");
            place.write("a.txt", lines.concat());
            place.check_in(&format!("edit {n}"), None).unwrap();
        }
        place.repository.push(&server.remote("ann:secret")).unwrap();
        let db = rusqlite::Connection::open(&path).unwrap();
        let is_file = move |hash: &str| {
            let sql = "SELECT count(*) FROM mlink JOIN blob ON rid=fid WHERE uuid=?1";
            db.query_row(sql, [hash], |row| row.get::<_, i64>(0)).unwrap() > 0
        };
        let port = server.port;
        let is_file = std::sync::Mutex::new(is_file);
        let front = Front::new(move |mut line, count| {
            let Some(request) = request(&mut line) else { return };
            let mut reply = ask(port, &request);
            let start = reply.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
            if reply[start..].starts_with(b"pragma") || reply[start..].starts_with(b"cfile") {
                let is_file = is_file.lock().unwrap();
                let files: Vec<_> = compressed_files(&reply[start..])
                    .into_iter()
                    .filter(|(_, words)| is_file(&words[1]))
                    .collect();
                if let [(one, a), (two, b), ..] = files.as_slice() {
                    reply[start + one..start + one + a[1].len()].copy_from_slice(b[1].as_bytes());
                    reply[start + two..start + two + b[1].len()].copy_from_slice(a[1].as_bytes());
                    count.requests.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                }
            }
            let _ = line.write_all(&reply);
        });
        let target = dir.path().join("c.fossil");
        let e = Repository::clone_from(&remote(&front.url(), "ann:secret"), &target, &ann()).unwrap_err();
        assert!(front.requests() > 0, "the reply was spoiled");
        assert_eq!(e.kind(), Kind::Refused, "{e:?}");
        assert!(!target.exists());
        assert_eq!(cloned(&server.remote("ann:secret")).check_ins(), 9);
    }
}
