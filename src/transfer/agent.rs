//! What a set of artifacts by an agent must be: its own check-ins on its own branch, with all that they name.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension};

use super::cards::{self, OfAgent};
use super::findings::{Findings, Structural};
use super::rules::denied;
use super::staged::Staged;
use super::store::Stored;
use super::tags::check_agents;
use crate::error::{Error, Kind, Result};
use crate::format::artifact::{ArtifactKind, Manifest, is_canonical, julian_day};
use crate::name::{Branch, Hash, User, time};

/// How many days a check-in may be ahead of the clock.
const AHEAD_MAX_DAYS: f64 = 1.0;

/// Dates are compared with their parents' up to a second, because Fossil shifts what it shows by less.
const SECOND_DAYS: f64 = 1.0 / 86_400.0;

/// The advice to who sends what is not its own.
const OWN: &str = "Send only check-ins of your own on your own branch, with their files.";

/// The advice to whose clock is wrong.
const WHEN_RIGHT: &str = "Make the check-in anew when the clock there is right, and send that one.";

/// Who sends the set, and the branch that it is for.
#[derive(Clone, Copy)]
pub(crate) struct Agent<'a> {
    pub user: &'a User,
    pub branch: &'a Branch,
}

impl Agent<'_> {
    /// Judges all that is not held, except for the branch of the check-ins, which only Fossil's linking tells.
    pub fn check(
        self,
        db: &Connection,
        staged: &Staged,
        findings: &Findings,
        is_held: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let mut new = findings.structural.iter().filter(|artifact| !is_held(artifact.row));
        new.try_for_each(|artifact| self.check_kind(artifact))?;
        only_files(staged, findings, &is_held)?;
        let dates: HashMap<Hash, f64> = findings
            .check_ins()
            .filter_map(|(artifact, manifest)| Some((artifact.hash, julian_day(manifest.date.as_bytes())?)))
            .collect();
        for (artifact, manifest) in findings.check_ins().filter(|(artifact, _)| !is_held(artifact.row)) {
            for (_, _, _, asked) in cards::rows_of(ArtifactKind::CheckIn) {
                match asked {
                    OfAgent::Tags => self.check_tags(db, artifact, manifest)?,
                    OfAgent::Near => check_date(&artifact.hash, manifest)?,
                    OfAgent::Parents => check_parents(db, &artifact.hash, manifest, &dates)?,
                    // Asked of the whole set, by the judge, or not at all.
                    OfAgent::Contents | OfAgent::Login | OfAgent::Nothing | OfAgent::Refused => {}
                }
            }
        }
        all_contents(db, staged, findings)
    }

    /// Refuses what is no check-in by the agent.
    pub(super) fn check_kind(self, artifact: &Structural) -> Result<()> {
        match (&artifact.check_in, artifact.kind) {
            (Some(manifest), Some(kind)) if cards::is_agents(kind) => {
                self.check_author(&artifact.hash, manifest)
            }
            _ => refused(&artifact.hash, "is no check-in, and not a file of one"),
        }
    }

    fn check_author(self, hash: &Hash, manifest: &Manifest) -> Result<()> {
        let user = self.user;
        if manifest.user.as_deref() == Some(user.as_str()) {
            return Ok(());
        }
        let other = manifest.user.as_deref().unwrap_or("nobody").escape_debug();
        Err(denied(
            format!(
                "the artifact `{hash}` is a check-in by `{other}` and not by `{user}`; its card must be `U {user}`"
            ),
            format!("{OWN} Plain Fossil commits in your name with `--user-override {user}`."),
        ))
    }

    fn check_tags(self, db: &Connection, artifact: &Structural, manifest: &Manifest) -> Result<()> {
        if manifest.tags.is_empty() {
            return Ok(());
        }
        let sql = "SELECT tagname FROM tagxref JOIN tag USING(tagid) JOIN blob USING(rid)
                   WHERE uuid=?1 AND tagtype=2 AND tagname GLOB 'sym-*' ORDER BY tagname";
        let parent = manifest.parents.first().map_or("", Hash::as_str);
        let symbols: Vec<String> = db
            .prepare_cached(sql)?
            .query_map([parent], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        manifest.tags.iter().try_for_each(|tag| check_agents(&artifact.hash, tag, self.branch, &symbols))
    }

    /// Refuses a new check-in that is not on the branch for Fossil.
    pub(super) fn only_branch(
        self,
        db: &Connection,
        staged: &Staged,
        check_ins: &[usize],
        stored: &Stored,
    ) -> Result<()> {
        let sql = "SELECT value FROM tagxref WHERE rid=?1 AND tagid=8 AND tagtype>0";
        let mut query = db.prepare(sql)?;
        for &row in check_ins {
            let on: Option<String> =
                query.query_row([stored.rids[row]], |row| row.get(0)).optional()?.flatten();
            let on = on.unwrap_or_else(|| "trunk".to_owned());
            if on != self.branch.as_str() {
                let hash = staged.rows()[row].hash;
                return Err(denied(
                    format!("the check-in `{hash}` is on branch `{on}` and not on `{}`", self.branch),
                    OWN.to_owned(),
                ));
            }
        }
        Ok(())
    }
}

