//! Tags on check-ins, and branches, which are tags that descendants inherit.

use rusqlite::{Connection, Row};

use super::author::{Author, Visibility, date_after, write_as};
use crate::error::{Error, Kind, Result};
use crate::format::artifact::{Control, TagAction, TagCard};
use crate::name::{Branch, Hash, TagName, User};
use crate::repo::Repository;
use crate::repo::store::{hash, optional_hash, optional_text, text};

/// The tags and branches of a repository.
///
/// ```
/// use ocx::{name::{TagName, User}, repo::{NewRepository, Repository}, record::Tags};
/// let folder = tempfile::tempdir()?;
/// let ann = User::parse("ann")?;
/// let repository = Repository::create(&folder.path().join("r.fossil"), &NewRepository { user: ann.clone() })?;
/// let (tags, tip) = (Tags::of(&repository), repository.store().resolve("trunk")?);
/// let v1 = TagName::parse("v1.0")?;
/// tags.add(&tip, &v1, Some("the first"), false, &ann)?;
/// assert_eq!(repository.store().resolve("v1.0")?, tip);
/// assert_eq!(tags.list(&tip)?.iter().find(|t| t.name == "v1.0").unwrap().value.as_deref(), Some("the first"));
/// tags.cancel(&tip, &v1, &ann)?;
/// assert_eq!(tags.branches()?[0].name, "trunk");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tags {
    repository: Repository,
}

/// A tag that counts for a check-in now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Its name, as in `v1.0`, or a property's, as in `branch` and `closed`.
    pub name: String,
    /// Whether it is a name for the check-in, rather than a property of it.
    pub symbolic: bool,
    /// Its value.
    pub value: Option<String>,
    /// Whether descendants inherit it.
    pub propagates: bool,
    /// The check-in that it was set on, if this one inherits it.
    pub inherited_from: Option<Hash>,
    /// The artifact that set it: a control artifact, or a check-in.
    pub source: Option<Hash>,
    /// Who made that artifact.
    pub user: Option<String>,
    /// When it was set, in UTC: `2026-11-30T10:23:45Z`.
    pub time: String,
}

/// A branch as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchInfo {
    /// The name as stored.
    pub name: String,
    /// Its newest check-in.
    pub tip: Hash,
    /// When that was made, in UTC: `2026-11-30T10:23:45Z`.
    pub time: String,
    /// How many check-ins it has.
    pub check_ins: u64,
    /// Whether it has a leaf that is not closed.
    pub open: bool,
    /// Whether its newest check-in is private.
    pub private: bool,
}

impl Tags {
    /// The tags of `repository`.
    #[must_use]
    pub fn of(repository: &Repository) -> Self {
        Self { repository: repository.clone() }
    }

    /// Returns the tags that count for a check-in, by name.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the repository holds no such check-in.
    pub fn list(&self, check_in: &Hash) -> Result<Vec<Tag>> {
        self.repository.store().check_in(check_in)?;
        self.repository.store().ask(|db| tags(db, check_in))
    }

