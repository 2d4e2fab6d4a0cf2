//! Reading the forum through Fossil's table `forumpost`.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row};

use super::{Forum, Post, Thread};
use crate::error::{Error, Kind, Result};
use crate::format::FOSSIL_WIKI;
use crate::format::artifact::ForumPost;
use crate::name::{Hash, User};
use crate::repo::store::{has_table, hash, optional_hash, text};

/// One version of a post, as the tables have it.
pub(super) struct Version {
    hash: Hash,
    previous: Option<Hash>,
    reply_to: Option<Hash>,
    user: String,
    time: String,
    julian: f64,
    pending: bool,
    closed: bool,
}

impl Forum {
    /// Returns all threads, the one with the newest post first.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn threads(&self) -> Result<Vec<Thread>> {
        self.repository.store().ask(|db| {
            if !is_there(db)? {
                return Ok(Vec::new());
            }
            let sql = "SELECT blob.uuid, substr(comment, instr(comment, ':')+2), coalesce(euser, user),
                   strftime('%Y-%m-%dT%H:%M:%SZ', root.fmtime),
                   strftime('%Y-%m-%dT%H:%M:%SZ', max(post.fmtime)),
                   count(*) FILTER (WHERE post.fprev IS NULL),
                   EXISTS(SELECT 1 FROM private WHERE private.rid=root.fpid)
                 FROM forumpost AS post JOIN forumpost AS root ON root.fpid=post.froot
                   JOIN blob ON blob.rid=root.fpid JOIN event ON objid=root.fpid
                 GROUP BY post.froot ORDER BY max(post.fmtime) DESC, post.froot DESC";
            db.prepare_cached(sql)?.query_map([], thread)?.collect()
        })
    }

    /// Returns the posts of a thread in the order of their times, each in its newest version. Any version of any post
    /// names the thread.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when `post` is no post of this forum.
    pub fn thread(&self, post: &Hash) -> Result<Vec<Post>> {
        let (root, versions) = self.versions(post)?;
        folded(versions).into_iter().map(|versions| self.whole(root, &versions)).collect()
    }

    /// Returns a post in its newest version. Any version names it.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when `post` is no post of this forum.
    pub fn post(&self, post: &Hash) -> Result<Post> {
        let (root, versions) = self.versions(post)?;
        let found =
            folded(versions).into_iter().find(|versions| versions.all.iter().any(|v| v.hash == *post));
        self.whole(root, &found.ok_or_else(|| no_post(post))?)
    }

    /// Returns what others posted or edited in the threads in which the user posted, since the user's last post there.
    /// The oldest comes first.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn since_own(&self, user: &User) -> Result<Vec<Post>> {
        let threads = self.repository.store().ask(|db| {
            if !is_there(db)? {
                return Ok(Vec::new());
            }
            let sql = "SELECT uuid, max(fmtime) AS own FROM forumpost JOIN event ON objid=fpid JOIN blob ON rid=froot
                 WHERE user=?1 GROUP BY froot
                 HAVING own<(SELECT max(fmtime) FROM forumpost AS other WHERE other.froot=forumpost.froot)";
            let rows = db.prepare_cached(sql)?.query_map([user.as_str()], |row| Ok((hash(row, 0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<Vec<(Hash, f64)>>>()?;
            Ok(rows)
        })?;
        let mut posts = Vec::new();
        for (thread, own) in threads {
            let is_news = |post: &Post| {
                post.julian > own && post.editor.as_deref().unwrap_or(&post.author) != user.as_str()
            };
            posts.extend(self.thread(&thread)?.into_iter().filter(is_news));
        }
        posts.sort_by(|a, b| a.julian.total_cmp(&b.julian));
        Ok(posts)
    }

    /// Returns the thread that `post` is in, and all versions of its posts by time.
    fn versions(&self, post: &Hash) -> Result<(Hash, Vec<Version>)> {
        let found = self.repository.store().ask(|db| {
            if !is_there(db)? {
                return Ok(None);
            }
            let sql = "SELECT froot, (SELECT uuid FROM blob WHERE rid=froot)
                 FROM forumpost JOIN blob ON rid=fpid WHERE uuid=?1";
            let root = db
                .prepare_cached(sql)?
                .query_row([post.as_str()], |row| Ok((row.get::<_, i64>(0)?, hash(row, 1)?)))
                .optional()?;
            let Some((rid, root)) = root else { return Ok(None) };
            let mut query = db.prepare_cached(VERSIONS)?;
            let versions = query.query_map([rid], version)?.collect::<rusqlite::Result<Vec<_>>>()?;
            Ok(Some((root, versions)))
        })?;
        found.ok_or_else(|| no_post(post))
    }

    fn whole(&self, thread: Hash, versions: &Versions) -> Result<Post> {
        let (first, newest) = (&versions.all[0], &versions.all[versions.all.len() - 1]);
        let artifact = ForumPost::parse(&self.repository.store().content(&newest.hash)?)?;
        let edited = versions.all.len() > 1;
        Ok(Post {
            hash: newest.hash,
            first: first.hash,
            thread,
            reply_to: versions.reply_to,
            author: first.user.clone(),
            editor: edited.then(|| newest.user.clone()),
            time: first.time.clone(),
            edited: edited.then(|| newest.time.clone()),
            deleted: artifact.text.is_empty(),
            title: artifact.title,
            mimetype: artifact.mimetype.unwrap_or_else(|| FOSSIL_WIKI.to_owned()),
            text: String::from_utf8_lossy(&artifact.text).into_owned(),
            pending: newest.pending,
            closed: versions.closed,
            julian: newest.julian,
        })
    }
}

/// Whether a newer version replaces this one.
pub(super) fn has_successor(db: &Connection, version: &Hash) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM forumpost WHERE fprev=(SELECT rid FROM blob WHERE uuid=?1)";
    Ok(is_there(db)? && db.prepare_cached(sql)?.exists([version.as_str()])?)
}

/// The versions of one post, the oldest first.
struct Versions {
    all: Vec<Version>,
    /// The first version of the post that is answered.
    reply_to: Option<Hash>,
    closed: bool,
}

/// Puts the versions of a thread together, one entry for each post. A post is closed if the one it answers is closed.
fn folded(versions: Vec<Version>) -> Vec<Versions> {
    let mut posts: Vec<Versions> = Vec::new();
    let mut place: HashMap<Hash, usize> = HashMap::new();
    for version in versions {
        let known = version.previous.and_then(|previous| place.get(&previous).copied());
        let at = known.unwrap_or(posts.len());
        place.insert(version.hash, at);
        if let Some(at) = known {
            posts[at].closed |= version.closed;
            posts[at].all.push(version);
            continue;
        }
        let answered = version.reply_to.and_then(|hash| place.get(&hash)).map(|&at| &posts[at]);
        posts.push(Versions {
            reply_to: answered.map(|post| post.all[0].hash).or(version.reply_to),
            closed: version.closed || answered.is_some_and(|post| post.closed),
            all: vec![version],
        });
    }
    posts
}

/// All versions of the posts of the thread `?1`.
const VERSIONS: &str = "SELECT blob.uuid, (SELECT uuid FROM blob WHERE rid=fprev), (SELECT uuid FROM blob WHERE rid=firt),
     coalesce(euser, user), strftime('%Y-%m-%dT%H:%M:%SZ', fmtime), fmtime,
     EXISTS(SELECT 1 FROM private WHERE private.rid=fpid),
     EXISTS(SELECT 1 FROM tagxref JOIN tag USING(tagid) WHERE tagxref.rid=fpid AND tagname='closed' AND tagtype>0)
   FROM forumpost JOIN blob ON blob.rid=fpid LEFT JOIN event ON objid=fpid
   WHERE froot=?1 ORDER BY fmtime, fpid";

fn version(row: &Row<'_>) -> rusqlite::Result<Version> {
    Ok(Version {
        hash: hash(row, 0)?,
        previous: optional_hash(row, 1)?,
        reply_to: optional_hash(row, 2)?,
        user: text(row, 3)?,
        time: text(row, 4)?,
        julian: row.get(5)?,
        pending: row.get(6)?,
        closed: row.get(7)?,
    })
}

fn thread(row: &Row<'_>) -> rusqlite::Result<Thread> {
    Ok(Thread {
        first: hash(row, 0)?,
        title: text(row, 1)?,
        author: text(row, 2)?,
        begun: text(row, 3)?,
        active: text(row, 4)?,
        posts: row.get::<_, i64>(5)?.unsigned_abs(),
        pending: row.get(6)?,
    })
}

/// Whether Fossil has made the table. It makes it with the first post.
fn is_there(db: &Connection) -> rusqlite::Result<bool> {
    has_table(db, "forumpost")
}

fn no_post(post: &Hash) -> Error {
    Error::new(Kind::NotFound, format!("no forum post `{}`", post.short()))
        .with_hint("Take a post from the list of threads; pull first where it is from elsewhere.")
}
