//! An opened bundle file.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rusqlite::Connection;
use tempfile::NamedTempFile;

use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::transfer::{Basis, Reader, Source, Staged};

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
    file: Arc<BundleFile>,
    project_code: Option<String>,
    staged: Staged,
}

/// The file itself, in SQLite's form.
pub(super) struct BundleFile {
    /// What messages call it.
    pub name: String,
    pub db: Mutex<Connection>,
    /// Bytes of the file.
    pub size: u64,
    /// Bytes that came: those of the file, or of its wire form.
    pub received: u64,
    /// Where it was unpacked, if it was.
    pub _unpacked: Option<NamedTempFile>,
}

impl Bundle {
    pub(super) fn new(file: Arc<BundleFile>, project_code: Option<String>, staged: Staged) -> Self {
        Self { inner: Inner { file, project_code, staged }.into() }
    }

    /// The code of the project that it comes from.
    #[must_use]
    pub fn project_code(&self) -> Option<&str> {
        self.inner.project_code.as_deref()
    }

    /// How many artifacts are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.staged.rows().len()
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.staged.rows().is_empty()
    }

    /// Bytes of the file in SQLite's form.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.inner.file.size
    }

    /// The artifacts that must already be in a repository that imports it.
    #[must_use]
    pub fn bases(&self) -> Vec<Hash> {
        self.inner.staged.bases()
    }

    /// Whether every delta's basis is in the bundle. Such a bundle can be imported wherever its parents are.
    #[must_use]
    pub fn is_standalone(&self) -> bool {
        !self.inner.staged.rows().iter().any(|row| matches!(row.basis, Basis::External(_)))
    }

    pub(super) fn staged(&self) -> &Staged {
        &self.inner.staged
    }

    pub(super) fn file(&self) -> &BundleFile {
        &self.inner.file
    }
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bundle").field("name", &self.inner.file.name).finish_non_exhaustive()
    }
}

impl Source for BundleFile {
    fn noun(&self) -> &'static str {
        "bundle"
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        let db = self.db.lock();
        // One lock of the file for all rows.
        db.execute_batch("BEGIN")?;
        Ok(Box::new(FileReader { db }))
    }

    fn received(&self) -> u64 {
        self.received
    }

    fn blame(&self, e: Error) -> Error {
        in_bundle(&self.name, e)
    }
}

/// A read of many rows.
struct FileReader<'a> {
    db: MutexGuard<'a, Connection>,
}

impl Reader for FileReader<'_> {
    fn read(&mut self, id: i64, data: &mut Vec<u8>) -> Result<()> {
        let mut query = self.db.prepare_cached("SELECT data FROM bblob WHERE blobid=?1")?;
        let mut found = query.query([id])?;
        let row = found.next()?.ok_or_else(|| Error::new(Kind::Changed, "the file has changed"))?;
        data.clear();
        data.extend_from_slice(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?);
        Ok(())
    }
}

impl Drop for FileReader<'_> {
    fn drop(&mut self) {
        // Nothing was written, so a failure loses nothing.
        let _ = self.db.execute_batch("ROLLBACK");
    }
}

/// Names the bundle in an error. SQLite's own words stay in the cause.
pub(super) fn in_bundle(name: &str, e: Error) -> Error {
    let is_sqlites =
        std::error::Error::source(&e).is_some_and(<dyn std::error::Error>::is::<rusqlite::Error>);
    let (kind, why) = match e.kind() {
        Kind::Corrupt | Kind::Internal | Kind::Foreign if is_sqlites => {
            (Kind::Corrupt, "it is damaged".to_owned())
        }
        kind => (kind, e.to_string()),
    };
    let hint = e.hint().unwrap_or("Make the bundle anew.").to_owned();
    Error::new(kind, format!("bundle `{name}`: {why}")).with_hint(hint).caused_by(e)
}

/// The error for a file that is none.
pub(super) fn no_bundle(name: &str, why: &str) -> Error {
    Error::new(Kind::Foreign, format!("`{name}` is not a plain bundle: {why}"))
        .with_hint("Give the file of a bundle, as this program or plain Fossil exports it.")
}
