//! Packing artifacts for a receiver: as they are stored where their basis goes along or is there, else anew.

use std::collections::HashMap;

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension};

use super::lines::{Lines, Root, not_here};
use super::row::{Basis, Keep, Row};
use super::select::Selected;
use crate::engine::Stop;
use crate::error::Result;
use crate::name::Hash;

/// One artifact, packed.
pub(crate) struct Packed<'a> {
    pub row: Row,
    /// What it is, in words.
    pub note: Option<&'a str>,
    /// Its content or a delta, compressed.
    pub data: ToSqlOutput<'a>,
}

/// Calls `send` with each selected artifact, in the order of their rows. A delta from an artifact that the receiver
/// holds is sent only if `is_usable` agrees that the basis can be named to it.
///
/// # Errors
/// [`Kind::NotFound`] when a content is not here, [`Kind::Corrupt`] when one that is packed anew does not have its hash,
/// and those of `send`.
///
/// [`Kind::NotFound`]: crate::error::Kind::NotFound
/// [`Kind::Corrupt`]: crate::error::Kind::Corrupt
pub(crate) fn pack(
    db: &Connection,
    selected: &Selected,
    is_usable: impl Fn(&Hash) -> bool,
    mut send: impl FnMut(&Packed<'_>) -> Result<()>,
) -> Result<()> {
    let ways = ways(db, selected, is_usable)?;
    let roots = (0..).zip(&ways).filter_map(|(at, way)| match way {
        Way::Root { is_whole } => Some(Root { at, is_whole: *is_whole }),
        Way::From(_) => None,
    });
    let mut lines = Lines::of(db, selected, roots.collect());
    let mut read = db.prepare("SELECT uuid, size, content FROM blob WHERE rid=?1")?;
    let stop = Stop::of_this_thread();
    for (at, (&rid, way)) in selected.rids.iter().zip(&ways).enumerate() {
        stop.check("the artifacts were not all packed; nothing was sent")?;
        let mut rows = read.query([rid])?;
        let Some(row) = rows.next()? else { continue };
        let hash = Hash::parse(&row.get::<_, String>(0)?)?;
        let size = usize::try_from(row.get::<_, i64>(1)?)
            .map_err(|_| not_here(format!("the content of the artifact `{hash}` is not here")))?;
        let (basis, data) = match (way, lines.take(at)?) {
            (_, Some(anew)) => (anew.basis, ToSqlOutput::from(anew.data)),
            (Way::From(basis), None) => (*basis, ToSqlOutput::Borrowed(row.get_ref(2)?)),
            (Way::Root { .. }, None) => (Basis::None, ToSqlOutput::Borrowed(row.get_ref(2)?)),
        };
        let note = selected.notes.get(&rid).map(String::as_str);
        send(&Packed { row: Row { id: rid, hash, size, basis, keep: Keep::Public }, note, data })?;
    }
    Ok(())
}

/// How an artifact is stored, as far as it matters to the receiver.
enum Way {
    /// As a delta from what the receiver has or gets.
    From(Basis),
    /// Whole, or as a delta from what the receiver has not.
    Root { is_whole: bool },
}

/// How each selected artifact is stored.
fn ways(db: &Connection, selected: &Selected, is_usable: impl Fn(&Hash) -> bool) -> Result<Vec<Way>> {
    let inside: HashMap<i64, usize> = selected.rids.iter().copied().zip(0..).collect();
    let mut read = db.prepare("SELECT srcid FROM delta WHERE rid=?1")?;
    let way = |&rid: &i64| {
        let source: Option<i64> = read.query_row([rid], |row| row.get(0)).optional()?;
        let Some(source) = source else { return Ok(Way::Root { is_whole: true }) };
        if let Some(&at) = inside.get(&source) {
            return Ok(Way::From(Basis::Row(at)));
        }
        let basis = held(db, selected, source)?.filter(&is_usable);
        Ok(basis.map_or(Way::Root { is_whole: false }, |basis| Way::From(Basis::External(basis))))
    };
    selected.rids.iter().map(way).collect()
}

/// The hash of a basis that the receiver holds.
fn held(db: &Connection, selected: &Selected, source: i64) -> Result<Option<Hash>> {
    if !selected.held.contains(&source) {
        return Ok(None);
    }
    let sql = "SELECT uuid FROM blob WHERE rid=?1 AND size>=0";
    let hash: Option<String> = db.prepare_cached(sql)?.query_row([source], |row| row.get(0)).optional()?;
    hash.map(|hash| Hash::parse(&hash)).transpose()
}
