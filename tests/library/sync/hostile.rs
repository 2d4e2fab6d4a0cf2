//! Servers that are made to hurt: what they send is bounded, judged before anything is linked, and never becomes control.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use md5::Md5;
use ocx::error::Kind;
use ocx::format::packed;
use ocx::repo::Repository;
use ocx::sync::{Connection, Limits, Outcome, Reach, Remote, SyncOptions};
use sha1::{Digest, Sha1};

use crate::support::front::{Front, request};
use crate::support::{Place, ann, remote};

const CODE: &str = "0123456789012345678901234567890123456789";

/// What a server answers to request `n`, from 0.
type Answer = Box<dyn Fn(usize) -> Vec<u8> + Send + Sync>;

/// A server that answers request `n`, from 0, with these cards; and the bodies of the requests.
fn answering(answer: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static) -> Front {
    let asked = AtomicUsize::new(0);
    Front::new(move |mut line, counted| {
        while request(&mut line).is_some() {
            counted.requests.fetch_add(1, Ordering::SeqCst);
            let cards = answer(asked.fetch_add(1, Ordering::SeqCst));
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/x-fossil-uncompressed\r\nContent-Length: {}\r\n\r\n",
                cards.len()
            );
            if line.write_all(&[head.as_bytes(), &cards].concat()).is_err() {
                return;
            }
        }
    })
}

fn within(front: &Front, limits: Limits) -> Remote {
    remote(&front.url(), "ann:secret").over(Connection::new(&Reach { limits, ..Reach::default() }).unwrap())
}

fn usual(front: &Front) -> Remote {
    within(front, Limits { whole: Duration::from_secs(10), ..Limits::default() })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, b| text + &format!("{b:02x}"))
}

fn sha1(bytes: &[u8]) -> String {
    hex(&Sha1::digest(bytes))
}

fn with_z(cards: &str) -> Vec<u8> {
    format!("{cards}Z {}\n", hex(&Md5::digest(cards.as_bytes()))).into_bytes()
}

/// A card line with its content.
fn card(line: &str, content: &[u8]) -> Vec<u8> {
    [line.as_bytes(), b"\n", content, b"\n"].concat()
}

fn file(content: &[u8]) -> Vec<u8> {
    card(&format!("file {} {}", sha1(content), content.len()), content)
}

/// The content in Fossil's packed form, with a size of one's own.
fn cfile(content: &[u8], claimed: u32) -> Vec<u8> {
    let mut packed = packed::pack(content).unwrap();
    packed[..4].copy_from_slice(&claimed.to_be_bytes());
    card(&format!("cfile {} {} {}", sha1(content), content.len(), packed.len()), &packed)
}

/// Everything of a repository but its free pages, as text.
fn dump(repository: &Repository) -> Vec<String> {
    let db = rusqlite::Connection::open(repository.path()).unwrap();
    let mut rows = Vec::new();
    for table in [
        "blob",
        "delta",
        "event",
        "phantom",
        "private",
        "tagxref",
        "plink",
        "mlink",
        "config",
        "user",
        "unclustered",
    ] {
        let mut query = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = query.column_count();
        let mut found = query.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let text = (0..columns).map(|at| format!("{:?}|", row.get_ref(at).unwrap()));
            rows.push(format!("{table} {}", text.collect::<String>()));
        }
    }
    rows.sort_unstable();
    rows
}

fn a_check_in(place: &Place) -> String {
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap().hash.to_string()
}

