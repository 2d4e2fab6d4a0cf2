use std::fs;
use std::os::unix::fs::PermissionsExt;

use rusqlite::Row;

use super::*;
use crate::format::artifact::{FileKind, Manifest, looks_like_artifact};
use crate::name::{Branch, Hash, TreePath, User};
use crate::plain_fossil::PlainFossil;

/// A cell as text, for the fixture's queries.
pub(crate) fn cell(row: &Row<'_>, column: usize) -> String {
    text(row, column).unwrap()
}

fn hash(text: &str) -> Hash {
    Hash::parse(text).unwrap()
}

fn hashes(fossil: &PlainFossil, sql: &str) -> Vec<Hash> {
    fossil.sql(sql).iter().map(|h| hash(h)).collect()
}

fn branch(name: &str) -> Branch {
    Branch::parse(name).unwrap()
}

/// The check-in that plain Fossil takes a name for.
fn named(fossil: &PlainFossil, version: &str) -> Hash {
    let told = fossil.run(["whatis", "--type", "ci", version]);
    hash(told.lines().find_map(|line| line.strip_prefix("artifact:")).unwrap().trim())
}

fn check_ins(fossil: &PlainFossil) -> Vec<Hash> {
    hashes(fossil, "SELECT uuid FROM event JOIN blob ON rid=objid WHERE type='ci' ORDER BY mtime")
}

#[test]
fn everything_reads_as_plain_fossil_reads_it() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    assert!(fossil.sql("SELECT count(*) FROM delta")[0].parse::<u32>().unwrap() > 10, "no deltas to test");
    let mut artifacts = 0;
    for hash in hashes(&fossil, "SELECT uuid FROM blob WHERE size>=0") {
        assert_eq!(store.content(&hash).unwrap(), fossil.bytes(["artifact", hash.as_str()]));
        assert!(store.holds(&hash).unwrap());
        artifacts += 1;
    }
    assert!(artifacts > 30);
    for row in fossil.sql("SELECT uuid, size FROM blob") {
        let (uuid, size) = row.split_once('|').unwrap();
        assert_eq!(store.content_size(&hash(uuid)).unwrap().to_string(), size);
    }
    for check_in in check_ins(&fossil) {
        let files = store.files(&check_in).unwrap();
        let listed = fossil.run(["ls", "-r", check_in.as_str()]);
        assert_eq!(
            files.keys().map(TreePath::as_str).collect::<Vec<_>>(),
            listed.lines().collect::<Vec<_>>()
        );
    }
}

#[test]
fn files_have_the_content_and_kind_that_plain_fossil_checks_out() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    let tip = store.resolve("trunk").unwrap();
    let files = store.files(&tip).unwrap();
    for (path, file) in files.iter() {
        let on_disk = fossil.tree().join(path.as_str());
        let content = match file.kind {
            FileKind::Symlink => fs::read_link(&on_disk).unwrap().into_os_string().into_encoded_bytes(),
            _ => fs::read(&on_disk).unwrap(),
        };
        assert!(file.hash.names(&content), "{path}");
    }
    let kind = |path: &str| files[path].kind;
    assert_eq!(kind("bin.sh"), FileKind::Executable);
    assert_eq!(kind("link"), FileKind::Symlink);
    assert_eq!(kind("a new name.txt"), FileKind::Regular);
    assert!(!files.contains_key("run.sh"));
    assert!(std::sync::Arc::ptr_eq(&files, &store.files(&tip).unwrap()));
}

#[test]
fn every_manifest_is_written_as_it_was_read() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    let (mut deltas, mut renames) = (0, 0);
    for check_in in check_ins(&fossil) {
        let bytes = store.content(&check_in).unwrap();
        let manifest = store.manifest(&check_in).unwrap();
        assert_eq!(manifest.write().unwrap().escape_ascii().to_string(), bytes.escape_ascii().to_string());
        assert!(looks_like_artifact(&bytes));
        deltas += u32::from(manifest.baseline.is_some());
        renames += manifest.files.iter().filter(|f| f.prior.is_some()).count();
    }
    assert!(deltas > 3 && renames == 2, "{deltas} delta manifests, {renames} renames");
}

