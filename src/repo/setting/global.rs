//! What a user has set for all repositories.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};

use crate::error::{Error, Kind, Result};

/// How long to wait for a lock that another process holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Fossil's own file of them, such as `~/.config/fossil.db`. It is only read. A host names it or does not; the library
/// looks for none.
#[derive(Debug, Clone)]
pub(crate) struct GlobalSettings {
    path: PathBuf,
    read: Arc<Mutex<Option<Read>>>,
}

/// What was read of it last.
#[derive(Debug)]
struct Read {
    state: State,
    values: BTreeMap<String, String>,
}

/// Differs after each write: device, number, size and time of the file, and of its write-ahead log.
type State = [Option<(u64, u64, u64, i64, i64)>; 2];

impl GlobalSettings {
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), read: Arc::default() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The value of a setting. Nothing if there is no such file, or none with settings.
    pub fn value(&self, name: &str) -> Result<Option<String>> {
        if !self.path.is_file() {
            return Ok(None);
        }
        let mut read = self.read.lock();
        let state = self.state();
        if let Some(read) = read.as_ref().filter(|read| read.state == state) {
            return Ok(read.values.get(name).cloned());
        }
        let values = self.values().map_err(|e| {
            let what = format!("cannot read the user's settings in `{}`: {e}", self.path.display());
            Error::new(Kind::Io, what).caused_by(e)
        })?;
        let value = values.get(name).cloned();
        *read = Some(Read { state, values });
        Ok(value)
    }

    fn values(&self) -> rusqlite::Result<BTreeMap<String, String>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(&self.path, flags)?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        let sql = "SELECT name, CAST(value AS TEXT) FROM global_config WHERE value IS NOT NULL";
        db.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    fn state(&self) -> State {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        [self.path.metadata(), std::fs::metadata(log)].map(|meta| {
            let meta = meta.ok()?;
            Some((meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
        })
    }
}
