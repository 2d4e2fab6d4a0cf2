//! Linking stored artifacts in, which Fossil's code does.

use rusqlite::Connection;

use super::judge::Likely;
use super::staged::Staged;
use super::store::Stored;
use crate::engine::Transaction;
use crate::error::Result;

/// New artifacts from which on the planner's statistics are made anew at once.
const ANALYZED_FROM: usize = 200;

/// Tables whose statistics guide the queries that link artifacts in.
const LINKED: [&str; 7] = ["blob", "delta", "event", "leaf", "mlink", "plink", "tagxref"];

/// Has Fossil's code link in what is new. Check-ins come first, by their time, so that Fossil finds most parents
/// linked in and at hand. Where there are too many for that, each comes after what it is a delta from, as in a
/// rebuild: Fossil's code expands them itself then, and that basis is at hand.
pub(super) fn link(
    transaction: &mut Transaction<'_>,
    staged: &Staged,
    stored: &Stored,
    linked: &[Likely],
) -> Result<()> {
    let mut new: Vec<_> = linked.iter().filter(|likely| stored.is_new(likely.row)).collect();
    if new.iter().all(|likely| likely.text().is_some()) {
        new.sort_unstable_by_key(|likely| (&likely.sniffed, staged.rows()[likely.row].id));
    }
    let linked: Vec<_> =
        new.iter().map(|likely| (stored.rids[likely.row], likely.text().unwrap_or_default())).collect();
    forget_statistics(transaction.connection())?;
    transaction.crosslink(&linked)?;
    renew_statistics(transaction.connection(), stored.new)?;
    if !stored.filled.is_empty() {
        transaction.filled(&stored.filled)?;
    }
    Ok(())
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