#[test]
fn every_artifact_but_content_looks_like_one() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    let content = "SELECT uuid FROM blob WHERE rid IN (SELECT fid FROM mlink)";
    for hash in hashes(&fossil, content) {
        assert!(!looks_like_artifact(&store.content(&hash).unwrap()));
    }
    let events = "SELECT uuid FROM blob WHERE rid IN (SELECT objid FROM event)";
    for hash in hashes(&fossil, events) {
        assert!(looks_like_artifact(&store.content(&hash).unwrap()));
    }
}

#[test]
fn names_resolve_as_in_plain_fossil() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    for name in ["trunk", "side", "ended", "v1.0", "tag:v1.0", "tip"] {
        assert_eq!(store.resolve(name).unwrap(), named(&fossil, name), "{name}");
    }
    for check_in in check_ins(&fossil) {
        assert_eq!(store.resolve(check_in.as_str()).unwrap(), check_in);
        assert_eq!(store.resolve(&check_in.as_str()[..12].to_uppercase()).unwrap(), check_in);
    }
    for name in
        ["nosuch", "", "tag:", "abc", "tag:nosuch", "zzzz", "0123456789012345678901234567890123456789"]
    {
        assert_eq!(store.resolve(name).unwrap_err().kind(), Kind::NotFound, "{name}");
    }
}

#[test]
fn a_prefix_that_fits_two_is_ambiguous() {
    let fossil = PlainFossil::new();
    let db = fossil.db();
    for (rid, uuid) in [(901, "ab12"), (902, "ab12f")] {
        let sql = "INSERT INTO blob(rid,size,uuid) VALUES(?1,-1,?2)";
        db.execute(sql, (rid, format!("{uuid:0<40}"))).unwrap();
        db.execute("INSERT INTO event(type,mtime,objid) VALUES('ci',1,?1)", [rid]).unwrap();
    }
    let store = Store::open(fossil.repository()).unwrap();
    assert_eq!(store.resolve("ab12").unwrap_err().kind(), Kind::Ambiguous);
    assert_eq!(store.resolve_artifact("AB12").unwrap_err().kind(), Kind::Ambiguous);
    assert_eq!(store.resolve("ab12f").unwrap().as_str(), format!("{:0<40}", "ab12f"));
}

#[test]
fn a_check_in_is_told_with_its_amendments() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    let side = store.check_in(&store.resolve("side").unwrap()).unwrap();
    assert_eq!((side.branch.as_str(), side.user.as_str()), ("side", "bob"));
    assert_eq!((side.comment.as_str(), side.time.as_str()), ("amended comment", "2026-02-04T10:00:00Z"));
    assert!((side.julian - 2_461_075.916_67).abs() < 1e-4, "{}", side.julian);
    assert!(side.leaf && !side.closed && !side.private);
    let merge = store.check_in(&store.resolve("trunk").unwrap()).unwrap();
    assert_eq!(merge.parents.len(), 2);
    assert_eq!(merge.parents[1], side.hash);
    let first = store.check_in(&check_ins(&fossil)[1]).unwrap();
    assert_eq!(first.comment, "first\n\\s [trunk] <b>\ttab");
    assert!(!first.leaf);
    assert!(!store.leaf(&first.hash).unwrap() && store.leaf(&merge.hash).unwrap());
    assert_eq!(store.check_in(&Hash::of(b"nothing")).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn branches_have_open_tips_or_are_closed() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    for name in ["trunk", "side"] {
        assert_eq!(store.branch_tips(&branch(name)).unwrap(), [store.resolve(name).unwrap()], "{name}");
        assert!(!store.branch_closed(&branch(name)).unwrap());
    }
    assert!(store.branch_tips(&branch("ended")).unwrap().is_empty());
    assert!(store.branch_closed(&branch("ended")).unwrap());
    assert!(store.check_in(&store.resolve("ended").unwrap()).unwrap().closed);
    assert!(!store.branch_closed(&branch("nosuch")).unwrap());
    assert!(!store.has_branch(&branch("nosuch")).unwrap());
}