#[test]
fn a_reply_that_lies_about_lengths_or_hashes_changes_nothing() {
    let place = Place::new();
    let tip = a_check_in(&place);
    let some = b"some content of no great size\n".as_slice();
    let hash = sha1(some);
    let delta = |delta: &[u8]| card(&format!("file {hash} {tip} {}", delta.len()), delta);
    let before = dump(&place.repository);
    for (what, reply) in [
        ("file too long", card(&format!("file {hash} 2147483647"), some)),
        ("file negative", card(&format!("file {hash} -5"), some)),
        ("file overflowing", card(&format!("file {hash} 99999999999999999999"), some)),
        ("file of another hash", card(&format!("file {} {}", "a".repeat(40), some.len()), some)),
        ("cfile too long", card(&format!("cfile {hash} 30 2147483647"), some)),
        ("cfile that is not packed", card(&format!("cfile {hash} 30 {}", some.len()), some)),
        ("cfile of 4 GB", cfile(some, u32::MAX)),
        ("cfile of 2 GB", cfile(some, 0x7fff_fff0)),
        ("cfile of less", cfile(some, 3)),
        ("cfile of a little more", cfile(some, 60)),
        ("delta without a size", delta(b"@@@@")),
        ("delta that is empty", format!("file {hash} {tip} 0\n").into_bytes()),
        ("delta of an absent length", format!("file {hash} {tip} 77\n").into_bytes()),
        ("cfile delta that is empty", format!("cfile {hash} {tip} 5 0\n").into_bytes()),
        ("delta of 2 GB", delta(b"1~~~~z\n1:x0;")),
        ("delta of 4 GB", delta(b"3~~~~~\n1:x0;")),
        ("delta that copies from behind", delta(b"A\nA@~~~~,0;")),
        ("delta that inserts more", delta(b"3~~~~\n3~~~~:x")),
        ("delta that just ends", delta(b"5\n5:abcde")),
        ("config too long", card("config /user 2147483647", some)),
        ("config negative", card("config css -7", some)),
        ("igot without hash", b"igot x\n".to_vec()),
        ("a page", b"<html>no\n".to_vec()),
        ("an error", b"error no\\ssuch\\sproject\n".to_vec()),
    ] {
        let front = answering(move |_| reply.clone());
        let e = place.repository.pull(&usual(&front)).expect_err(what);
        assert!(matches!(e.kind(), Kind::Refused | Kind::TooLarge), "{what}: {e:?}");
        assert!(e.hint().is_some(), "{what}: {e:?}");
        assert_eq!(dump(&place.repository), before, "{what}");
        let target = place.dir.path().join("clone.fossil");
        Repository::clone_from(&usual(&front), &target, &ann()).expect_err(what);
        assert!(!target.exists(), "{what}");
    }
    for (what, reply) in [
        (
            "words without meaning",
            b"message\nerror_\ncookie\npragma\nprivate\nlogin\npush\npull\nreqconfig\n".to_vec(),
        ),
        ("escapes at the end", b"message a\\\n".to_vec()),
        ("nothing", Vec::new()),
        ("NULs", vec![0; 5000]),
        ("one endless word", vec![b'x'; 3 << 20]),
        ("words without end", b"a ".repeat(100_000)),
    ] {
        let front = answering(move |_| reply.clone());
        assert_eq!(place.repository.pull(&usual(&front)).expect(what), Outcome::NothingToReceive);
        assert_eq!(dump(&place.repository), before, "{what}");
    }
    place.assert_whole();
}

#[test]
fn a_delta_that_comes_before_its_basis_is_taken_and_one_without_a_basis_is_not() {
    let place = Place::new();
    let basis = b"some content of no great size\n";
    let delta = |content: &[u8], basis: &[u8]| {
        card(&format!("file {} {} 11", sha1(content), sha1(basis)), b"5\n5:abcde0;")
    };
    let front = answering(move |n| match n {
        0 => [delta(b"abcde", basis), delta(b"alone", b"nobody has this"), file(basis)].concat(),
        _ => Vec::new(),
    });
    // The checksum of the delta is wrong for `alone`, which is never expanded.
    let pulled = place.repository.pull(&usual(&front));
    assert!(pulled.is_err(), "the delta's checksum is that of no text: {pulled:?}");
    place.assert_whole();
    let text = b"abcde";
    let sum: u32 = text.chunks(4).fold(0, |sum, chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        sum.wrapping_add(u32::from_be_bytes(word))
    });
    let right = format!("5\n5:abcde{};", base64(sum));
    let right = move |content: &[u8], basis: &[u8]| {
        card(&format!("file {} {} {}", sha1(content), sha1(basis), right.len()), right.as_bytes())
    };
    let front = answering(move |n| match n {
        0 => [right(b"abcde", basis), right(b"alone", b"nobody has this"), file(basis)].concat(),
        _ => Vec::new(),
    });
    assert_eq!(place.repository.pull(&usual(&front)).unwrap(), Outcome::Received { artifacts: 2 });
    let holds = |content: &[u8]| place.repository.store().holds(&sha1(content).parse().unwrap()).unwrap();
    assert!(holds(basis) && holds(b"abcde") && !holds(b"alone"));
    place.repository.verify().unwrap();
    assert_eq!(place.sql("SELECT count(*) FROM phantom"), 0);
}

/// A number as Fossil's deltas write it.
fn base64(mut number: u32) -> String {
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";
    let mut text = Vec::new();
    while number > 0 {
        text.insert(0, digits[number as usize & 63]);
        number >>= 6;
    }
    String::from_utf8(text).unwrap()
}

