//! What a disk holds of files that were written and not yet synced: a model of power loss.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Writes reach a disk in pieces of this many bytes, each whole or not at all.
const SECTOR: usize = 512;

/// What was done to a file and need not have reached the disk.
#[derive(Debug)]
enum Change {
    Create,
    Write { at: usize, bytes: Vec<u8> },
    Truncate { size: usize },
    Remove,
}

#[derive(Debug, Default)]
struct File {
    /// What is sure to be there after a power loss; nothing when the file need not be.
    durable: Option<Vec<u8>>,
    pending: Vec<Change>,
}

impl File {
    fn with(&self, mut reaches: impl FnMut() -> bool) -> Option<Vec<u8>> {
        let mut content = self.durable.clone();
        for change in &self.pending {
            match change {
                Change::Create if reaches() => drop(content.get_or_insert_default()),
                Change::Remove if reaches() => content = None,
                Change::Write { at, bytes } => {
                    let Some(content) = &mut content else { continue };
                    let mut at = *at;
                    for sector in bytes.chunks(SECTOR) {
                        if reaches() {
                            content.resize(content.len().max(at + sector.len()), 0);
                            content[at..at + sector.len()].copy_from_slice(sector);
                        }
                        at += sector.len();
                    }
                }
                Change::Truncate { size } if reaches() => {
                    if let Some(content) = &mut content {
                        content.resize(*size, 0);
                    }
                }
                _ => {}
            }
        }
        content
    }

    /// Its coming and going has reached the disk, what was written to it since need not have.
    fn settle_name(&mut self) {
        if let Some(n) = self.pending.iter().rposition(|change| matches!(change, Change::Remove)) {
            self.pending.drain(..=n);
            self.durable = None;
        }
        if matches!(self.pending.first(), Some(Change::Create)) {
            self.pending.remove(0);
            self.durable.get_or_insert_default();
        }
    }

    fn settle(&mut self) {
        self.durable = self.with(|| true);
        self.pending.clear();
    }
}

/// Which unsynced changes reach the disk when the power goes.
#[derive(Debug, Clone, Copy)]
pub enum Loss {
    All,
    /// Each sector and each change of size by a coin of its own.
    Some(u64),
    None,
}

/// The files of a folder as a power loss leaves them, by their path within it.
pub type Image = Vec<(PathBuf, Vec<u8>)>;

/// The database files of one folder.
#[derive(Debug, Default)]
pub struct Disk(BTreeMap<PathBuf, File>);

impl Disk {
    pub fn create(&mut self, path: &Path) {
        self.file(path).pending.push(Change::Create);
    }

    /// Takes in a file that was there before.
    pub fn found(&mut self, path: &Path, content: impl FnOnce() -> Vec<u8>) {
        let file = || File { durable: Some(content()), pending: Vec::new() };
        self.0.entry(path.to_owned()).or_insert_with(file);
    }

    pub fn write(&mut self, path: &Path, at: usize, bytes: &[u8]) {
        self.file(path).pending.push(Change::Write { at, bytes: bytes.to_owned() });
    }

    pub fn truncate(&mut self, path: &Path, size: usize) {
        self.file(path).pending.push(Change::Truncate { size });
    }

    /// A file system's log keeps its order: with one file, all earlier changes of its folder are there.
    pub fn sync(&mut self, path: &Path) {
        self.file(path).settle();
        self.0
            .iter_mut()
            .filter(|(other, _)| other.parent() == path.parent())
            .for_each(|(_, file)| file.settle_name());
    }

    pub fn remove(&mut self, path: &Path, durably: bool) {
        let file = self.file(path);
        file.pending.push(Change::Remove);
        if durably {
            file.settle();
        }
    }

    /// The disk after a power loss now.
    pub fn after(&self, loss: Loss) -> Image {
        let mut dice = if let Loss::Some(seed) = loss { seed | 1 } else { 1 };
        let mut reaches = || match loss {
            Loss::All => false,
            Loss::None => true,
            Loss::Some(_) => {
                dice ^= dice << 13;
                dice ^= dice >> 7;
                dice ^= dice << 17;
                dice >> 63 == 1
            }
        };
        let left = |(path, file): (&PathBuf, &File)| Some((path.clone(), file.with(&mut reaches)?));
        self.0.iter().filter_map(left).collect()
    }

    fn file(&mut self, path: &Path) -> &mut File {
        self.0.entry(path.to_owned()).or_default()
    }
}
