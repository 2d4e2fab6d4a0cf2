//! Artifacts that arrive one by one, in any order, kept in a file without a name until all are there.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::row::{Basis, Keep, Row};
use super::staged::{Reader, Source, Staged};
use crate::error::{Error, Kind, Result};
use crate::format::{FILE_MAX, delta, packed};
use crate::name::Hash;

/// The most bytes that an expanded delta may have.
const DELTA_MAX: usize = 2_000_000_000;

/// What may be kept of one sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpoolLimits {
    /// Bytes, as compressed.
    pub bytes: u64,
    /// Artifacts.
    pub artifacts: usize,
}

/// Artifacts as they arrived.
pub(crate) struct Spool {
    file: Arc<File>,
    end: u64,
    limits: SpoolLimits,
    arrived: Vec<Arrived>,
    places: HashMap<Hash, usize>,
}

/// An artifact as it arrives.
pub(crate) struct Arrival<'a> {
    pub hash: Hash,
    /// What `data` is a delta from.
    pub basis: Option<Hash>,
    /// Whether `data` is in Fossil's compressed form.
    pub is_packed: bool,
    pub data: &'a [u8],
    pub keep: Keep,
}

struct Arrived {
    hash: Hash,
    basis: Option<Hash>,
    /// Bytes of the expanded artifact, as the data say.
    size: usize,
    start: u64,
    length: usize,
    keep: Keep,
}

impl Spool {
    /// Begins with nothing, in a file beneath `folder`.
    ///
    /// # Errors
    /// An I/O kind when there can be no file.
    pub fn new(folder: &Path, limits: SpoolLimits) -> Result<Self> {
        let file = tempfile::tempfile_in(folder)
            .map_err(|e| Error::io(format!("no room for what arrives in `{}`", folder.display()), e))?;
        Ok(Self { file: file.into(), end: 0, limits, arrived: Vec::new(), places: HashMap::new() })
    }

    /// How many artifacts have arrived.
    pub fn len(&self) -> usize {
        self.arrived.len()
    }

    /// Whether the artifact has arrived.
    pub fn holds(&self, hash: &Hash) -> bool {
        self.places.contains_key(hash)
    }

    /// Keeps an artifact. One that has arrived before is replaced if the new one is whole.
    ///
    /// # Errors
    /// [`Kind::TooLarge`] over a limit, [`Kind::Corrupt`] for data that do not begin as they should, and an I/O kind.
    pub fn add(&mut self, arrival: &Arrival<'_>) -> Result<()> {
        if self.holds(&arrival.hash) && arrival.basis.is_some() {
            return Ok(());
        }
        let packed;
        let data = if arrival.is_packed {
            arrival.data
        } else {
            packed = packed::pack(arrival.data)?;
            &packed
        };
        let size = match (arrival.basis, arrival.is_packed) {
            (Some(_), true) => delta::target_size(&packed::unpack(data, DELTA_MAX)?)?,
            (Some(_), false) => delta::target_size(arrival.data)?,
            (None, _) => packed::declared_size(data),
        };
        self.check(size, data.len())?;
        self.file.write_all_at(data, self.end).map_err(|e| {
            Error::io("no room for what arrives", e).with_hint("Free some space, and try again.")
        })?;
        let arrived = Arrived {
            hash: arrival.hash,
            basis: arrival.basis,
            size,
            start: self.end,
            length: data.len(),
            keep: arrival.keep,
        };
        self.end += data.len() as u64;
        if let Some(&place) = self.places.get(&arrival.hash) {
            self.arrived[place] = arrived;
        } else {
            self.places.insert(arrival.hash, self.arrived.len());
            self.arrived.push(arrived);
        }
        Ok(())
    }

    fn check(&self, size: usize, length: usize) -> Result<()> {
        let too_large = |what: String| {
            Err(Error::new(Kind::TooLarge, what)
                .with_hint("Raise the limit if the other side can be trusted."))
        };
        if size as u64 > FILE_MAX {
            return too_large(format!("an artifact of {size} bytes arrives; the limit is {FILE_MAX}"));
        }
        if self.end + length as u64 > self.limits.bytes {
            return too_large(format!("more than {} bytes arrive, which is the limit", self.limits.bytes));
        }
        if self.arrived.len() >= self.limits.artifacts {
            return too_large(format!(
                "more than {} artifacts arrive, which is the limit",
                self.limits.artifacts
            ));
        }
        Ok(())
    }

    /// Those that are deltas from something that neither arrived nor is `here`.
    pub fn without_basis(&self, mut here: impl FnMut(&Hash) -> Result<bool>) -> Result<Vec<Hash>> {
        let mut lacking = Vec::new();
        for arrived in &self.arrived {
            if let Some(basis) = &arrived.basis
                && !self.holds(basis)
                && !here(basis)?
            {
                lacking.push(arrived.hash);
            }
        }
        Ok(lacking)
    }

    /// Leaves these out, and all that are deltas from them.
    pub fn leave_out(&mut self, hashes: &[Hash]) {
        let mut children: HashMap<Hash, Vec<Hash>> = HashMap::new();
        for arrived in &self.arrived {
            if let Some(basis) = arrived.basis {
                children.entry(basis).or_default().push(arrived.hash);
            }
        }
        let mut left = hashes.to_vec();
        let mut at = 0;
        while let Some(hash) = left.get(at) {
            left.extend(children.remove(hash).unwrap_or_default());
            at += 1;
        }
        for hash in left {
            self.places.remove(&hash);
        }
        let places = &self.places;
        self.arrived.retain(|arrived| places.contains_key(&arrived.hash));
        self.places = self.arrived.iter().enumerate().map(|(place, arrived)| (arrived.hash, place)).collect();
    }

    /// All that has arrived by now, as a set that can be judged. `noun` is what messages call it.
    ///
    /// # Errors
    /// [`Kind::Invalid`] when deltas run in a circle.
    pub fn staged(&self, noun: &'static str) -> Result<Staged> {
        let basis = |arrived: &Arrived| match arrived.basis {
            None => Basis::None,
            Some(basis) => self.places.get(&basis).map_or(Basis::External(basis), |&row| Basis::Row(row)),
        };
        let row = |(id, arrived): (i64, &Arrived)| Row {
            id,
            hash: arrived.hash,
            size: arrived.size,
            basis: basis(arrived),
            keep: arrived.keep,
        };
        let rows = (0..).zip(&self.arrived).map(row).collect();
        let places = self.arrived.iter().map(|arrived| (arrived.start, arrived.length)).collect();
        Staged::new(rows, Arc::new(Spooled { file: Arc::clone(&self.file), places, bytes: self.end, noun }))
    }
}

/// Where the data of a spool lie.
struct Spooled {
    file: Arc<File>,
    places: Vec<(u64, usize)>,
    bytes: u64,
    noun: &'static str,
}

impl Source for Spooled {
    fn received(&self) -> u64 {
        self.bytes
    }

    fn noun(&self) -> &'static str {
        self.noun
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(SpoolReader(self)))
    }

    fn blame(&self, e: Error) -> Error {
        e
    }
}

struct SpoolReader<'a>(&'a Spooled);

impl Reader for SpoolReader<'_> {
    fn read(&mut self, id: i64, data: &mut Vec<u8>) -> Result<()> {
        let place = usize::try_from(id).ok().and_then(|id| self.0.places.get(id));
        let &(start, length) = place.ok_or_else(|| Error::new(Kind::Internal, "no such row has arrived"))?;
        data.resize(length, 0);
        self.0.file.read_exact_at(data, start).map_err(|e| Error::io("cannot read what has arrived", e))
    }
}
