//! A set of artifacts as it came, before anything of it is believed.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};

use super::findings::Findings;
use super::likely::Likely;
use super::order::Order;
use super::row::{Basis, Row, expanded_max};
use crate::error::{Error, Kind, Result};
use crate::name::Hash;

/// What to do about a set that takes too much.
pub(super) const IN_PARTS: &str =
    "Send it in several parts, with fewer check-ins each, or push them instead.";

/// Where the data of staged rows lie.
pub(crate) trait Source: Send + Sync {
    /// Begins to read. The data do not change as long as the reader lives.
    fn reader(&self) -> Result<Box<dyn Reader + '_>>;

    /// How many bytes came.
    fn received(&self) -> u64;

    /// What messages call the set, as `bundle`.
    fn noun(&self) -> &'static str;

    /// Puts the source's name and an advice into an error about what came from it.
    fn blame(&self, e: Error) -> Error;
}

/// Reads the data of staged rows.
pub(crate) trait Reader {
    /// Replaces what is in `data` by the packed data of the row with that id.
    fn read(&mut self, id: i64, data: &mut Vec<u8>) -> Result<()>;
}

/// A set of packed artifacts. The order of the rows, the sizes and the hashes are what the source says.
pub(crate) struct Staged {
    rows: Vec<Row>,
    order: Order,
    source: Arc<dyn Source>,
    verified: OnceLock<Verified>,
}

/// The result of the one verification, and how to tell whether the data are still those that were verified.
struct Verified {
    findings: Arc<Findings>,
    seals: Seals,
    likely: Vec<Likely>,
}

/// A keyed checksum of each row's data. The key is random and never leaves the process, so nobody can replace data
/// by others with the same checksum. It costs a small part of what verifying costs.
pub(super) struct Seals {
    key: RandomState,
    sums: Vec<u64>,
}

impl Staged {
    /// Takes rows whose data lie in `source`.
    ///
    /// # Errors
    /// [`Kind::Invalid`] when deltas run in a circle, [`Kind::TooLarge`] when all rows together expand to far more than
    /// what came.
    pub fn new(rows: Vec<Row>, source: Arc<dyn Source>) -> Result<Self> {
        let (received, expanded) = (source.received(), rows.iter().map(|row| row.size as u64).sum::<u64>());
        let max = expanded_max(received);
        if expanded > max {
            let what = format!("its {received} bytes expand to {expanded}, more than {max}");
            return Err(source.blame(Error::new(Kind::TooLarge, what).with_hint(IN_PARTS)));
        }
        let order = Order::of(&rows).map_err(|e| source.blame(e))?;
        Ok(Self { rows, order, source, verified: OnceLock::new() })
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(super) fn order(&self) -> &Order {
        &self.order
    }

    pub(super) fn source(&self) -> &dyn Source {
        &*self.source
    }

    pub(super) fn noun(&self) -> &'static str {
        self.source.noun()
    }

    /// The artifacts that the receiver must have, each once.
    pub fn bases(&self) -> Vec<Hash> {
        let external = |row: &Row| if let Basis::External(hash) = row.basis { Some(hash) } else { None };
        let mut bases: Vec<_> = self.rows.iter().filter_map(external).collect();
        bases.sort_unstable();
        bases.dedup();
        bases
    }

    /// What a verification found, if there was one.
    pub fn findings(&self) -> Option<Arc<Findings>> {
        self.verified.get().map(|verified| Arc::clone(&verified.findings))
    }

    /// Whether data are those that were verified as the row's.
    pub(super) fn is_as_verified(&self, row: usize, data: &[u8]) -> bool {
        self.verified.get().is_some_and(|verified| verified.seals.fit(row, data))
    }

    /// What may be structural, in the order in which it was expanded; nothing before a verification.
    pub(super) fn likely(&self) -> &[Likely] {
        self.verified.get().map_or(&[], |verified| &verified.likely)
    }

    /// Keeps the findings, so that the set is not verified again.
    pub(super) fn set_verified(
        &self,
        findings: Findings,
        seals: Seals,
        likely: Vec<Likely>,
    ) -> Arc<Findings> {
        // Two threads may verify the set at once. Both find the same, or the data have changed and the reader says so.
        let verified = || Verified { findings: findings.into(), seals, likely };
        Arc::clone(&self.verified.get_or_init(verified).findings)
    }
}

impl Seals {
    pub fn new(rows: usize) -> Self {
        Self { key: RandomState::new(), sums: vec![0; rows] }
    }

    pub fn add(&mut self, row: usize, data: &[u8]) {
        self.sums[row] = self.key.hash_one(data);
    }

    fn fit(&self, row: usize, data: &[u8]) -> bool {
        self.sums[row] == self.key.hash_one(data)
    }
}
