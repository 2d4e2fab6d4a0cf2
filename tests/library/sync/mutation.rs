//! Replies with bytes changed at random, the same in every run: no panic, no end without an outcome, and a
//! repository that is whole and syncs afterwards.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ocx::error::Kind;
use ocx::format::packed;
use ocx::repo::Repository;
use ocx::sync::{Connection, Limits, Reach, SyncOptions};

use super::cloned;
use crate::support::front::{Front, ask, request};
use crate::support::{Fossil, ann, remote, served};

/// How long the mutations of one kind of sync may take, in seconds, once enough of them have made it fail.
const SECONDS_MAX: u64 = 6;
const FAILURES_MIN: u64 = 6;
const ROUNDS: u64 = 120;

/// Numbers that scatter and are the same in every run.
struct Scatter(u64);

impl Scatter {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }

    /// Changes, cuts out, doubles or adds bytes in a few places.
    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len() + 1);
            let end = (at + 1 + self.below(40)).min(bytes.len());
            match self.below(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 if at < bytes.len() => bytes[at] = b"0159af \n"[self.below(8)],
                2 => drop(bytes.drain(at..end)),
                3 => {
                    let part = bytes[at..end].to_vec();
                    let to = self.below(bytes.len() + 1);
                    bytes.splice(to..to, part);
                }
                4 => drop(bytes.splice(at..at, b"99999999999999999999".iter().copied())),
                _ => bytes.truncate(bytes.len() - self.below(bytes.len() / 4 + 1)),
            }
        }
    }
}

/// A front that spoils what the server at `port` answers: its cards, and now and then the HTTP around them.
fn spoiling(port: u16, seed: Arc<Mutex<u64>>) -> Front {
    Front::new(move |mut line, count| {
        let Some(request) = request(&mut line) else { return };
        let number = count.requests.fetch_add(1, std::sync::atomic::Ordering::SeqCst) as u64;
        let mut scatter = Scatter(*seed.lock().unwrap() * 1000 + number);
        let mut reply = ask(port, &request);
        let start = reply.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
        if scatter.below(8) == 0 {
            scatter.spoil(&mut reply);
            let _ = line.write_all(&reply);
            return;
        }
        let is_packed = !String::from_utf8_lossy(&reply[..start]).contains("uncompressed");
        let body = &reply[start..];
        let mut cards = if is_packed { packed::unpack(body, 1 << 24).unwrap() } else { body.to_vec() };
        scatter.spoil(&mut cards);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-fossil-uncompressed\r\nContent-Length:";
        let _ = line.write_all(&[format!("{head} {}\r\n\r\n", cards.len()).as_bytes(), &cards].concat());
    })
}

fn quick() -> Connection {
    let limits = Limits {
        whole: Duration::from_secs(3),
        stall: Duration::from_secs(1),
        reply_bytes: 1 << 24,
        ..Limits::default()
    };
    Connection::new(&Reach { limits, ..Reach::default() }).unwrap()
}

fn never(kind: Kind) -> bool {
    matches!(kind, Kind::Internal | Kind::Cancelled | Kind::Corrupt)
}

#[test]
fn a_pull_or_push_of_spoiled_replies_ends_and_leaves_the_repository_whole() {
    let (_dir, _path, server) = served(Fossil::Reference);
    let real = server.remote("ann:secret");
    let (theirs, ours) = (cloned(&real), cloned(&real));
    let seed = Arc::new(Mutex::new(0));
    let front = spoiling(server.port, Arc::clone(&seed));
    let spoiled = remote(&front.url(), "ann:secret").over(quick());
    let start = Instant::now();
    let (mut went_well, mut failed) = (0, 0u64);
    for round in 0..ROUNDS {
        if failed >= FAILURES_MIN && start.elapsed() > Duration::from_secs(SECONDS_MAX) {
            break;
        }
        *seed.lock().unwrap() = round;
        if round % 10 == 0 {
            theirs.write("theirs.txt", format!("{round}\n").repeat(50));
            theirs.check_in(&format!("theirs {round}"), (round == 0).then_some("theirs")).unwrap();
            theirs.repository.push(&real).unwrap();
        }
        let options = match round % 3 {
            0 => SyncOptions::pull(),
            1 => SyncOptions::both().with_unversioned(),
            _ => {
                ours.write("ours.txt", format!("{round}\n"));
                ours.check_in(&format!("ours {round}"), None).unwrap();
                SyncOptions::push()
            }
        };
        match ours.repository.sync(&spoiled, &options) {
            Ok(_) => went_well += 1,
            Err(e) if never(e.kind()) => panic!("round {round}: {e:?}"),
            Err(_) => failed += 1,
        }
    }
    eprintln!("{went_well} went well, {failed} failed, in {} requests", front.requests());
    assert!(failed >= FAILURES_MIN, "the replies were spoiled");
    ours.assert_whole();
    ours.repository.sync(&real, &SyncOptions::both()).unwrap();
    theirs.repository.sync(&real, &SyncOptions::both()).unwrap();
    ours.assert_whole();
    assert_eq!(ours.check_ins(), theirs.check_ins());
}

#[test]
fn a_clone_of_spoiled_replies_is_refused_and_removed_or_whole() {
    let (dir, _path, server) = served(Fossil::Own);
    let real = server.remote("ann:secret");
    let place = cloned(&real);
    for n in 0..6 {
        place.write("a.txt", "line\n".repeat(100 + n));
        place.check_in(&format!("edit {n}"), None).unwrap();
    }
    place.repository.push(&real).unwrap();
    let seed = Arc::new(Mutex::new(0));
    let front = spoiling(server.port, Arc::clone(&seed));
    let spoiled = remote(&front.url(), "ann:secret").over(quick());
    let start = Instant::now();
    let mut refused = 0u64;
    for round in 0..ROUNDS {
        if refused >= FAILURES_MIN && start.elapsed() > Duration::from_secs(SECONDS_MAX) {
            break;
        }
        *seed.lock().unwrap() = 10_000 + round;
        let target = dir.path().join(format!("clone{round}.fossil"));
        match Repository::clone_from(&spoiled, &target, &ann()) {
            Ok(clone) => clone.verify().unwrap(),
            Err(e) => {
                assert!(!matches!(e.kind(), Kind::Internal), "round {round}: {e:?}");
                assert!(!target.exists(), "round {round}");
                refused += 1;
            }
        }
    }
    let left = std::fs::read_dir(dir.path()).unwrap().flatten();
    let hidden: Vec<_> = left.filter(|f| f.file_name().to_string_lossy().starts_with(".clone")).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
    assert!(refused >= FAILURES_MIN, "{refused} were refused");
    assert_eq!(cloned(&real).check_ins(), 7);
}
