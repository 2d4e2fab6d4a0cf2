//! Row numbers and what Fossil keeps with them, for the parts of the library that write beside Fossil's code.

use std::collections::HashMap;

use super::Store;
use super::column::{optional_text, text};
use super::connection::has_table;
use crate::error::Result;
use crate::format::artifact::checksum;
use crate::format::sync_message::UnversionedEntry;
use crate::name::Hash;

impl Store {
    /// Returns the row number of an artifact that is here with content.
    pub(crate) fn rid(&self, hash: &Hash) -> Result<Option<i64>> {
        self.first("SELECT rid FROM blob WHERE uuid=?1 AND size>=0", [hash.as_str()], |row| row.get(0))
    }

    pub(crate) fn hash_of_rid(&self, rid: i64) -> Result<Option<Hash>> {
        let hash = self.first("SELECT uuid FROM blob WHERE rid=?1", [rid], |row| text(row, 0))?;
        hash.map(|hash| Hash::parse(&hash)).transpose()
    }

    /// Returns Fossil's fingerprint of the reception `rcvid`, or of the last one. It tells a checkout whether its row
    /// numbers are those of this file.
    pub(crate) fn fingerprint(&self, rcvid: Option<i64>) -> Result<Option<String>> {
        let sql = "SELECT rcvid, quote(uid)||datetime(mtime)||quote(nonce)||quote(ipaddr) FROM rcvfrom
                   WHERE ?1 IS NULL OR rcvid=?1 ORDER BY rcvid DESC LIMIT 1";
        let row = self.first(sql, [rcvid], |row| Ok((row.get::<_, i64>(0)?, text(row, 1)?)))?;
        Ok(row.map(|(rcvid, text)| format!("{rcvid}/{}", checksum(text.as_bytes()))))
    }

