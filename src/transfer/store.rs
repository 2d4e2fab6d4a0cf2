//! Storing the rows of a set in the tables `blob` and `delta`, as they came.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension};

use super::row::{Basis, Keep, Row};
use super::staged::Staged;
use crate::error::Result;
use crate::format::packed::pack;
use crate::name::Hash;

/// A delta from an artifact that is this many deltas away from a whole one is stored whole. Otherwise small pulls, one
/// after the other, would make what is newest ever slower to read.
const DEPTH_MAX: usize = 16;

/// What the repository had of a row's artifact before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// Its name only, or a delta whose basis is not there.
    Phantom,
    Content,
}

/// Stores rows as they come.
pub(super) struct Storing<'a> {
    db: &'a Connection,
    staged: &'a Staged,
    receipt: i64,
    /// Whether the next push is to send what is new.
    is_sent_on: bool,
    before: Vec<Before>,
    stored: Stored,
}

/// Where the artifacts of a set are in the repository.
pub(super) struct Stored {
    /// The row number of each, by the index of its row.
    pub rids: Vec<i64>,
    is_new: Vec<bool>,
    /// How many are new.
    pub new: usize,
    /// Row numbers of those that were known by name only.
    pub filled: Vec<i64>,
}

impl Stored {
    pub fn is_new(&self, row: usize) -> bool {
        self.is_new[row]
    }
}

impl<'a> Storing<'a> {
    pub fn new(db: &'a Connection, staged: &'a Staged, receipt: i64, is_sent_on: bool) -> Result<Self> {
        let rows = staged.rows();
        let mut query = db.prepare("SELECT rid, size FROM blob WHERE uuid=?1")?;
        let broken = broken(db)?;
        let (mut rids, mut before) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for row in rows {
            let found = query.query_row([row.hash.as_str()], |r| Ok((r.get(0)?, r.get::<_, i64>(1)?)));
            let (rid, state) = match found.optional()? {
                None => (0, Before::Nothing),
                Some((rid, size)) if size < 0 || broken.contains(&rid) => (rid, Before::Phantom),
                Some((rid, _)) => (rid, Before::Content),
            };
            rids.push(rid);
            before.push(state);
        }
        let stored = Stored { rids, is_new: vec![false; rows.len()], new: 0, filled: Vec::new() };
        Ok(Self { db, staged, receipt, is_sent_on, before, stored })
    }

