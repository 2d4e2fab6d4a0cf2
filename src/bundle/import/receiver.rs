//! Storing a bundle's rows in the tables `blob` and `delta`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

use crate::bundle::walk::Expanded;
use crate::bundle::{Basis, Bundle};
use crate::error::{Error, Kind, Result};
use crate::format::packed::pack;
use crate::name::Hash;
use crate::repo::store::expand;

/// What the repository has of a row's artifact before the import.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// Its name only, or a delta whose basis is not there.
    Phantom,
    Content,
}

/// Stores rows as they come.
pub(super) struct Receiver<'a> {
    db: &'a Connection,
    bundle: &'a Bundle,
    receipt: i64,
    before: Vec<Before>,
    stored: Stored,
}

/// Where a bundle's artifacts are in the repository.
pub(super) struct Stored {
    /// The row number of each, by its row in the bundle.
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

impl<'a> Receiver<'a> {
    pub fn new(db: &'a Connection, bundle: &'a Bundle, receipt: i64) -> Result<Self> {
        let rows = &bundle.inner.rows;
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
        Ok(Self { db, bundle, receipt, before, stored })
    }

    /// Stores one artifact, whose basis was stored before it.
    pub fn store(&mut self, expanded: &Expanded<'_>) -> Result<()> {
        let row = expanded.row;
        let hash = self.bundle.inner.rows[row].hash;
        if self.before[row] == Before::Content {
            return Ok(());
        }
        if self.before[row] == Before::Nothing
            && let Some(rid) = self.twin(&hash)?
        {
            self.stored.rids[row] = rid;
            return Ok(());
        }
        let source = self.source(row)?;
        let whole;
        let data = if source.is_none() && self.bundle.inner.rows[row].basis != Basis::None {
            whole = pack(&expanded.content)?;
            &whole[..]
        } else {
            expanded.packed
        };
        let size = i64::try_from(expanded.content.len()).unwrap_or(i64::MAX);
        let rid = self.write(row, &hash, size, data)?;
        if let Some(source) = source {
            let sql = "REPLACE INTO delta(rid,srcid) VALUES(?1,?2)";
            self.db.prepare_cached(sql)?.execute([rid, source])?;
        }
        self.db.prepare_cached("INSERT OR IGNORE INTO unsent VALUES(?1)")?.execute([rid])?;
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
        self.db.prepare_cached("INSERT OR IGNORE INTO unclustered VALUES(?1)")?.execute([rid])?;
        Ok(rid)
    }

    /// The artifact's number, if the bundle brought it in another row before.
    fn twin(&self, hash: &Hash) -> Result<Option<i64>> {
        let sql = "SELECT rid FROM blob WHERE uuid=?1 AND size>=0";
        Ok(self.db.prepare_cached(sql)?.query_row([hash.as_str()], |row| row.get(0)).optional()?)
    }

    /// The row number of the basis that the artifact stays a delta from; nothing where it must be stored whole.
    fn source(&self, row: usize) -> Result<Option<i64>> {
        let source = match self.bundle.inner.rows[row].basis {
            Basis::None => return Ok(None),
            Basis::Row(basis) => self.stored.rids[basis],
            Basis::External(hash) => self.twin(&hash)?.unwrap_or(0),
        };
        // A delta here may already build on the phantom, and the basis on that delta: whole, it closes no circle.
        if source == 0 || self.before[row] == Before::Phantom {
            return Ok(None);
        }
        // What is public must be readable by those who have no private artifacts.
        let sql = "SELECT 1 FROM private WHERE rid=?1";
        Ok((!self.db.prepare_cached(sql)?.exists([source])?).then_some(source))
    }

    /// Makes public what the bundle brings and the repository held as private.
    pub fn finish(mut self) -> Result<Stored> {
        let mut private = self.db.prepare("DELETE FROM private WHERE rid=?1")?;
        for (row, before) in self.before.iter().enumerate() {
            let rid = self.stored.rids[row];
            if *before != Before::Nothing && private.execute([rid])? > 0 {
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

/// The artifacts that cannot be read because what they are deltas from is not here.
fn broken(db: &Connection) -> Result<HashSet<i64>> {
    let sql = "WITH RECURSIVE broken(rid) AS (SELECT rid FROM phantom
        UNION SELECT delta.rid FROM broken CROSS JOIN delta ON srcid=broken.rid) SELECT rid FROM broken";
    let mut query = db.prepare(sql)?;
    let rids = query.query_map([], |row| row.get(0))?;
    Ok(rids.collect::<rusqlite::Result<_>>()?)
}

/// The contents that a bundle's deltas need from the repository.
pub(in crate::bundle) struct Bases<'a> {
    db: &'a Connection,
    rids: HashMap<Hash, i64>,
}

impl<'a> Bases<'a> {
    /// # Errors
    /// [`Kind::NotFound`] when one is not there with content.
    pub fn of(db: &'a Connection, bundle: &Bundle) -> Result<Self> {
        let mut query = db.prepare("SELECT rid, size FROM blob WHERE uuid=?1")?;
        let mut rids = HashMap::new();
        for hash in bundle.bases() {
            let found = query.query_row([hash.as_str()], |r| Ok((r.get(0)?, r.get::<_, i64>(1)?)));
            match found.optional()? {
                Some((rid, 0..)) => rids.insert(hash, rid),
                Some(_) => return Err(missing(&hash, "is known here, but without its content")),
                None => return Err(missing(&hash, "is not in the repository")),
            };
        }
        Ok(Self { db, rids })
    }

    pub fn content(&mut self, hash: &Hash) -> Result<Arc<Vec<u8>>> {
        let content = self.rids.get(hash).map(|&rid| expand(self.db, rid)).transpose()?.flatten();
        match content {
            Some(content) if hash.names(&content) => Ok(content.into()),
            Some(_) => {
                let what =
                    format!("artifact `{hash}` of the repository is damaged: its bytes have another hash");
                Err(Error::new(Kind::Corrupt, what).with_hint("Pull it anew from a clone that holds it."))
            }
            None => Err(missing(hash, "is known here, but without its content")),
        }
    }
}

fn missing(hash: &Hash, how: &str) -> Error {
    Error::new(Kind::NotFound, format!("the artifact `{hash}`, which the bundle builds on, {how}"))
        .with_hint("Pull first, or ask for a standalone bundle.")
}
