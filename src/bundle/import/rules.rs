//! What a bundle must be to be taken in.

use rusqlite::{Connection, OptionalExtension};

use super::denied;
use super::receiver::Stored;
use crate::bundle::Bundle;
use crate::bundle::judge::{Control, Findings, control_as_content};
use crate::error::{Error, Kind, Result};
use crate::name::{Branch, Hash, User};

pub(super) fn same_project(db: &Connection, bundle: &Bundle) -> Result<()> {
    let sql = "SELECT value FROM config WHERE name='project-code'";
    let here: String = db.query_row(sql, [], |row| row.get(0)).optional()?.unwrap_or_default();
    let there = bundle.project_code().unwrap_or("none");
    if here == there {
        return Ok(());
    }
    let there: String = there.chars().take(64).filter(|c| !c.is_control()).collect();
    let what = format!("the bundle is of the project `{there}`, and the repository of `{here}`");
    Err(Error::new(Kind::Foreign, what).with_hint("Import it into a clone of its own project."))
}

pub(super) fn nothing_shunned(db: &Connection, bundle: &Bundle) -> Result<()> {
    if !db.prepare("SELECT 1 FROM shun")?.exists([])? {
        return Ok(());
    }
    let mut query = db.prepare("SELECT 1 FROM shun WHERE uuid=?1")?;
    for row in &bundle.inner.rows {
        if query.exists([row.hash.as_str()])? {
            return Err(denied(
                format!("the artifact `{}` is shunned here", row.hash),
                "Ask for a bundle without it.",
            ));
        }
    }
    Ok(())
}

/// What the repository knows as a file's content must not come as a control artifact, nor the reverse.
pub(super) fn no_content_is_control(
    db: &Connection,
    bundle: &Bundle,
    findings: &Findings,
    stored: &Stored,
) -> Result<()> {
    let mut is_file = db.prepare("SELECT 1 FROM mlink WHERE fid=?1")?;
    for control in &findings.controls {
        if stored.is_new(control.row) && is_file.exists([stored.rids[control.row]])? {
            return Err(control_as_content(&hash(bundle, control)));
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

/// A public check-in that names a private one as parent would show that there is one.
pub(super) fn no_private_parent(db: &Connection, bundle: &Bundle, findings: &Findings) -> Result<()> {
    let mut query = db.prepare("SELECT 1 FROM private JOIN blob USING(rid) WHERE uuid=?1")?;
    for (control, manifest) in findings.controls.iter().filter_map(|c| Some((c, c.check_in.as_ref()?))) {
        for parent in manifest.parents.iter().chain(&manifest.baseline) {
            if query.exists([parent.as_str()])? {
                return Err(denied(
                    format!(
                        "the parent `{parent}` of check-in `{}` is private here",
                        hash(bundle, control).short()
                    ),
                    "Publish the parent first, or ask for a bundle that holds it.",
                ));
            }
        }
    }
    Ok(())
}

/// Of each row whether the repository has it already, for everyone.
pub(super) fn held(db: &Connection, bundle: &Bundle) -> Result<Vec<bool>> {
    let sql = "SELECT 1 FROM blob WHERE uuid=?1 AND size>=0
               AND NOT EXISTS(SELECT 1 FROM private WHERE private.rid=blob.rid)";
    let mut query = db.prepare(sql)?;
    bundle.inner.rows.iter().map(|row| Ok(query.exists([row.hash.as_str()])?)).collect()
}

/// Besides what is held, only check-ins by `user` that tag nothing but themselves, and their files.
pub(super) fn only_check_ins(
    bundle: &Bundle,
    findings: &Findings,
    user: &User,
    is_held: impl Fn(usize) -> bool,
) -> Result<()> {
    let refused = |hash: &Hash, why: &str| {
        Err(denied(
            format!("the artifact `{hash}` {why}"),
            "Bundle only check-ins of your own on your own branch, with their files.",
        ))
    };
    let mut expected = findings.files.clone();
    for control in findings.controls.iter().filter(|control| !is_held(control.row)) {
        let hash = hash(bundle, control);
        let Some(manifest) = &control.check_in else {
            return refused(&hash, "is no check-in, and not a file of one");
        };
        if manifest.user.as_deref() != Some(user.as_str()) {
            let other = manifest.user.as_deref().unwrap_or("nobody");
            return refused(&hash, &format!("is a check-in by `{other}` and not by `{user}`"));
        }
        if manifest.tags.iter().any(|tag| tag.target.is_some_and(|target| target != hash)) {
            return refused(&hash, "tags another artifact than itself");
        }
        expected.insert(hash);
    }
    let rows = bundle.inner.rows.iter().enumerate();
    match rows.filter(|(row, _)| !is_held(*row)).find(|(_, row)| !expected.contains(&row.hash)) {
        Some((_, row)) => refused(&row.hash, "is not a file of a check-in of the bundle"),
        None => Ok(()),
    }
}

/// Every check-in of the bundle must be one for Fossil too.
pub(super) fn all_linked(
    db: &Connection,
    bundle: &Bundle,
    check_ins: &[usize],
    stored: &Stored,
) -> Result<()> {
    let mut query = db.prepare("SELECT 1 FROM event WHERE objid=?1 AND type='ci'")?;
    for &row in check_ins {
        if !query.exists([stored.rids[row]])? {
            let hash = bundle.inner.rows[row].hash;
            let what = format!(
                "the check-in `{hash}` cannot be linked in: its baseline is not here, or it is malformed"
            );
            return Err(Error::new(Kind::Invalid, what).with_hint("Pull first, or make the bundle anew."));
        }
    }
    Ok(())
}

/// Every new check-in must be on `branch`, as Fossil sees it, and move no other check-in.
pub(super) fn only_branch(
    db: &Connection,
    bundle: &Bundle,
    check_ins: &[usize],
    stored: &Stored,
    branch: &Branch,
) -> Result<()> {
    let sql = "SELECT value FROM tagxref WHERE rid=?1 AND tagid=8 AND tagtype>0";
    let mut query = db.prepare(sql)?;
    for &row in check_ins {
        let on: Option<String> = query.query_row([stored.rids[row]], |row| row.get(0)).optional()?;
        let on = on.unwrap_or_else(|| "trunk".to_owned());
        if on != branch.as_str() {
            let hash = bundle.inner.rows[row].hash;
            return Err(denied(
                format!("the check-in `{hash}` is on branch `{on}` and not on `{branch}`"),
                "Bundle only check-ins of your own on your own branch, with their files.",
            ));
        }
    }
    Ok(())
}

fn hash(bundle: &Bundle, control: &Control) -> Hash {
    bundle.inner.rows[control.row].hash
}
