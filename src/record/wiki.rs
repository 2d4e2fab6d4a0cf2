//! The wiki: pages, their versions, and writing them without losing another's.
//!
//! Each version of a page is an artifact, and the newest counts. The caller must ask whether a user may read or write
//! pages ([`Store::capabilities`](crate::repo::Store::capabilities): `j`, `k`, `f`).

use rusqlite::{Connection, OptionalExtension, Row};

use super::author::{Author, Visibility, date_after, write_as};
use crate::error::{Error, Kind, Result};
use crate::format::artifact::WikiEdit;
use crate::format::{FOSSIL_WIKI, Markup};
use crate::name::{Hash, PageName, User};
use crate::repo::Repository;
use crate::repo::store::{hash, optional_hash, text};

/// The wiki of a repository.
///
/// ```
/// use ocx::{name::{PageName, User}, format::Markup, repo::{NewRepository, Repository}, record::{Wiki, WikiText}};
/// let folder = tempfile::tempdir()?;
/// let ann = User::parse("ann")?;
/// let repository = Repository::create(&folder.path().join("r.fossil"), &NewRepository { user: ann.clone() })?;
/// let (wiki, page) = (Wiki::of(&repository), PageName::parse("Home")?);
/// let made = wiki.write(&page, &WikiText { text: "# Hello\n", markup: Markup::Markdown, previous: None }, &ann)?;
/// assert_eq!(wiki.read(&page, None)?.text, b"# Hello\n");
/// let next = WikiText { text: "# Hello again\n", markup: Markup::Markdown, previous: Some(made.hash) };
/// wiki.write(&page, &next, &ann)?;
/// assert!(wiki.write(&page, &next, &ann).is_err()); // the page has moved on
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Wiki {
    repository: Repository,
}

/// A new text for a page.
#[derive(Debug, Clone, Copy)]
pub struct WikiText<'a> {
    /// The whole text, stored byte for byte. It must not be blank.
    pub text: &'a str,
    /// How the text is marked up.
    pub markup: Markup,
    /// The version that the text was made from. `None` if the page does not exist, or was deleted.
    pub previous: Option<Hash>,
}

/// A page as the list shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct WikiPage {
    /// The name as stored.
    pub name: String,
    /// Its newest version.
    pub version: WikiVersion,
}

/// One version of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct WikiVersion {
    /// The version's artifact.
    pub hash: Hash,
    /// The version before.
    pub previous: Option<Hash>,
    /// Who wrote it.
    pub user: String,
    /// When, in UTC: `2026-11-30T10:23:45Z`.
    pub time: String,
    /// Whether this version deleted the page.
    pub deleted: bool,
    /// Whether a moderator has yet to approve it. Until then only moderators and its author should see it.
    pub pending: bool,
    /// The time as a Julian day.
    julian: f64,
}

/// A version of a page, with its text.
#[derive(Debug, Clone, PartialEq)]
pub struct WikiContent {
    /// Which version it is.
    pub version: WikiVersion,
    /// The text's media type, such as `text/x-markdown`.
    pub mimetype: String,
    /// The text, byte for byte.
    pub text: Vec<u8>,
}

impl Wiki {
    /// The wiki of `repository`.
    #[must_use]
    pub fn of(repository: &Repository) -> Self {
        Self { repository: repository.clone() }
    }

