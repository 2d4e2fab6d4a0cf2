//! Files that hold the tokens of a server. Only their owner may read them.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::{Error, Kind, Result};

/// The name of the file in which a server keeps the token that it made.
const KEPT: &str = "http-token";

/// The length of a token that is made, in bytes before they are written as hex.
const TOKEN_BYTES: usize = 32;

/// Reads a file of tokens.
///
/// # Errors
/// `Denied`, if others may read or write the file. `NotFound`, `Io`.
pub fn read(path: &Path) -> Result<String> {
    let cannot = |e| Error::io(format!("cannot read the token file `{}`", path.display()), e);
    let mut file = File::open(path).map_err(cannot)?;
    // The open file is asked, so that no other one is read than was judged.
    let mode = file.metadata().map_err(cannot)?.permissions().mode();
    if mode & 0o077 != 0 {
        let what = format!("others can use the token file `{}` (mode {:03o})", path.display(), mode & 0o777);
        let hint =
            format!("Run `chmod 600 {}`; if others may have read it, make new tokens too.", path.display());
        return Err(Error::new(Kind::Denied, what).with_hint(hint));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(cannot)?;
    Ok(text)
}

/// Returns the token that is kept in `folder`. Makes it if there is none, and the folder too.
///
/// # Errors
/// As [`read`]; `DiskFull`.
pub fn kept(folder: &Path) -> Result<String> {
    let path = folder.join(KEPT);
    if path.symlink_metadata().is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
        make(folder).map_err(|e| Error::io(format!("cannot keep a token in `{}`", path.display()), e))?;
    }
    read(&path).map(|token| token.trim().to_owned())
}

/// Something that nobody can guess, in hex.
///
/// # Errors
/// The operating system's.
pub fn random_hex() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.map(|byte| format!("{byte:02x}")).concat())
}

/// Writes a new token whole or not at all. One that another server has made meanwhile stays.
fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let hex = random_hex()?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o600))?;
    writeln!(file, "{hex}")?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(folder.join(KEPT)) {
        Err(e) if e.error.kind() != io::ErrorKind::AlreadyExists => Err(e.error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;

    #[test]
    fn servers_that_start_at_once_keep_one_token_which_only_its_owner_reads() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state/ocx");
        let tokens: BTreeSet<_> = thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| kept(&state).unwrap())).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let token = tokens.first().unwrap();
        assert!(tokens.len() == 1 && token.len() == 64 && token.bytes().all(|b| b.is_ascii_hexdigit()));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(&state.join(KEPT))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1, "no temporary file is left");
        assert_ne!(kept(&folder.path().join("other")).unwrap(), *token);
    }

    #[test]
    fn a_file_that_others_can_use_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(KEPT);
        fs::write(&file, "hush\n").unwrap();
        for mode in [0o644, 0o640, 0o604, 0o620, 0o601] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            for e in [read(&file).unwrap_err(), kept(folder.path()).unwrap_err()] {
                assert_eq!(e.kind(), Kind::Denied, "{mode:o}");
                assert!(e.hint().unwrap().contains("chmod 600") && !e.to_string().contains("hush"));
            }
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&file).unwrap(), "hush\n");
        assert_eq!(read(&folder.path().join("none")).unwrap_err().kind(), Kind::NotFound);
    }
}
