//! Which check-ins are sent, and all artifacts that go with them.

use std::collections::{BTreeSet, HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension};

use super::row::Progress;
use crate::error::{Error, Kind, Result};
use crate::name::{Branch, Hash, shown};

/// Which check-ins are sent, and to whom.
#[derive(Clone)]
pub struct Selection {
    which: Which,
    have: Option<Hash>,
    pub(crate) progress: Option<Progress>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Which {
    Branch(Branch),
    Range(Hash, Hash),
    One(Hash),
    Descendants(Hash),
}

impl Selection {
    fn new(which: Which) -> Self {
        Self { which, have: None, progress: None }
    }

    /// All check-ins on a branch.
    #[must_use]
    pub fn branch(branch: Branch) -> Self {
        Self::new(Which::Branch(branch))
    }

    /// Everything on the way from one check-in to another, with both.
    #[must_use]
    pub fn range(from: Hash, to: Hash) -> Self {
        Self::new(Which::Range(from, to))
    }

    /// One check-in.
    #[must_use]
    pub fn one(check_in: Hash) -> Self {
        Self::new(Which::One(check_in))
    }

    /// All descendants of a check-in, without itself.
    #[must_use]
    pub fn descendants(check_in: Hash) -> Self {
        Self::new(Which::Descendants(check_in))
    }

    /// For a receiver who holds this check-in: what it and its ancestors hold is left out, and deltas may
    /// build on it. Without this, what is sent stands alone.
    #[must_use]
    pub fn for_one_who_has(mut self, check_in: Hash) -> Self {
        self.have = Some(check_in);
        self
    }

    /// Calls `progress` for every artifact.
    #[must_use]
    pub fn with_progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection")
            .field("which", &self.which)
            .field("have", &self.have)
            .finish_non_exhaustive()
    }
}

/// All that is sent.
pub(crate) struct Selected {
    /// The check-ins, the oldest first.
    pub check_ins: Vec<Hash>,
    /// Every artifact's row number, ascending.
    pub rids: Vec<i64>,
    /// What an artifact is, in words.
    pub notes: HashMap<i64, String>,
    /// Of which file an artifact is a version: a number of the file's name, or 0 for a check-in.
    pub files: HashMap<i64, i64>,
    /// What the receiver holds.
    pub held: HashSet<i64>,
}

const BRANCH: &str = "SELECT rid FROM tagxref JOIN event ON objid=rid AND type='ci'
    WHERE tagxref.tagid=8 AND tagtype>0 AND value=?1";
const RANGE: &str = "WITH RECURSIVE
    later(rid) AS (VALUES(?1) UNION SELECT cid FROM later CROSS JOIN plink ON pid=later.rid),
    earlier(rid) AS (VALUES(?2) UNION SELECT pid FROM earlier CROSS JOIN plink ON cid=earlier.rid)
    SELECT rid FROM later INTERSECT SELECT rid FROM earlier";
const DESCENDANTS: &str = "WITH RECURSIVE later(rid) AS (
    VALUES(?1) UNION SELECT cid FROM later CROSS JOIN plink ON pid=later.rid)
    SELECT rid FROM later WHERE rid<>?1";
const ANCESTORS: &str = "WITH RECURSIVE earlier(rid) AS (
    VALUES(?1) UNION SELECT pid FROM earlier CROSS JOIN plink ON cid=earlier.rid)
    SELECT rid FROM earlier CROSS JOIN event ON objid=rid";

/// Finds all that a selection stands for.
///
/// # Errors
/// [`Kind::NotFound`] for an unknown check-in or branch, [`Kind::Denied`] if all of it is private, [`Kind::Invalid`] for
/// a range that leads nowhere, [`Kind::Unchanged`] if the receiver has all of it.
pub(crate) fn select(db: &Connection, selection: &Selection) -> Result<Selected> {
    let rids = |sql: &str, params: &dyn rusqlite::ToSql| -> Result<Vec<i64>> {
        Ok(db.prepare(sql)?.query_map([params], |row| row.get(0))?.collect::<Result<_, _>>()?)
    };
    let private: HashSet<i64> =
        db.prepare("SELECT rid FROM private")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let ancestors = match &selection.have {
        Some(have) => rids(ANCESTORS, &public(db, &private, have)?)?,
        None => Vec::new(),
    };
    let asked = match &selection.which {
        Which::Branch(branch) => rids(BRANCH, &branch.as_str())?,
        Which::Range(from, to) => {
            let (from, to) = (check_in(db, from)?, check_in(db, to)?);
            let found: Result<Vec<i64>, _> =
                db.prepare(RANGE)?.query_map([from, to], |row| row.get(0))?.collect();
            found?
        }
        Which::One(hash) => vec![check_in(db, hash)?],
        Which::Descendants(hash) => rids(DESCENDANTS, &check_in(db, hash)?)?,
    };
    if asked.is_empty() {
        return Err(nothing(&selection.which));
    }
    let asked_public: Vec<i64> = asked.into_iter().filter(|rid| !private.contains(rid)).collect();
    if asked_public.is_empty() {
        return Err(Error::new(Kind::Denied, "all check-ins that are asked for are private")
            .with_hint("Publish them first."));
    }
    let known: HashSet<i64> = ancestors.iter().copied().collect();
    let wanted: Vec<i64> = asked_public.into_iter().filter(|rid| !known.contains(rid)).collect();
    if wanted.is_empty() {
        return Err(Error::new(Kind::Unchanged, "the receiver has all of these check-ins")
            .with_hint("There is nothing to send."));
    }
    let held = held(db, &ancestors)?;
    gather(db, wanted, held, &private)
}

