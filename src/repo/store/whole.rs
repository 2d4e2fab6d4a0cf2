//! Checks that every artifact is what its hash says, on several threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rusqlite::Connection;

use super::Store;
use super::column::text;
use super::connection::{cannot_read, connect};
use super::content::{MAX_CONTENT, stored};
use crate::error::{Error, Kind, Result};
use crate::format::delta;
use crate::name::Hash;

/// The most threads. With more, reading is the bottleneck.
const THREADS_MAX: usize = 8;

/// An artifact, and those that are stored as deltas from it.
struct Artifact {
    rid: i64,
    hash: Hash,
    size: usize,
    children: Vec<usize>,
}

/// All artifacts with content, in trees of deltas.
struct Forest {
    artifacts: Vec<Artifact>,
    /// Those that are stored whole.
    roots: Vec<usize>,
}

impl Store {
    /// Expands every artifact and compares it with its hash. Compares one that is stored whole with its size too.
    /// Applies each delta once.
    pub(crate) fn check_all(&self) -> Result<()> {
        let forest = self.forest()?;
        let (next, checked) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let threads = thread::available_parallelism().map_or(1, usize::from).clamp(1, THREADS_MAX);
        let work = || -> Result<()> {
            let db = connect(&self.path).map_err(|e| cannot_read(&self.path, e))?;
            while let Some(&root) = forest.roots.get(next.fetch_add(1, Ordering::Relaxed)) {
                match check_tree(&db, &forest, root) {
                    Ok(count) => checked.fetch_add(count, Ordering::Relaxed),
                    Err(e) => {
                        // The other threads need not go on.
                        next.store(forest.roots.len(), Ordering::Relaxed);
                        return Err(e);
                    }
                };
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let lost = |_| Err(Error::new(Kind::Internal, "a thread that checks artifacts has ended"));
            workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(lost))
        })?;
        let lost = forest.artifacts.len() - checked.into_inner();
        if lost > 0 {
            return Err(Error::new(
                Kind::Corrupt,
                format!("{lost} artifacts have no basis, or are one another's"),
            ));
        }
        Ok(())
    }

    fn forest(&self) -> Result<Forest> {
        let sql = "SELECT rid, uuid, size, srcid FROM blob LEFT JOIN delta USING(rid) WHERE size>=0";
        let rows = self.rows(sql, [], |row| {
            Ok((row.get::<_, i64>(0)?, text(row, 1)?, row.get::<_, i64>(2)?, row.get::<_, Option<i64>>(3)?))
        })?;
        let mut forest = Forest { artifacts: Vec::with_capacity(rows.len()), roots: Vec::new() };
        let mut sources = Vec::with_capacity(rows.len());
        for (rid, hash, size, source) in rows {
            let hash = Hash::parse(&hash)?;
            forest.artifacts.push(Artifact {
                rid,
                hash,
                size: usize::try_from(size).unwrap_or(usize::MAX),
                children: Vec::new(),
            });
            sources.push(source);
        }
        let places: HashMap<i64, usize> =
            forest.artifacts.iter().enumerate().map(|(at, artifact)| (artifact.rid, at)).collect();
        for (at, source) in sources.into_iter().enumerate() {
            match source.map(|source| places.get(&source)) {
                None => forest.roots.push(at),
                Some(Some(&parent)) => forest.artifacts[parent].children.push(at),
                Some(None) => {}
            }
        }
        Ok(forest)
    }
}

/// Checks an artifact that is stored whole, and all that are stored as deltas from it. Returns how many those are. A
/// chain of any length takes the memory of one step.
fn check_tree(db: &Connection, forest: &Forest, root: usize) -> Result<usize> {
    let mut count = 0;
    let mut open = Vec::new();
    let mut next = Some((root, stored(db, forest.artifacts[root].rid)));
    while let Some((at, content)) = next.take() {
        let artifact = &forest.artifacts[at];
        let damaged = |how: &str| {
            Error::new(Kind::Corrupt, format!("artifact `{}` is damaged: {how}", artifact.hash.short()))
        };
        let content = content.map_err(|e| damaged(&e.to_string()))?;
        // After a clone, a delta's own size is right only once the repository was rebuilt.
        if at == root && content.len() != artifact.size {
            return Err(damaged("it has another size"));
        }
        if !artifact.hash.names(&content) {
            return Err(damaged("its bytes have another hash"));
        }
        count += 1;
        if !artifact.children.is_empty() {
            open.push((content, artifact.children.iter()));
        }
        while let Some((base, children)) = open.last_mut() {
            let Some(&child) = children.next() else {
                open.pop();
                continue;
            };
            let delta = stored(db, forest.artifacts[child].rid);
            let content = delta.and_then(|delta| delta::apply(base, &delta, MAX_CONTENT));
            if children.len() == 0 {
                open.pop();
            }
            next = Some((child, content));
            break;
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain_fossil::PlainFossil;

    fn repository() -> PlainFossil {
        let fossil = PlainFossil::new();
        let mut lines: Vec<String> = (0..200).map(|n| format!("line {n}\n")).collect();
        for day in 1..=20 {
            lines[day] = format!("changed on day {day}\n");
            fossil.write("a.txt", lines.concat());
            fossil.commit(&format!("02-{day:02}T00:00:00"), "edit", &[]);
        }
        fossil
    }

    fn kind_after(fossil: &PlainFossil, sql: &str) -> (Kind, String) {
        let copy = fossil.home().join("copy.fossil");
        let store = Store::open(fossil.repository()).unwrap();
        let _ = std::fs::remove_file(&copy);
        store.copy_to(copy.to_str().unwrap()).unwrap();
        let db = rusqlite::Connection::open(&copy).unwrap();
        db.execute_batch(&format!("PRAGMA foreign_keys=0; {sql}")).unwrap();
        let e = Store::open(&copy).unwrap().check_all().unwrap_err();
        (e.kind(), e.to_string())
    }

    #[test]
    fn a_whole_repository_is_whole_and_every_damage_is_found() {
        let fossil = repository();
        let store = Store::open(fossil.repository()).unwrap();
        assert!(
            store.first("SELECT count(*) FROM delta", [], |row| row.get::<_, i64>(0)).unwrap() > Some(10)
        );
        store.check_all().unwrap();
        for (sql, how) in [
            (
                "UPDATE blob SET uuid=lower(hex(randomblob(32))) WHERE rid=(SELECT max(rid) FROM delta)",
                "hash",
            ),
            (
                "UPDATE blob SET size=size+1 WHERE rid=(SELECT min(srcid) FROM delta WHERE srcid NOT IN (SELECT rid FROM delta))",
                "size",
            ),
            ("UPDATE blob SET content=x'00000005aa' WHERE rid=(SELECT min(rid) FROM delta)", "damaged"),
            ("UPDATE blob SET content=NULL WHERE rid=(SELECT min(rid) FROM blob)", "damaged"),
            ("UPDATE delta SET srcid=rid WHERE rid=(SELECT max(rid) FROM delta)", "basis"),
            ("UPDATE delta SET srcid=999999 WHERE rid=(SELECT max(rid) FROM delta)", "basis"),
        ] {
            let (kind, words) = kind_after(&fossil, sql);
            assert_eq!(kind, Kind::Corrupt, "{sql}: {words}");
            assert!(words.contains(how), "{sql}: {words}");
        }
    }
}
