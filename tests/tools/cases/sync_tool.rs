//! Bundles through `ocx_sync`: each bad one is refused whole and in one line, nothing has changed, and the next good
//! one lands.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ocx::bundle::Bundle;
use ocx::bundle::Selection;
use ocx::checkout::Checkout;
use ocx::format::packed::pack;
use ocx::name::Hash;
use ocx::process::Supervisor;
use ocx::tool::{CallControl, Service};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::stopped;
use crate::support::ann;
use crate::support::clones::{Clones, add, artifact, count, forge, now};
use crate::support::served::Served;
use crate::support::{OCX, four};

const BRANCH: &str = "agent/ann-0a1b2c3d";
const FILE: &str = "F a.txt a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a";

/// A clone where check-ins are made, `here`, and one where a session publishes them, `there`.
struct Ground {
    place: Clones,
    session: Service,
}

impl Ground {
    fn new() -> Self {
        let place = Clones::new();
        place.edit("a.txt", "one\n");
        place.save(&comment("one"), Some(BRANCH));
        place.edit("a.txt", "two\n");
        place.save(&comment("two"), None);
        Checkout::open(&place.there, &place.path("co"), None, Some(&ann())).unwrap();
        let session = Service::with_supervisor(place.path("co"), Supervisor::at(OCX));
        Self { place, session }
    }

    fn call(&self, input: Value) -> Value {
        crate::support::answer::call(&self.session, "ocx_sync", input)
    }

    fn sync(&self, bytes: &[u8]) -> Value {
        self.call(json!({"branch": BRANCH, "bundle": STANDARD.encode(bytes)}))
    }

    /// The good bundle, with what is done to it.
    fn forged(&self, sql: &str) -> Vec<u8> {
        self.changed(|file| forge(file, sql))
    }

    fn changed(&self, change: impl FnOnce(&std::path::Path)) -> Vec<u8> {
        let file = self.place.path("forged");
        let _ = fs::remove_file(&file);
        self.place.bundle("forged");
        change(&file);
        fs::read(&file).unwrap()
    }

    fn counts(&self) -> Vec<i64> {
        ["blob", "delta", "phantom", "event", "tagxref", "plink", "unsent", "rcvfrom", "private"]
            .map(|table| count(self.place.there.path(), &format!("SELECT count(*) FROM {table}")))
            .to_vec()
    }

    /// Refused in one line without a word of SQL; nothing has changed.
    #[track_caller]
    fn refuses(&self, codes: &[&str], words: &str, input: Value) -> Value {
        let before = self.counts();
        let answer = self.call(input);
        let said = stopped(&answer);
        assert_eq!(answer["ok"], false, "{answer}");
        assert!(codes.contains(&answer["code"].as_str().unwrap()), "{answer}");
        assert!(said.contains(words), "{answer}");
        assert!(!said.contains('\n') && !said.contains("SELECT") && !said.contains("INSERT"), "{answer}");
        assert!(answer["next_step"].as_str().is_some_and(|step| step.ends_with('.')), "{answer}");
        assert_eq!(self.counts(), before, "{answer}");
        answer
    }

    #[track_caller]
    fn refuses_bytes(&self, code: &str, words: &str, bytes: &[u8]) {
        self.refuses(&[code], words, json!({"branch": BRANCH, "bundle": STANDARD.encode(bytes)}));
    }

    #[track_caller]
    fn takes_the_good_one(&self) {
        let answer = self.sync(&self.changed(|_| {}));
        assert_eq!((&answer["ok"], &answer["result"]["new"]), (&json!(true), &json!(2)), "{answer}");
    }
}

fn comment(title: &str) -> String {
    format!("{title}\nIntent: why\nExpression: where\nDemonstrates: unit")
}

/// A check-in's manifest, of these cards between the files and the user.
fn check_in(comment: &str, file: &str, parent: &Hash, tags: &str, user: &str) -> Vec<u8> {
    let comment = comment.replace(' ', "\\s").replace('\n', "\\n");
    artifact(&format!("C {comment}\nD {}\n{file}\nP {parent}\n{tags}U {user}\n", now()))
}

