//! Expanding all artifacts of a set, each once, with few contents in memory.

use std::sync::Arc;

use super::row::{Basis, data_max};
use super::staged::Staged;
use crate::error::{Error, Kind, Result};
use crate::format::{delta, packed};
use crate::name::Hash;

/// One expanded artifact.
pub(super) struct Expanded<'a> {
    /// The index of its row.
    pub row: usize,
    /// The row's data as they came: compressed content, or a compressed delta.
    pub packed: &'a [u8],
    /// The whole content. Nothing has verified it yet.
    pub content: Arc<Vec<u8>>,
}

impl Staged {
    /// Calls `visit` with each artifact after its basis. `external` gives the contents that are not in the set.
    pub(super) fn walk(
        &self,
        mut external: impl FnMut(&Hash) -> Result<Arc<Vec<u8>>>,
        mut visit: impl FnMut(Expanded<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut reader = self.source().reader()?;
        let mut packed = Vec::new();
        let mut pending: Vec<(u32, Option<Arc<Vec<u8>>>)> = Vec::new();
        for &root in self.order().roots() {
            let basis = match self.rows()[root as usize].basis {
                Basis::External(hash) => Some(external(&hash)?),
                _ => None,
            };
            pending.push((root, basis));
            while let Some((index, basis)) = pending.pop() {
                let row = &self.rows()[index as usize];
                reader.read(row.id, &mut packed).map_err(|e| self.source().blame(e))?;
                if self.is_as_verified(index as usize, &packed) == Some(false) {
                    return Err(self.source().blame(Error::new(Kind::Changed, "its data have changed")));
                }
                let content = content(&packed, basis.as_deref(), row.size).map_err(|e| {
                    let what = format!("artifact `{}`: {e}", row.hash.short());
                    self.source().blame(Error::new(e.kind(), what).caused_by(e))
                })?;
                let content = Arc::new(content);
                drop(basis);
                let children = self.order().children(index);
                pending.extend(children.iter().map(|&child| (child, Some(Arc::clone(&content)))));
                visit(Expanded { row: index as usize, packed: &packed, content })?;
            }
        }
        Ok(())
    }
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
