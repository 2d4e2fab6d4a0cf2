//! Unpacks a source archive, `.tar.gz` or `.tar.xz`, without its top folder.
//!
//! The archive is not trusted yet: only plain files are taken, none lands outside the folder, and
//! an archive that inflates without end is refused.

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read, Write};
use std::path::{Component, Path, PathBuf};

/// Fossil 2.28 takes 55 MB; this leaves room for later releases.
const LIMIT_BYTES: u64 = 400 << 20;

/// Unpacks `archive` into `folder`.
pub fn unpack(archive: &Path, folder: &Path) -> io::Result<()> {
    let mut magic = [0; 6];
    File::open(archive)?.read_exact(&mut magic)?;
    let file = File::open(archive)?;
    match magic {
        [0x1f, 0x8b, ..] => untar(flate2::read::MultiGzDecoder::new(file).take(LIMIT_BYTES), folder),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            let mut tar = Bounded(Vec::new());
            lzma_rs::xz_decompress(&mut BufReader::new(file), &mut tar).map_err(|e| match e {
                lzma_rs::error::Error::IoError(e) => e,
                e => io::Error::new(io::ErrorKind::InvalidData, format!("damaged xz data: {e:?}")),
            })?;
            untar(Cursor::new(tar.0), folder)
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "neither gzip nor xz")),
    }
}

fn untar(tar: impl Read, folder: &Path) -> io::Result<()> {
    for entry in tar::Archive::new(tar).entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let Some(name) = below_top(&entry.path()?) else { continue };
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        io::copy(&mut entry, &mut File::create(path)?)?;
    }
    Ok(())
}

/// Turns `fossil-src-2.28/src/add.c` into `src/add.c`. Returns nothing for a name that climbs out.
fn below_top(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components().filter(|part| *part != Component::CurDir);
    parts.next()?;
    let mut name = PathBuf::new();
    for part in parts {
        let Component::Normal(part) = part else { return None };
        name.push(part);
    }
    (!name.as_os_str().is_empty()).then_some(name)
}

struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.0.len() + bytes.len()) as u64 > LIMIT_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "inflates beyond any Fossil release"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
