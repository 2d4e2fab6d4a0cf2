//! The wire form of a bundle: its rows with their data inflated and deltas kept, in one zstd frame.
//!
//! `OCXBNDL1`, then a zstd frame of: the number of `bconfig` rows, each a name and a value; then rows, each a byte
//! that tells the basis (0 none, 1 a row, 2 an artifact), the row's id, the hash, the size, the basis, the note and the
//! data; then the byte 255. Numbers are LEB128; texts, hashes and data have their length before them.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use super::create::{finish, new_bundle, new_file};
use super::file::{Bundle, in_bundle};
use crate::engine::Stop;
use crate::error::{Error, Kind, Result};
use crate::format::FILE_MAX;
use crate::format::packed::{pack, unpack as inflate};
use crate::name::Hash;
use crate::transfer::{Basis, data_max};

pub(super) const MAGIC: [u8; 8] = *b"OCXBNDL1";
/// How far back repetitions are found, as a power of two of bytes. A reader must keep so much in memory.
const WINDOW: u32 = 25;
/// The standard level: more costs much and gains little on deltas.
const LEVEL: i32 = 3;
const CONFIG_MAX: u64 = 100;
const TEXT_MAX: u64 = 64 << 10;
const END: u8 = 255;

/// The most bytes that a bundle may expand to on reading, deltas kept, if `received` bytes of it came. So much room it
/// may take in memory and on the disk. Real histories expand to some 3 times their bytes.
fn unpacked_max(received: u64) -> u64 {
    received.saturating_mul(200).saturating_add(16 << 20)
}

pub(super) fn is_wire(start: &[u8]) -> bool {
    start.starts_with(&MAGIC)
}

impl Bundle {
    /// Writes the bundle in the wire form, in which repetitions between artifacts are stored once: often half
    /// the size of the file or less. [`open`](Self::open) and [`from_bytes`](Self::from_bytes) read it.
    ///
    /// # Errors
    /// An I/O kind for `out`; [`Kind::Corrupt`] for data that does not inflate to what it says.
    pub fn write_wire(&self, out: impl Write) -> Result<()> {
        let cannot = |e| Error::io("cannot write the bundle", e);
        let (file, rows) = (self.file(), self.staged().rows());
        let mut out = out;
        out.write_all(&MAGIC).map_err(cannot)?;
        let mut frame = zstd::Encoder::new(out, LEVEL).map_err(cannot)?;
        frame.window_log(WINDOW).and_then(|()| frame.long_distance_matching(true)).map_err(cannot)?;
        frame.include_checksum(true).map_err(cannot)?;
        let db = file.db.lock();
        let mut out = Out(frame);
        self.write_config(&db, &mut out)?;
        let mut query = db.prepare("SELECT notes, data FROM bblob WHERE blobid=?1")?;
        let stop = Stop::of_this_thread();
        for row in rows {
            stop.check("the bundle was not written")?;
            let (kind, basis) = match &row.basis {
                Basis::None => (0, None),
                Basis::Row(at) => (1, Some(rows[*at].id.cast_unsigned().to_le_bytes().to_vec())),
                Basis::External(hash) => (2, Some(hash.as_str().as_bytes().to_vec())),
            };
            let mut found = query.query([row.id])?;
            let stored = found.next()?.ok_or_else(|| Error::new(Kind::Changed, "the bundle has changed"))?;
            let note = stored.get_ref(0)?.as_str().unwrap_or_default().as_bytes().to_vec();
            let data = stored.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            let data = inflate(data, data_max(row.size)).map_err(|e| in_bundle(&file.name, e))?;
            let written = out
                .byte(kind)
                .and_then(|()| out.number(row.id.cast_unsigned()))
                .and_then(|()| out.bytes(row.hash.as_str().as_bytes()))
                .and_then(|()| out.number(row.size as u64))
                .and_then(|()| basis.map_or(Ok(()), |basis| out.bytes(&basis)))
                .and_then(|()| out.bytes(&note[..note.len().min(1024)]))
                .and_then(|()| out.bytes(&data));
            written.map_err(cannot)?;
        }
        out.byte(END).and_then(|()| out.0.finish()?.flush()).map_err(cannot)
    }

    /// Writes the wire form into a new file. Returns its size in bytes.
    ///
    /// # Errors
    /// [`Kind::Exists`] when there is something at `path`, and as [`write_wire`](Self::write_wire).
    pub fn save_wire(&self, path: &Path) -> Result<u64> {
        let file = new_file(path)?;
        self.write_wire(io::BufWriter::new(file.as_file()))?;
        finish(file, path)
    }

    fn write_config(&self, db: &rusqlite::Connection, out: &mut Out<impl Write>) -> Result<()> {
        let cannot = |e| Error::io("cannot write the bundle", e);
        let sql = "SELECT bcname, bcvalue FROM bconfig WHERE typeof(bcname)='text' AND typeof(bcvalue)='text'
                   AND length(bcname)+length(bcvalue)<10000 LIMIT 100";
        let mut query = db.prepare(sql)?;
        let pairs = query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        let pairs: Vec<_> =
            pairs.collect::<Result<_, _>>().map_err(|e| in_bundle(&self.file().name, e.into()))?;
        out.number(pairs.len() as u64).map_err(cannot)?;
        for (name, value) in pairs {
            out.bytes(name.as_bytes()).and_then(|()| out.bytes(value.as_bytes())).map_err(cannot)?;
        }
        Ok(())
    }
}