    /// All pages that are not deleted, by name.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn list(&self) -> Result<Vec<WikiPage>> {
        let rows = self.repository.store().ask(|db| {
            let sql = format!(
                "SELECT {VERSION}, substr(tagname, 6) FROM tag JOIN tagxref USING(tagid) {JOINS}
                 WHERE tagname GLOB 'wiki-*' AND tagtype>0 ORDER BY tagname, tagxref.mtime DESC, tagxref.rid DESC"
            );
            let mut query = db.prepare_cached(&sql)?;
            query.query_map([], |row| Ok((version(row)?, text(row, 7)?)))?.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let mut pages: Vec<WikiPage> = Vec::new();
        for (found, name) in rows {
            if pages.last().is_none_or(|page| page.name != name) {
                pages.push(WikiPage { name, version: found });
            }
        }
        pages.retain(|page| !page.version.deleted);
        Ok(pages)
    }

    /// The versions of a page, the newest first.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when there never was such a page.
    pub fn history(&self, page: &PageName) -> Result<Vec<WikiVersion>> {
        let found = self.repository.store().ask(|db| versions(db, page))?;
        if found.is_empty() {
            return Err(no_page(page));
        }
        Ok(found)
    }

    /// Returns a page's text, as it is now or as it was in a version of it.
    ///
    /// # Errors
    /// [`Kind::NotFound`] if there is no such page or version, or the page is deleted.
    pub fn read(&self, page: &PageName, version: Option<&Hash>) -> Result<WikiContent> {
        let history = self.history(page)?;
        let found = match version {
            None => history.into_iter().next().filter(|newest| !newest.deleted),
            Some(hash) => history.into_iter().find(|v| v.hash == *hash),
        };
        let version = found.ok_or_else(|| match version {
            None => Error::new(Kind::NotFound, format!("the wiki page `{page}` is deleted"))
                .with_hint("Read an older version, or write the page anew."),
            Some(hash) => Error::new(
                Kind::NotFound,
                format!("`{}` is no version of the wiki page `{page}`", hash.short()),
            )
            .with_hint("Take a version from the page's history."),
        })?;
        let edit = WikiEdit::parse(&self.repository.store().content(&version.hash)?)?;
        Ok(WikiContent {
            version,
            mimetype: edit.mimetype.unwrap_or_else(|| FOSSIL_WIKI.to_owned()),
            text: edit.text,
        })
    }

    /// Writes a page, or makes it. The new version replaces `previous`, which must be the newest. It waits for
    /// approval if the setting `modreq-wiki` is on and the user is no moderator.
    ///
    /// # Errors
    /// [`Kind::Changed`] if another version came meanwhile, [`Kind::Exists`] if the page exists and no version was
    /// named, [`Kind::NotFound`] for an unknown user, or if there is no page to change; [`Kind::Invalid`] for a blank
    /// text and one with a NUL, [`Kind::Unchanged`] for the very same text; [`Kind::Busy`], [`Kind::DiskFull`].
    pub fn write(&self, page: &PageName, new: &WikiText<'_>, user: &User) -> Result<WikiVersion> {
        Self::check_text(page, new.text)?;
        if let Some(previous) = &new.previous {
            let old = self.read(page, Some(previous))?;
            if !old.version.deleted && old.text == new.text.as_bytes() && new.markup.is(&old.mimetype) {
                return Err(Error::new(
                    Kind::Unchanged,
                    format!("the wiki page `{page}` has this text already"),
                ));
            }
        }
        let mimetype = new.markup.mimetype().map(str::to_owned);
        self.put(page, new.text.as_bytes().to_vec(), mimetype, new.previous, user)
    }

    /// Refuses a text that [`write`](Self::write) would refuse as blank.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a blank text.
    pub fn check_text(page: &PageName, text: &str) -> Result<()> {
        if !text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}').is_empty() {
            return Ok(());
        }
        Err(Error::new(Kind::Invalid, format!("the text for the wiki page `{page}` is blank"))
            .with_hint("Leave some text on the page; a page is deleted as such, not by an empty text."))
    }

    /// Deletes a page, of which `previous` must be the newest version. As in Fossil, an empty version deletes it.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub fn delete(&self, page: &PageName, previous: &Hash, user: &User) -> Result<WikiVersion> {
        if self.read(page, Some(previous))?.version.deleted {
            return Err(Error::new(Kind::Unchanged, format!("the wiki page `{page}` is deleted already")));
        }
        self.put(page, Vec::new(), None, Some(*previous), user)
    }

    fn put(
        &self,
        page: &PageName,
        text: Vec<u8>,
        mimetype: Option<String>,
        previous: Option<Hash>,
        user: &User,
    ) -> Result<WikiVersion> {
        let pending = self.needs_moderation(user)?;
        let page = page.clone();
        write_as(&self.repository, user, move |author: &mut Author<'_, '_>| {
            let newest = versions(author.db(), &page)?.into_iter().next();
            let basis = basis(&page, newest.as_ref(), previous)?;
            let edit = WikiEdit {
                date: date_after(newest.as_ref().map(|v| v.julian))?,
                page: page.to_string(),
                mimetype,
                previous: basis,
                user: author.user().to_owned(),
                text,
            };
            let hash = author.put(&edit.write()?, basis.as_ref(), Visibility::pending_if(pending))?;
            let made = versions(author.db(), &page)?.into_iter().next();
            made.filter(|made| made.hash == hash)
                .ok_or_else(|| Error::new(Kind::Internal, "the new version is not the page's newest"))
        })
    }

    fn needs_moderation(&self, user: &User) -> Result<bool> {
        let store = self.repository.store();
        Ok(store.is_on("modreq-wiki")? && !store.capabilities(user)?.has('l'))
    }
}

