//! A bundle: check-ins with what they need, in one file that carries them from one repository to another.
//!
//! The file is what `fossil bundle` reads and writes: an SQLite database with the plain tables `bconfig` and
//! `bblob`. Nothing in it is believed. It is read through a connection of its own that cannot write, every
//! size is checked before memory is taken by it, and no order or recursion depends on how deep its deltas go.
//! What the artifacts mean is Fossil's business, which links them in.

mod export;
mod file;
mod import;
mod judge;
mod list;
mod order;
mod walk;
mod wire;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tempfile::NamedTempFile;

use crate::error::Result;
use crate::name::Hash;

pub use export::{Exported, Selection};
pub use import::{Import, Imported};
pub use list::{BundledCheckIn, Contents};

/// Told how much of a long work is done: artifacts done, and all.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// An opened bundle. Cheap to clone.
///
/// ```
/// use ocx::{name::User, bundle::Bundle, checkout::{CheckIn, Checkout}, repo::{NewRepository, Repository}};
/// use ocx::bundle::{Import, Selection};
/// let folder = tempfile::tempdir()?;
/// let at = |name: &str| folder.path().join(name);
/// let ann = User::parse("ann")?;
/// let here = Repository::create(&at("here.fossil"), &NewRepository { user: ann.clone() })?;
/// let there = Repository::clone_file(&at("here.fossil"), &at("there.fossil"), &ann)?;
///
/// let checkout = Checkout::open(&here, &at("work"), None, Some(&ann))?;
/// std::fs::write(at("work/a.txt"), "hello\n")?;
/// let made = CheckIn { comment: "hello".into(), branch: None, user: ann.clone(), time: None };
/// let made = checkout.check_in(&made, &checkout.status()?)?;
///
/// here.export_bundle(&at("news.bundle"), &Selection::one(made.hash))?;
/// let bundle = Bundle::open(&at("news.bundle"))?;
/// assert_eq!(bundle.contents()?.check_ins[0].comment, "hello");
/// let imported = there.import_bundle(&bundle, &Import::by(ann))?;
/// assert_eq!(imported.check_ins, [made.hash]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Bundle {
    inner: Arc<Inner>,
}

struct Inner {
    /// What messages call it.
    name: String,
    db: Mutex<Connection>,
    project_code: Option<String>,
    rows: Vec<Row>,
    order: order::Order,
    /// Bytes of the file.
    size: u64,
    /// Where it was unpacked, if it was.
    _unpacked: Option<NamedTempFile>,
}

/// A row of `bblob`, without its data.
struct Row {
    id: i64,
    hash: Hash,
    /// Bytes of the expanded artifact, as declared.
    size: usize,
    basis: Basis,
}

/// What a row's data is a delta from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// Nothing: the data is the content.
    None,
    /// A row of the same bundle, by its index.
    Row(usize),
    /// An artifact that whoever imports must have.
    External(Hash),
}

impl Bundle {
    /// Opens a bundle file, in SQLite's form or in the wire form (see [`write_wire`](Self::write_wire)).
    ///
    /// # Errors
    /// [`Kind::NotFound`] without such a file, which is not made; [`Kind::Foreign`] for anything but a plain bundle;
    /// [`Kind::Invalid`] for one that contradicts itself; [`Kind::TooLarge`] for sizes over the limits.
    ///
    /// [`Kind::NotFound`]: crate::error::Kind::NotFound
    /// [`Kind::Foreign`]: crate::error::Kind::Foreign
    /// [`Kind::Invalid`]: crate::error::Kind::Invalid
    /// [`Kind::TooLarge`]: crate::error::Kind::TooLarge
    pub fn open(path: &Path) -> Result<Self> {
        file::open(path)
    }

    /// Opens a bundle, in either form, that was received as bytes.
    ///
    /// # Errors
    /// As [`open`](Self::open); an I/O kind when there is no room for a temporary file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        file::from_bytes(bytes)
    }

    /// The code of the project that it comes from.
    #[must_use]
    pub fn project_code(&self) -> Option<&str> {
        self.inner.project_code.as_deref()
    }

    /// How many artifacts are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.rows.len()
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.rows.is_empty()
    }

    /// Bytes of the file in SQLite's form.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.inner.size
    }

    /// The artifacts that must already be in a repository that imports it.
    #[must_use]
    pub fn bases(&self) -> Vec<Hash> {
        let external = |row: &Row| if let Basis::External(hash) = row.basis { Some(hash) } else { None };
        let mut bases: Vec<_> = self.inner.rows.iter().filter_map(external).collect();
        bases.sort_unstable();
        bases.dedup();
        bases
    }
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bundle").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

impl Inner {
    fn db(&self) -> MutexGuard<'_, Connection> {
        // A panic while it was held cannot have left a read half done.
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
