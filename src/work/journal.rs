//! What a checkout has saved and what of it was sent, kept in the checkout's own database.
//!
//! Only the server knows whether it holds a check-in; the journal knows what to ask it about. A save is noted before
//! it is made, so that a save that a crash cut short is found again and never made twice.

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Result;
use crate::name::{Hash, User};

const SCHEMA: &str = "
  CREATE TABLE IF NOT EXISTS ocx_saved(
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, branch TEXT NOT NULL, sent INTEGER NOT NULL DEFAULT 0);
  CREATE TABLE IF NOT EXISTS ocx_saving(
    id INTEGER PRIMARY KEY CHECK(id=1), parent TEXT NOT NULL, branch TEXT NOT NULL, user TEXT NOT NULL,
    comment TEXT NOT NULL);";

/// A check-in that was saved here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The check-in.
    pub hash: Hash,
    /// The branch it was saved on.
    pub branch: String,
    /// Whether the server was seen to take it.
    pub sent: bool,
}

/// A save that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// The check-in it builds on.
    pub parent: Hash,
    /// Its branch.
    pub branch: String,
    /// Its user.
    pub user: User,
    /// Its whole comment.
    pub comment: String,
}

/// The journal of one checkout. Reading makes no table, so that looking changes nothing.
#[derive(Clone, Copy)]
pub struct Journal<'a>(&'a Connection);

impl<'a> Journal<'a> {
    /// The journal in a checkout's database.
    #[must_use]
    pub fn new(checkout: &'a Connection) -> Self {
        Self(checkout)
    }

    /// Every check-in saved here, the newest last.
    ///
    /// # Errors
    /// Those of reading the database.
    pub fn saved(self) -> Result<Vec<Saved>> {
        if !self.exists()? {
            return Ok(Vec::new());
        }
        let mut rows = self.0.prepare_cached("SELECT hash, branch, sent FROM ocx_saved ORDER BY id")?;
        let rows = rows.query_map([], |r| Ok((r.get::<_, String>(0)?, r.get(1)?, r.get(2)?)))?;
        rows.map(|row| {
            let (hash, branch, sent) = row?;
            Ok(Saved { hash: Hash::parse(&hash)?, branch, sent })
        })
        .collect()
    }

    /// The save that was begun and not ended, if a process was cut short.
    ///
    /// # Errors
    /// Those of reading the database.
    pub fn begun(self) -> Result<Option<Begun>> {
        if !self.exists()? {
            return Ok(None);
        }
        let row = self
            .0
            .query_row("SELECT parent, branch, user, comment FROM ocx_saving", [], |r| {
                Ok((r.get::<_, String>(0)?, r.get(1)?, r.get::<_, String>(2)?, r.get(3)?))
            })
            .optional()?;
        row.map(|(parent, branch, user, comment)| {
            Ok(Begun { parent: Hash::parse(&parent)?, branch, user: User::parse(&user)?, comment })
        })
        .transpose()
    }

    /// Notes a save that is about to be made.
    ///
    /// # Errors
    /// Those of writing the database.
    pub fn begin(self, save: &Begun) -> Result<()> {
        self.0.execute_batch(SCHEMA)?;
        self.0.execute(
            "INSERT OR REPLACE INTO ocx_saving(id, parent, branch, user, comment) VALUES(1, ?1, ?2, ?3, ?4)",
            params![save.parent.as_str(), save.branch, save.user.as_str(), save.comment],
        )?;
        Ok(())
    }

    /// Notes that the save that was begun made this check-in, or none.
    ///
    /// # Errors
    /// Those of writing the database.
    pub fn end(self, made: Option<(&Hash, &str)>) -> Result<()> {
        self.0.execute_batch(SCHEMA)?;
        if let Some((hash, branch)) = made {
            self.0.execute(
                "INSERT OR IGNORE INTO ocx_saved(hash, branch) VALUES(?1, ?2)",
                params![hash.as_str(), branch],
            )?;
        }
        self.0.execute("DELETE FROM ocx_saving", [])?;
        Ok(())
    }

    /// Notes that the server has taken these.
    ///
    /// # Errors
    /// Those of writing the database.
    pub fn sent(self, hashes: &[Hash]) -> Result<()> {
        if hashes.is_empty() {
            return Ok(());
        }
        let mut update = self.0.prepare_cached("UPDATE ocx_saved SET sent=1 WHERE hash=?1")?;
        for hash in hashes {
            update.execute([hash.as_str()])?;
        }
        Ok(())
    }

    fn exists(self) -> Result<bool> {
        let sql = "SELECT count(*)=2 FROM sqlite_master WHERE name IN('ocx_saved', 'ocx_saving')";
        Ok(self.0.query_row(sql, [], |r| r.get(0))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> Begun {
        Begun {
            parent: Hash::of(b"parent"),
            branch: "agent/u-1".into(),
            user: User::parse("u").unwrap(),
            comment: "t".into(),
        }
    }

    #[test]
    fn looking_makes_no_table() {
        let db = Connection::open_in_memory().unwrap();
        let journal = Journal::new(&db);
        assert!(journal.saved().unwrap().is_empty() && journal.begun().unwrap().is_none());
        let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_master", [], |r| r.get(0)).unwrap();
        assert_eq!(tables, 0);
    }

    #[test]
    fn a_save_cut_short_is_found_until_it_is_ended() {
        let db = Connection::open_in_memory().unwrap();
        let journal = Journal::new(&db);
        journal.begin(&begun()).unwrap();
        assert_eq!(journal.begun().unwrap(), Some(begun()));
        let made = Hash::of(b"made");
        journal.end(Some((&made, "agent/u-1"))).unwrap();
        assert_eq!(journal.begun().unwrap(), None);
        assert_eq!(journal.saved().unwrap(), [Saved { hash: made, branch: "agent/u-1".into(), sent: false }]);
        journal.sent(&[made]).unwrap();
        assert!(journal.saved().unwrap()[0].sent);
    }
}