#[test]
fn a_fork_has_two_tips_the_newest_first() {
    let fossil = PlainFossil::with_history();
    let before = named(&fossil, "trunk");
    fossil.run(["update", check_ins(&fossil)[3].as_str()]);
    fossil.write("fork.txt", "fork\n");
    fossil.commit("03-01 10:00:00", "fork", &["--allow-fork"]);
    let store = Store::open(fossil.repository()).unwrap();
    assert_eq!(store.branch_tips(&branch("trunk")).unwrap(), [named(&fossil, "tip"), before]);
}

#[test]
fn descent_goes_by_every_parent() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    let [side, trunk, ended] = ["side", "trunk", "ended"].map(|name| store.resolve(name).unwrap());
    assert!(store.descends(&trunk, &side).unwrap());
    assert!(store.descends(&side, &side).unwrap());
    assert!(!store.descends(&side, &trunk).unwrap());
    let all = check_ins(&fossil);
    assert_eq!(store.descendants(&all[0]).unwrap(), all[1..]);
    assert_eq!(store.descendants(&side).unwrap(), [trunk, ended]);
    assert!(store.descendants(&ended).unwrap().is_empty());
}

#[test]
fn receipts_tell_who_brought_what() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    let receipt = store.receipt(&store.resolve("trunk").unwrap()).unwrap().unwrap();
    assert_eq!((receipt.user.as_str(), receipt.ip), ("ann", None));
    assert!(receipt.time.starts_with("20") && receipt.time.ends_with('Z'));
    let db = fossil.db();
    db.execute("UPDATE rcvfrom SET ipaddr='127.0.0.1', uid=999", []).unwrap();
    let receipt = store.receipt(&store.resolve("trunk").unwrap()).unwrap().unwrap();
    assert_eq!((receipt.user.as_str(), receipt.ip.as_deref()), ("", Some("127.0.0.1")));
    assert_eq!(store.receipt(&Hash::of(b"nothing")).unwrap(), None);
}

#[test]
fn users_have_their_own_and_inherited_capabilities() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    let user = |name: &str| User::parse(name).unwrap();
    fossil.run(["user", "capabilities", "nobody", "g"]);
    fossil.run(["user", "capabilities", "anonymous", "h"]);
    fossil.run(["user", "capabilities", "developer", "u4"]);
    fossil.run(["user", "capabilities", "reader", "i"]);
    assert_eq!(
        store.user(&user("bob")).unwrap().unwrap(),
        UserInfo { caps: "v".into(), info: "bob's contact".into() }
    );
    assert_eq!(store.user(&user("carl")).unwrap(), None);
    assert_eq!(store.capabilities(&user("bob")).unwrap().to_string(), "234ghiouv");
    assert_eq!(store.capabilities(&user("nobody")).unwrap().to_string(), "g");
    assert!(store.capabilities(&user("ann")).unwrap().has('s'));
    assert_eq!(store.capabilities(&user("carl")).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn settings_codes_and_the_remote_are_told() {
    let fossil = PlainFossil::new();
    let store = Store::open(fossil.repository()).unwrap();
    let code = fossil.sql("SELECT value FROM config WHERE name='project-code'").remove(0);
    assert_eq!(store.project_code().unwrap(), code);
    assert_eq!(store.setting("nosuch").unwrap(), None);
    assert_eq!(store.project_name().unwrap(), None);
    assert_eq!(store.remote_url().unwrap(), None);
    let db = fossil.db();
    let add =
        "INSERT INTO config(name,value) VALUES('last-sync-url','http://127.0.0.1/x'),('project-name','P')";
    db.execute(add, []).unwrap();
    assert_eq!(store.remote_url().unwrap().as_deref(), Some("http://127.0.0.1/x"));
    assert_eq!(store.project_name().unwrap().as_deref(), Some("P"));
}

#[test]
fn phantoms_shunned_and_unknown_artifacts_are_refused_apart() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    let files = store.files(&store.resolve("trunk").unwrap()).unwrap();
    let [shunned, phantom] = ["side.txt", "main.txt"].map(|path| files[path].hash);
    let db = fossil.db();
    db.execute("INSERT INTO shun(uuid) VALUES(?1)", [shunned.as_str()]).unwrap();
    db.execute("UPDATE blob SET size=-1, content=NULL WHERE uuid=?1", [phantom.as_str()]).unwrap();
    for (hash, kind) in
        [(shunned, Kind::Denied), (phantom, Kind::NotFound), (Hash::of(b"nothing"), Kind::NotFound)]
    {
        assert_eq!(store.content(&hash).unwrap_err().kind(), kind);
        assert!(!store.holds(&hash).unwrap());
    }
    assert!(store.content(&phantom).unwrap_err().to_string().contains("not here"));
}

