//! Unversioned files. Only the newest content of a name is kept.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};

use super::author::{Author, LEAD_MAX_S, write_as};
use crate::error::{Error, Kind, Result};
use crate::format::packed;
use crate::format::sync_message::UnversionedEntry;
use crate::name::{Hash, UnversionedName, User, time};
use crate::repo::Repository;
use crate::repo::store::{has_table, hash, text};

/// The most bytes that an unversioned file may have: SQLite's limit for a row, less the other columns.
pub const UNVERSIONED_MAX: u64 = 1_000_000_000 - 850;

/// Fossil's table. Fossil makes it when it first needs it.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS unversioned(
  uvid INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, rcvid INTEGER, mtime DATETIME, hash TEXT, sz INTEGER,
  encoding INT, content BLOB)";

/// The unversioned files of a repository.
///
/// ```
/// use ocx::{name::{UnversionedName, User}, repo::{NewRepository, Repository}, record::Unversioned};
/// let folder = tempfile::tempdir()?;
/// let ann = User::parse("ann")?;
/// let repository = Repository::create(&folder.path().join("r.fossil"), &NewRepository { user: ann.clone() })?;
/// let (files, name) = (Unversioned::of(&repository), UnversionedName::parse("logo.png")?);
/// files.put(&name, b"\x89PNG", &ann)?;
/// assert_eq!(files.get(&name)?, b"\x89PNG");
/// assert_eq!(files.list()?[0].size, 4);
/// files.remove(&name, &ann)?;
/// assert!(files.list()?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Unversioned {
    repository: Repository,
}

/// An unversioned file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnversionedFile {
    /// The name as stored.
    pub name: String,
    /// The hash of its content.
    pub hash: Hash,
    /// How many bytes it has.
    pub size: u64,
    /// When it was put, in UTC: `2026-11-30T10:23:45Z`.
    pub time: String,
    /// Whether the content is here. A sync may bring names without content.
    pub here: bool,
}

impl Unversioned {
    /// The unversioned files of `repository`.
    #[must_use]
    pub fn of(repository: &Repository) -> Self {
        Self { repository: repository.clone() }
    }

