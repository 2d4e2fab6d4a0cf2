//! The index of a bundle file: its artifacts without their data, read with distrust.

use std::collections::HashMap;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::engine::Stop;
use crate::error::{Error, Kind, Result};
use crate::format::FILE_MAX;
use crate::name::Hash;
use crate::transfer::{Basis, Keep, Row};

/// The most artifacts that one bundle may hold.
const ROWS_MAX: usize = 8_000_000;

/// Reads all rows, and finds which are deltas from which.
///
/// # Errors
/// [`Kind::Invalid`] for what contradicts itself, [`Kind::TooLarge`] for sizes over the limits.
pub(super) fn rows(db: &Connection) -> Result<Vec<Row>> {
    let sql = "SELECT blobid, uuid, sz, delta, typeof(data) FROM bblob ORDER BY blobid";
    let mut query = db.prepare(sql)?;
    let mut found = query.query([])?;
    let (mut rows, mut bases) = (Vec::new(), Vec::new());
    let stop = Stop::of_this_thread();
    while let Some(row) = found.next()? {
        stop.check("the bundle was not read")?;
        if rows.len() == ROWS_MAX {
            return Err(Error::new(Kind::TooLarge, format!("it holds more than {ROWS_MAX} artifacts")));
        }
        let id: i64 = row.get(0)?;
        let hash =
            hash_in(row.get_ref(1)?).ok_or_else(|| invalid(format!("row {id} has no artifact hash")))?;
        let size = match row.get_ref(2)? {
            ValueRef::Integer(size) => usize::try_from(size).ok(),
            _ => None,
        };
        let size = size.ok_or_else(|| invalid(format!("artifact `{}` has no size", hash.short())))?;
        if size as u64 > FILE_MAX {
            let what = format!("artifact `{}` declares {size} bytes, more than {FILE_MAX}", hash.short());
            return Err(
                Error::new(Kind::TooLarge, what).with_hint("Leave so large a file out of the bundle.")
            );
        }
        if !matches!(row.get_ref(4)?.as_str(), Ok("blob")) {
            return Err(invalid(format!("artifact `{}` has no data", hash.short())));
        }
        bases.push(match row.get_ref(3)? {
            ValueRef::Null => Named::Nothing,
            ValueRef::Integer(id) => Named::Id(id),
            other => Named::Artifact(hash_in(other).ok_or_else(|| {
                invalid(format!("the basis of artifact `{}` is no artifact hash", hash.short()))
            })?),
        });
        rows.push(Row { id, hash, size, basis: Basis::None, keep: Keep::Public });
    }
    resolve(&mut rows, &bases)?;
    Ok(rows)
}

/// What the column `delta` names.
enum Named {
    Nothing,
    Id(i64),
    Artifact(Hash),
}

/// Finds the rows that are named as bases.
fn resolve(rows: &mut [Row], bases: &[Named]) -> Result<()> {
    let by_hash: HashMap<Hash, usize> = if bases.iter().any(|b| matches!(b, Named::Artifact(_))) {
        rows.iter().enumerate().map(|(i, row)| (row.hash, i)).collect()
    } else {
        HashMap::new()
    };
    for (i, named) in bases.iter().enumerate() {
        rows[i].basis = match named {
            Named::Nothing => Basis::None,
            Named::Artifact(hash) => by_hash.get(hash).map_or(Basis::External(*hash), |&at| Basis::Row(at)),
            Named::Id(id) => {
                let Ok(at) = rows.binary_search_by_key(id, |row| row.id) else {
                    let hash = rows[i].hash;
                    return Err(invalid(format!(
                        "the basis of artifact `{}`, row {id}, is not in it",
                        hash.short()
                    )));
                };
                Basis::Row(at)
            }
        };
    }
    Ok(())
}

fn hash_in(value: ValueRef<'_>) -> Option<Hash> {
    Hash::parse(value.as_str().ok()?).ok()
}

fn invalid(what: String) -> Error {
    Error::new(Kind::Invalid, what)
}