    /// Returns the symbolic tags in use, sorted. The names of branches are left out.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn names(&self) -> Result<Vec<String>> {
        self.repository.store().ask(|db| {
            let sql = "SELECT DISTINCT substr(tagname, 5) AS name FROM tag JOIN tagxref USING(tagid)
                 WHERE tagtype>0 AND tagname GLOB 'sym-*'
                   AND NOT EXISTS(SELECT 1 FROM tagxref WHERE tagid=8 AND value=substr(tagname, 5) AND tagtype>0)
                 ORDER BY name";
            db.prepare_cached(sql)?.query_map([], |row| text(row, 0))?.collect()
        })
    }

    /// Returns the check-ins that have a tag, the newest first.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn find(&self, tag: &TagName) -> Result<Vec<Hash>> {
        self.repository.store().ask(|db| {
            let sql = "SELECT uuid FROM tag JOIN tagxref USING(tagid) JOIN event ON objid=tagxref.rid
                   JOIN blob ON blob.rid=objid
                 WHERE tagname='sym-'||?1 AND tagtype>0 AND type='ci' ORDER BY event.mtime DESC, objid DESC";
            db.prepare_cached(sql)?.query_map([tag.as_str()], |row| hash(row, 0))?.collect()
        })
    }

    /// Sets a symbolic tag on a check-in. With `propagates`, its descendants inherit it. Returns the control artifact.
    ///
    /// # Errors
    /// [`Kind::NotFound`] for the check-in or the user, [`Kind::Exists`] if a branch has the name, [`Kind::Unchanged`]
    /// if the tag is set there with that value, [`Kind::Invalid`] for a value with a NUL; [`Kind::Busy`],
    /// [`Kind::DiskFull`].
    pub fn add(
        &self,
        check_in: &Hash,
        tag: &TagName,
        value: Option<&str>,
        propagates: bool,
        user: &User,
    ) -> Result<Hash> {
        self.refuse_branch_name(tag)?;
        let value = value.filter(|value| !value.is_empty());
        if let Some(old) = self.own(check_in, tag)?
            && old.inherited_from.is_none()
            && old.propagates == propagates
            && old.value.as_deref() == value
        {
            return Err(Error::new(
                Kind::Unchanged,
                format!("check-in `{}` has the tag `{tag}` already", check_in.short()),
            ));
        }
        let action = if propagates { TagAction::Propagate } else { TagAction::Add };
        self.put(vec![card(action, format!("sym-{tag}"), *check_in, value)], user)
    }

    /// Sets several symbolic tags on a check-in by one control artifact, so that all of them are set or none.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), except for tags that are set already.
    pub fn add_all(&self, check_in: &Hash, tags: &[(&TagName, &str)], user: &User) -> Result<Hash> {
        self.repository.store().check_in(check_in)?;
        let card = |(tag, value): &(&TagName, &str)| {
            self.refuse_branch_name(tag)?;
            Ok(card(TagAction::Add, format!("sym-{tag}"), *check_in, Some(value)))
        };
        self.put(tags.iter().map(card).collect::<Result<_>>()?, user)
    }

    /// Cancels a symbolic tag on a check-in, and on the descendants that inherit it from there. Returns the control
    /// artifact.
    ///
    /// # Errors
    /// Those of [`add`](Self::add); [`Kind::NotFound`] if the check-in has no such tag.
    pub fn cancel(&self, check_in: &Hash, tag: &TagName, user: &User) -> Result<Hash> {
        self.refuse_branch_name(tag)?;
        if self.own(check_in, tag)?.is_none() {
            return Err(Error::new(
                Kind::NotFound,
                format!("check-in `{}` has no tag `{tag}`", check_in.short()),
            )
            .with_hint("List its tags."));
        }
        self.put(vec![card(TagAction::Cancel, format!("sym-{tag}"), *check_in, None)], user)
    }

    /// Returns all branches, the one with the newest check-in first.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn branches(&self) -> Result<Vec<BranchInfo>> {
        self.repository.store().ask(|db| {
            let sql = "SELECT branch.value, uuid, strftime('%Y-%m-%dT%H:%M:%SZ', max(event.mtime)), count(*),
                   max(EXISTS(SELECT 1 FROM leaf WHERE leaf.rid=branch.rid) AND NOT EXISTS(
                     SELECT 1 FROM tagxref AS c WHERE c.rid=branch.rid AND c.tagid=9 AND c.tagtype>0)),
                   (SELECT e.rid IN private FROM (SELECT branch.rid AS rid) AS e)
                 FROM tagxref AS branch JOIN event ON objid=branch.rid JOIN blob ON blob.rid=objid
                 WHERE branch.tagid=8 AND branch.tagtype>0 AND type='ci'
                 GROUP BY branch.value ORDER BY max(event.mtime) DESC";
            db.prepare_cached(sql)?.query_map([], branch)?.collect()
        })
    }

    /// Closes a branch: each of its open leaves. Returns the control artifact.
    ///
    /// # Errors
    /// [`Kind::NotFound`] for the branch or the user, [`Kind::Unchanged`] if it is closed; [`Kind::Busy`],
    /// [`Kind::DiskFull`].
    pub fn close(&self, branch: &Branch, user: &User) -> Result<Hash> {
        self.mark(branch, false, TagAction::Add, "closed", user)
    }

    /// Opens a closed branch again: each of its closed leaves. Returns the control artifact.
    ///
    /// # Errors
    /// Those of [`close`](Self::close); [`Kind::Unchanged`] if no leaf of it is closed.
    pub fn reopen(&self, branch: &Branch, user: &User) -> Result<Hash> {
        self.mark(branch, true, TagAction::Cancel, "open", user)
    }

    /// Sets or cancels the mark `closed` on the leaves of a branch that are not yet as wanted.
    fn mark(
        &self,
        branch: &Branch,
        closed: bool,
        action: TagAction,
        state: &str,
        user: &User,
    ) -> Result<Hash> {
        if !self.repository.store().has_branch(branch)? {
            return Err(
                Error::new(Kind::NotFound, format!("no branch `{branch}`")).with_hint("List the branches.")
            );
        }
        let leaves = self.repository.store().ask(|db| leaves(db, branch, closed))?;
        if leaves.is_empty() {
            return Err(Error::new(Kind::Unchanged, format!("branch `{branch}` is {state} already")));
        }
        self.put(leaves.into_iter().map(|leaf| card(action, "closed".into(), leaf, None)).collect(), user)
    }

    /// Returns the symbolic tag of that name, if the check-in has it.
    fn own(&self, check_in: &Hash, tag: &TagName) -> Result<Option<Tag>> {
        Ok(self.list(check_in)?.into_iter().find(|own| own.symbolic && own.name == tag.as_str()))
    }

    /// Refuses the name of a branch, which stands for the branch's newest check-in. A tag of that name would take its
    /// place.
    fn refuse_branch_name(&self, tag: &TagName) -> Result<()> {
        if !self.repository.store().has_branch(&Branch::parse(tag.as_str())?)? {
            return Ok(());
        }
        Err(Error::new(Kind::Exists, format!("`{tag}` is the name of a branch"))
            .with_hint("Choose another name for the tag."))
    }

    /// Stores a control artifact with these tags, all on check-ins. It is private if one of those is.
    fn put(&self, tags: Vec<TagCard>, user: &User) -> Result<Hash> {
        write_as(&self.repository, user, move |author: &mut Author<'_, '_>| {
            let mut after: Option<f64> = None;
            let mut visibility = Visibility::Public;
            for tag in &tags {
                let (newest, is_private) = standing(author.db(), tag)?;
                after = after.into_iter().chain(newest).reduce(f64::max);
                if is_private {
                    visibility = Visibility::Private;
                }
            }
            let control = Control { date: date_after(after)?, tags, user: author.user().to_owned() };
            author.put(&control.write()?, None, visibility)
        })
    }
}

