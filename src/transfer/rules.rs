//! What a set of artifacts must be to be taken in.

use std::collections::{BTreeSet, HashSet};

use rusqlite::Connection;

use super::findings::{Findings, control_as_content};
use super::staged::Staged;
use super::store::Stored;
use crate::error::{Error, Kind, Result};
use crate::name::Hash;

/// Refuses what is shunned here.
pub(super) fn nothing_shunned(db: &Connection, staged: &Staged) -> Result<()> {
    if !db.prepare("SELECT 1 FROM shun")?.exists([])? {
        return Ok(());
    }
    let mut query = db.prepare("SELECT 1 FROM shun WHERE uuid=?1")?;
    for row in staged.rows() {
        if query.exists([row.hash.as_str()])? {
            return Err(denied(
                format!("the artifact `{}` is shunned here", row.hash),
                format!("Ask for a {} without it.", staged.noun()),
            ));
        }
    }
    Ok(())
}

/// Refuses a structural artifact that the repository knows as a file's content, and the reverse.
pub(super) fn no_content_is_control(db: &Connection, findings: &Findings, stored: &Stored) -> Result<()> {
    let mut is_file = db.prepare("SELECT 1 FROM mlink WHERE fid=?1")?;
    for artifact in &findings.structural {
        if stored.is_new(artifact.row) && is_file.exists([stored.rids[artifact.row]])? {
            return Err(control_as_content(&artifact.hash));
        }
    }
    let mut is_control = db.prepare("SELECT 1 FROM blob JOIN event ON objid=rid WHERE uuid=?1")?;
    for file in &findings.files {
        if is_control.exists([file.as_str()])? {
            return Err(control_as_content(file));
        }
    }
    Ok(())
}

/// Refuses a check-in whose parent is private here: as a public one it would show that there is a private one.
pub(super) fn no_private_parent(db: &Connection, staged: &Staged, findings: &Findings) -> Result<()> {
    let mut query = db.prepare("SELECT 1 FROM private JOIN blob USING(rid) WHERE uuid=?1")?;
    for (artifact, manifest) in findings.check_ins() {
        for parent in manifest.parents.iter().chain(&manifest.baseline) {
            if query.exists([parent.as_str()])? {
                return Err(denied(
                    format!("the parent `{parent}` of check-in `{}` is private here", artifact.hash.short()),
                    format!("Publish the parent first, or ask for a {} that holds it.", staged.noun()),
                ));
            }
        }
    }
    Ok(())
}

/// What the check-ins of a set name and neither it nor the repository holds.
pub(super) fn gaps(db: &Connection, staged: &Staged, findings: &Findings) -> Result<Vec<Hash>> {
    let come: HashSet<&Hash> = staged.rows().iter().map(|row| &row.hash).collect();
    let mut here = db.prepare("SELECT 1 FROM blob WHERE uuid=?1 AND size>=0")?;
    let mut gaps = BTreeSet::new();
    for hash in findings.named().filter(|hash| !come.contains(hash)) {
        if !here.exists([hash.as_str()])? {
            gaps.insert(*hash);
        }
    }
    Ok(gaps.into_iter().collect())
}

/// Whether the repository has each row already, and not as private.
pub(super) fn held(db: &Connection, staged: &Staged) -> Result<Vec<bool>> {
    let sql = "SELECT 1 FROM blob WHERE uuid=?1 AND size>=0
               AND NOT EXISTS(SELECT 1 FROM private WHERE private.rid=blob.rid)";
    let mut query = db.prepare(sql)?;
    staged.rows().iter().map(|row| Ok(query.exists([row.hash.as_str()])?)).collect()
}

/// Refuses a check-in that Fossil did not link in as one.
pub(super) fn all_linked(
    db: &Connection,
    staged: &Staged,
    check_ins: &[usize],
    stored: &Stored,
) -> Result<()> {
    let mut query = db.prepare("SELECT 1 FROM event WHERE objid=?1 AND type='ci'")?;
    for &row in check_ins {
        if !query.exists([stored.rids[row]])? {
            let hash = staged.rows()[row].hash;
            let what = format!(
                "the check-in `{hash}` cannot be linked in: its baseline is not here, or it is malformed"
            );
            let hint = format!("Pull first, or make the {} anew.", staged.noun());
            return Err(Error::new(Kind::Invalid, what).with_hint(hint));
        }
    }
    Ok(())
}

/// A refusal that names an artifact.
pub(super) fn denied(what: String, hint: String) -> Error {
    Error::new(Kind::Denied, what).with_hint(hint)
}
