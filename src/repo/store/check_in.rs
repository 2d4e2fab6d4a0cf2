//! Check-ins as they count now, with the tags that later artifacts put on them.

use rusqlite::Row;

use super::Store;
use super::column::{optional_text, text};
use crate::error::{Error, Kind, Result};
use crate::name::Hash;

/// A check-in with its effective values: comment, user, branch and time may have been amended.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckInInfo {
    /// The check-in.
    pub hash: Hash,
    /// Its parents, the primary one first.
    pub parents: Vec<Hash>,
    /// The branch's name as stored. Today's rules for names may refuse it.
    pub branch: String,
    /// The user's name as stored.
    pub user: String,
    /// The comment.
    pub comment: String,
    /// When, in UTC: `2026-11-30T10:23:45Z`.
    pub time: String,
    /// The same as a Julian day.
    pub julian: f64,
    /// Whether it is a closed leaf.
    pub closed: bool,
    /// Whether it has no child on its own branch.
    pub leaf: bool,
    /// Whether it is private, so that no sync sends it.
    pub private: bool,
}

/// How an artifact came into this repository, as recorded by the repository's own process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The login that sent it. Empty if that user no longer exists.
    pub user: String,
    /// When, in UTC: `2026-11-30T10:23:45Z`.
    pub time: String,
    /// The address it came from, or nothing if it was made here.
    pub ip: Option<String>,
}

/// Whether the check-in `?1` has no child on its branch, as Fossil's `is_a_leaf`.
const IS_LEAF: &str = "NOT EXISTS(SELECT 1 FROM plink WHERE pid=?1
  AND coalesce((SELECT value FROM tagxref WHERE tagid=8 AND rid=plink.pid), 'trunk')
    = coalesce((SELECT value FROM tagxref WHERE tagid=8 AND rid=plink.cid), 'trunk'))";

impl Store {
    /// Returns a check-in with its effective values.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the repository holds no such check-in.
    pub fn check_in(&self, hash: &Hash) -> Result<CheckInInfo> {
        let rid = self.check_in_row(hash)?;
        let sql = format!(
            "SELECT coalesce((SELECT value FROM tagxref WHERE rid=?1 AND tagid=8 AND tagtype>0), 'trunk'),
               coalesce(euser, user), coalesce(ecomment, comment),
               strftime('%Y-%m-%dT%H:%M:%SZ', mtime), mtime,
               EXISTS(SELECT 1 FROM tagxref WHERE rid=?1 AND tagid=9 AND tagtype>0), {IS_LEAF},
               EXISTS(SELECT 1 FROM private WHERE rid=?1)
             FROM event WHERE objid=?1"
        );
        let parents = self.parents(rid)?;
        let info = self.first(&sql, [rid], |row| info(row, *hash))?.ok_or_else(|| no_check_in(hash))?;
        Ok(CheckInInfo { parents, ..info })
    }

    /// Whether the check-in has no child on its own branch.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the repository holds no such check-in.
    pub fn leaf(&self, hash: &Hash) -> Result<bool> {
        let rid = self.check_in_row(hash)?;
        Ok(self.first(&format!("SELECT {IS_LEAF}"), [rid], |row| row.get(0))?.unwrap_or(false))
    }

    /// Whether `later` is `earlier` or one of its descendants, through any parent.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the repository does not hold both check-ins.
    pub fn descends(&self, later: &Hash, earlier: &Hash) -> Result<bool> {
        let (later, earlier) = (self.check_in_row(later)?, self.check_in_row(earlier)?);
        let sql = "WITH RECURSIVE line(rid) AS (
               VALUES(?1) UNION SELECT pid FROM plink CROSS JOIN line ON cid=line.rid)
             SELECT 1 FROM line WHERE rid=?2 LIMIT 1";
        Ok(self.first(sql, [later, earlier], |_| Ok(()))?.is_some())
    }

    /// Returns the descendants of a check-in, through any parent, the oldest first. The check-in itself is not among
    /// them.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the repository holds no such check-in.
    pub fn descendants(&self, hash: &Hash) -> Result<Vec<Hash>> {
        let sql = "WITH RECURSIVE line(rid) AS (
               VALUES(?1) UNION SELECT cid FROM plink CROSS JOIN line ON pid=line.rid)
             SELECT uuid FROM line CROSS JOIN event ON objid=line.rid CROSS JOIN blob ON blob.rid=line.rid
             WHERE line.rid<>?1 ORDER BY event.mtime, line.rid";
        let found = self.rows(sql, [self.check_in_row(hash)?], |row| text(row, 0))?;
        found.iter().map(|hash| Hash::parse(hash)).collect()
    }

    /// Returns how an artifact came here, or nothing if the repository has no record of that.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn receipt(&self, hash: &Hash) -> Result<Option<Receipt>> {
        let sql = "SELECT login, strftime('%Y-%m-%dT%H:%M:%SZ', rcvfrom.mtime), rcvfrom.ipaddr
             FROM blob JOIN rcvfrom USING(rcvid) LEFT JOIN user USING(uid)
             WHERE uuid=?1 AND size>=0";
        self.first(sql, [hash.as_str()], |row| {
            let ip = optional_text(row, 2)?.filter(|ip| !ip.is_empty());
            Ok(Receipt { user: text(row, 0)?, time: text(row, 1)?, ip })
        })
    }

    fn parents(&self, rid: i64) -> Result<Vec<Hash>> {
        let sql = "SELECT uuid FROM plink JOIN blob ON blob.rid=pid WHERE cid=?1 \
                   ORDER BY isprim DESC, plink.rowid";
        self.rows(sql, [rid], |row| text(row, 0))?.iter().map(|hash| Hash::parse(hash)).collect()
    }

    fn check_in_row(&self, hash: &Hash) -> Result<i64> {
        let sql = "SELECT rid FROM blob CROSS JOIN event ON objid=rid WHERE uuid=?1 AND type='ci'";
        self.first(sql, [hash.as_str()], |row| row.get(0))?.ok_or_else(|| no_check_in(hash))
    }
}

fn info(row: &Row<'_>, hash: Hash) -> rusqlite::Result<CheckInInfo> {
    Ok(CheckInInfo {
        hash,
        parents: Vec::new(),
        branch: text(row, 0)?,
        user: text(row, 1)?,
        comment: text(row, 2)?,
        time: text(row, 3)?,
        julian: row.get(4)?,
        closed: row.get(5)?,
        leaf: row.get(6)?,
        private: row.get(7)?,
    })
}

fn no_check_in(hash: &Hash) -> Error {
    Error::new(Kind::NotFound, format!("no check-in `{}`", hash.short()))
        .with_hint("Pull first, or give a check-in that is here.")
}
