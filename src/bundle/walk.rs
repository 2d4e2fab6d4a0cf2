//! Expanding all artifacts of a bundle, each once, with few contents in memory.

use std::sync::Arc;

use super::file::in_bundle;
use super::wire::data_max;
use super::{Basis, Bundle};
use crate::error::{Error, Kind, Result};
use crate::format::{delta, packed};
use crate::name::Hash;

/// One expanded artifact.
pub(super) struct Expanded<'a> {
    /// Its row in the bundle.
    pub row: usize,
    /// The row's data as it came: compressed content, or a compressed delta.
    pub packed: &'a [u8],
    /// The whole content, not verified yet.
    pub content: Arc<Vec<u8>>,
}

impl Bundle {
    /// Calls `visit` with each artifact after its basis. `external` gives the contents that are not in the bundle.
    pub(super) fn walk(
        &self,
        mut external: impl FnMut(&Hash) -> Result<Arc<Vec<u8>>>,
        mut visit: impl FnMut(Expanded<'_>) -> Result<()>,
    ) -> Result<()> {
        let inner = &*self.inner;
        let db = inner.db();
        // One lock for all rows.
        let _unchanging = db.unchecked_transaction()?;
        let mut query = db.prepare("SELECT data FROM bblob WHERE blobid=?1")?;
        let mut pending: Vec<(u32, Option<Arc<Vec<u8>>>)> = Vec::new();
        for &root in inner.order.roots() {
            let basis = match inner.rows[root as usize].basis {
                Basis::External(hash) => Some(external(&hash)?),
                _ => None,
            };
            pending.push((root, basis));
            while let Some((index, basis)) = pending.pop() {
                let row = &inner.rows[index as usize];
                let mut found = query.query([row.id])?;
                let packed = data(&mut found).map_err(|e| in_bundle(&inner.name, e))?;
                let content = content(packed, basis.as_deref(), row.size).map_err(|e| {
                    let what = format!("artifact `{}`: {e}", row.hash.short());
                    in_bundle(&inner.name, Error::new(e.kind(), what).caused_by(e))
                })?;
                let content = Arc::new(content);
                drop(basis);
                let children = inner.order.children(index);
                pending.extend(children.iter().map(|&child| (child, Some(Arc::clone(&content)))));
                visit(Expanded { row: index as usize, packed, content })?;
            }
        }
        Ok(())
    }
}

fn data<'a>(found: &'a mut rusqlite::Rows<'_>) -> Result<&'a [u8]> {
    let row = found.next()?.ok_or_else(|| Error::new(Kind::Changed, "the file has changed"))?;
    Ok(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)
}

fn content(packed: &[u8], basis: Option<&Vec<u8>>, size: usize) -> Result<Vec<u8>> {
    let content = match basis {
        None => packed::unpack(packed, size)?,
        Some(basis) => delta::apply(basis, &packed::unpack(packed, data_max(size))?, size)?,
    };
    if content.len() == size {
        return Ok(content);
    }
    Err(Error::new(Kind::Corrupt, format!("it has {} bytes and not the declared {size}", content.len())))
}