#[test]
fn damaged_content_looped_deltas_and_lying_sizes_are_refused() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    let files = store.files(&store.resolve("trunk").unwrap()).unwrap();
    let [swapped, looped, huge] = ["side.txt", "main.txt", "bin.sh"].map(|path| files[path].hash);
    let db = fossil.db();
    let copy = "UPDATE blob SET content=(SELECT content FROM blob WHERE uuid=?1) WHERE uuid=?2";
    db.execute(copy, [huge.as_str(), swapped.as_str()]).unwrap();
    let lie = "UPDATE blob SET content=x'fffffff0789c' WHERE uuid=?1";
    db.execute(lie, [huge.as_str()]).unwrap();
    db.execute("INSERT INTO delta SELECT rid, rid FROM blob WHERE uuid=?1", [looped.as_str()]).unwrap();
    assert_eq!(store.content(&swapped).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(store.content(&looped).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(store.holds(&looped).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(store.content(&huge).unwrap_err().kind(), Kind::TooLarge);
    assert_eq!(store.content_within(&files["long.txt"].hash, 100).unwrap_err().kind(), Kind::TooLarge);
}

#[test]
fn a_chain_of_ten_thousand_deltas_needs_no_stack() {
    let fossil = PlainFossil::new();
    let mut db = fossil.db();
    let pack = |bytes: &[u8]| crate::format::packed::pack(bytes).unwrap();
    // Each delta says: one byte, copied from the base's start; `1m0000` is 'x' as a checksum.
    let sum = u32::from_be_bytes(*b"x\0\0\0");
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";
    let sum: String = (0..6).rev().map(|i| char::from(digits[(sum >> (6 * i) & 63) as usize])).collect();
    let same = pack(format!("1\n1@0,{sum};").as_bytes());
    let write = db.transaction().unwrap();
    for i in 0..10_000 {
        let name = if i == 9_999 { Hash::of(b"x").to_string() } else { format!("{i:0>40}") };
        let content = if i == 0 { pack(b"x") } else { same.clone() };
        let sql = "INSERT INTO blob(rid,size,uuid,content) VALUES(?1,1,?2,?3)";
        write.execute(sql, (1000 + i, name, content)).unwrap();
        if i > 0 {
            write.execute("INSERT INTO delta VALUES(?1,?2)", [1000 + i, 999 + i]).unwrap();
        }
    }
    write.commit().unwrap();
    let store = Store::open(fossil.repository()).unwrap();
    assert_eq!(store.content(&Hash::of(b"x")).unwrap(), b"x");
}

#[test]
fn only_repositories_open() {
    let fossil = PlainFossil::new();
    let path = |name: &str| fossil.tree().join(name);
    let kind = |path: &Path| Store::open(path).unwrap_err().kind();
    assert_eq!(kind(&path("nosuch.fossil")), Kind::NotFound);
    assert!(!path("nosuch.fossil").exists());
    assert_eq!(kind(&fossil.tree()), Kind::Foreign);
    assert_eq!(kind(&path(".fslckout")), Kind::Foreign);
    fossil.write("empty", "");
    assert_eq!(kind(&path("empty")), Kind::Foreign);
    fossil.write("text", "hello\n".repeat(1000));
    assert_eq!(kind(&path("text")), Kind::Foreign);
    rusqlite::Connection::open(path("other.db")).unwrap().execute("CREATE TABLE blob(rid)", []).unwrap();
    assert_eq!(kind(&path("other.db")), Kind::Foreign);
    let db = fossil.db();
    db.execute("DELETE FROM config WHERE name='project-code'", []).unwrap();
    assert_eq!(kind(&fossil.repository()), Kind::Foreign);
}

#[test]
fn a_truncated_repository_is_corrupt() {
    let fossil = PlainFossil::with_history();
    let whole = fs::read(fossil.repository()).unwrap();
    let cut = fossil.write("../cut.fossil", &whole[..whole.len() / 2]);
    assert_eq!(Store::open(cut).unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn a_view_in_place_of_a_table_is_foreign() {
    let fossil = PlainFossil::new();
    let db = fossil.db();
    db.execute_batch("ALTER TABLE event RENAME TO e; CREATE VIEW event AS SELECT * FROM e;").unwrap();
    assert_eq!(Store::open(fossil.repository()).unwrap_err().kind(), Kind::Foreign);
}

#[test]
fn reading_writes_nothing_and_sees_what_others_write_in_wal_mode() {
    let fossil = PlainFossil::with_history();
    let db = fossil.db();
    db.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
    let store = Store::open(fossil.repository()).unwrap();
    let before = store.resolve("trunk").unwrap();
    assert!(store.db().execute("DELETE FROM event", []).is_err());
    fossil.write("new.txt", "new\n");
    fossil.commit("03-01 10:00:00", "another", &[]);
    let after = store.resolve("trunk").unwrap();
    assert_ne!(before, after);
    assert_eq!(store.check_in(&after).unwrap().parents, [before]);
    drop(db);
    drop(store);
    assert_eq!(named(&fossil, "tip"), after);
}

#[test]
fn what_a_crashed_process_left_half_written_is_rolled_back() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    let tip = store.resolve("tip").unwrap();
    let db = fossil.db();
    // So small a cache that the transaction writes to the file before it is committed.
    db.execute_batch(
        "PRAGMA journal_mode=DELETE; PRAGMA cache_size=2; BEGIN; DELETE FROM event; DELETE FROM plink;",
    )
    .unwrap();
    db.execute_batch("UPDATE blob SET content=zeroblob(3000)").unwrap();
    let journal = fossil.tree().join("../r.fossil-journal");
    let left = [fs::read(fossil.repository()).unwrap(), fs::read(&journal).unwrap()];
    db.execute_batch("ROLLBACK").unwrap();
    drop(db);
    fossil.write("../r.fossil", &left[0]);
    fossil.write("../r.fossil-journal", &left[1]);
    assert_eq!(store.resolve("tip").unwrap(), tip);
    assert!(!journal.exists());
    fossil.write("../r.fossil", &left[0]);
    fossil.write("../r.fossil-journal", &left[1]);
    assert_eq!(Store::open(fossil.repository()).unwrap().resolve("tip").unwrap(), tip);
}

#[test]
fn a_repository_without_write_permission_opens() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    let tip = store.resolve("tip").unwrap();
    drop(store);
    fs::set_permissions(fossil.repository(), fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(Store::open(fossil.repository()).unwrap().resolve("tip").unwrap(), tip);
}

#[test]
fn two_threads_read_at_once() {
    let fossil = PlainFossil::with_history();
    let store = Store::open(fossil.repository()).unwrap();
    let all = check_ins(&fossil);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| all.iter().for_each(|hash| assert!(store.files(hash).is_ok())));
        }
    });
}

#[test]
fn a_manifest_whose_file_leaves_the_tree_gives_no_files() {
    let fossil = PlainFossil::new();
    let text = b"C x\nD 2026-01-01T00:00:00\nF a\\\\b da39a3ee5e6b4b0d3255bfef95601890afd80709\nU ann\n";
    let mut bytes = text.to_vec();
    let sum = crate::format::artifact::tests::z_card(text);
    bytes.extend(sum.as_bytes());
    assert!(Manifest::parse(&bytes).is_ok());
    let file = fossil.write("../m", &bytes);
    let db = fossil.db();
    let sql = "INSERT INTO blob(rid,size,uuid,content) VALUES(900,?1,?2,?3)";
    let packed = crate::format::packed::pack(&bytes).unwrap();
    let hash = Hash::of(&bytes);
    db.execute(sql, (i64::try_from(bytes.len()).unwrap(), hash.as_str(), packed)).unwrap();
    let store = Store::open(fossil.repository()).unwrap();
    assert_eq!(store.files(&hash).unwrap_err().kind(), Kind::Invalid);
    fs::remove_file(file).unwrap();
}
