//! Writing in the name of a user: artifacts with a date that makes them the newest, and rows that no artifact holds.
//!
//! Everything is one transaction of the engine. If the closure refuses, nothing is written.

use rusqlite::Connection;

use crate::engine::{self, Transaction};
use crate::error::{Error, Kind, Result};
use crate::format::artifact::looks_like_artifact;
use crate::format::packed;
use crate::name::{Hash, User, time};
use crate::repo::Repository;
use crate::transfer::judge_own;

/// How many seconds the newest version may be ahead of this machine's clock, for a newer one to be written after it. A
/// date further ahead comes from a wrong clock, and must not spread.
pub(crate) const LEAD_MAX_S: i64 = 24 * 60 * 60;

/// Who may see an artifact, and whether it is sent to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// Everyone may see it, and it is sent.
    Public,
    /// Only those who may see what is private. It is not sent.
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

/// Returns the date for a new artifact's D card. It is now, or right after the Julian day `after` if that is later.
pub(crate) fn date_after(after: Option<f64>) -> Result<String> {
    let now = time::julian_now();
    let after = after.unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "a day is a small number of seconds")]
    if (after - now) * 86400.0 <= LEAD_MAX_S as f64 {
        return Ok(time::date_card(now.max(after + 0.001 / 86400.0)));
    }
    let what = format!("what this follows is dated {}, and would win over it", time::utc(after));
    Err(Error::new(Kind::Invalid, what)
        .with_hint("Set the clock right, or have what is dated wrongly withdrawn."))
}

/// Runs `write` in one transaction, in the name of `user`.
pub(crate) fn write_as<T: Send + 'static>(
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
    /// The connection. It sees what was written so far.
    pub fn db(&self) -> &Connection {
        self.change.connection()
    }

    /// The user's name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Stores a control artifact and links it in. The artifact `previous` may become a delta from it.
    pub fn put(&mut self, artifact: &[u8], previous: Option<&Hash>, visibility: Visibility) -> Result<Hash> {
        let hash = Hash::name_for(artifact, self.sha1);
        judge_own(artifact, &hash)?;
        if visibility == Visibility::Public {
            self.change.put(artifact, hash.as_str(), previous.map(Hash::as_str))?;
        } else {
            self.put_aside(artifact, &hash, visibility)?;
        }
        Ok(hash)
    }

    /// Returns the number of this reception, for rows that keep it.
    pub fn receipt(&mut self) -> Result<i64> {
        self.change.receipt()
    }

    /// Runs `act`, which may write the tables `user` and `config`.
    pub fn unprotected<T>(&self, act: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.change.unprotected(act)
    }

    /// Stores what is not for everyone. It is marked as private before it is linked in, so that nothing public becomes
    /// a delta of it.
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