    /// Stores one artifact, whose basis was stored before it, as it came: `packed`. `whole` expands it where it cannot
    /// stay a delta.
    pub fn store(
        &mut self,
        row: usize,
        packed: &[u8],
        whole: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<()> {
        let Row { hash, keep, size, basis, .. } = self.staged.rows()[row];
        if keep == Keep::ForOthers || self.before[row] == Before::Content {
            return Ok(());
        }
        if self.before[row] == Before::Nothing
            && let Some(rid) = self.twin(&hash)?
        {
            self.stored.rids[row] = rid;
            return Ok(());
        }
        let source = self.source(row)?;
        let packed_whole;
        let data = if source.is_none() && basis != Basis::None {
            packed_whole = pack(&whole()?)?;
            &packed_whole[..]
        } else {
            packed
        };
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let rid = self.write(row, &hash, size, data)?;
        if let Some(source) = source {
            let sql = "REPLACE INTO delta(rid,srcid) VALUES(?1,?2)";
            self.db.prepare_cached(sql)?.execute([rid, source])?;
        }
        if self.is_sent_on {
            self.db.prepare_cached("INSERT OR IGNORE INTO unsent VALUES(?1)")?.execute([rid])?;
        }
        self.stored.rids[row] = rid;
        self.stored.is_new[row] = true;
        self.stored.new += 1;
        Ok(())
    }

    fn write(&mut self, row: usize, hash: &Hash, size: i64, data: &[u8]) -> Result<i64> {
        if self.before[row] == Before::Phantom {
            let rid = self.stored.rids[row];
            let sql = "UPDATE blob SET rcvid=?1, size=?2, content=?3 WHERE rid=?4";
            self.db.prepare_cached(sql)?.execute((self.receipt, size, data, rid))?;
            for table in ["phantom", "delta"] {
                self.db.prepare_cached(&format!("DELETE FROM {table} WHERE rid=?1"))?.execute([rid])?;
            }
            self.stored.filled.push(rid);
            return Ok(rid);
        }
        let sql = "INSERT INTO blob(rcvid,size,uuid,content) VALUES(?1,?2,?3,?4)";
        self.db.prepare_cached(sql)?.execute((self.receipt, size, hash.as_str(), data))?;
        let rid = self.db.last_insert_rowid();
        let table = match self.staged.rows()[row].keep {
            Keep::Private => "private",
            Keep::Public | Keep::ForOthers => "unclustered",
        };
        self.db.prepare_cached(&format!("INSERT OR IGNORE INTO {table} VALUES(?1)"))?.execute([rid])?;
        Ok(rid)
    }

    /// The artifact's number, if another row of the set brought it before.
    fn twin(&self, hash: &Hash) -> Result<Option<i64>> {
        let sql = "SELECT rid FROM blob WHERE uuid=?1 AND size>=0";
        Ok(self.db.prepare_cached(sql)?.query_row([hash.as_str()], |row| row.get(0)).optional()?)
    }

    /// The row number of the basis of which the artifact stays a delta. Returns nothing if it must be stored whole.
    fn source(&self, row: usize) -> Result<Option<i64>> {
        let source = match self.staged.rows()[row].basis {
            Basis::None => return Ok(None),
            Basis::Row(basis) => self.stored.rids[basis],
            Basis::External(hash) => match self.twin(&hash)? {
                Some(rid) if self.depth(rid)? < DEPTH_MAX => rid,
                _ => return Ok(None),
            },
        };
        // A delta here may already build on the phantom, and the basis on that delta. Stored whole, it closes no circle.
        if source == 0 || self.before[row] == Before::Phantom {
            return Ok(None);
        }
        if self.staged.rows()[row].keep == Keep::Private {
            return Ok(Some(source));
        }
        // What is public must be readable by those who have no private artifacts.
        let sql = "SELECT 1 FROM private WHERE rid=?1";
        Ok((!self.db.prepare_cached(sql)?.exists([source])?).then_some(source))
    }

    /// How many deltas lie between an artifact and one that is stored whole, up to the most that are allowed.
    fn depth(&self, rid: i64) -> Result<usize> {
        let mut query = self.db.prepare_cached("SELECT srcid FROM delta WHERE rid=?1")?;
        let (mut depth, mut at) = (0, rid);
        while depth < DEPTH_MAX
            && let Some(source) = query.query_row([at], |row| row.get(0)).optional()?
        {
            (depth, at) = (depth + 1, source);
        }
        Ok(depth)
    }

    /// Makes public what came, if the repository held it as private.
    pub fn finish(mut self) -> Result<Stored> {
        let mut private = self.db.prepare("DELETE FROM private WHERE rid=?1")?;
        for (row, before) in self.before.iter().enumerate() {
            let rid = self.stored.rids[row];
            let is_public = self.staged.rows()[row].keep == Keep::Public;
            if is_public && *before != Before::Nothing && private.execute([rid])? > 0 {
                for table in ["unsent", "unclustered"] {
                    let sql = format!("INSERT OR IGNORE INTO {table} VALUES(?1)");
                    self.db.prepare_cached(&sql)?.execute([rid])?;
                }
            }
        }
        drop(private);
        self.stored.filled.sort_unstable();
        self.stored.filled.dedup();
        Ok(self.stored)
    }
}

/// Makes artifacts public that are held as private.
pub(crate) fn make_public(db: &Connection, hashes: &[Hash]) -> Result<()> {
    for hash in hashes {
        let sql =
            "INSERT OR IGNORE INTO unclustered SELECT rid FROM private JOIN blob USING(rid) WHERE uuid=?1";
        db.prepare_cached(sql)?.execute([hash.as_str()])?;
        let sql = "DELETE FROM private WHERE rid=(SELECT rid FROM blob WHERE uuid=?1)";
        db.prepare_cached(sql)?.execute([hash.as_str()])?;
    }
    Ok(())
}

/// The artifacts that cannot be read because what they are deltas from is not here.
fn broken(db: &Connection) -> Result<HashSet<i64>> {
    let sql = "WITH RECURSIVE broken(rid) AS (SELECT rid FROM phantom
        UNION SELECT delta.rid FROM broken CROSS JOIN delta ON srcid=broken.rid) SELECT rid FROM broken";
    let mut query = db.prepare(sql)?;
    let rids = query.query_map([], |row| row.get(0))?;
    Ok(rids.collect::<rusqlite::Result<_>>()?)
}
