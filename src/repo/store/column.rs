//! Columns of a row, read whatever type they were stored with.

use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};

use crate::name::Hash;

/// A column as text. Bytes that are not UTF-8 are replaced.
pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(optional_text(row, column)?.unwrap_or_default())
}

/// A column as text, or nothing for NULL.
pub(crate) fn optional_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    })
}

/// A column with an artifact's hash.
pub(crate) fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<Hash> {
    Hash::parse(&text(row, column)?)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(e)))
}

/// A column with an artifact's hash, or with nothing.
pub(crate) fn optional_hash(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Hash>> {
    if row.get_ref(column)? == ValueRef::Null { Ok(None) } else { hash(row, column).map(Some) }
}
