//! Settings as a checkout finds them, and the files that the setting `manifest` asks for. Those files tell other
//! programs where the checkout stands.

use std::path::Path;

use crate::error::{Error, Result};
use crate::name::{Hash, TreePath};
use crate::repo::Repository;
use crate::repo::store::{Store, means_no, means_yes};
use crate::tree::{Tree, replace_file};

/// The most bytes of a file under `.fossil-settings`.
const SETTING_MAX: u64 = 1 << 20;

/// The value of a setting in a checkout, as Fossil finds it. A file in the tree counts before the repository's value.
pub(super) fn setting(repository: &Repository, tree: &Tree, name: &str) -> Result<Option<String>> {
    let path = TreePath::parse(&format!(".fossil-settings/{name}"))?;
    match tree.read(&path, SETTING_MAX) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(_) => repository.store().setting(name),
    }
}

/// Keeps the file `manifest` from being read as an artifact.
const NO_MANIFEST: &[u8] = b"# Remove this line to create a well-formed Fossil manifest.\n";

const RAW: &str = "manifest";
const UUID: &str = "manifest.uuid";
const TAGS: &str = "manifest.tags";

/// Which files a checkout holds to tell which check-in it stands on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ManifestFiles {
    raw: bool,
    uuid: bool,
    tags: bool,
}

impl ManifestFiles {
    /// Reads the setting `manifest`.
    pub fn of(repository: &Repository, tree: &Tree) -> Result<Self> {
        let value = setting(repository, tree, "manifest")?.unwrap_or_default();
        if means_no(&value) {
            return Ok(Self::default());
        }
        if means_yes(&value) {
            return Ok(Self { raw: true, uuid: true, tags: false });
        }
        let has = |letter| value.to_ascii_lowercase().contains(letter);
        Ok(Self { raw: has('r'), uuid: has('u'), tags: has('t') })
    }

    /// Writes the wanted files into the folder `root`, which stands on the check-in `hash`.
    pub fn write(self, root: &Path, store: &Store, hash: &Hash) -> Result<()> {
        let write = |name: &str, content: &[u8]| {
            replace_file(&root.join(name), content, 0o644)
                .map_err(|e| Error::io(format!("cannot write `{name}`"), e))
        };
        if self.raw {
            write(RAW, &[&store.content(hash)?, NO_MANIFEST].concat())?;
        }
        if self.uuid {
            write(UUID, format!("{hash}\n").as_bytes())?;
        }
        if self.tags {
            write(TAGS, store.tag_list(hash)?.as_bytes())?;
        }
        Ok(())
    }

    /// Leaves these files out of the tree.
    pub fn left_out_of(self, mut tree: Tree) -> Result<Tree> {
        for (name, writes) in [(RAW, self.raw), (UUID, self.uuid), (TAGS, self.tags)] {
            if writes {
                tree = tree.leaving_out(&TreePath::parse(name)?);
            }
        }
        Ok(tree)
    }
}
