//! Reading and writing the build's files: a failure names the stage and the file.

use super::failure::{Failure, Result};
use std::fs;
use std::path::Path;

/// Reads a text file of ours or of Fossil's.
pub fn read(stage: &'static str, path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|e| {
        let what = format!("cannot read {}: {e}", path.display());
        Failure::new(stage, what, "Restore the file: it belongs to the sources.")
    })
}

/// Writes `content` unless the file holds it already, so that what depends on it stays fresh.
pub fn write_if_changed(stage: &'static str, path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).and_then(|()| fs::write(path, content)).map_err(|e| {
        let what = format!("cannot write {}: {e}", path.display());
        Failure::new(
            stage,
            what,
            "Make room on the disk, or set CARGO_TARGET_DIR to a folder that can be written.",
        )
    })
}