fn refused(hash: &Hash, why: &str) -> Result<()> {
    Err(denied(format!("the artifact `{hash}` {why}"), OWN.to_owned()))
}

/// Refuses what is neither a structural artifact nor the content of a file of a check-in.
fn only_files(staged: &Staged, findings: &Findings, is_held: impl Fn(usize) -> bool) -> Result<()> {
    let structural = findings.structural.iter().map(|artifact| artifact.hash);
    let expected: HashSet<Hash> = structural.chain(findings.files.iter().copied()).collect();
    let rows = staged.rows().iter().enumerate();
    match rows.filter(|(row, _)| !is_held(*row)).find(|(_, row)| !expected.contains(&row.hash)) {
        Some((_, row)) => {
            refused(&row.hash, &format!("is not a file of a check-in of the {}", staged.noun()))
        }
        None => Ok(()),
    }
}

/// The refusal of a date.
fn misdated(hash: &Hash, manifest: &Manifest, why: &str, hint: &str) -> Error {
    let date = manifest.date.escape_debug();
    Error::new(Kind::Refused, format!("the check-in `{hash}` is dated {date}, {why}")).with_hint(hint)
}

/// Refuses a check-in whose date is not of Fossil's form, or far ahead of the clock.
fn check_date(hash: &Hash, manifest: &Manifest) -> Result<()> {
    let own = julian_day(manifest.date.as_bytes()).filter(|_| is_canonical(&manifest.date));
    let Some(own) = own else {
        let why = "and its card must be as `D 2026-11-30T10:23:45.120`";
        return Err(misdated(hash, manifest, why, "Have a Fossil make the check-in, and send that one."));
    };
    let now = time::julian_now();
    if own > now + AHEAD_MAX_DAYS {
        let why = format!("more than a day after now, which is {}", time::utc(now));
        return Err(misdated(hash, manifest, &why, WHEN_RIGHT));
    }
    Ok(())
}

/// Refuses a check-in without a parent, with one that is nowhere, or dated before one. `dates` are those of the set.
fn check_parents(
    db: &Connection,
    hash: &Hash,
    manifest: &Manifest,
    dates: &HashMap<Hash, f64>,
) -> Result<()> {
    if manifest.parents.is_empty() {
        return Err(denied(
            format!("the check-in `{hash}` has no card `P`: it must have a parent"),
            OWN.to_owned(),
        ));
    }
    let own = julian_day(manifest.date.as_bytes()).unwrap_or_default();
    for parent in &manifest.parents {
        let before = parents_date(db, parent, dates)?.ok_or_else(|| no_parent(hash, parent))?;
        if own + SECOND_DAYS <= before {
            let why = format!("before its parent {}", time::utc(before));
            return Err(misdated(hash, manifest, &why, WHEN_RIGHT));
        }
    }
    Ok(())
}

/// When a check-in was made, as it counts here, or as the set says if it is not here.
fn parents_date(db: &Connection, parent: &Hash, dates: &HashMap<Hash, f64>) -> Result<Option<f64>> {
    let sql = "SELECT event.mtime FROM blob CROSS JOIN event ON objid=rid WHERE uuid=?1 AND type='ci'";
    let here: Option<Option<f64>> =
        db.prepare_cached(sql)?.query_row([parent.as_str()], |row| row.get(0)).optional()?;
    Ok(here.map(Option::unwrap_or_default).or_else(|| dates.get(parent).copied()))
}

fn no_parent(hash: &Hash, parent: &Hash) -> Error {
    let what =
        format!("the parent `{parent}` of check-in `{hash}` is no check-in that is here or comes along");
    Error::new(Kind::NotFound, what)
        .with_hint("Send the whole branch (plain Fossil: `--branch NAME --standalone`).")
}

/// Refuses a file whose content is neither in the set nor here for everyone. What is shunned here counts as here.
fn all_contents(db: &Connection, staged: &Staged, findings: &Findings) -> Result<()> {
    let come: HashSet<&Hash> = staged.rows().iter().map(|row| &row.hash).collect();
    let sql = "SELECT 1 FROM blob WHERE uuid=?1 AND size>=0
                 AND NOT EXISTS(SELECT 1 FROM private WHERE private.rid=blob.rid)
               UNION ALL SELECT 1 FROM shun WHERE uuid=?1";
    let mut here = db.prepare(sql)?;
    for file in findings.files.iter().filter(|file| !come.contains(file)) {
        if !here.exists([file.as_str()])? {
            let noun = staged.noun();
            let what = format!(
                "a check-in of the {noun} has a card `F` with the content `{file}`, which is neither in it nor here"
            );
            return Err(Error::new(Kind::NotFound, what)
                .with_hint("Send the check-in with the contents of all its files."));
        }
    }
    Ok(())
}