    /// Returns the row numbers that artifacts have, or will get if they are stored next, in this order, and nobody
    /// else writes.
    pub(crate) fn next_rids<'a>(&self, hashes: impl Iterator<Item = &'a Hash>) -> Result<HashMap<Hash, i64>> {
        let last = self.first("SELECT max(rid) FROM blob", [], |row| row.get::<_, Option<i64>>(0))?;
        let mut last = last.flatten().unwrap_or(0);
        let mut rids = HashMap::new();
        for hash in hashes {
            let known =
                self.first("SELECT rid FROM blob WHERE uuid=?1", [hash.as_str()], |row| row.get(0))?;
            rids.entry(*hash).or_insert_with(|| {
                known.unwrap_or_else(|| {
                    last += 1;
                    last
                })
            });
        }
        Ok(rids)
    }

    /// Returns the notes from `start` to before `end` that came with receptions after number `seen`.
    pub(crate) fn notes(&self, start: &str, end: &str, seen: i64) -> Result<Vec<String>> {
        // They are found by their text, because there may be many receptions.
        let sql = "SELECT nonce FROM rcvfrom WHERE nonce>=?1 AND nonce<?2 AND +rcvid>?3 ORDER BY +rcvid";
        self.rows(sql, (start, end, seen), |row| text(row, 0))
    }

    /// Whether an artifact was made here and not sent yet.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn is_unsent(&self, artifact: &Hash) -> Result<bool> {
        Ok(self.unsent()?.iter().any(|(_, hash)| hash == artifact))
    }

    /// Returns the artifacts that were made here and not sent yet, except private ones.
    pub(crate) fn unsent(&self) -> Result<Vec<(i64, Hash)>> {
        let sql = "SELECT rid, uuid FROM unsent JOIN blob USING(rid)
                   WHERE rid NOT IN (SELECT rid FROM private) ORDER BY rid";
        let rows = self.rows(sql, [], |row| Ok((row.get(0)?, text(row, 1)?)))?;
        rows.into_iter().map(|(rid, hash)| Ok((rid, Hash::parse(&hash)?))).collect()
    }

    /// Returns those of the hashes that are check-ins here.
    pub(crate) fn check_ins_among(&self, hashes: &[Hash]) -> Result<Vec<Hash>> {
        let sql = "SELECT 1 FROM event JOIN blob ON rid=objid WHERE uuid=?1 AND type='ci'";
        let mut check_ins = Vec::new();
        for hash in hashes {
            if self.first(sql, [hash.as_str()], |_| Ok(()))?.is_some() {
                check_ins.push(*hash);
            }
        }
        Ok(check_ins)
    }

    /// Returns the public artifacts that no cluster names yet. A sync names these to the server.
    pub(crate) fn unclustered(&self) -> Result<Vec<Hash>> {
        self.hashes(
            "SELECT uuid FROM unclustered JOIN blob USING(rid)
             WHERE size>=0 AND rid NOT IN (SELECT rid FROM private)
               AND uuid NOT IN (SELECT uuid FROM shun) ORDER BY rid",
        )
    }

    /// Returns the public clusters that some other cluster names.
    pub(crate) fn clusters(&self) -> Result<Vec<Hash>> {
        self.hashes(
            "SELECT uuid FROM tagxref JOIN tag USING(tagid) JOIN blob USING(rid)
             WHERE tagname='cluster' AND size>=0 AND rid NOT IN (SELECT rid FROM private)
               AND rid NOT IN (SELECT rid FROM unclustered) AND uuid NOT IN (SELECT uuid FROM shun) ORDER BY rid",
        )
    }

    /// Returns the artifacts that are known by name only: others name them, and their content is not here.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn phantoms(&self) -> Result<Vec<Hash>> {
        self.hashes("SELECT uuid FROM phantom JOIN blob USING(rid) ORDER BY rid")
    }

    /// Returns the private artifacts.
    pub(crate) fn private(&self) -> Result<Vec<Hash>> {
        self.hashes("SELECT uuid FROM private JOIN blob USING(rid) WHERE size>=0 ORDER BY rid")
    }

    /// Whether an artifact is held as private.
    pub(crate) fn is_private(&self, hash: &Hash) -> Result<bool> {
        let sql = "SELECT 1 FROM private JOIN blob USING(rid) WHERE uuid=?1";
        Ok(self.first(sql, [hash.as_str()], |_| Ok(()))?.is_some())
    }

    /// Returns a path that a file content has or had in some check-in.
    pub(crate) fn a_path_of(&self, content: &Hash) -> Result<Option<String>> {
        let sql =
            "SELECT name FROM blob JOIN mlink ON fid=rid JOIN filename USING(fnid) WHERE uuid=?1 LIMIT 1";
        self.first(sql, [content.as_str()], |row| text(row, 0))
    }

    fn hashes(&self, sql: &str) -> Result<Vec<Hash>> {
        self.rows(sql, [], |row| text(row, 0))?.into_iter().map(|hash| Hash::parse(&hash)).collect()
    }

    /// Returns the unversioned files by name, also the deleted ones.
    pub(crate) fn unversioned(&self) -> Result<Vec<UnversionedEntry>> {
        if !self.ask(|db| has_table(db, "unversioned"))? {
            return Ok(Vec::new());
        }
        let sql = "SELECT name, CAST(mtime AS INTEGER), hash FROM unversioned ORDER BY name";
        let rows = self.rows(sql, [], |row| {
            let mtime = row.get::<_, Option<i64>>(1)?.unwrap_or_default();
            Ok((text(row, 0)?, mtime, optional_text(row, 2)?))
        })?;
        let file = |(name, mtime, hash): (String, i64, Option<String>)| {
            Ok(UnversionedEntry { name, mtime, hash: hash.map(|hash| Hash::parse(&hash)).transpose()? })
        };
        rows.into_iter().map(file).collect()
    }

    /// Returns the names of `sym-` tags that descendants of the check-in inherit.
    pub(crate) fn propagating_symbols(&self, hash: &Hash) -> Result<Vec<String>> {
        let sql = "SELECT tagname FROM tagxref JOIN tag USING(tagid)
                   WHERE rid=(SELECT rid FROM blob WHERE uuid=?1) AND tagtype=2 AND tagname GLOB 'sym-*'
                   ORDER BY tagname";
        self.rows(sql, [hash.as_str()], |row| text(row, 0))
    }

    /// Returns what Fossil writes as `manifest.tags`: the branch and the symbolic tags, one a line.
    pub(crate) fn tag_list(&self, hash: &Hash) -> Result<String> {
        let sql = "SELECT substr(tagname, 5) FROM tagxref JOIN tag USING(tagid)
                   WHERE rid=(SELECT rid FROM blob WHERE uuid=?1) AND tagtype>0 AND tagname GLOB 'sym-*'";
        let branch = self.check_in(hash)?.branch;
        let tags = self.rows(sql, [hash.as_str()], |row| text(row, 0))?;
        Ok(tags.iter().fold(format!("branch {branch}\n"), |all, tag| format!("{all}tag {tag}\n")))
    }
}
