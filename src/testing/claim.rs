//! Which process runs tests in a checkout: a row in its database, good as long as that process lives.
//!
//! It is no lock on the folder, for files must be writable while a test runs.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::job::Ground;
use super::log::holds_table;
use crate::error::Result;
use crate::process::processes::{lives, this};

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS ocx_testing(
  id INTEGER PRIMARY KEY CHECK(id=1), pid INTEGER NOT NULL, pid_start INTEGER NOT NULL, number INTEGER NOT NULL)";

/// The claims that this process holds, by number: a row of this process without one is left over.
static HELD: Mutex<BTreeSet<i64>> = Mutex::new(BTreeSet::new());
static NEXT: AtomicI64 = AtomicI64::new(1);

/// A claim of this process, given up when dropped.
pub(crate) struct Claim<G: Ground> {
    ground: Arc<G>,
    number: i64,
}

impl<G: Ground> Claim<G> {
    /// Claims the checkout's tests; nothing when someone who lives has them.
    pub(crate) fn take(ground: &Arc<G>) -> Result<Option<Self>> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let taken = ground.state(|state| {
            let claiming = Transaction::new_unchecked(state, TransactionBehavior::Immediate)?;
            claiming.execute_batch(SCHEMA)?;
            if is_held(&claiming)? {
                return Ok(false);
            }
            let (pid, start) = this();
            let row = params![pid, start.cast_signed(), number];
            claiming.execute("REPLACE INTO ocx_testing VALUES(1, ?1, ?2, ?3)", row)?;
            claiming.commit()?;
            held(|all| all.insert(number));
            Ok(true)
        })?;
        Ok(taken.then(|| Self { ground: Arc::clone(ground), number }))
    }
}

impl<G: Ground> Drop for Claim<G> {
    /// A row that cannot be deleted now counts for nothing any more.
    fn drop(&mut self) {
        held(|all| all.remove(&self.number));
        let _ = self.ground.state(|state| give_up(state, self.number));
    }
}

fn is_held(state: &Connection) -> Result<bool> {
    let row = state
        .query_row("SELECT pid, pid_start, number FROM ocx_testing", [], |r| {
            Ok((r.get(0)?, r.get::<_, i64>(1)?, r.get(2)?))
        })
        .optional()?;
    Ok(row.is_some_and(|(pid, start, number)| {
        let start = start.cast_unsigned();
        if (pid, start) == this() { held(|all| all.contains(&number)) } else { lives(pid, start) }
    }))
}

fn give_up(state: &Connection, number: i64) -> Result<()> {
    if holds_table(state, "ocx_testing")? {
        state.execute("DELETE FROM ocx_testing WHERE pid=?1 AND number=?2", params![this().0, number])?;
    }
    Ok(())
}

fn held<T>(act: impl FnOnce(&mut BTreeSet<i64>) -> T) -> T {
    act(&mut HELD.lock().unwrap_or_else(PoisonError::into_inner))
}
