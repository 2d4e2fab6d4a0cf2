//! Opening a bundle file and reading its index, with distrust.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use tempfile::NamedTempFile;

use super::order::Order;
use super::{Basis, Bundle, Inner, Row, wire};
use crate::error::{Error, Kind, Result};
use crate::format::FILE_MAX;
use crate::name::{Hash, shown};

/// The most artifacts that one bundle may hold.
const ROWS_MAX: usize = 8_000_000;
/// The columns of the two tables, in order.
const COLUMNS: [(&str, &[&str]); 2] =
    [("bblob", &["blobid", "uuid", "sz", "delta", "notes", "data"]), ("bconfig", &["bcname", "bcvalue"])];

/// The tables of a new bundle, as Fossil makes them.
pub(super) const SCHEMA: &str = "
CREATE TABLE bconfig(bcname TEXT, bcvalue ANY);
CREATE TABLE bblob(
  blobid INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL,
  sz INT NOT NULL,
  delta ANY,
  notes TEXT,
  data BLOB
);";

pub(super) fn open(path: &Path) -> Result<Bundle> {
    let name = path.display().to_string();
    let meta = std::fs::metadata(path).map_err(|e| {
        Error::io(format!("cannot open bundle `{name}`"), e).with_hint("Check the path of the bundle.")
    })?;
    if !meta.is_file() {
        return Err(no_bundle(&name, "it is no file"));
    }
    // SQLite looks first: should this be a repository that is open, closing it here would drop its locks.
    match connect(path) {
        Ok(db) => read(db, name, meta.len(), None),
        Err(e) if e.kind() == Kind::Foreign => {
            let file = File::open(path).map_err(|e| Error::io(format!("cannot open bundle `{name}`"), e))?;
            unpack(file, name)
        }
        Err(e) => Err(e),
    }
}

pub(super) fn from_bytes(bytes: &[u8]) -> Result<Bundle> {
    let name = "the bundle given".to_owned();
    if wire::is_wire(bytes) {
        return unpack(bytes, name);
    }
    let file = NamedTempFile::new().and_then(|file| std::fs::write(file.path(), bytes).map(|()| file));
    let file = file.map_err(|e| Error::io("cannot keep a bundle", e))?;
    let db = connect(file.path()).map_err(|_| no_bundle(&name, "it is no SQLite database"))?;
    read(db, name, bytes.len() as u64, Some(file))
}

/// Reads the wire form into a temporary file.
fn unpack(mut from: impl Read, name: String) -> Result<Bundle> {
    let mut magic = [0; wire::MAGIC.len()];
    let is_wire = from.read_exact(&mut magic).is_ok() && wire::is_wire(&magic);
    if !is_wire {
        return Err(no_bundle(&name, "it is no SQLite database"));
    }
    let file = wire::unpack(from).map_err(|e| {
        let what = format!("cannot read bundle `{name}`: {e}");
        Error::new(e.kind(), what).with_hint("Get the bundle anew.").caused_by(e)
    })?;
    let size = file.as_file().metadata().map_err(|e| Error::io("cannot keep a bundle", e))?.len();
    read(connect(file.path())?, name, size, Some(file))
}

/// A connection that cannot write and runs nothing that the file brings.
fn connect(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
    let cannot = |e: rusqlite::Error| {
        let below = Error::from(e);
        let why = match below.kind() {
            Kind::Foreign | Kind::NotFound => {
                return no_bundle(&path.display().to_string(), "it is no SQLite database");
            }
            Kind::Busy => "it is being written",
            _ => "it is damaged",
        };
        Error::new(below.kind(), format!("cannot open bundle `{}`: {why}", path.display())).caused_by(below)
    };
    let db = Connection::open_with_flags(path, flags).map_err(cannot)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(cannot)?;
    db.execute_batch("PRAGMA trusted_schema=0; PRAGMA query_only=1; PRAGMA cell_size_check=1")
        .map_err(cannot)?;
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(cannot)?;
    Ok(db)
}

fn read(db: Connection, name: String, size: u64, unpacked: Option<NamedTempFile>) -> Result<Bundle> {
    check_schema(&db, &name)?;
    let rows = rows(&db).map_err(|e| in_bundle(&name, e))?;
    let order = Order::of(&rows).map_err(|e| in_bundle(&name, e))?;
    let sql = "SELECT bcvalue FROM bconfig WHERE bcname='project-code' AND typeof(bcvalue)='text' LIMIT 1";
    let code =
        db.prepare(sql).and_then(|mut q| q.query_map([], |row| row.get::<_, String>(0))?.next().transpose());
    let project_code = code.map_err(|e| in_bundle(&name, e.into()))?;
    let inner = Inner { name, db: db.into(), project_code, rows, order, size, _unpacked: unpacked };
    Ok(Bundle { inner: inner.into() })
}

/// Only two ordinary tables with the known columns: no view, trigger, generated column or table of another kind.
fn check_schema(db: &Connection, name: &str) -> Result<()> {
    let damaged = |e: rusqlite::Error| in_bundle(name, e.into());
    let mut query = db.prepare("SELECT type, name FROM sqlite_schema ORDER BY name").map_err(damaged)?;
    let entries = query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let entries = entries.and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>).map_err(damaged)?;
    // What `PRAGMA optimize` may have left is SQLite's own and is not read.
    let ours: Vec<_> = entries.iter().filter(|(_, name)| !name.starts_with("sqlite_stat")).collect();
    if let Some((kind, other)) = ours.iter().find(|(kind, name)| kind != "table" || !is_known(name)) {
        return Err(no_bundle(name, &format!("it holds the {kind} `{}`", shown(other.as_bytes()))));
    }
    for (table, known) in COLUMNS {
        let sql = "SELECT type, wr FROM pragma_table_list(?1) WHERE schema='main'";
        let kind = db.query_row(sql, [table], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)));
        if !matches!(&kind, Ok((kind, false)) if kind == "table") {
            return Err(no_bundle(name, &format!("it has no plain table `{table}`")));
        }
        let sql = "SELECT name, hidden, pk, type FROM pragma_table_xinfo(?1)";
        let mut query = db.prepare(sql).map_err(damaged)?;
        let columns = query.query_map([table], |row| {
            let is_key =
                row.get::<_, i64>(2)? == 1 && row.get::<_, String>(3)?.eq_ignore_ascii_case("INTEGER");
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)? == 0, is_key))
        });
        let columns = columns.and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>).map_err(damaged)?;
        let fits = columns.len() == known.len()
            && columns
                .iter()
                .zip(known)
                .all(|((name, plain, key), known)| name == known && *plain && *key == (*known == "blobid"));
        if !fits {
            return Err(no_bundle(name, &format!("its table `{table}` has other columns")));
        }
    }
    Ok(())
}

fn is_known(table: &str) -> bool {
    COLUMNS.iter().any(|(known, _)| *known == table)
}

fn rows(db: &Connection) -> Result<Vec<Row>> {
    let sql = "SELECT blobid, uuid, sz, delta, typeof(data) FROM bblob ORDER BY blobid";
    let mut query = db.prepare(sql)?;
    let mut found = query.query([])?;
    let (mut rows, mut bases) = (Vec::new(), Vec::new());
    while let Some(row) = found.next()? {
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
        rows.push(Row { id, hash, size, basis: Basis::None });
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

/// The error in the context of its bundle. SQLite's own words are for the cause only.
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

fn no_bundle(name: &str, why: &str) -> Error {
    Error::new(Kind::Foreign, format!("`{name}` is not a plain bundle: {why}"))
        .with_hint("Give a file that `ocx bundle export` or `fossil bundle export` wrote.")
}
