//! Room on the disk: a full one is met before anything is done.

use std::fs::File;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::change::Change;
use crate::checkout::open::Checkout;
use crate::error::{Error, Kind, Result};

/// Bytes that are kept free on the disk meanwhile, beside those of the tables and of the largest file.
const ROOM: u64 = 256 << 10;

const FREE: &str = "Free some space, and try again; nothing was done.";

impl Checkout {
    /// Takes the room on the disk that putting everything back may need, so that a full disk is met before anything is
    /// done.
    pub(super) fn room(&self, changes: &[Change]) -> Result<File> {
        let tables = self.state(|db| {
            let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
            Ok(db.query_row(sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
        })?;
        let sizes = changes.iter().filter_map(|change| self.tree.stat(&change.path).ok());
        let file = sizes.map(|entry| entry.stamp.size).max().unwrap_or(0);
        let room = tempfile::tempfile_in(&self.root)
            .map_err(|e| Error::io(format!("cannot write in `{}`", self.root.display()), e))?;
        match fallocate(&room, FallocateFlags::empty(), 0, tables + file + ROOM) {
            Err(Errno::NOSPC | Errno::DQUOT) => {
                let what =
                    format!("`{}` has no room for what it takes to put files back", self.root.display());
                Err(Error::new(Kind::DiskFull, what).with_hint(FREE))
            }
            // A file system that cannot do this keeps no room.
            _ => Ok(room),
        }
    }
}

/// The refusal where the database has no room for what is to be written down.
pub(super) fn no_room(act: &str, e: Error) -> Error {
    Error::new(Kind::DiskFull, format!("there is no room for the {act}: {e}")).caused_by(e).with_hint(FREE)
}
