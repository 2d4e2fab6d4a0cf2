//! Writing in the name of a user: artifacts with a date that makes them count, and the rows that no artifact holds.
//!
//! Everything is one transaction of [`engine::transaction`]: what the closure refuses leaves nothing behind.

use rusqlite::Connection;

use crate::engine::{self, Transaction};
use crate::error::{Error, Kind, Result};
use crate::format::artifact::looks_like_artifact;
use crate::format::packed;
use crate::name::{Hash, User};
use crate::repo::Repository;

/// By how many seconds what is newest may be ahead of this machine's clock, for something still newer to be written after
/// it. What is further ahead comes from a clock that is wrong, and such a date must not spread.
pub(crate) const LEAD_MAX_S: i64 = 24 * 60 * 60;

/// Who may see an artifact, and whether it is sent to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// Everyone; it is sent.
    Public,
    /// Those who may see what is private; it stays here.
    Private,
    /// As private, until a moderator approves it.
    Pending,
}

impl Visibility {
    pub fn pending_if(pending: bool) -> Self {
        if pending { Self::Pending } else { Self::Public }
    }
}

/// A user at work in a write transaction.
pub(crate) struct Author<'a, 'c> {
    change: &'a mut Transaction<'c>,
    user: String,
    sha1: bool,
}

/// Runs `write` in one transaction, in the name of `user`.
pub(crate) fn author<T: Send + 'static>(
    repository: &Repository,
    user: &User,
    write: impl FnOnce(&mut Author<'_, '_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let sha1 = repository.store().names_by_sha1()?;
    let name = user.to_string();
    engine::transaction(repository.path(), user.as_str(), move |change| {
        write(&mut Author { change, user: name, sha1 })
    })
}

impl Author<'_, '_> {
    /// The handle, on which what was written so far is seen.
    pub fn db(&self) -> &Connection {
        self.change.connection()
    }

    /// The user's name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The time for a new artifact as its D card says it: now, or right after the Julian day `after` where that
    /// is not over yet.
    pub fn date(&self, after: Option<f64>) -> Result<String> {
        let sql = "SELECT strftime('%Y-%m-%dT%H:%M:%f', max(julianday('now'), coalesce(?1, 0)+0.001/86400)),
             coalesce(?1, 0)-julianday('now'), strftime('%Y-%m-%d %H:%M:%S', ?1)";
        let (date, lead_days, held): (String, f64, Option<String>) =
            self.db().query_row(sql, [after], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        #[expect(clippy::cast_precision_loss, reason = "a day is a small number of seconds")]
        if lead_days * 86400.0 <= LEAD_MAX_S as f64 {
            return Ok(date);
        }
        Err(Error::new(
            Kind::Invalid,
            format!("what this follows is dated {} UTC, and would win over it", held.unwrap_or_default()),
        )
        .with_hint("Set the clock right, or have what is dated wrongly withdrawn."))
    }

    /// Stores a control artifact and links it in; the artifact `previous` may become a delta from it.
    pub fn put(&mut self, artifact: &[u8], previous: Option<&Hash>, visibility: Visibility) -> Result<Hash> {
        let hash = Hash::name_for(artifact, self.sha1);
        if visibility == Visibility::Public {
            self.change.put(artifact, hash.as_str(), previous.map(Hash::as_str))?;
        } else {
            self.put_aside(artifact, &hash, visibility)?;
        }
        Ok(hash)
    }

    /// The number of this reception, for rows that note it.
    pub fn receipt(&mut self) -> Result<i64> {
        self.change.receipt()
    }

    /// Runs `act`, which may write the tables `user` and `config`.
    pub fn unprotected<T>(&self, act: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.change.unprotected(act)
    }

    /// Stores what is not for everyone. It is marked before it is linked in, so that nothing public becomes a delta of it.
    fn put_aside(&mut self, artifact: &[u8], hash: &Hash, visibility: Visibility) -> Result<()> {
        if !looks_like_artifact(artifact) {
            return Err(Error::new(Kind::Internal, "what is to be stored is no artifact"));
        }
        let rcvid = self.change.receipt()?;
        let size = i64::try_from(artifact.len()).unwrap_or(i64::MAX);
        let db = self.change.connection();
        let sql = "INSERT INTO blob(rcvid, size, uuid, content) VALUES(?1, ?2, ?3, ?4)";
        db.execute(sql, (rcvid, size, hash.as_str(), packed::pack(artifact)?))?;
        let rid = db.last_insert_rowid();
        db.execute("INSERT INTO private(rid) VALUES(?1)", [rid])?;
        if visibility == Visibility::Pending {
            let table =
                "CREATE TABLE IF NOT EXISTS modreq(objid INTEGER PRIMARY KEY, attachRid INT, tktid TEXT)";
            db.execute_batch(table)?;
            db.execute("INSERT INTO modreq(objid) VALUES(?1)", [rid])?;
        }
        self.change.crosslink(&[(rid, artifact)])?;
        if self.db().prepare("SELECT 1 FROM event WHERE objid=?1")?.exists([rid])? {
            return Ok(());
        }
        Err(Error::new(Kind::Invalid, "Fossil's parser does not take the artifact")
            .with_hint("Check its values; nothing was stored."))
    }
}
