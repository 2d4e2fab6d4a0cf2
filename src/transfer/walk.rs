//! Expanding all artifacts of a set, each once, with few contents in memory.

use std::sync::Arc;

use super::row::{Basis, data_max, held_max};
use super::staged::{Reader, Staged};
use crate::engine::Stop;
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
        external: impl FnMut(&Hash) -> Result<Arc<Vec<u8>>>,
        visit: impl FnMut(Expanded<'_>) -> Result<()>,
    ) -> Result<()> {
        self.walk_some(&vec![true; self.rows().len()], external, visit)
    }

    /// As [`walk`](Self::walk), without the rows that are not `needed` and what is a delta from them.
    pub(super) fn walk_some(
        &self,
        needed: &[bool],
        mut external: impl FnMut(&Hash) -> Result<Arc<Vec<u8>>>,
        mut visit: impl FnMut(Expanded<'_>) -> Result<()>,
    ) -> Result<()> {
        let stop = Stop::of_this_thread();
        let mut reader = self.source().reader()?;
        let mut packed = Vec::new();
        let mut open = Open { frames: Vec::new(), bytes: 0, max: held_max(self.source().received()) };
        for &root in self.order().roots().iter().filter(|root| needed[**root as usize]) {
            let basis = match self.rows()[root as usize].basis {
                Basis::External(hash) => Some(external(&hash)?),
                _ => None,
            };
            let mut next = Some((root, basis));
            while let Some((index, basis)) = next {
                stop.check("the artifacts were not all looked at; nothing was taken in")?;
                let row = &self.rows()[index as usize];
                let blamed = |e: Error| {
                    let what = format!("artifact `{}`: {e}", row.hash.short());
                    let hint = e.hint().map(str::to_owned);
                    let e = Error::new(e.kind(), what).caused_by(e);
                    self.source().blame(hint.into_iter().fold(e, Error::with_hint))
                };
                open.check(row.size + basis.as_ref().map_or(0, |basis| basis.len())).map_err(blamed)?;
                reader.read(row.id, &mut packed).map_err(|e| self.source().blame(e))?;
                let content = content(&packed, basis.as_deref(), row.size).map_err(blamed)?;
                let content = Arc::new(content);
                drop(basis);
                open.push(&content, self.order().children(index));
                visit(Expanded { row: index as usize, packed: &packed, content })?;
                next = open.next();
                while next.as_ref().is_some_and(|(child, _)| !needed[*child as usize]) {
                    next = open.next();
                }
            }
        }
        Ok(())
    }
}

impl Staged {
    /// Calls `visit` with each row and its data as they were verified, each after its basis. `visit` gets the reader, too,
    /// since there may be no second one at a time.
    ///
    /// # Errors
    /// [`Kind::Changed`] when the data are other ones now, and those of `visit`.
    pub(super) fn each_verified(
        &self,
        mut visit: impl FnMut(&mut Verified<'_>, usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let stop = Stop::of_this_thread();
        let mut verified = Verified { staged: self, reader: self.source().reader()? };
        let mut packed = Vec::new();
        let mut open: Vec<u32> = Vec::new();
        for &root in self.order().roots() {
            open.push(root);
            while let Some(index) = open.pop() {
                stop.check("the artifacts were not all stored; nothing was taken in")?;
                verified.read(index as usize, &mut packed)?;
                visit(&mut verified, index as usize, &packed)?;
                open.extend_from_slice(self.order().children(index));
            }
        }
        Ok(())
    }
}

/// Reads the data of a verified set.
pub(super) struct Verified<'a> {
    staged: &'a Staged,
    reader: Box<dyn Reader + 'a>,
}

impl Verified<'_> {
    /// The content of one row.
    pub fn expand(
        &mut self,
        row: usize,
        external: impl FnOnce(&Hash) -> Result<Arc<Vec<u8>>>,
    ) -> Result<Vec<u8>> {
        let rows = self.staged.rows();
        let (mut chain, mut at) = (vec![row], row);
        while let Basis::Row(basis) = rows[at].basis {
            chain.push(basis);
            at = basis;
        }
        let mut basis = match rows[at].basis {
            Basis::External(hash) => Some(external(&hash)?),
            _ => None,
        };
        let mut packed = Vec::new();
        while let Some(row) = chain.pop() {
            self.read(row, &mut packed)?;
            basis = Some(Arc::new(content(&packed, basis.as_deref(), rows[row].size)?));
        }
        Ok(basis.map(Arc::unwrap_or_clone).unwrap_or_default())
    }

    fn read(&mut self, row: usize, packed: &mut Vec<u8>) -> Result<()> {
        let blamed = |e: Error| self.staged.source().blame(e);
        self.reader.read(self.staged.rows()[row].id, packed).map_err(blamed)?;
        if self.staged.is_as_verified(row, packed) {
            return Ok(());
        }
        Err(blamed(Error::new(Kind::Changed, "its data have changed").with_hint("Send it again.")))
    }
}

/// The contents from which deltas are to come.
struct Open<'a> {
    frames: Vec<Frame<'a>>,
    /// Bytes of their contents.
    bytes: usize,
    max: u64,
}

/// A content, and those of its deltas that are to come: one at least.
struct Frame<'a> {
    content: Arc<Vec<u8>>,
    children: &'a [u32],
}

impl<'a> Open<'a> {
    /// Refuses to hold so many more bytes.
    fn check(&self, more: usize) -> Result<()> {
        if (self.bytes + more) as u64 <= self.max {
            return Ok(());
        }
        let what = format!("to expand it takes more than {} bytes of memory", self.max);
        Err(Error::new(Kind::TooLarge, what).with_hint("Leave so large a file out of what is sent."))
    }

    fn push(&mut self, content: &Arc<Vec<u8>>, children: &'a [u32]) {
        if !children.is_empty() {
            self.bytes += content.len();
            self.frames.push(Frame { content: Arc::clone(content), children });
        }
    }

    /// The next delta, with its basis.
    fn next(&mut self) -> Option<(u32, Option<Arc<Vec<u8>>>)> {
        let frame = self.frames.last_mut()?;
        let (&child, rest) = frame.children.split_last()?;
        frame.children = rest;
        if !rest.is_empty() {
            return Some((child, Some(Arc::clone(&frame.content))));
        }
        let frame = self.frames.pop()?;
        self.bytes -= frame.content.len();
        Some((child, Some(frame.content)))
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
