//! The files that the setting `manifest` asks for. They tell other programs where the checkout stands.

use std::path::Path;

use crate::error::{Error, Result};
use crate::name::{Hash, TreePath};
use crate::repo::setting::{Settings, means_no, means_yes};
use crate::repo::store::Store;
use crate::tree::{Tree, replace_file};

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
    pub fn of(settings: &Settings<'_>) -> Result<Self> {
        let value = settings.value("manifest")?.unwrap_or_default();
        if means_no(&value) {
            return Ok(Self::default());
        }
        if means_yes(&value) {
            return Ok(Self { raw: true, uuid: true, tags: false });
        }
        let has = |letter| value.to_ascii_lowercase().contains(letter);
        Ok(Self { raw: has('r'), uuid: has('u'), tags: has('t') })
    }

    /// The wanted files in whose place something lies that Fossil does not write.
    pub fn strangers(self, root: &Path) -> Vec<&'static str> {
        let is_strange = |(name, _): &(&'static str, bool)| {
            std::fs::read(root.join(name)).is_ok_and(|content| !is_written(name, &content))
        };
        let all = [(RAW, self.raw), (UUID, self.uuid), (TAGS, self.tags)];
        all.into_iter().filter(|(_, wanted)| *wanted).filter(is_strange).map(|(name, _)| name).collect()
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

/// Whether a file looks like one that Fossil writes under this name.
fn is_written(name: &str, content: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(content) else { return false };
    match name {
        RAW => text.starts_with(['B', 'C', 'D', '-']) && text.contains("\nZ "),
        UUID => text.trim_end().bytes().all(|b| b.is_ascii_hexdigit()),
        _ => text.lines().all(|line| line.starts_with("branch ") || line.starts_with("tag ")),
    }
}