fn begin(branch: &str) -> String {
    format!("T *branch * {branch}\nT *sym-{branch} *\nT -sym-trunk *\n")
}

#[test]
fn b01_what_is_no_whole_bundle_is_refused_in_one_line() {
    let g = Ground::new();
    let good = g.changed(|_| {});
    let mut wire = Vec::new();
    Bundle::from_bytes(&good).unwrap().write_wire(&mut wire).unwrap();
    for bytes in [&good[..3000], b"hello\n", &wire[..wire.len() / 2], &wire[..9]] {
        let input = json!({"branch": BRANCH, "bundle": STANDARD.encode(bytes)});
        g.refuses(&["foreign", "corrupt"], "bundle", input);
    }
    let repository = fs::read(g.place.here.path()).unwrap();
    g.refuses_bytes("foreign", "not a plain bundle", &repository);
    for text in ["", "not base64 at all", "aGVsbG8", "aGVs\nbG8K", "nosuch.bundle"] {
        g.refuses(&["invalid"], "`bundle`", json!({"branch": BRANCH, "bundle": text}));
    }
    let answer = g.sync(&wire);
    assert_eq!((&answer["ok"], &answer["result"]["new"]), (&json!(true), &json!(2)), "{answer}");
    assert_eq!(g.sync(&good)["result"]["new"], 0);
}

#[test]
fn b02_a_bundle_of_another_project_is_refused_naming_both() {
    let g = Ground::new();
    let code = g.place.there.store().project_code().unwrap();
    let bytes = g.forged("UPDATE bconfig SET bcvalue='0123456789abcdef' WHERE bcname='project-code'");
    g.refuses_bytes("foreign", "0123456789abcdef", &bytes);
    g.refuses_bytes("foreign", &code, &bytes);
    g.takes_the_good_one();
}

#[test]
fn b03_b04_a_basis_that_is_missing_or_without_content_is_named() {
    let g = Ground::new();
    let (missing, phantom) = ("7".repeat(63) + "a", "8".repeat(63) + "a");
    let db = Connection::open(g.place.there.path()).unwrap();
    db.execute("INSERT INTO blob(rcvid,size,uuid,content) VALUES(0,-1,?1,NULL)", [&phantom]).unwrap();
    db.execute("INSERT INTO phantom VALUES(?1)", [db.last_insert_rowid()]).unwrap();
    drop(db);
    for (basis, words) in [(&missing, &missing[..]), (&phantom, "without its content")] {
        let bytes = g.forged(&format!("UPDATE bblob SET delta='{basis}' WHERE delta IS NULL"));
        g.refuses_bytes("not_found", words, &bytes);
    }
    g.takes_the_good_one();
}

