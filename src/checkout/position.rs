//! What Fossil's own code is told of a checkout's files, and the files in which it tells others where a checkout stands.
//!
//! Moving to a check-in that was made here is `follow`'s business; to another version, that of Fossil's own code.

use rusqlite::params;

use super::database::var;
use super::{Checkout, SETTING_MAX};
use crate::checkout::status::{How, Status};
use crate::error::{Error, Result};
use crate::name::{Hash, TEMP_PREFIX, TreePath};
use crate::repo::Repository;
use crate::tree::Tree;

impl Checkout {
    /// Tells Fossil's database of added and removed files and of those whose times could hide a change, so that its own code
    /// takes them for what they are. A rename becomes an addition and a removal: Fossil's update
    /// would undo it.
    pub(super) fn tell_fossil(&self, status: &Status) -> Result<()> {
        self.state(|db| {
            let vid: i64 = var(db, "checkout")?.and_then(|v| v.parse().ok()).unwrap_or(0);
            let done = db.unchecked_transaction()?;
            for (new, old) in &status.renamed {
                done.execute(
                    "UPDATE OR REPLACE vfile SET pathname=?2, origname=NULL WHERE pathname=?1 AND origname=?2",
                    [new.as_str(), old.as_str()],
                )?;
            }
            for change in &status.changes {
                let sql = match change.how {
                    How::Added => {
                        "INSERT OR IGNORE INTO vfile(vid,chnged,deleted,isexe,islink,rid,mrid,mtime,pathname)
                         VALUES(?1,0,0,0,0,0,0,0,?2)"
                    }
                    How::Deleted => "UPDATE vfile SET deleted=1 WHERE vid=?1 AND pathname=?2",
                    How::Edited | How::Mode | How::Kind => "UPDATE vfile SET mtime=0 WHERE vid=?1 AND pathname=?2",
                };
                done.execute(sql, params![vid, change.path.as_str()])?;
            }
            done.commit()?;
            Ok(())
        })
    }

    /// Makes renames again of the additions and removals that [`tell_fossil`](Self::tell_fossil) made of them, where they still
    /// are that.
    pub(super) fn rename_again(&self, status: &Status) -> Result<()> {
        for (new, old) in &status.renamed {
            if self.tree.stat(old).is_ok() {
                continue;
            }
            self.state(|db| {
                let done = db.unchecked_transaction()?;
                let is_removed = done
                    .prepare_cached("SELECT 1 FROM vfile WHERE pathname=?1 AND deleted AND rid!=0")?
                    .exists([old.as_str()])?;
                if is_removed
                    && done.execute("DELETE FROM vfile WHERE pathname=?1 AND rid=0", [new.as_str()])? == 1
                {
                    done.execute(
                        "UPDATE vfile SET pathname=?1, origname=?2, deleted=0, mtime=0 WHERE pathname=?2",
                        [new.as_str(), old.as_str()],
                    )?;
                    done.commit()?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Writes `manifest` and its companions where the setting wants them in each checkout.
    pub(crate) fn write_manifest(&self, hash: &Hash) -> Result<()> {
        let wanted = ManifestFiles::of(&self.repository, &self.tree)?;
        let write = |name: &str, content: &[u8]| {
            let what = || format!("cannot write `{name}`");
            let file = tempfile::Builder::new()
                .prefix(TEMP_PREFIX)
                .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
                .tempfile_in(&self.root)
                .map_err(|e| Error::io(what(), e))?;
            std::fs::write(file.path(), content).map_err(|e| Error::io(what(), e))?;
            file.persist(self.root.join(name)).map(drop).map_err(|e| Error::io(what(), e.error))
        };
        let store = self.repository.store();
        if wanted.raw {
            write(RAW, &[&store.content(hash)?, NO_MANIFEST].concat())?;
        }
        if wanted.uuid {
            write(UUID, format!("{hash}\n").as_bytes())?;
        }
        if wanted.tags {
            write(TAGS, store.tag_list(hash)?.as_bytes())?;
        }
        Ok(())
    }
}

/// Keeps the file `manifest` from being taken for an artifact.
const NO_MANIFEST: &[u8] = b"# Remove this line to create a well-formed Fossil manifest.\n";

const RAW: &str = "manifest";
const UUID: &str = "manifest.uuid";
const TAGS: &str = "manifest.tags";

/// Which files Fossil writes into checkouts to tell what they stand on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ManifestFiles {
    raw: bool,
    uuid: bool,
    tags: bool,
}

impl ManifestFiles {
    /// What the setting `manifest` says: that of the tree stands over the repository's.
    pub fn of(repository: &Repository, tree: &Tree) -> Result<Self> {
        let value = match tree.read(&TreePath::parse(".fossil-settings/manifest")?, SETTING_MAX) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => repository.store().setting("manifest")?.unwrap_or_default(),
        };
        let value = value.trim().to_ascii_lowercase();
        Ok(match value.as_str() {
            "0" | "off" | "no" | "false" => Self::default(),
            "1" | "on" | "yes" | "true" => Self { raw: true, uuid: true, tags: false },
            letters => {
                Self { raw: letters.contains('r'), uuid: letters.contains('u'), tags: letters.contains('t') }
            }
        })
    }

    /// The tree without these files.
    pub fn left_out_of(self, mut tree: Tree) -> Result<Tree> {
        for (name, writes) in [(RAW, self.raw), (UUID, self.uuid), (TAGS, self.tags)] {
            if writes {
                tree = tree.leaving_out(&TreePath::parse(name)?);
            }
        }
        Ok(tree)
    }
}
