//! Where a checkout stands: moving it to a check-in that was made of its files, and making good what an
//! ended process has left.
//!
//! This writes Fossil's own tables, as `fossil commit` would leave them. Moving to another version, which
//! changes files, is Fossil's own code's business.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};

use super::super::status::{How, Status};
use super::super::store::Files;
use super::super::tree::{FileKind, Tree};
use super::database::{durably, var};
use super::{Checkout, Repository, SETTING_MAX};
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TEMP_PREFIX, TreePath};

/// A file that changed later than this before now may change again within the same second, unseen by
/// Fossil, which looks at whole seconds.
const UNSETTLED_S: i64 = 2;

impl Checkout {
    /// Notes that the check-in `hash` is about to be stored, so that a later process can make good an end in between.
    /// This is what must outlast a power failure: the rest can be made again from it.
    pub(in crate::repo) fn intend(&self, hash: &Hash) -> Result<()> {
        self.state(|db| {
            durably(db, |db| {
                let sql = "REPLACE INTO vvar(name,value) VALUES(?1,'')";
                Ok(db.execute(sql, [intent(hash)]).map(drop)?)
            })
        })
    }

    /// Takes back the note that the check-in `hash` would be stored.
    pub(in crate::repo) fn abandon_intent(&self, hash: &Hash) -> Result<()> {
        self.state(|db| Ok(db.execute("DELETE FROM vvar WHERE name=?1", [intent(hash)]).map(drop)?))
    }

    /// Moves the checkout to a check-in that holds just the files of `status`.
    pub(in crate::repo) fn follow(&self, hash: &Hash, status: &Status) -> Result<()> {
        let changed = status.changes.iter().map(|c| &c.path).chain(status.renamed.keys()).collect();
        self.stand_on(hash, &status.files, Some(changed))?;
        self.write_manifest(hash)
    }

