//! The base of a merge: by Fossil's own rule where two check-ins have a common ancestor.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use rusqlite::{Connection, OptionalExtension};

use super::how::MergeHow;
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::repo::store::{Store, hash};

/// The versions that a merge compares with what is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// What both sides come from.
    pub base: Hash,
    /// What comes in.
    pub there: Hash,
}

impl Versions {
    /// Finds them for a merge of `incoming`. `here` is the check-in that the files come from, then those that were merged
    /// into them since.
    ///
    /// # Errors
    /// [`Kind::NotFound`] for a check-in that is not here, or if there is no common ancestor; [`Kind::Invalid`] for a
    /// single check-in without a parent.
    pub fn of(store: &Store, how: MergeHow, incoming: &Hash, here: &[Hash]) -> Result<Self> {
        if matches!(how, MergeHow::Whole | MergeHow::Integrate) {
            let base = common_ancestor(store, incoming, here)?.ok_or_else(|| no_ancestor(incoming))?;
            return Ok(Self { base, there: *incoming });
        }
        let parents = store.check_in(incoming)?.parents;
        let parent = *parents.first().ok_or_else(|| {
            Error::new(Kind::Invalid, format!("check-in `{}` has no parent", incoming.short()))
                .with_hint("Merge it whole.")
        })?;
        Ok(match how {
            MergeHow::Backout => Self { base: *incoming, there: parent },
            _ => Self { base: parent, there: *incoming },
        })
    }
}

fn no_ancestor(incoming: &Hash) -> Error {
    let what = format!("check-in `{}` has no ancestor in common with what is here", incoming.short());
    Error::new(Kind::NotFound, what).with_hint("Take its check-ins one by one.")
}

/// Returns the common ancestor of `incoming` and of one of `here`, as Fossil chooses it: ancestors are looked at from the
/// newest to the oldest by their time, and the first one is taken that one side reached and a child of which the other
/// side reached. Merged-in parents count as the primary one.
///
/// # Errors
/// [`Kind::NotFound`] for a check-in that is not here.
pub fn common_ancestor(store: &Store, incoming: &Hash, here: &[Hash]) -> Result<Option<Hash>> {
    let row = |check_in: &Hash| {
        let known = store.ask(|db| {
            let sql = "SELECT rid, mtime FROM blob JOIN event ON objid=rid WHERE uuid=?1 AND type='ci'";
            let mut query = db.prepare_cached(sql)?;
            query.query_row([check_in.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })?;
        known.ok_or_else(|| Error::new(Kind::NotFound, format!("no check-in `{}`", check_in.short())))
    };
    let mut queue = Queue::default();
    let (rid, time) = row(incoming)?;
    queue.add(rid, 0, time);
    for check_in in here {
        let (rid, time) = row(check_in)?;
        queue.add(rid, 1, time);
    }
    store.ask(|db| {
        let Some(rid) = queue.clone().meeting(db)? else { return Ok(None) };
        db.query_row("SELECT uuid FROM blob WHERE rid=?1", [rid], |row| hash(row, 0)).optional()
    })
}

/// The check-ins that were reached. Each side has its mark.
#[derive(Debug, Clone, Default)]
struct Queue {
    reached: BTreeMap<i64, [bool; 2]>,
    pending: BinaryHeap<Pending>,
}

impl Queue {
    fn add(&mut self, rid: i64, side: usize, time: f64) {
        self.reached.entry(rid).or_default()[side] = true;
        self.pending.push(Pending { time, rid });
    }

    /// The first check-in in which the sides meet.
    fn meeting(mut self, db: &Connection) -> rusqlite::Result<Option<i64>> {
        let mut children = db.prepare_cached("SELECT cid FROM plink WHERE pid=?1")?;
        let mut parents = db.prepare_cached(
            "SELECT pid, coalesce((SELECT mtime FROM event WHERE objid=pid), 0.0) FROM plink WHERE cid=?1",
        )?;
        while let Some(Pending { rid, .. }) = self.pending.pop() {
            // A check-in may have been reached several times before its turn.
            while self.pending.peek().is_some_and(|next| next.rid == rid) {
                self.pending.pop();
            }
            let by = self.reached[&rid];
            let mut rows = children.query([rid])?;
            while let Some(row) = rows.next()? {
                let child = self.reached.get(&row.get(0)?).copied().unwrap_or_default();
                if (by[0] && child[1]) || (by[1] && child[0]) {
                    return Ok(Some(rid));
                }
            }
            let mut rows = parents.query([rid])?;
            while let Some(row) = rows.next()? {
                let (parent, time) = (row.get(0)?, row.get(1)?);
                for side in [0, 1].into_iter().filter(|side| by[*side]) {
                    self.add(parent, side, time);
                }
            }
        }
        Ok(None)
    }
}

/// A check-in to look at. The newest is the greatest.
#[derive(Debug, Clone, Copy)]
struct Pending {
    time: f64,
    rid: i64,
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> Ordering {
        self.time.total_cmp(&other.time).then(self.rid.cmp(&other.rid))
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pending {}
