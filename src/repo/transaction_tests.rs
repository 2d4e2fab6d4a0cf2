//! Tests of `engine::transaction`. They are not in `tests/`, because only the crate itself has a transaction's connection. They
//! are not in the engine, because they need a repository.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rusqlite::Connection;

use crate::engine::{Transaction, transaction};
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, User};
use crate::plain_fossil::PlainFossil;
use crate::repo::{NewRepository, Repository};

struct Place {
    _folder: tempfile::TempDir,
    repository: Repository,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let user = User::parse("ann").unwrap();
        let repository =
            Repository::create(&folder.path().join("r.fossil"), &NewRepository { user }).unwrap();
        Self { _folder: folder, repository }
    }

    fn transaction<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        transaction(self.repository.path(), "ann", f)
    }

    fn count(&self, sql: &str) -> i64 {
        let sql = sql.to_owned();
        self.transaction(move |c| Ok(c.connection().query_row(&sql, [], |r| r.get(0))?)).unwrap()
    }

    /// Nothing of a failed transaction is there, and the next one works.
    #[track_caller]
    fn is_as_before(&self) {
        assert_eq!(self.count("SELECT count(*) FROM blob"), 1);
        assert_eq!(self.count("SELECT count(*) FROM concealed"), 0);
        self.transaction(|c| note(c.connection()).map(drop)).unwrap();
        self.transaction(|c| Ok(c.connection().execute("DELETE FROM concealed", [])?)).unwrap();
        self.repository.verify().unwrap();
    }
}

/// Writes a row that no code of Fossil's looks at.
fn note(db: &Connection) -> Result<usize> {
    Ok(db.execute("INSERT INTO concealed(hash,mtime,content) VALUES('x',1,'y')", [])?)
}

fn page(text: &str) -> (Vec<u8>, String) {
    let mut page = format!("D 2026-11-30T10:00:00\nL Notes\nU ann\nW {}\n{text}\n", text.len()).into_bytes();
    let sum = crate::format::artifact::tests::z_card(&page);
    page.extend(sum.bytes());
    let hash = Hash::of(&page).to_string();
    (page, hash)
}

#[test]
fn sql_and_fossils_code_share_one_transaction() {
    let place = Place::new();
    let ((one, first), (two, second)) = (page("hello"), page(&"hello again ".repeat(30)));
    let rid = place
        .transaction(move |c| {
            note(c.connection())?;
            c.put(&one, &first, None)?;
            let rid = c.put(&two, &second, Some(&first))?;
            let seen: i64 =
                c.connection().query_row("SELECT count(*) FROM event WHERE type='w'", [], |r| r.get(0))?;
            assert_eq!(seen, 2);
            Ok(rid)
        })
        .unwrap();
    assert_eq!(place.count("SELECT count(*) FROM unsent WHERE rid>1"), 2);
    assert_eq!(place.count(&format!("SELECT count(*) FROM event WHERE objid={rid}")), 1);
    assert_eq!(place.count("SELECT count(*) FROM concealed"), 1);
    place.repository.verify().unwrap();
    let page = engine_page(&place);
    assert!(page.starts_with("hello again"), "{page}");
}

fn engine_page(place: &Place) -> String {
    let path = place.repository.path().to_str().unwrap();
    crate::engine::command(Path::new("/"), &["wiki", "export", "Notes", "-R", path], None).unwrap().out
}

#[test]
fn an_error_rolls_back_and_the_next_change_works() {
    let place = Place::new();
    let done: Result<()> = place.transaction(|c| {
        note(c.connection())?;
        let (page, hash) = page("lost");
        c.put(&page, &hash, None)?;
        Err(Error::new(Kind::Cancelled, "no more"))
    });
    assert_eq!(done.unwrap_err().kind(), Kind::Cancelled);
    place.is_as_before();
}

#[test]
fn a_panic_rolls_back_and_goes_on_in_the_caller() {
    let place = Place::new();
    let done = catch_unwind(AssertUnwindSafe(|| {
        place.transaction(|c| -> Result<()> {
            let mut statement = c.connection().prepare_cached("SELECT rid FROM blob")?;
            let mut rows = statement.query([])?;
            rows.next()?;
            note(c.connection())?;
            panic!("in the middle of a query");
        })
    }));
    assert!(done.is_err());
    place.is_as_before();
}

#[test]
fn a_swallowed_refusal_of_fossils_parser_still_stores_nothing() {
    let place = Place::new();
    let done = place.transaction(|c| {
        let (mut page, _) = page("broken");
        page.truncate(page.len() - 2);
        assert_eq!(c.put(&page, &"1".repeat(64), None).unwrap_err().kind(), Kind::Invalid);
        let (page, hash) = self::page("whole");
        assert!(c.put(&page, &hash, None).is_err());
        note(c.connection())
    });
    assert!(done.is_err());
    place.is_as_before();
}

