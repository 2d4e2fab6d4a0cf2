use std::sync::Arc;

use super::*;
use crate::format::artifact::checksum;
use crate::format::{delta, packed};
use crate::name::{Branch, User};

const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

fn structural(cards: &str) -> Structural {
    let text = format!("{cards}Z {}\n", checksum(cards.as_bytes()));
    Structural::of(0, Hash::of(text.as_bytes()), text.as_bytes()).expect("an artifact").0
}

/// An artifact of each kind, without a fault and with one.
fn of_each_kind() -> [(String, String); 8] {
    let d = "D 2026-11-30T10:23:45\n";
    let upper = HASH.to_uppercase();
    [
        (format!("C x\n{d}U ann\n"), format!("C x\n{d}T +private *\nU ann\n")),
        (format!("M {HASH}\n"), format!("M {upper}\n")),
        (format!("{d}T +note {HASH}\nU ann\n"), format!("{d}T -date {HASH}\nU ann\n")),
        (format!("{d}L A\nU ann\nW 2\nhi\n"), "D now\nL A\nU ann\nW 2\nhi\n".into()),
        (format!("{d}J a b\nK {HASH}\nU ann\n"), format!("{d}J a b\nK {upper}\nU ann\n")),
        (format!("A a {HASH} {HASH}\n{d}U ann\n"), format!("A a {upper} {HASH}\n{d}U ann\n")),
        (format!("{d}E 2026-11-30 {HASH}\nU ann\nW 2\nhi\n"), format!("{d}E now {HASH}\nU ann\nW 2\nhi\n")),
        (format!("{d}H t\nU ann\nW 2\nhi\n"), format!("{d}G {upper}\nI {HASH}\nU ann\nW 2\nhi\n")),
    ]
}

#[test]
fn a_fault_refuses_a_persons_set_and_leaves_a_servers_artifact_unlinked() {
    for (right, wrong) in of_each_kind() {
        for origin in [Origin::Person, Origin::Server] {
            assert!(matches!(judge(&structural(&right), origin), Verdict::Linked), "{right}");
        }
        let wrong = structural(&wrong);
        let Verdict::Refused(e) = judge(&wrong, Origin::Person) else { panic!("{wrong:?} is taken") };
        assert!(e.kind() == Kind::Invalid && e.to_string().contains(wrong.hash.as_str()), "{e}");
        let Verdict::NotLinked(why) = judge(&wrong, Origin::Server) else { panic!("{wrong:?} is linked") };
        assert!(why.contains(wrong.hash.as_str()), "{why}");
    }
}

#[test]
fn an_agent_sends_check_ins_of_its_own_and_nothing_else() {
    let (ann, bob) = (User::parse("ann").unwrap(), User::parse("bob").unwrap());
    let branch = Branch::parse("agent/ann-0a1b2c3d").unwrap();
    let by = |user| Origin::Agent(Agent { user, branch: &branch });
    for (n, (right, wrong)) in of_each_kind().into_iter().enumerate() {
        let verdict = judge(&structural(&right), by(&ann));
        assert_eq!(matches!(verdict, Verdict::Linked), n == 0, "{right}");
        assert!(matches!(judge(&structural(&right), by(&bob)), Verdict::Refused(_)), "{right}");
        assert!(matches!(judge(&structural(&wrong), by(&ann)), Verdict::Refused(_)), "{wrong}");
    }
}

/// Texts on which Fossil's parser leaves its memory.
#[test]
fn a_wild_text_is_refused_or_not_linked() {
    let wild = structural("D 2026-11-30T10:23:45\nL A\nU ann\nW 4294967295\nhello\n");
    assert!(wild.kind.is_none());
    assert!(matches!(judge(&wild, Origin::Person), Verdict::Refused(_)));
    assert!(matches!(judge(&wild, Origin::Server), Verdict::NotLinked(_)));
}