    /// All files that are not removed, by name.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn list(&self) -> Result<Vec<UnversionedFile>> {
        self.repository.store().ask(|db| {
            if !has_table(db, "unversioned")? {
                return Ok(Vec::new());
            }
            let sql = format!("{FILE} WHERE hash IS NOT NULL ORDER BY name");
            db.prepare_cached(&sql)?.query_map([], file)?.collect()
        })
    }

    /// Returns one file, without its content.
    ///
    /// # Errors
    /// [`Kind::NotFound`] if there is none of the name.
    pub fn find(&self, name: &UnversionedName) -> Result<UnversionedFile> {
        self.repository.store().ask(|db| held(db, name))?.ok_or_else(|| no_file(name))
    }

    /// Returns a file's bytes, checked against its hash.
    ///
    /// # Errors
    /// [`Kind::NotFound`] if there is none of the name, or its content is not here; [`Kind::Corrupt`] if what is
    /// stored has another hash.
    pub fn get(&self, name: &UnversionedName) -> Result<Vec<u8>> {
        let found = self.find(name)?;
        let stored = self.repository.store().ask(|db| {
            let sql = "SELECT encoding, content FROM unversioned WHERE name=?1 AND hash=?2";
            db.prepare_cached(sql)?
                .query_row([name.as_str(), found.hash.as_str()], |row| {
                    let bytes = match row.get_ref(1)? {
                        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Some(bytes.to_vec()),
                        // Plain Fossil may keep nothing for an empty file.
                        _ => (found.size == 0).then(Vec::new),
                    };
                    Ok((row.get::<_, i64>(0)?, bytes))
                })
                .optional()
        })?;
        let (encoding, stored) = stored.ok_or_else(|| {
            Error::new(Kind::Changed, format!("the unversioned file `{name}` was replaced while it was read"))
                .with_hint("Read it again.")
        })?;
        let Some(stored) = stored else {
            return Err(Error::new(
                Kind::NotFound,
                format!("the content of the unversioned file `{name}` is not here"),
            )
            .with_hint("Sync the unversioned files with a server that holds it."));
        };
        let max = usize::try_from(found.size).unwrap_or(usize::MAX);
        let bytes = if encoding == 1 { packed::unpack(&stored, max)? } else { stored };
        if found.hash.names(&bytes) {
            return Ok(bytes);
        }
        Err(Error::new(
            Kind::Corrupt,
            format!("the unversioned file `{name}` is damaged: its bytes have another hash"),
        )
        .with_hint("Put it again, or sync with a server that has it whole."))
    }

    /// Refuses a size that [`put`](Self::put) would refuse, before the bytes are there.
    ///
    /// # Errors
    /// [`Kind::TooLarge`] over [`UNVERSIONED_MAX`].
    pub fn check_size(name: &UnversionedName, size: u64) -> Result<()> {
        if size <= UNVERSIONED_MAX {
            return Ok(());
        }
        let what = format!("the unversioned file `{name}` has {size} bytes, more than {UNVERSIONED_MAX}");
        Err(Error::new(Kind::TooLarge, what).with_hint("Split the file, or keep it elsewhere."))
    }

    /// Puts a file, in place of any that has the name. The newest date counts everywhere. So if the content held is
    /// dated in the future, by up to a day, the new one is dated right after it.
    ///
    /// # Errors
    /// [`Kind::TooLarge`] over [`UNVERSIONED_MAX`]; [`Kind::Invalid`] if the content held is dated later than that,
    /// because it would win over the new one; [`Kind::NotFound`] for an unknown user; [`Kind::Busy`],
    /// [`Kind::DiskFull`].
    pub fn put(&self, name: &UnversionedName, bytes: &[u8], user: &User) -> Result<UnversionedFile> {
        Self::check_size(name, bytes.len() as u64)?;
        let hash = Hash::name_for(bytes, self.repository.store().names_by_sha1()?);
        if let Some(old) = self.repository.store().ask(|db| held(db, name))?
            && old.hash == hash
            && old.here
        {
            return Ok(old);
        }
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let stored = Stored::of(bytes.to_vec())?;
        let name = name.clone();
        write_as(&self.repository, user, move |author: &mut Author<'_, '_>| {
            author.db().execute_batch(TABLE)?;
            let time = next_time(author.db(), &name)?;
            let rcvid = author.receipt()?;
            let row = (name.as_str(), rcvid, time, hash.as_str(), size, stored.is_packed, stored.bytes);
            author.db().execute(WRITE, row)?;
            forget_hash(author)?;
            held(author.db(), &name)?.ok_or_else(|| no_file(&name))
        })
    }

    /// Keeps files as another repository has them, with its dates. Those without content are gone there. Refuses all of
    /// them if one is not what its hash says.
    pub(crate) fn receive(&self, files: Vec<(UnversionedEntry, Option<Vec<u8>>)>, user: &User) -> Result<()> {
        let mut rows = Vec::with_capacity(files.len());
        for (file, content) in files {
            let name = UnversionedName::parse(&file.name)?;
            let Some((hash, content)) = file.hash.zip(content) else {
                rows.push((name, file.mtime, None, 0, Stored::default()));
                continue;
            };
            Self::check_size(&name, content.len() as u64)?;
            if !hash.names(&content) {
                let what =
                    format!("the unversioned file `{name}` does not have the hash that is given for it");
                return Err(Error::new(Kind::Corrupt, what).with_hint("Get it anew."));
            }
            let size = i64::try_from(content.len()).unwrap_or(i64::MAX);
            rows.push((name, file.mtime, Some(hash.to_string()), size, Stored::of(content)?));
        }
        write_as(&self.repository, user, move |author: &mut Author<'_, '_>| {
            author.db().execute_batch(TABLE)?;
            let rcvid = author.receipt()?;
            let mut write = author.db().prepare(WRITE)?;
            for (name, mtime, hash, size, stored) in &rows {
                let is_packed = stored.is_packed;
                write.execute((name.as_str(), rcvid, mtime, hash, size, is_packed, &stored.bytes))?;
            }
            drop(write);
            forget_hash(author)
        })
    }

    /// Removes a file. A mark that it is gone takes its place, and its content is dropped.
    ///
    /// # Errors
    /// Those of [`put`](Self::put); [`Kind::NotFound`] if there is none of the name.
    pub fn remove(&self, name: &UnversionedName, user: &User) -> Result<()> {
        self.find(name)?;
        let name = name.clone();
        write_as(&self.repository, user, move |author: &mut Author<'_, '_>| {
            let time = next_time(author.db(), &name)?;
            let sql = "UPDATE unversioned SET hash=NULL, content=NULL, mtime=?2, sz=0 WHERE name=?1";
            author.db().execute(sql, (name.as_str(), time))?;
            forget_hash(author)
        })
    }
}

