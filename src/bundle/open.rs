//! Opening a bundle file, with distrust.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tempfile::NamedTempFile;

use super::create::COLUMNS;
use super::file::{Bundle, BundleFile, in_bundle, no_bundle};
use super::{index, wire};
use crate::error::{Error, Kind, Result};
use crate::name::shown;
use crate::transfer::Staged;

impl Bundle {
    /// Opens a bundle file, in SQLite's form or in the wire form (see [`write_wire`](Self::write_wire)).
    ///
    /// # Errors
    /// [`Kind::NotFound`] without such a file, which is not made; [`Kind::Foreign`] for anything but a plain bundle;
    /// [`Kind::Invalid`] for one that contradicts itself; [`Kind::TooLarge`] for sizes over the limits.
    ///
    /// [`Kind::NotFound`]: crate::error::Kind::NotFound
    /// [`Kind::Foreign`]: crate::error::Kind::Foreign
    /// [`Kind::Invalid`]: crate::error::Kind::Invalid
    /// [`Kind::TooLarge`]: crate::error::Kind::TooLarge
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let meta = std::fs::metadata(path).map_err(|e| {
            Error::io(format!("cannot open bundle `{name}`"), e).with_hint("Check the path of the bundle.")
        })?;
        if !meta.is_file() {
            return Err(no_bundle(&name, "it is no file"));
        }
        // SQLite looks first. If this is a repository that is open, closing a file of ours would drop its locks.
        match connect(path) {
            Ok(db) => read(db, Came { name, size: meta.len(), received: meta.len(), unpacked: None }),
            Err(e) if e.kind() == Kind::Foreign => {
                let file =
                    File::open(path).map_err(|e| Error::io(format!("cannot open bundle `{name}`"), e))?;
                unpack(file, meta.len(), name)
            }
            Err(e) => Err(e),
        }
    }

    /// Opens a bundle, in either form, that was received as bytes.
    ///
    /// # Errors
    /// As [`open`](Self::open); an I/O kind when there is no room for a temporary file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let name = "the bundle given".to_owned();
        if wire::is_wire(bytes) {
            return unpack(bytes, bytes.len() as u64, name);
        }
        let file = NamedTempFile::new().and_then(|file| std::fs::write(file.path(), bytes).map(|()| file));
        let file = file.map_err(|e| Error::io("cannot keep a bundle", e))?;
        let db = connect(file.path()).map_err(|_| no_bundle(&name, "it is no SQLite database"))?;
        let size = bytes.len() as u64;
        read(db, Came { name, size, received: size, unpacked: Some(file) })
    }
}

/// What is known of a bundle before it is read.
struct Came {
    name: String,
    /// Bytes in SQLite's form.
    size: u64,
    /// Bytes in the form that came.
    received: u64,
    unpacked: Option<NamedTempFile>,
}

/// Reads the wire form into a temporary file.
fn unpack(mut from: impl Read, received: u64, name: String) -> Result<Bundle> {
    let mut magic = [0; wire::MAGIC.len()];
    let is_wire = from.read_exact(&mut magic).is_ok() && wire::is_wire(&magic);
    if !is_wire {
        return Err(no_bundle(&name, "it is no SQLite database"));
    }
    let file = wire::unpack(from, received).map_err(|e| {
        let hint = e.hint().unwrap_or("Get the bundle anew.").to_owned();
        Error::new(e.kind(), format!("cannot read bundle `{name}`: {e}")).with_hint(hint).caused_by(e)
    })?;
    let size = file.as_file().metadata().map_err(|e| Error::io("cannot keep a bundle", e))?.len();
    read(connect(file.path())?, Came { name, size, received, unpacked: Some(file) })
}

/// Opens a connection that cannot write and runs nothing that the file brings.
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

fn read(db: Connection, came: Came) -> Result<Bundle> {
    let Came { name, size, received, unpacked } = came;
    check_schema(&db, &name)?;
    let rows = index::rows(&db).map_err(|e| in_bundle(&name, e))?;
    let sql = "SELECT bcvalue FROM bconfig WHERE bcname='project-code' AND typeof(bcvalue)='text' LIMIT 1";
    let code =
        db.prepare(sql).and_then(|mut q| q.query_map([], |row| row.get::<_, String>(0))?.next().transpose());
    let project_code = code.map_err(|e| in_bundle(&name, e.into()))?;
    let file = Arc::new(BundleFile { name, db: db.into(), size, received, _unpacked: unpacked });
    let staged = Staged::new(rows, Arc::clone(&file) as _)?;
    Ok(Bundle::new(file, project_code, staged))
}

/// Refuses all but two ordinary tables with the known columns: a view, a trigger, a generated column, any other table.
fn check_schema(db: &Connection, name: &str) -> Result<()> {
    let damaged = |e: rusqlite::Error| in_bundle(name, e.into());
    let mut query = db.prepare("SELECT type, name FROM sqlite_schema ORDER BY name").map_err(damaged)?;
    let entries = query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let entries = entries.and_then(Iterator::collect::<rusqlite::Result<Vec<_>>>).map_err(damaged)?;
    // `PRAGMA optimize` may have left tables of SQLite's own. Nothing reads them.
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