#[test]
fn what_follows_another_kind_is_refused_or_not_linked() {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(
        "CREATE TABLE blob(rid INTEGER PRIMARY KEY, uuid, size); CREATE TABLE event(objid, type);",
    )
    .unwrap();
    db.execute("INSERT INTO blob VALUES(1, ?1, 5)", [HASH]).unwrap();
    db.execute("INSERT INTO event VALUES(1, 'ci')", []).unwrap();
    let d = "D 2026-11-30T10:23:45\n";
    let followers = [
        (format!("C x\n{d}P {HASH}\nU ann\n"), true),
        (format!("{d}L A\nP {HASH}\nU ann\nW 2\nhi\n"), false),
        (format!("{d}E 2026-11-30 {HASH}\nP {HASH}\nU ann\nW 2\nhi\n"), false),
        (format!("{d}G {HASH}\nI {HASH}\nU ann\nW 2\nhi\n"), false),
        (format!("{d}H t\nP {HASH}\nU ann\nW 2\nhi\n"), false),
    ];
    for (cards, fits) in followers {
        let findings = Findings { structural: vec![structural(&cards)], ..Findings::default() };
        let of = |origin| judged(&db, &findings, origin, |_| false);
        assert_eq!(of(Origin::Person).is_ok(), fits, "{cards}");
        assert_eq!(of(Origin::Server).unwrap().is_empty(), fits, "{cards}");
        assert!(judged(&db, &findings, Origin::Person, |_| true).unwrap().is_empty());
    }
    // In one set, and where the other is not known at all.
    let first = structural(&format!("C x\n{d}U ann\n"));
    let page = structural(&format!("{d}L A\nP {}\nU ann\nW 2\nhi\n", first.hash));
    let stray = structural(&format!("{d}L A\nP {}\nU ann\nW 2\nhi\n", Hash::of(b"nowhere")));
    let set = Findings { structural: vec![first, page], ..Findings::default() };
    assert!(judged(&db, &set, Origin::Person, |_| false).is_err());
    let set = Findings { structural: vec![stray], ..Findings::default() };
    assert!(judged(&db, &set, Origin::Person, |_| false).is_ok());
}

/// Expands each content of the repository at `path` whose tree of deltas holds an event, and calls `see` with it.
fn each_likely(path: &str, mut see: impl FnMut(&Hash, &[u8])) {
    let db = Connection::open(path).unwrap();
    let mut deltas: HashMap<i64, Vec<i64>> = HashMap::new();
    let mut query = db.prepare("SELECT srcid, rid FROM delta").unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).for_each(|(source, rid)| deltas.entry(source).or_default().push(rid));
    let roots =
        "WITH RECURSIVE up(rid) AS (SELECT objid FROM event UNION SELECT srcid FROM up JOIN delta USING(rid))
                 SELECT rid FROM up WHERE rid NOT IN (SELECT rid FROM delta)";
    let mut query = db.prepare(roots).unwrap();
    let roots: Vec<i64> = query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut load = db.prepare("SELECT uuid, size, content FROM blob WHERE rid=?1").unwrap();
    let mut stack: Vec<(i64, Option<Arc<Vec<u8>>>)> = roots.into_iter().map(|rid| (rid, None)).collect();
    while let Some((rid, basis)) = stack.pop() {
        let row = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?))
        };
        let (hash, size, data) = load.query_row([rid], row).unwrap();
        let size = usize::try_from(size).unwrap();
        let data = packed::unpack(&data, size * 2 + 1024).unwrap();
        let content =
            Arc::new(basis.map_or(data.clone(), |basis| delta::apply(&basis, &data, size).unwrap()));
        see(&hash.parse().unwrap(), &content);
        let more = deltas.remove(&rid).unwrap_or_default();
        stack.extend(more.into_iter().map(|rid| (rid, Some(Arc::clone(&content)))));
    }
}

/// `OCX_HISTORY` names a repository with a real history. From a server and from a person, all of it is linked in.
#[test]
#[ignore = "needs a repository named by OCX_HISTORY"]
fn an_honest_history_has_no_fault() {
    let path = std::env::var("OCX_HISTORY").expect("OCX_HISTORY names a repository");
    let (mut seen, mut kinds) = (Vec::new(), HashMap::new());
    each_likely(&path, |hash, content| {
        let Some((artifact, _)) = Structural::of(seen.len(), *hash, content) else { return };
        *kinds.entry(format!("{:?}", artifact.kind)).or_insert(0) += 1;
        for origin in [Origin::Server, Origin::Person] {
            assert!(matches!(judge(&artifact, origin), Verdict::Linked), "{hash}: {:?}", artifact.fault);
        }
        seen.push(artifact);
    });
    let db = Connection::open(&path).unwrap();
    let events = db.query_row("SELECT count(*) FROM event", [], |row| row.get::<_, i64>(0)).unwrap();
    let events = usize::try_from(events).unwrap();
    assert!(seen.len() >= events, "{} of {events}", seen.len());
    let set = Findings { structural: seen, ..Findings::default() };
    assert!(judged(&db, &set, Origin::Server, |_| false).unwrap().is_empty());
    println!("{kinds:?}");
}