const WRITE: &str = "REPLACE INTO unversioned(name, rcvid, mtime, hash, sz, encoding, content)
    VALUES(?1,?2,?3,?4,?5,?6,?7)";

/// A file's bytes as they are stored.
#[derive(Default)]
struct Stored {
    /// Nothing for a file that is gone.
    bytes: Option<Vec<u8>>,
    is_packed: bool,
}

impl Stored {
    fn of(bytes: Vec<u8>) -> Result<Self> {
        let packed = packed::pack(&bytes)?;
        // Fossil's own measure of whether compression pays.
        let is_packed = packed.len() as u64 * 5 <= bytes.len() as u64 * 4;
        Ok(Self { bytes: Some(if is_packed { packed } else { bytes }), is_packed })
    }
}

/// Returns the time, in seconds since 1970, that makes what is written now win over what is held of the name.
fn next_time(db: &Connection, name: &UnversionedName) -> Result<i64> {
    let sql = "SELECT mtime, datetime(mtime, 'unixepoch') FROM (SELECT 1) LEFT JOIN unversioned ON name=?1";
    let (held, date) =
        db.query_row(sql, [name.as_str()], |row| Ok((row.get::<_, Option<i64>>(0)?, text(row, 1)?)))?;
    let now = time::since_epoch().as_secs().cast_signed();
    match held {
        Some(held) if held > now + LEAD_MAX_S => Err(Error::new(
            Kind::Invalid,
            format!("what is held of the unversioned file `{name}` is dated {date} UTC, and would win over a new one"),
        )
        .with_hint("Have it removed where the clock was wrong, or use another name.")),
        Some(held) => Ok(now.max(held + 1)),
        None => Ok(now),
    }
}

/// Drops Fossil's hash over all files. Fossil makes it anew at the next sync.
fn forget_hash(author: &Author<'_, '_>) -> Result<()> {
    author.unprotected(|db| Ok(db.execute("DELETE FROM config WHERE name='uv-hash'", []).map(drop)?))
}

/// The columns that [`file`] reads.
const FILE: &str =
    "SELECT name, hash, sz, strftime('%Y-%m-%dT%H:%M:%SZ', mtime, 'unixepoch'), content IS NOT NULL OR sz=0
   FROM unversioned";

fn file(row: &Row<'_>) -> rusqlite::Result<UnversionedFile> {
    Ok(UnversionedFile {
        name: text(row, 0)?,
        hash: hash(row, 1)?,
        size: row.get::<_, i64>(2)?.unsigned_abs(),
        time: text(row, 3)?,
        here: row.get(4)?,
    })
}

fn held(db: &Connection, name: &UnversionedName) -> rusqlite::Result<Option<UnversionedFile>> {
    if !has_table(db, "unversioned")? {
        return Ok(None);
    }
    let sql = format!("{FILE} WHERE name=?1 AND hash IS NOT NULL");
    db.prepare_cached(&sql)?.query_row([name.as_str()], file).optional()
}

fn no_file(name: &UnversionedName) -> Error {
    Error::new(Kind::NotFound, format!("no unversioned file `{name}`"))
        .with_hint("List the unversioned files.")
}
