//! The room that test trees take on the disk. Where it gets too much, the tree that was not used for longest is emptied.
//!
//! Emptying loses no evidence and no log, only what the next run has to build again. A tree whose tests run is never
//! touched. What is kept of a checkout that is gone goes whole.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::state::{CheckoutState, StateFolder, WRITTEN};
use super::test_tree::TestTree;
use crate::checkout::Checkout;
use crate::error::Result;

const GIB: u64 = 1 << 30;

/// How much room test trees may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// All trees together, in bytes.
    pub total: u64,
    /// What stays free on their disk, in bytes.
    pub free: u64,
}

impl Default for Bounds {
    /// 20 GiB for all trees, and 2 GiB free.
    fn default() -> Self {
        Self { total: 20 * GIB, free: 2 * GIB }
    }
}

/// What tests have left in one checkout's folders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Room {
    /// The bytes on the disk.
    pub bytes: u64,
    /// The latest time that a file there has, in nanoseconds since 1970.
    pub newest_ns: i64,
}

impl Room {
    /// Looks at all that tests of one checkout can have written. What cannot be looked at counts as nothing.
    pub fn of(state: &CheckoutState) -> Self {
        let mut room = Self::default();
        let mut folders: Vec<PathBuf> = WRITTEN.iter().map(|name| state.path(name)).collect();
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Ok(meta) = item.metadata() else { continue };
                room.bytes += meta.blocks() * 512;
                let time = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
                room.newest_ns = room.newest_ns.max(time);
                if meta.is_dir() {
                    folders.push(item.path());
                }
            }
        }
        room
    }
}

/// What test trees take, as it was seen after the last run of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreesTaken {
    /// The bytes of the tree of one checkout, with its home and layers.
    pub own: u64,
    /// The bytes of all.
    pub all: u64,
}

/// One checkout's part of the state folder.
struct Part {
    folder: PathBuf,
    bytes: u64,
    used_ns: i64,
}

impl StateFolder {
    /// What test trees take: that of the checkout whose state lies in `own`, and all of them.
    pub(super) fn taken(&self, own: Option<&CheckoutState>) -> TreesTaken {
        let folders = fs::read_dir(self.path()).into_iter().flatten().flatten().map(|item| item.path());
        let parts: Vec<_> = folders.filter(|folder| CheckoutState::root(folder).is_some()).collect();
        let bytes = |folder: &Path| part(folder).map_or(0, |part| part.bytes);
        let is_own = |folder: &&PathBuf| own.is_some_and(|own| own.path("") == folder.join(""));
        TreesTaken {
            own: parts.iter().find(is_own).map_or(0, |folder| bytes(folder)),
            all: parts.iter().map(|folder| bytes(folder)).sum(),
        }
    }

    /// Empties test trees until all fit the bounds. Returns the checkouts whose trees were emptied or removed.
    ///
    /// # Errors
    /// Those of reading the folder. What cannot be removed stays, and is named in the log.
    pub fn make_room(&self, bounds: Bounds) -> Result<Vec<PathBuf>> {
        let mut gone = Vec::new();
        let mut parts = Vec::new();
        for item in fs::read_dir(self.path()).into_iter().flatten().flatten() {
            let folder = item.path();
            let Some(root) = CheckoutState::root(&folder) else { continue };
            if Checkout::is_root(&root) {
                parts.extend(part(&folder));
            } else if remove(&folder)? {
                gone.push(root);
            }
        }
        parts.sort_by_key(|part| part.used_ns);
        let mut total: u64 = parts.iter().map(|part| part.bytes).sum();
        for part in parts {
            if total <= bounds.total && free(self.path()) >= bounds.free {
                break;
            }
            if part.bytes > 0 && empty(&part.folder)? {
                total -= part.bytes;
                gone.extend(CheckoutState::root(&part.folder));
            }
        }
        Ok(gone)
    }
}

fn part(folder: &Path) -> Option<Part> {
    let state = CheckoutState::open(folder.to_owned()).ok()?;
    let (bytes, used_ns) = TestTree::noted_room(&state).ok()?;
    Some(Part { folder: folder.to_owned(), bytes, used_ns })
}

/// Empties the trees of one checkout, unless its tests run.
fn empty(folder: &Path) -> Result<bool> {
    let state = CheckoutState::open(folder.to_owned())?;
    let Some(_lock) = state.lock()? else { return Ok(false) };
    TestTree::open(&state)?.empty()?;
    Ok(true)
}

/// Removes all that is kept of one checkout, unless its tests run.
fn remove(folder: &Path) -> Result<bool> {
    let state = CheckoutState::open(folder.to_owned())?;
    let Some(_lock) = state.lock()? else { return Ok(false) };
    if CheckoutState::root(folder).is_none_or(|root| Checkout::is_root(&root)) {
        return Ok(false);
    }
    for name in WRITTEN {
        state.empty(name)?;
    }
    if let Err(e) = fs::remove_dir_all(folder) {
        tracing::warn!("cannot remove `{}`: {e}", folder.display());
    }
    Ok(true)
}

/// The bytes that are free on the disk of `folder`.
fn free(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}
