//! Artifacts by hash: their bytes, manifests and files.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::MutexGuard;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};

use super::Store;
use super::cache::{Cache, Cached, FileEntry, Files};
use super::connection::cannot_read;
use crate::error::{Error, Kind, Result};
use crate::format::artifact::{FileCard, Manifest};
use crate::format::{delta, packed};
use crate::name::{Hash, TreePath};

/// The most bytes that an artifact may have: SQLite and Fossil's C count in signed 32 bits.
pub const MAX_CONTENT: usize = (1 << 31) - 1;

impl Store {
    /// Returns the bytes of an artifact, checked against its hash.
    ///
    /// # Errors
    /// [`Kind::NotFound`] if the repository does not know the artifact, or knows it without holding its content;
    /// [`Kind::Denied`] if it is shunned; [`Kind::Corrupt`] if what is stored has another hash; [`Kind::TooLarge`]
    /// over [`MAX_CONTENT`].
    pub fn content(&self, hash: &Hash) -> Result<Vec<u8>> {
        self.content_within(hash, MAX_CONTENT)
    }

    /// As [`content`](Self::content), for at most `max` bytes. The size is checked before anything is read.
    ///
    /// # Errors
    /// Those of [`content`](Self::content).
    pub fn content_within(&self, hash: &Hash, max: usize) -> Result<Vec<u8>> {
        let (rid, size) = self.blob(hash)?;
        if size > max as u64 {
            let what = format!("artifact `{}` has {size} bytes, more than {max}", hash.short());
            return Err(Error::new(Kind::TooLarge, what));
        }
        let content = self.expand(rid).map_err(|e| {
            Error::new(e.kind(), format!("cannot read artifact `{}`: {e}", hash.short())).caused_by(e)
        })?;
        if hash.names(&content) {
            return Ok(content);
        }
        let what = format!("artifact `{}` is damaged: its bytes have another hash", hash.short());
        Err(Error::new(Kind::Corrupt, what).with_hint("Pull the artifact anew from a clone that holds it."))
    }

    /// Returns the number of bytes of an artifact.
    ///
    /// # Errors
    /// [`Kind::NotFound`] and [`Kind::Denied`], as for [`content`](Self::content).
    pub fn content_size(&self, hash: &Hash) -> Result<u64> {
        Ok(self.blob(hash)?.1)
    }

    /// Whether the repository holds the artifact's content.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn holds(&self, hash: &Hash) -> Result<bool> {
        match self.blob(hash) {
            Ok((rid, _)) => Ok(chain(&self.db(), rid)?.is_some()),
            Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Denied) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Returns the manifest of a check-in, as it was made.
    ///
    /// # Errors
    /// Those of [`content`](Self::content) and [`Manifest::parse`]; [`Kind::Invalid`] if the artifact is no check-in.
    pub fn manifest(&self, hash: &Hash) -> Result<Arc<Manifest>> {
        if let Some(manifest) = &self.cache().of(hash).manifest {
            return Ok(Arc::clone(manifest));
        }
        let manifest = Manifest::parse(&self.content(hash)?)
            .map_err(|e| Error::new(e.kind(), format!("artifact `{}`: {e}", hash.short())).caused_by(e))?;
        let manifest = Arc::new(manifest);
        self.cache().of(hash).manifest = Some(Arc::clone(&manifest));
        Ok(manifest)
    }

    /// Returns all files of a check-in, including those that only a baseline manifest names.
    ///
    /// # Errors
    /// Those of [`manifest`](Self::manifest); [`Kind::Invalid`] if a file's name could leave the tree.
    pub fn files(&self, hash: &Hash) -> Result<Arc<Files>> {
        if let Some(files) = &self.cache().of(hash).files {
            return Ok(Arc::clone(files));
        }
        let manifest = self.manifest(hash)?;
        let mut files = Files::new();
        if let Some(baseline) = &manifest.baseline {
            if self.manifest(baseline)?.baseline.is_some() {
                let what = format!("the baseline of check-in `{}` has a baseline itself", hash.short());
                return Err(Error::new(Kind::Corrupt, what));
            }
            files.clone_from(&*self.files(baseline)?);
        }
        amend(&mut files, &manifest.files)?;
        let files = Arc::new(files);
        self.cache().of(hash).files = Some(Arc::clone(&files));
        Ok(files)
    }

