//! The manifests and files of the check-ins that were read last.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::format::artifact::{FileKind, Manifest};
use crate::name::{Hash, TreePath};

/// For how many check-ins the manifest and the files are kept.
const CACHED: usize = 16;

/// The files of a check-in, by path.
pub type Files = BTreeMap<TreePath, FileEntry>;

/// A file of a check-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct FileEntry {
    /// The content's hash.
    pub hash: Hash,
    /// What the file is.
    pub kind: FileKind,
}

/// What is kept of one check-in.
#[derive(Default)]
pub(super) struct Cached {
    pub manifest: Option<Arc<Manifest>>,
    pub files: Option<Arc<Files>>,
}

/// The check-ins read last. The newest one is last.
#[derive(Default)]
pub(super) struct Cache(Vec<(Hash, Cached)>);

impl Cache {
    /// Returns the place of a check-in. Makes one if there is none.
    pub fn of(&mut self, hash: &Hash) -> &mut Cached {
        let at = self.0.iter().position(|(known, _)| known == hash);
        let entry = at.map_or_else(|| (*hash, Cached::default()), |at| self.0.remove(at));
        if self.0.len() == CACHED {
            self.0.remove(0);
        }
        self.0.push(entry);
        &mut self.0.last_mut().expect("an entry was pushed").1
    }
}