    /// Makes good what an ended process has left: an intended check-in that is in the repository and follows the
    /// check-in that the checkout stands on is followed. Intents that were not stored stay: their
    /// process may be alive.
    pub(in crate::repo) fn recover(&self) -> Result<Option<Hash>> {
        let intents: Vec<String> = self.state(|db| {
            let mut query =
                db.prepare_cached("SELECT substr(name, 12) FROM vvar WHERE name GLOB 'ocx-intent/*'")?;
            Ok(query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
        })?;
        let store = self.repository.store();
        for hash in intents.iter().filter_map(|hash| Hash::parse(hash).ok()) {
            if !store.holds(&hash)? {
                continue;
            }
            if store.check_in(&hash)?.parents.first() != Some(&self.parent()?) {
                self.abandon_intent(&hash)?;
                continue;
            }
            self.stand_on(&hash, &*store.files(&hash)?, None)?;
            self.write_manifest(&hash)?;
            return Ok(Some(hash));
        }
        Ok(None)
    }

    /// Writes Fossil's view of the checkout: it stands on `hash` with `files`. Where `changed` is known, only those paths
    /// have other rows than before.
    fn stand_on(&self, hash: &Hash, files: &Files, changed: Option<BTreeSet<&TreePath>>) -> Result<()> {
        let store = self.repository.store();
        let missing = || Error::new(Kind::Corrupt, format!("check-in `{}` is not whole", hash.short()));
        let vid = store.rid(hash)?.ok_or_else(missing)?;
        let changed = if self.is_renumbered()? { None } else { changed };
        let fingerprint = store.fingerprint(None)?;
        self.state(|db| {
            let done = db.unchecked_transaction()?;
            done.execute_batch("DELETE FROM vmerge")?;
            let told = forget_told(&done)?;
            let changed = changed.map(|mut changed| {
                changed.extend(told.iter());
                changed
            });
            for name in gone(&done, files, changed.as_ref())? {
                done.prepare_cached("DELETE FROM vfile WHERE pathname=?1")?.execute([name])?;
            }
            done.execute(
                "UPDATE vfile SET vid=?1, mrid=rid, mhash=NULL, chnged=0, deleted=0, origname=NULL
                 WHERE vid!=?1 OR chnged OR deleted OR origname IS NOT NULL",
                [vid],
            )?;
            let changed: Vec<_> = match changed {
                Some(changed) => changed.into_iter().filter_map(|path| files.get_key_value(path)).collect(),
                None => files.iter().collect(),
            };
            for (path, file) in changed {
                let rid = store.rid(&file.hash)?.ok_or_else(missing)?;
                let mtime = self.tree.stat(path).map_or(0, |entry| settled(entry.stamp.mtime_ns));
                done.prepare_cached(
                    "INSERT INTO vfile(vid,chnged,deleted,isexe,islink,rid,mrid,mtime,pathname)
                     VALUES(?1,0,0,?2,?3,?4,?4,?5,?6)
                     ON CONFLICT(pathname,vid) DO UPDATE SET isexe=excluded.isexe, islink=excluded.islink,
                       rid=excluded.rid, mrid=excluded.mrid, mtime=excluded.mtime",
                )?
                .execute(params![
                    vid,
                    file.kind == FileKind::Executable,
                    file.kind == FileKind::Symlink,
                    rid,
                    mtime,
                    path.as_str()
                ])?;
            }
            let mut put = done.prepare("REPLACE INTO vvar(name,value) VALUES(?1,?2)")?;
            put.execute(params!["checkout", vid])?;
            put.execute(params!["checkout-hash", hash.as_str()])?;
            put.execute(params!["fingerprint", fingerprint])?;
            drop(put);
            done.execute_batch(
                "DELETE FROM vvar WHERE name IN ('ci-comment','undo_available','redo_available') OR name GLOB 'ocx-intent/*'",
            )?;
            done.commit()?;
            Ok(())
        })
    }

    /// Whether the repository was replaced by a clone, so that the row numbers in the checkout's database
    /// mean other artifacts; Fossil numbers them anew when it sees that.
    fn is_renumbered(&self) -> Result<bool> {
        let Some(known) = self.state(|db| var(db, "fingerprint"))? else { return Ok(false) };
        let rcvid = known.split('/').next().and_then(|n| n.parse().ok());
        Ok(rcvid.is_none() || self.repository.store().fingerprint(rcvid)? != Some(known))
    }

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
    fn write_manifest(&self, hash: &Hash) -> Result<()> {
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

/// Drops the rows of files that Fossil was told to add or to rename; gives their paths, the old ones too.
fn forget_told(db: &Connection) -> Result<Vec<TreePath>> {
    let mut query = db.prepare_cached(
        "DELETE FROM vfile WHERE rid=0 OR origname!=pathname RETURNING pathname, coalesce(origname, '')",
    )?;
    let mut rows = query.query([])?;
    let mut paths = Vec::new();
    while let Some(row) = rows.next()? {
        for column in 0..2 {
            paths.extend(TreePath::parse_stored(row.get_ref(column)?.as_str().unwrap_or_default()).ok());
        }
    }
    Ok(paths)
}

/// The paths among `changed`, or else among all that Fossil's table has, that are not in `files`.
fn gone(db: &Connection, files: &Files, changed: Option<&BTreeSet<&TreePath>>) -> Result<Vec<String>> {
    if let Some(changed) = changed {
        let gone = changed.iter().filter(|path| !files.contains_key(**path));
        return Ok(gone.map(ToString::to_string).collect());
    }
    let mut query = db.prepare("SELECT pathname FROM vfile")?;
    let names = query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let is_gone = |name: &String| TreePath::parse_stored(name).is_ok_and(|path| !files.contains_key(&path));
    Ok(names.into_iter().filter(is_gone).collect())
}

/// The variable that notes an intended check-in.
fn intent(hash: &Hash) -> String {
    format!("ocx-intent/{hash}")
}

/// The time in whole seconds that Fossil may take for a sign that a file is unchanged; none yet for
/// one that changed just now.
fn settled(mtime_ns: i64) -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (mtime, now) = (mtime_ns.div_euclid(1_000_000_000), now.as_secs().cast_signed());
    if mtime + UNSETTLED_S < now { mtime } else { 0 }
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