    /// Keeps a check-in that was just made, so that it need not be read back.
    pub(crate) fn remember(&self, hash: &Hash, manifest: Manifest, files: Arc<Files>) {
        *self.cache().of(hash) = Cached { manifest: Some(Arc::new(manifest)), files: Some(files) };
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.manifests.lock()
    }

    /// Returns the row and the size of an artifact whose content is here and may be read.
    fn blob(&self, hash: &Hash) -> Result<(i64, u64)> {
        let sql = "SELECT rid, size, EXISTS(SELECT 1 FROM shun WHERE shun.uuid=blob.uuid) \
                   FROM blob WHERE uuid=?1";
        let found = self.first(sql, [hash.as_str()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?))
        })?;
        match found {
            Some((_, _, true)) => {
                Err(Error::new(Kind::Denied, format!("artifact `{}` is shunned", hash.short())))
            }
            Some((rid, size, _)) if size >= 0 => Ok((rid, size.unsigned_abs())),
            Some(_) => {
                let what = format!("artifact `{}` is known, but its content is not here", hash.short());
                Err(Error::new(Kind::NotFound, what).with_hint("Pull from a repository that holds it."))
            }
            None => Err(Error::new(Kind::NotFound, format!("no artifact `{}`", hash.short()))),
        }
    }

    /// Expands a row's content along its chain of deltas, in constant stack and one read transaction.
    fn expand(&self, rid: i64) -> Result<Vec<u8>> {
        let db = self.db();
        let _unchanging = db.unchecked_transaction().map_err(|e| cannot_read(&self.path, e))?;
        expand(&db, rid)?.ok_or_else(|| Error::new(Kind::NotFound, "a part of its content is not here"))
    }
}

/// Returns the content of the row `rid`, unverified. Returns nothing if a part of it is not here.
pub(crate) fn expand(db: &Connection, rid: i64) -> Result<Option<Vec<u8>>> {
    let Some(mut chain) = chain(db, rid)? else { return Ok(None) };
    let Some(whole) = chain.pop() else { return Ok(None) };
    let mut content = stored(db, whole)?;
    while let Some(rid) = chain.pop() {
        content = delta::apply(&content, &stored(db, rid)?, MAX_CONTENT)?;
    }
    Ok(Some(content))
}

/// Returns the rows that make up the content of `rid`, from itself to the one stored whole. Returns nothing if one of
/// them has no content.
fn chain(db: &Connection, rid: i64) -> Result<Option<Vec<i64>>> {
    let sql = "SELECT size, (SELECT srcid FROM delta WHERE delta.rid=blob.rid) FROM blob WHERE rid=?1";
    let mut query = db.prepare_cached(sql)?;
    let mut chain = vec![rid];
    let mut seen = HashSet::from([rid]);
    let mut at = rid;
    loop {
        let row = query.query_row([at], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?)));
        match row.optional()? {
            None | Some((..0, _)) => return Ok(None),
            Some((_, None)) => return Ok(Some(chain)),
            Some((_, Some(source))) if seen.insert(source) => {
                chain.push(source);
                at = source;
            }
            Some(_) => return Err(Error::new(Kind::Corrupt, "its deltas run in a circle")),
        }
    }
}

/// Returns the bytes of the row itself: whole content or a delta.
pub(super) fn stored(db: &Connection, rid: i64) -> Result<Vec<u8>> {
    let mut query = db.prepare_cached("SELECT content FROM blob WHERE rid=?1")?;
    let mut rows = query.query([rid])?;
    let bytes = rows.next()?.map(|row| row.get_ref(0)).transpose()?;
    match bytes {
        Some(ValueRef::Blob(packed) | ValueRef::Text(packed)) => packed::unpack(packed, MAX_CONTENT),
        _ => Err(Error::new(Kind::Corrupt, "a part of its content is missing")),
    }
}

fn amend(files: &mut Files, cards: &[FileCard]) -> Result<()> {
    for card in cards {
        let path = TreePath::parse_stored(&card.name)?;
        match card.hash {
            Some(hash) => files.insert(path, FileEntry { hash, kind: card.kind }),
            None => files.remove(&path),
        };
    }
    Ok(())
}