fn card(action: TagAction, name: String, target: Hash, value: Option<&str>) -> TagCard {
    TagCard { action, name, target: Some(target), value: value.map(str::to_owned) }
}

/// Returns when the tag was last set or cancelled on its target, and whether the target is private. A newer card must
/// come after that time.
fn standing(db: &Connection, tag: &TagCard) -> rusqlite::Result<(Option<f64>, bool)> {
    let sql = "SELECT (SELECT max(mtime) FROM tagxref JOIN tag USING(tagid) WHERE tagname=?1 AND tagxref.rid=blob.rid),
         EXISTS(SELECT 1 FROM private WHERE private.rid=blob.rid)
       FROM blob WHERE uuid=?2";
    let target = tag.target.as_ref().map(Hash::as_str);
    db.prepare_cached(sql)?.query_row((&tag.name, target), |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Returns the leaves of a branch that are closed, or those that are not.
fn leaves(db: &Connection, branch: &Branch, closed: bool) -> rusqlite::Result<Vec<Hash>> {
    let sql = "SELECT uuid FROM tagxref AS b JOIN leaf USING(rid) JOIN blob USING(rid)
         WHERE b.tagid=8 AND b.tagtype>0 AND b.value=?1
           AND ?2=EXISTS(SELECT 1 FROM tagxref AS c WHERE c.rid=b.rid AND c.tagid=9 AND c.tagtype>0)
         ORDER BY uuid";
    db.prepare_cached(sql)?.query_map((branch.as_str(), closed), |row| hash(row, 0))?.collect()
}

fn tags(db: &Connection, check_in: &Hash) -> rusqlite::Result<Vec<Tag>> {
    let sql = "WITH own AS (
         SELECT *, coalesce(nullif(srcid, 0),
             (SELECT o.srcid FROM tagxref AS o WHERE o.tagid=x.tagid AND o.rid=x.origid)) AS source
           FROM tagxref AS x WHERE rid=(SELECT rid FROM blob WHERE uuid=?1) AND tagtype>0)
       SELECT tagname, value, tagtype=2, strftime('%Y-%m-%dT%H:%M:%SZ', own.mtime),
         (SELECT uuid FROM blob WHERE rid=nullif(origid, own.rid)),
         (SELECT uuid FROM blob WHERE rid=source),
         (SELECT user FROM event WHERE objid=source)
       FROM own JOIN tag USING(tagid) ORDER BY tagname";
    db.prepare_cached(sql)?.query_map([check_in.as_str()], tag)?.collect()
}

fn tag(row: &Row<'_>) -> rusqlite::Result<Tag> {
    let name = text(row, 0)?;
    let symbol = name.strip_prefix("sym-").map(str::to_owned);
    Ok(Tag {
        symbolic: symbol.is_some(),
        name: symbol.unwrap_or(name),
        value: optional_text(row, 1)?,
        propagates: row.get(2)?,
        time: text(row, 3)?,
        inherited_from: optional_hash(row, 4)?,
        source: optional_hash(row, 5)?,
        user: optional_text(row, 6)?,
    })
}

fn branch(row: &Row<'_>) -> rusqlite::Result<BranchInfo> {
    Ok(BranchInfo {
        name: text(row, 0)?,
        tip: hash(row, 1)?,
        time: text(row, 2)?,
        check_ins: row.get::<_, i64>(3)?.unsigned_abs(),
        open: row.get(4)?,
        private: row.get(5)?,
    })
}
