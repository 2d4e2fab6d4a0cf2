//! Linking stored artifacts in, which Fossil's code does.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, mpsc};
use std::thread;

use rusqlite::Connection;

use super::bases::Bases;
use super::order::Order;
use super::row::Basis;
use super::staged::Staged;
use super::store::Stored;
use crate::engine::Transaction;
use crate::error::{Error, Kind, Result};
use crate::name::Hash;

/// How many artifacts are linked in by one call.
const BATCH: usize = 64;

/// New artifacts from which on the planner's statistics are made anew at once.
const ANALYZED_FROM: usize = 200;

/// Tables whose statistics guide the queries that link artifacts in.
const LINKED: [&str; 7] = ["blob", "delta", "event", "leaf", "mlink", "plink", "tagxref"];

/// Has Fossil's code link in what is new, as far as `is_linked` says so. Check-ins come first, by their time, so that Fossil finds most parents
/// linked in and at hand. Where there are too many for that, each comes after what it is a delta from, as in a
/// rebuild, and is expanded on another thread meanwhile.
pub(super) fn link(
    transaction: &mut Transaction<'_>,
    staged: &Staged,
    stored: &Stored,
    is_linked: impl Fn(usize) -> bool,
) -> Result<()> {
    let mut new: Vec<_> = staged.likely().iter().filter(|likely| is_linked(likely.row)).collect();
    forget_statistics(transaction.connection())?;
    if new.iter().all(|likely| likely.text().is_some()) {
        new.sort_unstable_by_key(|likely| (&likely.sniffed, staged.rows()[likely.row].id));
        let all: Vec<_> =
            new.iter().map(|likely| (stored.rids[likely.row], likely.text().unwrap_or_default())).collect();
        transaction.crosslink(&all)?;
    } else {
        let rows: HashSet<usize> = new.iter().map(|likely| likely.row).collect();
        link_many(transaction, staged, stored, &rows)?;
    }
    renew_statistics(transaction.connection(), stored.new)?;
    if !stored.filled.is_empty() {
        transaction.filled(&stored.filled)?;
    }
    Ok(())
}

/// Links rows in while others are expanded.
fn link_many(
    transaction: &mut Transaction<'_>,
    staged: &Staged,
    stored: &Stored,
    rows: &HashSet<usize>,
) -> Result<()> {
    let needed = Order::with_what_it_builds_on(staged.rows(), rows);
    let mut bases = Bases::of(transaction.connection(), staged)?;
    let mut external: HashMap<Hash, Arc<Vec<u8>>> = HashMap::new();
    for &root in staged.order().roots().iter().filter(|root| needed[**root as usize]) {
        if let Basis::External(hash) = staged.rows()[root as usize].basis {
            external.insert(hash, bases.content(&hash)?);
        }
    }
    drop(bases);
    let (ready, coming) = mpsc::sync_channel::<(i64, Arc<Vec<u8>>)>(2 * BATCH);
    thread::scope(|scope| {
        let expanding = scope.spawn(|| {
            let known = |hash: &Hash| external.get(hash).cloned().ok_or_else(gone);
            staged.walk_some(&needed, known, |expanded| {
                // Where nobody listens any more, the other side has its own error.
                let is_over = rows.contains(&expanded.row)
                    && ready.send((stored.rids[expanded.row], expanded.content)).is_err();
                if is_over { Err(gone()) } else { Ok(()) }
            })?;
            drop(ready);
            Ok(())
        });
        let linked = transaction.link(|| Ok(coming.iter().take(BATCH).collect()));
        drop(coming);
        let expanded = expanding.join().unwrap_or_else(|_| Err(gone()));
        linked.and(expanded)
    })
}

fn gone() -> Error {
    Error::new(Kind::Internal, "the thread that expands artifacts has broken off")
}

/// Lets the planner forget how few rows there were before. By the old numbers it would read whole tables for each
/// artifact that is linked in.
fn forget_statistics(db: &Connection) -> Result<()> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE name='sqlite_stat1'";
    if !db.prepare(sql)?.exists([])? {
        return Ok(());
    }
    for table in LINKED {
        db.execute("DELETE FROM sqlite_stat1 WHERE tbl=?1", [table])?;
    }
    Ok(db.execute_batch("ANALYZE sqlite_schema")?)
}

fn renew_statistics(db: &Connection, new: usize) -> Result<()> {
    if new < ANALYZED_FROM {
        return Ok(());
    }
    db.execute_batch("PRAGMA analysis_limit=1000")?;
    LINKED.iter().try_for_each(|table| Ok(db.execute_batch(&format!("ANALYZE {table}"))?))
}