/// It is kept, since an honest server may have one, and nobody obeys it.
#[test]
fn v01_a_parent_tag_that_names_no_parents_comes_by_pull_or_clone_and_is_not_linked_in() {
    for value in ["", " 0123456789012345678901234567890123456789\\sx", " x"] {
        let place = Place::new();
        let tip = a_check_in(&place);
        let tags = format!("T *branch * wild\nT *sym-wild *\nT +parent *{value}\n");
        let text = with_z(&format!("C wild\nD 2026-11-30T10:23:00\nP {tip}\n{tags}U ann\n"));
        let hash: ocx::name::Hash = sha1(&text).parse().unwrap();
        let reply = file(&text);
        let front = answering(move |n| if n == 0 { reply.clone() } else { Vec::new() });
        let pulled = place.repository.sync(&usual(&front), &SyncOptions::pull()).unwrap();
        let [why] = pulled.not_linked.as_slice() else { panic!("{pulled:?}") };
        assert!(why.contains(hash.as_str()) && why.contains("parent"), "{why}");
        assert!(pulled.to_string().contains("kept as mere content"), "{pulled}");
        assert!(place.repository.store().holds(&hash).unwrap());
        let linked = |db: &rusqlite::Connection| -> i64 {
            let sql = "SELECT (SELECT count(*) FROM event JOIN blob ON objid=rid WHERE uuid=?1)
                           +(SELECT count(*) FROM tagxref WHERE tagid=10)";
            db.query_row(sql, [hash.as_str()], |row| row.get(0)).unwrap()
        };
        assert_eq!(linked(&rusqlite::Connection::open(place.repository.path()).unwrap()), 0);
        place.repository.rebuild().unwrap();
        place.repository.verify().unwrap();
        let reply = [file(&text), format!("push {CODE} {CODE}\nclone_seqno 0\n").into_bytes()].concat();
        let front = answering(move |_| reply.clone());
        let target = place.dir.path().join("clone.fossil");
        let clone = Repository::clone_from(&usual(&front), &target, &ann()).unwrap();
        assert!(clone.store().holds(&hash).unwrap());
        assert_eq!(linked(&rusqlite::Connection::open(&target).unwrap()), 0);
    }
}

#[test]
fn v04_a_clone_takes_no_scripts_no_users_no_hooks_and_no_cookie_of_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let config =
        |name: &str, content: &str| card(&format!("config {name} {}", content.len()), content.as_bytes());
    let all: Arc<Vec<u8>> = Arc::new(
        [
            format!("push {CODE} {CODE}\nclone_seqno 0\ncookie remember-me\n").into_bytes(),
            config("/config", "1 'project-name' value 'The ''real'' name'"),
            config("/config", "1 'xfer-common-script' value 'while 1 {}'"),
            config("/config", "1 'xfer-push-script' value 'while 1 {}'"),
            config("/config", "1 'th1-setup' value 'while 1 {}'"),
            config(
                "/config",
                "1 'hooks' value '[{\"type\":\"after-receive\",\"cmd\":\"touch pwned\",\"seq\":1}]'",
            ),
            config("/config", "1 'ticket-change' value 'while 1 {}'"),
            config("/config", "1 'ssh-command' value 'touch pwned'"),
            config("/user", "9999999999 'mallory' pw 'secret' cap 's' info 'x'"),
            config("/shun", "1 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' scom 'x'"),
            config("/reportfmt", "1 'r' owner 'x' cols 'x' sqlcode 'SELECT 1'"),
            b"pragma link http://evil.example/ x 99999999999\n".to_vec(),
        ]
        .concat(),
    );
    let front = answering(move |_| all.to_vec());
    let path = dir.path().join("r.fossil");
    let repository = Repository::clone_from(&usual(&front), &path, &ann()).unwrap();
    assert_eq!(repository.store().project_name().unwrap().as_deref(), Some("The 'real' name"));
    let text = dump(&repository).join("\n");
    for word in
        ["script", "while", "hooks", "pwned", "mallory", "remember-me", "evil", "th1", "ticket-change"]
    {
        assert!(!text.contains(word), "{word}: {text}");
    }
    let db = rusqlite::Connection::open(&path).unwrap();
    let sql = "SELECT (SELECT count(*) FROM shun)+(SELECT count(*) FROM reportfmt WHERE title='r')";
    assert_eq!(db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    repository.pull(&usual(&front)).unwrap();
    assert!(!dump(&repository).join("\n").contains("remember-me"));
}