#[test]
fn b06_the_server_has_what_landed_and_nothing_is_private() {
    let s = Served::new();
    let f = &s.server_side;
    let url = format!("http://agent:s3cret@127.0.0.1:{}/", s.port);
    f.ocx(f.folder(), &["clone", &url, "mine.fossil"]);
    f.ocx(f.folder(), &["open", "mine.fossil", "mine", "--user", "agent"]);
    let mine = Service::with_supervisor(f.folder().join("mine"), Supervisor::at(OCX));
    let mut made = Value::Null;
    for (old, new) in [("a", "b"), ("b", "c")] {
        let edit = json!({"path": "a.txt", "old": old, "new": new});
        assert!(ocx::tool::call(&mine, "ocx_edit", edit, &CallControl::default()).ok());
        made = crate::support::answer::call(&mine, "ocx_commit_and_sync", four(new));
    }
    let answer = s.call("ocx_sync", made["result"]["next_call"]["arguments"].clone());
    assert_eq!((&answer["ok"], &answer["result"]["new"]), (&json!(true), &json!(2)), "{answer:#}");
    let listed: Vec<_> = answer["result"]["landed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["checkin"].as_str().unwrap())
        .collect();
    let held = s.on_server();
    assert_eq!(held.len(), 2);
    assert!(held.iter().all(|(hash, _)| listed.contains(&hash.as_str())), "{answer:#}");
    for repository in [f.repository(), f.folder().join("clone.fossil")] {
        assert_eq!(count(&repository, "SELECT count(*) FROM private"), 0);
    }
}

#[test]
fn b07_the_same_bundle_twice_is_a_success_that_brings_nothing() {
    let g = Ground::new();
    let input = json!({
        "branch": BRANCH, "bundle": STANDARD.encode(g.changed(|_| {})), "have": g.place.root(),
    });
    let first = g.call(input.clone());
    let second = g.call(input);
    assert_eq!((&first["ok"], &second["ok"]), (&json!(true), &json!(true)), "{second}");
    assert_eq!((&first["result"]["new"], &second["result"]["new"]), (&json!(2), &json!(0)));
    assert_eq!(second["result"]["artifacts"]["new"], 0);
    let (first, second) = (&first["result"]["descendants"], &second["result"]["descendants"]);
    assert_eq!((&first["check_ins"], &first["of"]), (&second["check_ins"], &json!(2)));
}

#[test]
fn b09_content_that_has_not_its_hash_is_refused() {
    let g = Ground::new();
    let wrong = "6".repeat(60) + "beef";
    let sql = format!("UPDATE bblob SET uuid='{wrong}' WHERE blobid=(SELECT max(blobid) FROM bblob)");
    g.refuses_bytes("corrupt", &wrong, &g.forged(&sql));
    g.takes_the_good_one();
}

#[test]
fn b10_control_artifacts_beyond_the_run_are_refused_naming_the_first() {
    let g = Ground::new();
    let root = g.place.root();
    let four = comment("x");
    let stray = b"a file that no check-in has".to_vec();
    for (content, words) in [
        (check_in(&four, FILE, &root, &begin(BRANCH), "admin"), "by `admin`"),
        (check_in(&four, FILE, &root, "", "ann"), "on branch `trunk`"),
        (check_in(&four, FILE, &root, "T *branch * trunk\n", "ann"), "`T *branch * trunk`"),
        (check_in(&four, FILE, &root, "T *branch * main\n", "ann"), "`T *branch * main`"),
        (artifact(&format!("D 2030-01-01T00:00:00\nT +closed {root}\nU ann\n")), "no check-in"),
        (artifact("D 2030-01-01T00:00:00\nL Page\nU ann\nW 2\nhi\n"), "no check-in"),
        (stray, "not a file"),
    ] {
        let mut hash = String::new();
        let bytes = g.changed(|file| {
            if content.starts_with(b"C ") {
                add(file, b"");
            }
            hash = add(file, &content).short().to_owned();
        });
        let answer =
            g.refuses(&["denied"], words, json!({"branch": BRANCH, "bundle": STANDARD.encode(bytes)}));
        assert!(stopped(&answer).contains(&hash), "{answer}");
    }
    assert_eq!(g.place.there.store().resolve("trunk").unwrap(), root);
    g.takes_the_good_one();
}

#[test]
fn b11_only_two_plain_tables_are_read() {
    let g = Ground::new();
    for sql in [
        "ALTER TABLE bblob RENAME TO real; CREATE VIEW bblob AS SELECT * FROM real",
        "CREATE TRIGGER t AFTER INSERT ON bconfig BEGIN SELECT 1; END",
        "CREATE TABLE blob(rid)",
    ] {
        g.refuses_bytes("foreign", "not a plain bundle", &g.forged(sql));
    }
    g.takes_the_good_one();
}

#[test]
fn b12_a_delta_whose_lengths_overflow_is_refused() {
    let g = Ground::new();
    for (i, delta) in ["3~~~~~\n1@0,0;", "5\n3~~~~~@3~~~~~,0;", "5\n5@3~~~~~,0;"].iter().enumerate() {
        let bytes = g.changed(|file| {
            let db = Connection::open(file).unwrap();
            let (hash, data) = (Hash::of(&[i.to_le_bytes()[0]]), pack(delta.as_bytes()).unwrap());
            let sql = "INSERT INTO bblob(uuid,sz,delta,notes,data)
                       VALUES(?1,5,(SELECT blobid FROM bblob WHERE delta IS NULL LIMIT 1),'',?2)";
            db.execute(sql, (hash.as_str(), data)).unwrap();
        });
        let input = json!({"branch": BRANCH, "bundle": STANDARD.encode(bytes)});
        g.refuses(&["corrupt", "too_large"], "bundle", input);
    }
    g.takes_the_good_one();
}

#[test]
fn b13_a_declared_gigabyte_is_refused_before_inflating() {
    let g = Ground::new();
    let sql = "UPDATE bblob SET data=CAST(x'FFFFFFF0' || substr(data, 5) AS BLOB), sz=10
               WHERE blobid=(SELECT blobid FROM bblob WHERE delta IS NULL)";
    g.refuses_bytes("too_large", "declares 4294967280 bytes", &g.forged(sql));
    g.refuses_bytes("too_large", "declares", &g.forged("UPDATE bblob SET sz=4000000000"));
    g.takes_the_good_one();
}

#[test]
fn b14_a_control_artifact_with_a_missing_field_is_refused_and_all_still_answers() {
    let g = Ground::new();
    let root = g.place.root();
    for cards in [
        format!("C x\nD {}\nF name\nP {root}\nU ann\n", now()),
        format!("D {}\nP {root}\nU ann\n", now()),
        "D 2030-01-01T00:00:00\nU ann\n".to_owned(),
    ] {
        let bytes = g.changed(|file| {
            add(file, &artifact(&cards));
        });
        let input = json!({"branch": BRANCH, "bundle": STANDARD.encode(bytes)});
        g.refuses(&["denied", "invalid", "corrupt"], "", input);
    }
    g.takes_the_good_one();
    for tool in ["ocx_context", "ocx_status"] {
        assert!(ocx::tool::call(&g.session, tool, json!({}), &CallControl::default()).ok(), "{tool}");
    }
}

#[test]
fn b15_a_path_is_no_bundle_and_makes_no_file() {
    let g = Ground::new();
    g.refuses(&["invalid"], "not base64", json!({"branch": BRANCH, "bundle": "nosuch.bundle"}));
    assert!(!g.place.path("co/nosuch.bundle").exists());
}

#[test]
fn b16_have_is_the_full_hash_of_a_check_in_that_is_here_and_of_nothing_else() {
    let g = Ground::new();
    let phantom = "8".repeat(64);
    let db = Connection::open(g.place.there.path()).unwrap();
    db.execute("INSERT INTO blob(rcvid,size,uuid,content) VALUES(0,-1,?1,NULL)", [&phantom]).unwrap();
    db.execute("INSERT INTO phantom VALUES(?1)", [db.last_insert_rowid()]).unwrap();
    drop(db);
    for (have, code) in [
        ("zzzz", "invalid"),
        (&g.place.root().as_str()[..4], "invalid"),
        ("trunk", "invalid"),
        (&phantom[..], "not_found"),
        (Hash::of(b"unknown").as_str(), "not_found"),
    ] {
        let answer = g.refuses(&[code], "`have`", json!({"branch": BRANCH, "have": have}));
        assert!(answer["result"].is_null(), "{answer}");
        let bundle = STANDARD.encode(g.changed(|_| {}));
        g.refuses(&[code], "`have`", json!({"branch": BRANCH, "bundle": bundle, "have": have}));
    }
    let tip = g.place.tip();
    let bundle = STANDARD.encode(g.changed(|_| {}));
    // What comes in the bundle is held by whoever sends it.
    let answer = g.call(json!({"branch": BRANCH, "bundle": bundle, "have": tip}));
    assert_eq!(
        (&answer["ok"], &answer["result"]["descendants"]["of"]),
        (&json!(true), &json!(0)),
        "{answer}"
    );
}

#[test]
fn c14_file_content_that_is_a_control_artifact_is_refused() {
    let g = Ground::new();
    let root = g.place.root();
    let forged = check_in("x", FILE, &root, "T *branch * trunk\nT *sym-trunk *\n", "admin");
    let hash = Hash::of(&forged);
    let bytes = g.changed(|file| {
        add(file, &forged);
        let holder = format!("F innocent.txt {hash}");
        add(file, &check_in(&comment("y"), &holder, &root, &begin(BRANCH), "ann"));
    });
    g.refuses_bytes("invalid", hash.as_str(), &bytes);
    assert_eq!(g.place.there.store().resolve("trunk").unwrap(), root);
    g.takes_the_good_one();
}

#[test]
fn c13_a_check_in_older_than_its_parent_is_refused() {
    let g = Ground::new();
    g.takes_the_good_one();
    let old = check_in(&comment("z"), FILE, &g.place.tip(), "", "ann");
    let old = String::from_utf8(old).unwrap().replace(&format!("D {}", &now()[..4]), "D 2001");
    let old = artifact(&old[..old.rfind("Z ").unwrap()]);
    let bytes = g.changed(|file| {
        forge(file, "DELETE FROM bblob");
        add(file, b"");
        add(file, &old);
    });
    g.refuses_bytes("refused", "is dated 2001-", &bytes);
}

#[test]
fn s09_a_check_in_on_a_private_parent_is_refused() {
    let g = Ground::new();
    g.takes_the_good_one();
    g.place.edit("a.txt", "three\n");
    let made = g.place.save(&comment("three"), None);
    let file = g.place.path("one");
    g.place.here.export_bundle(&file, &Selection::one(made.hash)).unwrap();
    let parent = g.place.here.store().check_in(&made.hash).unwrap().parents[0];
    let db = Connection::open(g.place.there.path()).unwrap();
    db.execute("INSERT INTO private SELECT rid FROM blob WHERE uuid=?1", [parent.as_str()]).unwrap();
    drop(db);
    g.refuses_bytes("denied", "private", &fs::read(file).unwrap());
}

#[test]
fn m06_a_bundle_of_40_mb_is_refused_with_the_limit() {
    let g = Ground::new();
    let input = json!({"branch": BRANCH, "bundle": "A".repeat(40 << 20)});
    g.refuses(&["too_large"], "over the limit of 12582912", input);
    g.takes_the_good_one();
}

#[test]
fn a03_a_reader_publishes_nothing() {
    let g = Ground::new();
    let db = Connection::open(g.place.there.path()).unwrap();
    db.execute("UPDATE user SET cap='o' WHERE login='ann'", []).unwrap();
    db.execute("UPDATE user SET cap='' WHERE login IN ('nobody', 'anonymous')", []).unwrap();
    drop(db);
    g.refuses_bytes("denied", "`i`", &g.changed(|_| {}));
    for (tool, input) in
        [("ocx_commit_and_sync", four("t")), ("ocx_sync", json!({"branch": BRANCH, "have": g.place.root()}))]
    {
        let answer = crate::support::answer::call(&g.session, tool, input);
        assert_eq!(answer["code"], "denied", "{answer}");
    }
    assert!(
        ocx::tool::call(&g.session, "ocx_commit_and_sync_guide", json!({}), &CallControl::default()).ok()
    );
}

/// The good bundle with one more check-in of these cards, on the main branch's first one.
fn with_check_in(g: &Ground, file: &str, tags: &str, user: &str) -> Vec<u8> {
    let content = check_in(&comment("x"), file, &g.place.root(), tags, user);
    g.changed(|bundle| {
        add(bundle, b"");
        add(bundle, &content);
    })
}

#[test]
fn v01_a_parent_tag_of_an_agent_is_refused() {
    let g = Ground::new();
    for value in ["", " x", &format!(" {}", g.place.root())] {
        let tags = format!("T *branch * {BRANCH}\nT *sym-{BRANCH} *\nT +parent *{value}\nT -sym-trunk *\n");
        g.refuses_bytes("denied", "T +parent *", &with_check_in(&g, FILE, &tags, "ann"));
    }
    g.takes_the_good_one();
}

#[test]
fn v02_a_symbol_of_trunk_or_of_a_release_is_refused_naming_card_and_what_is_allowed() {
    let g = Ground::new();
    for name in ["sym-trunk", "sym-v1.0", "sym-tip"] {
        let tags = format!("T *branch * {BRANCH}\nT *sym-{BRANCH} *\nT +{name} *\nT -sym-trunk *\n");
        let bytes = with_check_in(&g, FILE, &tags, "ann");
        g.refuses_bytes("denied", &format!("`T +{name} *`"), &bytes);
        g.refuses_bytes(
            "denied",
            &format!("`T *branch * {BRANCH}`, `T *sym-{BRANCH} *`, `T -sym-trunk *`"),
            &bytes,
        );
    }
    assert_eq!(g.place.there.store().resolve("trunk").unwrap(), g.place.root());
    g.takes_the_good_one();
}

#[test]
fn v03_tags_that_forge_user_time_or_verdict_are_refused() {
    let g = Ground::new();
    for tag in
        ["+user * boss", "+date * 2020-01-01", "+comment * nice", "+sym-audited * pass:\\sfine", "+closed *"]
    {
        let tags = format!("T *branch * {BRANCH}\nT *sym-{BRANCH} *\nT {tag}\nT -sym-trunk *\n");
        g.refuses_bytes("denied", "has the card `T +", &with_check_in(&g, FILE, &tags, "ann"));
    }
    let other = with_check_in(&g, FILE, &begin(BRANCH), "boss");
    let answer =
        g.refuses(&["denied"], "by `boss`", json!({"branch": BRANCH, "bundle": STANDARD.encode(other)}));
    assert!(answer["next_step"].as_str().unwrap().contains("--user-override ann"), "{answer}");
    g.takes_the_good_one();
}

#[test]
fn v13_a_branch_that_is_not_ones_own_is_refused_by_whatever_name() {
    let g = Ground::new();
    let bundle = STANDARD.encode(g.changed(|_| {}));
    let db = Connection::open(g.place.there.path()).unwrap();
    let main = "INSERT INTO config(name,value,mtime) VALUES('main-branch',?1,0)";
    for (branch, words) in [
        ("trunk", "on `trunk`"),
        ("main", "no working branch of `ann`"),
        ("side", "no working branch of `ann`"),
        ("agent/bob-0a1b2c3d", "no working branch of `ann`"),
        ("agent/ann-bob-0a1b2c3d", "no working branch of `ann`"),
        ("agent/ann-1", "no working branch of `ann`"),
    ] {
        g.refuses(&["denied"], words, json!({"branch": branch, "bundle": bundle}));
    }
    db.execute(main, [BRANCH]).unwrap();
    g.refuses(&["denied"], "the main branch here", json!({"branch": BRANCH, "bundle": bundle}));
    db.execute("DELETE FROM config WHERE name='main-branch'", []).unwrap();
    g.takes_the_good_one();
}

#[test]
fn v13_a_date_far_ahead_or_of_no_fixed_form_is_refused() {
    let g = Ground::new();
    for (date, words) in [
        ("2999-01-01T00:00:00".to_owned(), "more than a day after now"),
        ("now".to_owned(), "D 2026-11-30T10:23:45.120"),
        ("2001-01-01T00:00:00".to_owned(), "before its parent"),
    ] {
        let text =
            String::from_utf8(check_in(&comment("x"), FILE, &g.place.root(), &begin(BRANCH), "ann")).unwrap();
        let start = text.find("\nD ").unwrap() + 3;
        let end = start + text[start..].find('\n').unwrap();
        let cards = format!("{}{date}{}", &text[..start], &text[end..text.rfind("Z ").unwrap()]);
        let bytes = g.changed(|bundle| {
            add(bundle, b"");
            add(bundle, &artifact(&cards));
        });
        g.refuses_bytes("refused", words, &bytes);
    }
    g.takes_the_good_one();
}

#[test]
fn v13_a_file_or_a_parent_that_is_nowhere_is_refused_and_leaves_no_phantom() {
    let g = Ground::new();
    let nowhere = Hash::of(b"nowhere");
    let lacking =
        check_in(&comment("x"), &format!("F a.txt {nowhere}"), &g.place.root(), &begin(BRANCH), "ann");
    let bytes = g.changed(|bundle| {
        add(bundle, &lacking);
    });
    g.refuses_bytes("not_found", nowhere.as_str(), &bytes);
    let begun = begin(BRANCH).replace("T -sym-trunk *\n", "");
    let orphan = check_in(&comment("x"), FILE, &nowhere, &begun, "ann");
    let bytes = g.changed(|bundle| {
        add(bundle, b"");
        add(bundle, &orphan);
    });
    g.refuses_bytes("not_found", nowhere.as_str(), &bytes);
    g.takes_the_good_one();
}