#[test]
fn fossil_leaving_within_a_change_rolls_back_and_never_commits_later_sql() {
    let place = Place::new();
    let done = place.transaction(|c| {
        note(c.connection())?;
        let trigger = "CREATE TEMP TRIGGER no BEFORE INSERT ON event BEGIN SELECT raise(fail,'no room'); END";
        c.connection().execute_batch(trigger)?;
        c.connection().prepare_cached("SELECT rid FROM blob")?.query_row([], |_| Ok(()))?;
        let (page, hash) = page("lost");
        let left = c.put(&page, &hash, None).unwrap_err();
        assert!(left.to_string().contains("no room"), "{left}");
        // Fossil has rolled back as it left, and the handle is still there. What follows is not kept.
        assert!(c.connection().is_autocommit());
        assert!(note(c.connection()).is_err());
        assert!(c.crosslink(&[(1, b"")]).is_err());
        Ok(())
    });
    assert!(done.is_err());
    place.is_as_before();
}

#[test]
fn a_commit_by_sql_is_refused() {
    let place = Place::new();
    let done = place.transaction(|c| {
        note(c.connection())?;
        assert!(c.connection().execute_batch("COMMIT").is_err());
        Ok(())
    });
    assert!(done.is_err());
    place.is_as_before();
}

#[test]
fn statements_that_would_run_fossils_code_are_refused() {
    let place = Place::new();
    place
        .transaction(|c| {
            for sql in [
                "SELECT content(1)",
                "SELECT symbolic_name_to_rid('trunk')",
                "SELECT now()",
                "SELECT * FROM files_of_checkin('trunk')",
                "CREATE VIRTUAL TABLE temp.x USING builtin",
                "SELECT * FROM helptext",
                "ATTACH ':memory:' AS y",
            ] {
                assert!(c.connection().prepare(sql).is_err(), "{sql}");
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn users_and_settings_are_written_only_where_that_is_asked_for() {
    let place = Place::new();
    place
        .transaction(|c| {
            let user = "INSERT INTO user(login,pw,cap,info) VALUES('bob','','i','')";
            let setting = "REPLACE INTO config(name,value,mtime) VALUES('project-name','Ours',1)";
            assert!(c.connection().execute(user, []).is_err());
            assert!(c.connection().execute(setting, []).is_err());
            c.unprotected(|db| {
                db.execute(user, [])?;
                Ok(db.execute(setting, [])?)
            })?;
            assert!(c.connection().execute(user, []).is_err());
            Ok(())
        })
        .unwrap();
    assert_eq!(place.count("SELECT count(*) FROM user WHERE login='bob'"), 1);
    assert_eq!(place.count("SELECT count(*) FROM config WHERE value='Ours'"), 1);
    // Fossil's own protection is as before.
    let path = place.repository.path().to_str().unwrap();
    crate::engine::command(Path::new("/"), &["user", "list", "-R", path], None).unwrap();
}

#[test]
fn content_that_sql_stores_is_linked_in_by_fossil() {
    let place = Place::new();
    let (text, hash) = page("stored by hand");
    place
        .transaction(move |c| {
            let receipt = c.receipt()?;
            let packed = crate::format::packed::pack(&text)?;
            let sql = "INSERT INTO blob(rcvid,size,uuid,content) VALUES(?1,?2,?3,?4)";
            let size = i64::try_from(text.len()).unwrap_or(0);
            c.connection().execute(sql, (receipt, size, hash.as_str(), packed))?;
            let rid = c.connection().last_insert_rowid();
            c.crosslink(&[(rid, b"")])
        })
        .unwrap();
    assert_eq!(engine_page(&place).trim(), "stored by hand");
    assert_eq!(place.count("SELECT count(*) FROM rcvfrom JOIN user USING(uid) WHERE login='ann'"), 2);
}

#[test]
fn an_unknown_user_and_a_missing_repository_are_told() {
    let place = Place::new();
    let unknown = transaction(place.repository.path(), "zed", |_| Ok(()));
    assert_eq!(unknown.unwrap_err().kind(), Kind::NotFound);
    let missing = transaction(Path::new("/nosuch/r.fossil"), "ann", |_| Ok(()));
    assert_eq!(missing.unwrap_err().kind(), Kind::NotFound);
    place.is_as_before();
}

#[test]
fn plain_fossil_reads_what_a_change_wrote() {
    let place = Place::new();
    let (text, hash) = page("for everyone");
    place.transaction(move |c| c.put(&text, &hash, None)).unwrap();
    let fossil = PlainFossil::new();
    let path = place.repository.path().to_str().unwrap().to_owned();
    assert_eq!(fossil.run(["wiki", "export", "Notes", "-R", &path]).trim(), "for everyone");
}
