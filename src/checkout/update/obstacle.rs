//! What on the disk would lead Fossil's code astray: it writes and removes by path, even through a link.

use std::collections::BTreeSet;
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;

use crate::checkout::open::Checkout;
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TreePath};
use crate::repo::store::{FileEntry, Files};
use crate::tree::FileKind;

/// Refuses to bring in `versions` if a file that differs in them lies behind a link or another obstacle.
pub(super) fn refuse_obstacles(checkout: &Checkout, here: &Files, versions: &[Hash]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for version in versions {
        let there = checkout.repository().store().files(version)?;
        for path in differing(here, &there) {
            for (at, _) in path.as_str().match_indices('/') {
                let folder = &path.as_str()[..at];
                if seen.insert(folder.to_owned()) {
                    refuse_as_folder(checkout, here, folder)?;
                }
            }
            refuse_as_file(checkout, path, here.get(path))?;
        }
    }
    Ok(())
}

fn differing<'a>(here: &'a Files, there: &'a Files) -> impl Iterator<Item = &'a TreePath> {
    let new = there.iter().filter(|(path, entry)| here.get(*path) != Some(*entry)).map(|(path, _)| path);
    new.chain(here.keys().filter(|path| !there.contains_key(*path)))
}

fn refuse_as_folder(checkout: &Checkout, here: &Files, folder: &str) -> Result<()> {
    match on_disk(checkout, folder) {
        Some(kind) if kind.is_symlink() => Err(is_link(folder)),
        // Fossil itself moves a file of the checkout away.
        Some(kind) if !kind.is_dir() && !here.contains_key(folder) => Err(in_the_way(folder, "no folder")),
        _ => Ok(()),
    }
}

fn refuse_as_file(checkout: &Checkout, path: &TreePath, entry: Option<&FileEntry>) -> Result<()> {
    let Some(kind) = on_disk(checkout, path.as_str()) else { return Ok(()) };
    let is_ours = entry.is_some_and(|entry| entry.kind == FileKind::Symlink) && checkout.allows_symlinks()?;
    if kind.is_symlink() && !is_ours {
        return Err(is_link(path.as_str()));
    }
    if kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device() {
        return Err(in_the_way(path.as_str(), "no file"));
    }
    Ok(())
}

fn on_disk(checkout: &Checkout, path: &str) -> Option<FileType> {
    checkout.root().join(path).symlink_metadata().ok().map(|meta| meta.file_type())
}

fn is_link(path: &str) -> Error {
    let shown = crate::name::shown(path.as_bytes());
    Error::new(
        Kind::Denied,
        format!("`{shown}` is a symbolic link now, through which other files would be changed"),
    )
    .with_hint("Put back what was there, or move the link away.")
}

fn in_the_way(path: &str, is: &str) -> Error {
    let shown = crate::name::shown(path.as_bytes());
    Error::new(Kind::Exists, format!("`{shown}` is {is}, and lies where one will come"))
        .with_hint("Move it away first.")
}