#[test]
fn v04_a_cookie_goes_back_to_the_server_that_gave_it_in_that_sync_alone() {
    let seen: Arc<std::sync::Mutex<Vec<bool>>> = Arc::default();
    let notes = Arc::clone(&seen);
    let place = Place::new();
    let wanted = sha1(b"wanted");
    let asked = AtomicUsize::new(0);
    let front = Front::new(move |mut line, _| {
        while let Some(request) = request(&mut line) {
            let start = request.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
            let body = packed::unpack(&request[start..], 1 << 20).unwrap();
            notes.lock().unwrap().push(String::from_utf8_lossy(&body).contains("cookie for-you"));
            let n = asked.fetch_add(1, Ordering::SeqCst);
            let cards =
                if n.is_multiple_of(2) { format!("cookie for-you\nigot {wanted}\n") } else { String::new() };
            let _ = write!(
                line,
                "HTTP/1.1 200 OK\r\nContent-Type: application/x-fossil-uncompressed\r\nContent-Length: {}\r\n\r\n{cards}",
                cards.len()
            );
        }
    });
    for _ in 0..2 {
        place.repository.pull(&usual(&front)).unwrap();
    }
    assert_eq!(*seen.lock().unwrap(), [false, true, false, true]);
}

#[test]
fn v19_endless_names_and_artifacts_end_at_a_limit_and_leave_no_phantom() {
    let place = Place::new();
    let before = dump(&place.repository);
    let names = |n: usize| {
        (0..5000)
            .fold(String::new(), |cards, k| cards + "igot " + &sha1(format!("{n} {k}").as_bytes()) + "\n")
            .into_bytes()
    };
    let many =
        |n: usize| (0..200).flat_map(|k| file(format!("content {n} {k}").as_bytes())).collect::<Vec<u8>>();
    let next = move |n: usize| [many(n), names(n)].concat();
    let few = Limits { sync_artifacts: 20_000, ..Limits::default() };
    let small = Limits { sync_bytes: 50_000, ..Limits::default() };
    let short = Limits { sync: Duration::from_millis(1), ..Limits::default() };
    let cases: [(&str, Answer, Limits, Kind); 5] = [
        ("names", Box::new(names), few, Kind::TooLarge),
        ("the same names", Box::new(move |_| names(0)), Limits::default(), Kind::Refused),
        ("artifacts", Box::new(next), few, Kind::TooLarge),
        ("bytes", Box::new(next), small, Kind::TooLarge),
        ("time", Box::new(next), short, Kind::TimedOut),
    ];
    for (what, answer, limits, kind) in cases {
        let front = answering(answer);
        let e = place.repository.pull(&within(&front, limits)).expect_err(what);
        assert_eq!(e.kind(), kind, "{what}: {e}");
        assert_eq!(dump(&place.repository), before, "{what}");
    }
    // What is named and never given is no phantom either when the server then is content.
    let front = answering(move |n| if n == 0 { names(0) } else { Vec::new() });
    assert_eq!(place.repository.pull(&usual(&front)).unwrap(), Outcome::NothingToReceive);
    assert_eq!(dump(&place.repository), before);
}

#[test]
fn what_turns_out_to_be_private_there_is_asked_for_once() {
    let place = Place::new();
    let before = dump(&place.repository);
    let hash = sha1(b"private");
    let front = answering(move |n| format!("igot {hash}{}\n", if n == 0 { "" } else { " 1" }).into_bytes());
    assert_eq!(place.repository.pull(&usual(&front)).unwrap(), Outcome::NothingToReceive);
    assert_eq!(front.requests(), 2);
    assert_eq!(dump(&place.repository), before);
}

#[test]
fn a_clone_that_never_ends_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let push = format!("push {CODE} {CODE}\n");
    for (what, answer) in [("the same number", 5_usize), ("ever more", 0)] {
        let push = push.clone();
        let front = answering(move |n| {
            let next = if answer == 0 { n + 2 } else { answer };
            format!("{push}clone_seqno {next}\n").into_bytes()
        });
        let path = dir.path().join("r.fossil");
        let e = Repository::clone_from(&usual(&front), &path, &ann()).expect_err(what);
        assert_eq!(e.kind(), Kind::Refused, "{what}: {e}");
        assert!(!path.exists());
    }
}

#[test]
fn a_server_that_turns_out_to_be_of_another_project_is_refused() {
    let place = Place::new();
    let before = dump(&place.repository);
    let reply = [format!("push {CODE} {CODE}\n").into_bytes(), file(b"theirs")].concat();
    let front = answering(move |_| reply.clone());
    assert_eq!(place.repository.pull(&usual(&front)).unwrap_err().kind(), Kind::Foreign);
    assert_eq!(dump(&place.repository), before);
}
