//! Making a repository smaller: artifacts that are stored whole become deltas from newer ones that are like them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rusqlite::Connection;

use crate::engine::Stop;
use crate::error::{Error, Kind, Result};
use crate::format::{delta, packed};
use crate::repo::store::expand;

/// How many newer artifacts each is compared with. Fossil looks at as many.
const NEWER_MAX: usize = 5;

/// Bytes below which an artifact is worth no delta.
const SIZE_MIN: usize = 50;

/// How many artifacts are compared at a time, and at most about how many bytes of them.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 32 << 20;

/// The check-ins that are stored whole, the newest first.
const CHECK_INS: &str = "SELECT objid, 0 FROM event
    WHERE type='ci' AND objid NOT IN (SELECT rid FROM delta) ORDER BY mtime DESC, objid";

/// The contents of each file that are stored whole, the newest first.
const FILES: &str = "SELECT fid, fnid FROM mlink JOIN plink ON cid=mid
    WHERE fid>0 AND fid NOT IN (SELECT rid FROM delta) GROUP BY fnid, fid ORDER BY fnid, max(plink.mtime) DESC, fid";

/// Makes each check-in that is stored whole, and each content of a file, a delta from the newer version that it is most
/// like, if that takes less space. What is public never becomes a delta from what is private. A new clone is worth this.
pub(crate) fn compact(db: &Connection) -> Result<()> {
    let mut private = db.prepare("SELECT rid FROM private")?;
    let private = private.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut compacting = Compacting { db, private, sources: HashMap::new() };
    for sql in [CHECK_INS, FILES] {
        compacting.lines(sql)?;
    }
    // Samples of the values in each index guide no query that is made here; the counts that stay do.
    Ok(db.execute_batch("DROP TABLE IF EXISTS sqlite_stat4")?)
}

struct Compacting<'a> {
    db: &'a Connection,
    private: HashSet<i64>,
    /// What became a delta, and from what.
    sources: HashMap<i64, i64>,
}

/// An artifact that may become a delta from one of those that are newer.
struct Whole {
    rid: i64,
    content: Arc<Vec<u8>>,
    newer: Vec<(i64, Arc<Vec<u8>>)>,
}

/// A delta that takes less space.
struct Smaller {
    rid: i64,
    source: i64,
    packed: Vec<u8>,
}

impl Compacting<'_> {
    /// Looks at lines of versions: rows of an artifact's number and its line.
    fn lines(&mut self, sql: &str) -> Result<()> {
        let stop = Stop::of_this_thread();
        let rows: Vec<(i64, i64)> = self
            .db
            .prepare(sql)?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let (mut newer, mut line) = (VecDeque::new(), None);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for (rid, of) in rows {
            if line.replace(of) != Some(of) {
                newer.clear();
            }
            let Some(content) = expand(self.db, rid)?.filter(|content| content.len() >= SIZE_MIN) else {
                continue;
            };
            let content = Arc::new(content);
            bytes += content.len();
            batch.push(Whole { rid, content: Arc::clone(&content), newer: self.usable(rid, &newer) });
            newer.push_back((rid, content));
            if newer.len() > NEWER_MAX {
                newer.pop_front();
            }
            if batch.len() == BATCH || bytes > BATCH_BYTES {
                stop.check("the clone was not made")?;
                self.store(&std::mem::take(&mut batch))?;
                bytes = 0;
            }
        }
        self.store(&batch)
    }

    fn usable(&self, rid: i64, newer: &VecDeque<(i64, Arc<Vec<u8>>)>) -> Vec<(i64, Arc<Vec<u8>>)> {
        let is_usable =
            |(source, _): &&(i64, _)| self.private.contains(&rid) || !self.private.contains(source);
        newer.iter().filter(is_usable).cloned().collect()
    }

    fn store(&mut self, batch: &[Whole]) -> Result<()> {
        for Smaller { rid, source, packed } in smaller(batch)? {
            // A content can stand in several lines.
            if self.sources.contains_key(&rid) || self.is_made_from(source, rid) {
                continue;
            }
            let sql = "UPDATE blob SET content=?2 WHERE rid=?1 AND octet_length(content)>octet_length(?2)";
            if self.db.prepare_cached(sql)?.execute((rid, packed))? > 0 {
                let sql = "INSERT INTO delta(rid, srcid) VALUES(?1, ?2)";
                self.db.prepare_cached(sql)?.execute([rid, source])?;
                self.sources.insert(rid, source);
            }
        }
        Ok(())
    }

    /// Whether an artifact is a delta from another, over whatever others.
    fn is_made_from(&self, rid: i64, other: i64) -> bool {
        std::iter::successors(Some(rid), |at| self.sources.get(at).copied()).any(|at| at == other)
    }
}