/// The check-ins with their files and tags.
fn gather(
    db: &Connection,
    check_ins: Vec<i64>,
    held: HashSet<i64>,
    private: &HashSet<i64>,
) -> Result<Selected> {
    let (mut notes, mut versions) = (HashMap::new(), HashMap::new());
    let mut ordered = Vec::with_capacity(check_ins.len());
    let mut rids: BTreeSet<i64> = check_ins.iter().copied().collect();
    let sql = "SELECT uuid, coalesce(euser, user), strftime('%Y-%m-%d %H:%M', mtime), mtime,
        (SELECT value FROM tagxref WHERE tagxref.rid=objid AND tagid=8 AND tagtype>0)
        FROM event JOIN blob ON blob.rid=objid WHERE objid=?1";
    let mut describe = db.prepare(sql)?;
    let mut files =
        db.prepare("SELECT fid, name, fnid FROM mlink JOIN filename USING(fnid) WHERE mid=?1 AND fid>0")?;
    let mut tags = db.prepare("SELECT srcid FROM tagxref WHERE rid=?1 AND srcid>0 AND srcid<>rid")?;
    for rid in check_ins {
        let (hash, at, note) = describe.query_row([rid], |row| {
            let text =
                |i: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(i)?.unwrap_or_default());
            let note = format!("check-in to {} by {} on {}", text(4)?, text(1)?, text(2)?);
            Ok((row.get::<_, String>(0)?, row.get::<_, f64>(3)?, note))
        })?;
        ordered.push((at, rid, Hash::parse(&hash)?));
        notes.insert(rid, shown(note.as_bytes()));
        versions.insert(rid, 0);
        let mut found = files.query([rid])?;
        while let Some(row) = found.next()? {
            let fid = row.get(0)?;
            if !held.contains(&fid) && rids.insert(fid) {
                let name = row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?;
                notes.insert(fid, format!("file {}", shown(name)));
                versions.insert(fid, row.get(2)?);
            }
        }
        let mut found = tags.query([rid])?;
        while let Some(row) = found.next()? {
            let tag = row.get(0)?;
            if rids.insert(tag) {
                notes.insert(tag, "tag changes".to_owned());
            }
        }
    }
    leave_out(db, &mut rids, private)?;
    ordered.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let check_ins = ordered.into_iter().map(|(.., hash)| hash).collect();
    Ok(Selected { check_ins, rids: rids.into_iter().collect(), notes, files: versions, held })
}

/// Leaves out what is private or shunned.
fn leave_out(db: &Connection, rids: &mut BTreeSet<i64>, private: &HashSet<i64>) -> Result<()> {
    rids.retain(|rid| !private.contains(rid));
    let mut query = db.prepare("SELECT rid FROM shun CROSS JOIN blob USING(uuid)")?;
    let mut shunned = query.query([])?;
    while let Some(row) = shunned.next()? {
        rids.remove(&row.get(0)?);
    }
    Ok(())
}

/// The manifests and files that a receiver with these check-ins holds.
fn held(db: &Connection, ancestors: &[i64]) -> Result<HashSet<i64>> {
    let mut held: HashSet<i64> = ancestors.iter().copied().collect();
    let mut files = db.prepare("SELECT fid FROM mlink WHERE mid=?1 AND fid>0")?;
    for rid in ancestors {
        let mut found = files.query([rid])?;
        while let Some(row) = found.next()? {
            held.insert(row.get(0)?);
        }
    }
    Ok(held)
}

fn check_in(db: &Connection, hash: &Hash) -> Result<i64> {
    let sql = "SELECT rid FROM blob JOIN event ON objid=rid AND type='ci' WHERE uuid=?1 AND size>=0";
    db.query_row(sql, [hash.as_str()], |row| row.get(0)).optional()?.ok_or_else(|| {
        Error::new(Kind::NotFound, format!("no check-in `{hash}`"))
            .with_hint("Give the full hash of a check-in that is here with its content.")
    })
}

fn public(db: &Connection, private: &HashSet<i64>, hash: &Hash) -> Result<i64> {
    let rid = check_in(db, hash)?;
    if private.contains(&rid) {
        return Err(Error::new(Kind::NotFound, format!("no check-in `{hash}`"))
            .with_hint("Give the full hash of a check-in that is here with its content."));
    }
    Ok(rid)
}

fn nothing(which: &Which) -> Error {
    match which {
        Which::Branch(branch) => Error::new(Kind::NotFound, format!("no check-in is on a branch `{branch}`"))
            .with_hint("Name a branch of this repository."),
        Which::Range(from, to) => {
            let what = format!("check-in `{}` does not descend from `{}`", to.short(), from.short());
            Error::new(Kind::Invalid, what).with_hint("Give the older check-in first.")
        }
        Which::One(hash) | Which::Descendants(hash) => {
            Error::new(Kind::Unchanged, format!("check-in `{}` has no descendants", hash.short()))
                .with_hint("There is nothing to send.")
        }
    }
}
