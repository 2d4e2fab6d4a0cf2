//! Names that people give: branches, tags, the first digits of a hash.

use super::Store;
use super::column::text;
use crate::error::{Error, Kind, Result};
use crate::name::{Branch, Hash, shown};

/// The fewest digits that may stand for a hash.
const MIN_DIGITS: usize = 4;

/// How many hashes an error lists when a name fits several.
const LISTED: usize = 4;

/// The newest check-in that has the tag `?1`. It looks first at the few newest check-ins (for a common tag), then at
/// the tag's index (for a rare one). These are two queries as in Fossil's name.c, for the same speed.
const NEWEST_WITH_TAG: &str = "SELECT uuid FROM blob WHERE rid=(
  SELECT objid FROM (
    SELECT objid FROM (SELECT objid, type, mtime FROM event ORDER BY mtime DESC LIMIT 30) AS newest
     WHERE type='ci' AND EXISTS(
       SELECT 1 FROM tag CROSS JOIN tagxref USING(tagid)
        WHERE tagname='sym-'||?1 AND tagtype>0 AND tagxref.rid=newest.objid)
     ORDER BY mtime DESC LIMIT 1)
  UNION ALL
  SELECT * FROM (
    SELECT objid FROM tag CROSS JOIN tagxref USING(tagid) CROSS JOIN event ON objid=tagxref.rid
     WHERE tagname='sym-'||?1 AND tagtype>0 AND type='ci'
     ORDER BY event.mtime DESC LIMIT 1)
  LIMIT 1)";

impl Store {
    /// Returns the check-in that `name` names: `tip`, a full hash, at least 4 first digits of one, or else a branch or
    /// tag (its newest check-in). `tag:NAME` is only a branch or tag.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when no check-in has the name, [`Kind::Ambiguous`] when digits fit several.
    pub fn resolve(&self, name: &str) -> Result<Hash> {
        if name == "tip" {
            return self.tip()?.ok_or_else(|| unknown(name));
        }
        if let Some(tag) = name.strip_prefix("tag:") {
            return self.newest_with_tag(tag)?.ok_or_else(|| unknown(name));
        }
        if let Some(hash) = self.by_digits(name, "JOIN event ON objid=blob.rid AND type='ci'")? {
            return Ok(hash);
        }
        self.newest_with_tag(name)?.ok_or_else(|| unknown(name))
    }

    /// Returns the artifact of any kind whose hash begins with `digits`. There must be at least 4 of them.
    ///
    /// # Errors
    /// [`Kind::NotFound`] and [`Kind::Ambiguous`], as for [`resolve`](Self::resolve).
    pub fn resolve_artifact(&self, digits: &str) -> Result<Hash> {
        self.by_digits(digits, "")?.ok_or_else(|| {
            Error::new(Kind::NotFound, format!("no artifact `{}`", shown(digits.as_bytes())))
                .with_hint("Give the artifact's whole hash.")
        })
    }

    /// Returns the open leaves of a branch, the newest first. More than one is a fork.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn branch_tips(&self, branch: &Branch) -> Result<Vec<Hash>> {
        let sql = "SELECT uuid FROM tagxref AS b
             CROSS JOIN leaf USING(rid) CROSS JOIN blob USING(rid) CROSS JOIN event ON objid=b.rid
             WHERE b.tagid=8 AND b.tagtype>0 AND b.value=?1
               AND NOT EXISTS(SELECT 1 FROM tagxref AS c WHERE c.rid=b.rid AND c.tagid=9 AND c.tagtype>0)
             ORDER BY event.mtime DESC, b.rid DESC";
        self.rows(sql, [branch.as_str()], |row| text(row, 0))?.iter().map(|hash| Hash::parse(hash)).collect()
    }

    /// Whether a branch of this name has a check-in.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn has_branch(&self, branch: &Branch) -> Result<bool> {
        let sql = "SELECT 1 FROM tagxref WHERE tagid=8 AND tagtype>0 AND value=?1";
        Ok(self.first(sql, [branch.as_str()], |_| Ok(()))?.is_some())
    }

    /// Whether the branch exists and every leaf of it is closed.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn branch_closed(&self, branch: &Branch) -> Result<bool> {
        Ok(self.has_branch(branch)? && self.branch_tips(branch)?.is_empty())
    }

    fn tip(&self) -> Result<Option<Hash>> {
        let sql = "SELECT uuid FROM event JOIN blob ON rid=objid WHERE type='ci' \
                   ORDER BY event.mtime DESC LIMIT 1";
        self.first(sql, [], |row| text(row, 0))?.map(|hash| Hash::parse(&hash)).transpose()
    }

    fn newest_with_tag(&self, tag: &str) -> Result<Option<Hash>> {
        self.first(NEWEST_WITH_TAG, [tag], |row| text(row, 0))?.map(|hash| Hash::parse(&hash)).transpose()
    }

    fn by_digits(&self, digits: &str, only: &str) -> Result<Option<Hash>> {
        if !(MIN_DIGITS..=64).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let first = digits.to_ascii_lowercase();
        // `g` sorts right after the last hex digit. Unlike GLOB, a range always uses the index.
        let sql =
            format!("SELECT uuid FROM blob {only} WHERE uuid>=?1 AND uuid<?1||'g' LIMIT {}", LISTED + 1);
        let found = self.rows(&sql, [&first], |row| text(row, 0))?;
        match &found[..] {
            [] => Ok(None),
            [one] => Hash::parse(one).map(Some),
            many => Err(ambiguous(digits, many)),
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::new(Kind::NotFound, format!("no check-in `{}`", shown(name.as_bytes())))
        .with_hint("Give a branch, a tag, `tip`, or at least 4 digits of a check-in's hash.")
}

fn ambiguous(digits: &str, found: &[String]) -> Error {
    let mut list: Vec<_> =
        found.iter().take(LISTED).map(|hash| format!("`{}`", &hash[..16.min(hash.len())])).collect();
    if found.len() > LISTED {
        list.push("others".into());
    }
    Error::new(Kind::Ambiguous, format!("`{digits}` fits {}", list.join(", ")))
        .with_hint("Give more digits of the hash.")
}