/// The deltas that take less space, found on all cores.
fn smaller(batch: &[Whole]) -> Result<Vec<Smaller>> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<Smaller>> {
        let mut found = Vec::new();
        while let Some(whole) = batch.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.extend(whole.smaller()?);
        }
        Ok(found)
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut found = work()?;
        for other in others {
            found.extend(other.join().unwrap_or_else(|_| Err(broken_off()))?);
        }
        // In the order of the batch, so that the same repository becomes the same file.
        let places: HashMap<_, _> = (0..).zip(batch).map(|(place, whole)| (whole.rid, place)).collect();
        found.sort_by_key(|smaller| places.get(&smaller.rid).copied().unwrap_or(0_usize));
        Ok(found)
    })
}

impl Whole {
    fn smaller(&self) -> Result<Option<Smaller>> {
        let deltas =
            self.newer.iter().map(|(source, base)| (*source, base, delta::create(base, &self.content)));
        let Some((source, base, delta)) = deltas.min_by_key(|(_, _, delta)| delta.len()) else {
            return Ok(None);
        };
        if delta.len() * 4 > self.content.len() * 3 {
            return Ok(None);
        }
        if delta::apply(base, &delta, self.content.len())? != **self.content {
            return Err(Error::new(Kind::Internal, "a delta does not give what it was made from"));
        }
        Ok(Some(Smaller { rid: self.rid, source, packed: packed::pack(&delta)? }))
    }
}

fn broken_off() -> Error {
    Error::new(Kind::Internal, "a thread that makes deltas has broken off")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A repository as far as this reads it: contents, and the files and days under which each stands.
    fn repository(contents: &[Vec<u8>], lines: &[(usize, i64, i64)], private: &[i64]) -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE blob(rid INTEGER PRIMARY KEY, size INT, content BLOB);
             CREATE TABLE delta(rid INTEGER PRIMARY KEY, srcid INT); CREATE TABLE private(rid INTEGER PRIMARY KEY);
             CREATE TABLE event(objid INT, type TEXT, mtime REAL); CREATE TABLE mlink(mid INT, fid INT, fnid INT);
             CREATE TABLE plink(cid INT, mtime REAL);",
        )
        .unwrap();
        for (rid, content) in (1_i64..).zip(contents) {
            let packed = packed::pack(content).unwrap();
            let size = i64::try_from(content.len()).unwrap();
            db.execute("INSERT INTO blob VALUES(?1,?2,?3)", (rid, size, packed)).unwrap();
        }
        for &(content, file, day) in lines {
            let rid = i64::try_from(content % contents.len()).unwrap() + 1;
            db.execute("INSERT INTO mlink VALUES(?1,?2,?3)", [day, rid, file]).unwrap();
            db.execute("INSERT INTO plink VALUES(?1,?1)", [day]).unwrap();
        }
        for rid in private {
            db.execute("INSERT INTO private VALUES(?1)", [rid]).unwrap();
        }
        db
    }

    fn stored(db: &Connection) -> i64 {
        db.query_row("SELECT sum(octet_length(content)) FROM blob", [], |row| row.get(0)).unwrap()
    }

    /// Versions of one text, each with one line more.
    fn versions(count: usize) -> Vec<Vec<u8>> {
        let lines: Vec<_> = (0..40 + count).map(|i| format!("line {i} {}\n", i * i)).collect();
        (0..count).map(|i| lines[..40 + i].concat().into_bytes()).collect()
    }

    #[test]
    fn versions_of_a_file_become_deltas_from_newer_ones() {
        let contents = versions(12);
        let lines: Vec<_> = (0..12).map(|i| (i, 1, i64::try_from(i).unwrap())).collect();
        let db = repository(&contents, &lines, &[]);
        let before = stored(&db);
        compact(&db).unwrap();
        assert!(stored(&db) * 3 < before);
        let whole: Vec<i64> = db
            .prepare("SELECT rid FROM blob WHERE rid NOT IN (SELECT rid FROM delta)")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(whole, [12], "the newest stays whole");
    }

    #[test]
    fn what_is_public_is_no_delta_from_what_is_private() {
        let db = repository(&versions(3), &[(0, 1, 1), (1, 1, 2), (2, 1, 3)], &[3]);
        compact(&db).unwrap();
        let from_private = "SELECT count(*) FROM delta WHERE srcid=3";
        assert_eq!(db.query_row(from_private, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
        assert_eq!(db.query_row("SELECT count(*) FROM delta", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn each_content_comes_back_in_whatever_lines_it_stands(
            lines in prop::collection::vec((0_usize..12, 1_i64..4, 1_i64..30), 0..60),
            private in prop::collection::vec(1_i64..13, 0..4),
        ) {
            let contents = versions(12);
            let db = repository(&contents, &lines, &private.into_iter().collect::<HashSet<_>>().into_iter().collect::<Vec<_>>());
            let before = stored(&db);
            compact(&db).unwrap();
            for (rid, content) in (1..).zip(&contents) {
                prop_assert_eq!(&expand(&db, rid).unwrap().unwrap(), content);
            }
            prop_assert!(stored(&db) <= before);
        }
    }
}
