//! Which process runs tests in a checkout: a row in its database, good as long as that process lives.
//!
//! It is no lock on the folder, because files must be writable while a test runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::checkout::Checkout;
use crate::error::Result;
use crate::process::Identity;
use crate::repo::store::has_table;

const TABLE: &str = "ocx_testing";
const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS ocx_testing(
  id INTEGER PRIMARY KEY CHECK(id=1), pid INTEGER NOT NULL, pid_start INTEGER NOT NULL, number INTEGER NOT NULL)";

/// The locks that this process holds, by number: a row of this process without one is left over.
static HELD: Mutex<BTreeSet<i64>> = Mutex::new(BTreeSet::new());
static NEXT: AtomicI64 = AtomicI64::new(1);

/// The right to run the tests of one checkout, given back when dropped.
pub(super) struct TestLock {
    checkout: Arc<Checkout>,
    number: i64,
}

impl TestLock {
    /// Takes the lock. Returns nothing if a process that lives has it.
    pub(super) fn take(checkout: &Arc<Checkout>) -> Result<Option<Self>> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let taken = checkout.state(|state| {
            let taking = Transaction::new_unchecked(state, TransactionBehavior::Immediate)?;
            taking.execute_batch(SCHEMA)?;
            if is_held(&taking)? {
                return Ok(false);
            }
            let this = Identity::this();
            let row = params![this.pid, this.start.cast_signed(), number];
            taking.execute("REPLACE INTO ocx_testing VALUES(1, ?1, ?2, ?3)", row)?;
            taking.commit()?;
            HELD.lock().insert(number);
            Ok(true)
        })?;
        Ok(taken.then(|| Self { checkout: Arc::clone(checkout), number }))
    }
}

impl Drop for TestLock {
    /// A row that cannot be deleted now counts for nothing any more.
    fn drop(&mut self) {
        HELD.lock().remove(&self.number);
        let _ = self.checkout.state(|state| release(state, self.number));
    }
}

fn is_held(state: &Connection) -> Result<bool> {
    let row = state
        .query_row("SELECT pid, pid_start, number FROM ocx_testing", [], |r| {
            Ok((r.get(0)?, r.get::<_, i64>(1)?, r.get(2)?))
        })
        .optional()?;
    Ok(row.is_some_and(|(pid, start, number)| {
        let holder = Identity { pid, start: start.cast_unsigned() };
        if holder == Identity::this() { HELD.lock().contains(&number) } else { holder.lives() }
    }))
}

fn release(state: &Connection, number: i64) -> Result<()> {
    if has_table(state, TABLE)? {
        let pid = Identity::this().pid;
        state.execute("DELETE FROM ocx_testing WHERE pid=?1 AND number=?2", params![pid, number])?;
    }
    Ok(())
}
