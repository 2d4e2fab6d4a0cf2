//! Packing artifacts for a receiver: as they are stored where their basis goes along or is there, else whole.

use std::collections::HashMap;

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension};

use super::row::{Basis, Keep, Row};
use super::select::Selected;
use crate::error::{Error, Kind, Result};
use crate::format::packed;
use crate::name::Hash;
use crate::repo::store::expand;

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
/// [`Kind::NotFound`] when a content is not here, and those of `send`.
pub(crate) fn pack(
    db: &Connection,
    selected: &Selected,
    is_usable: impl Fn(&Hash) -> bool,
    mut send: impl FnMut(&Packed<'_>) -> Result<()>,
) -> Result<()> {
    let sql = "SELECT uuid, size, content, srcid FROM blob LEFT JOIN delta USING(rid) WHERE blob.rid=?1";
    let mut read = db.prepare(sql)?;
    let inside: HashMap<i64, usize> = selected.rids.iter().copied().zip(0..).collect();
    for &rid in &selected.rids {
        let mut rows = read.query([rid])?;
        let Some(row) = rows.next()? else { continue };
        let hash = Hash::parse(&row.get::<_, String>(0)?)?;
        let size = usize::try_from(row.get::<_, i64>(1)?)
            .map_err(|_| not_here(format!("the content of the artifact `{hash}` is not here")))?;
        let as_stored = ToSqlOutput::Borrowed(row.get_ref(2)?);
        let (basis, data) = match row.get::<_, Option<i64>>(3)? {
            None => (Basis::None, as_stored),
            Some(source) => match inside.get(&source) {
                Some(&at) => (Basis::Row(at), as_stored),
                None => match held(db, selected, source)?.filter(&is_usable) {
                    Some(basis) => (Basis::External(basis), as_stored),
                    None => (Basis::None, ToSqlOutput::from(whole(db, rid, &hash)?)),
                },
            },
        };
        let note = selected.notes.get(&rid).map(String::as_str);
        send(&Packed { row: Row { id: rid, hash, size, basis, keep: Keep::Public }, note, data })?;
    }
    Ok(())
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

fn whole(db: &Connection, rid: i64, hash: &Hash) -> Result<Vec<u8>> {
    let content =
        expand(db, rid)?.ok_or_else(|| not_here(format!("a part of the artifact `{hash}` is not here")))?;
    if !hash.names(&content) {
        let what = format!("artifact `{hash}` is damaged: its bytes have another hash");
        return Err(Error::new(Kind::Corrupt, what).with_hint("Pull it anew from a clone that holds it."));
    }
    packed::pack(&content)
}

fn not_here(what: String) -> Error {
    Error::new(Kind::NotFound, what).with_hint("Pull it first from a repository that holds it.")
}