/// Returns the version that a new one follows.
fn basis(page: &PageName, newest: Option<&WikiVersion>, wanted: Option<Hash>) -> Result<Option<Hash>> {
    match (newest, wanted) {
        (None, None) => Ok(None),
        (Some(newest), None) if newest.deleted => Ok(Some(newest.hash)),
        (Some(newest), Some(wanted)) if newest.hash == wanted => Ok(Some(wanted)),
        (None, Some(_)) => Err(no_page(page)),
        (Some(newest), None) => {
            Err(Error::new(Kind::Exists, format!("there is a wiki page `{page}`, by {}", newest.user))
                .with_hint("Read it, and write it with its version named."))
        }
        (Some(newest), Some(_)) => Err(Error::new(
            Kind::Changed,
            format!("the wiki page `{page}` has moved on to `{}` by {}", newest.hash.short(), newest.user),
        )
        .with_hint("Read the page again and make the edit there.")),
    }
}

/// The columns that [`version`] reads. `tagxref` is the row of the page's tag.
const VERSION: &str = "uuid,
   (SELECT p.uuid FROM plink JOIN blob AS p ON p.rid=pid WHERE cid=blob.rid AND isprim),
   coalesce(euser, user), strftime('%Y-%m-%dT%H:%M:%SZ', tagxref.mtime), CAST(tagxref.value AS INTEGER)<=0,
   EXISTS(SELECT 1 FROM private WHERE private.rid=blob.rid), tagxref.mtime";
const JOINS: &str = "JOIN blob ON blob.rid=tagxref.rid LEFT JOIN event ON objid=tagxref.rid";

fn version(row: &Row<'_>) -> rusqlite::Result<WikiVersion> {
    Ok(WikiVersion {
        hash: hash(row, 0)?,
        previous: optional_hash(row, 1)?,
        user: text(row, 2)?,
        time: text(row, 3)?,
        deleted: row.get(4)?,
        pending: row.get(5)?,
        julian: row.get(6)?,
    })
}

fn versions(db: &Connection, page: &PageName) -> rusqlite::Result<Vec<WikiVersion>> {
    let tag = "SELECT tagid FROM tag WHERE tagname='wiki-'||?1";
    let Some(tag): Option<i64> =
        db.prepare_cached(tag)?.query_row([page.as_str()], |row| row.get(0)).optional()?
    else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT {VERSION} FROM tagxref {JOINS} WHERE tagxref.tagid=?1 AND tagtype>0
         ORDER BY tagxref.mtime DESC, tagxref.rid DESC"
    );
    db.prepare_cached(&sql)?.query_map([tag], version)?.collect()
}

fn no_page(page: &PageName) -> Error {
    Error::new(Kind::NotFound, format!("no wiki page `{page}`"))
        .with_hint("List the pages, or write it without naming a version.")
}