/// Reads what follows the magic number into a bundle in SQLite's form. `received` bytes of it came.
pub(super) fn unpack(from: impl Read, received: u64) -> Result<NamedTempFile> {
    let file = NamedTempFile::new().map_err(|e| Error::io("no room for a bundle", e))?;
    let db = new_bundle(file.path())?;
    db.execute_batch("BEGIN")?;
    let mut frame = zstd::Decoder::new(from).map_err(damaged)?;
    frame.window_log_max(WINDOW).map_err(damaged)?;
    let max = unpacked_max(received);
    let mut input = In { from: BufReader::new(frame), left: max, max, received };
    let stop = Stop::of_this_thread();
    let configs = input.number()?;
    if configs > CONFIG_MAX {
        return Err(malformed("too many settings"));
    }
    for _ in 0..configs {
        let (name, value) = (input.text()?, input.text()?);
        db.execute("INSERT INTO bconfig VALUES(?1,?2)", (name, value))?;
    }
    {
        let sql = "INSERT INTO bblob(blobid,uuid,sz,delta,notes,data) VALUES(?1,?2,?3,?4,?5,?6)";
        let mut write = db.prepare(sql)?;
        while let Some(row) = row(&mut input)? {
            stop.check("the bundle was not read")?;
            write.execute(rusqlite::params_from_iter(row))?;
        }
    }
    input.end()?;
    db.execute_batch("COMMIT")?;
    db.close().map_err(|(_, e)| e)?;
    Ok(file)
}

/// The columns of the next row.
fn row(input: &mut In<impl Read>) -> Result<Option<[rusqlite::types::Value; 6]>> {
    use rusqlite::types::Value;
    let kind = input.byte()?;
    if kind == END {
        return Ok(None);
    }
    let id = input.number()?.cast_signed();
    let hash = Hash::parse(&input.text()?)?;
    let size = input.number()?;
    if size > FILE_MAX {
        let what = format!("artifact `{}` declares {size} bytes, more than {FILE_MAX}", hash.short());
        return Err(Error::new(Kind::TooLarge, what));
    }
    let basis = match kind {
        0 => Value::Null,
        1 => {
            let bytes: [u8; 8] = input.bytes(8)?.try_into().map_err(|_| malformed("a basis is no number"))?;
            Value::Integer(i64::from_le_bytes(bytes))
        }
        2 => Value::Text(Hash::parse(&input.text()?)?.to_string()),
        _ => return Err(malformed("an unknown kind of basis")),
    };
    let note = input.text()?;
    let max = data_max(usize::try_from(size).unwrap_or(usize::MAX / 4));
    let data = pack(&input.bytes(max as u64)?)?;
    Ok(Some([
        Value::Integer(id),
        Value::Text(hash.to_string()),
        Value::Integer(size.cast_signed()),
        basis,
        Value::Text(note),
        Value::Blob(data),
    ]))
}

fn damaged(e: io::Error) -> Error {
    Error::new(Kind::Corrupt, "its compressed form is damaged").caused_by(e)
}

fn malformed(why: &str) -> Error {
    Error::new(Kind::Corrupt, format!("its compressed form is malformed: {why}"))
}

struct Out<W: Write>(W);

impl<W: Write> Out<W> {
    fn byte(&mut self, byte: u8) -> io::Result<()> {
        self.0.write_all(&[byte])
    }

    fn number(&mut self, mut value: u64) -> io::Result<()> {
        while value > 127 {
            self.byte(value.to_le_bytes()[0] | 128)?;
            value >>= 7;
        }
        self.byte(value.to_le_bytes()[0])
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.number(bytes.len() as u64)?;
        self.0.write_all(bytes)
    }
}

struct In<R> {
    from: R,
    /// How many of the `max` bytes are left, for the bytes that were received.
    left: u64,
    max: u64,
    received: u64,
}

impl<R: Read> In<R> {
    fn byte(&mut self) -> Result<u8> {
        let mut byte = [0];
        self.take(1)?;
        self.from.read_exact(&mut byte).map_err(damaged)?;
        Ok(byte[0])
    }

    /// Refuses what follows the end. The decoder compares the frame's checksum on the way.
    fn end(&mut self) -> Result<()> {
        match self.from.read(&mut [0]).map_err(damaged)? {
            0 => Ok(()),
            _ => Err(malformed("more follows its end")),
        }
    }

    fn take(&mut self, count: u64) -> Result<()> {
        self.left = self.left.checked_sub(count).ok_or_else(|| {
            let what = format!("its {} bytes expand to more than {}", self.received, self.max);
            Error::new(Kind::TooLarge, what).with_hint(
                "Send it in the form of an SQLite file, or in several parts, with fewer check-ins each.",
            )
        })?;
        Ok(())
    }

    fn number(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 127);
            if shift == 63 && part > 1 {
                break;
            }
            value |= part << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err(malformed("a number is too long"))
    }

    /// Reads at most `max` bytes. Memory is taken only as they come.
    fn bytes(&mut self, max: u64) -> Result<Vec<u8>> {
        let size = self.number()?;
        if size > max {
            return Err(malformed("a part is too long"));
        }
        self.take(size)?;
        let mut bytes = Vec::new();
        self.from.by_ref().take(size).read_to_end(&mut bytes).map_err(damaged)?;
        if bytes.len() as u64 == size { Ok(bytes) } else { Err(malformed("it ends too early")) }
    }

    fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes(TEXT_MAX)?).map_err(|_| malformed("a text is not UTF-8"))
    }
}
