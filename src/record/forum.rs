//! The forum: threads and posts.
//!
//! Each version of a post is an artifact, and Fossil's table `forumpost` ties them together. The caller must ask
//! whether a user may read or write posts ([`Store::capabilities`](crate::repo::Store::capabilities): `2`, `3`).
//! Fossil's moderation is kept here: a post by a user without `4` or `5` waits for a moderator, and is not sent until
//! one approves it.

mod read;
mod write;

use crate::name::Hash;
use crate::repo::Repository;

/// The forum of a repository.
///
/// ```
/// use ocx::{name::User, record::Forum, format::Markup, repo::{NewRepository, Repository}};
/// let folder = tempfile::tempdir()?;
/// let ann = User::parse("ann")?;
/// let repository = Repository::create(&folder.path().join("r.fossil"), &NewRepository { user: ann.clone() })?;
/// let forum = Forum::of(&repository);
/// let first = forum.start("A plan", "Let us *begin*.", Markup::Markdown, &ann)?;
/// let reply = forum.reply(&first.hash, "Done.", Markup::Markdown, &ann)?;
/// assert_eq!(forum.threads()?[0].title, "A plan");
/// assert_eq!(forum.thread(&first.hash)?[1].reply_to, Some(first.first));
/// assert_eq!(forum.post(&reply.hash)?.text, "Done.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Forum {
    repository: Repository,
}

/// A thread as the list shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// The first version of the post that began it, by which the thread is named.
    pub first: Hash,
    /// Its title, as it is now.
    pub title: String,
    /// Who began it.
    pub author: String,
    /// When it was begun, in UTC: `2026-11-30T10:23:45Z`.
    pub begun: String,
    /// When something was last posted or edited.
    pub active: String,
    /// How many posts it has.
    pub posts: u64,
    /// Whether a moderator has yet to approve the post that began it.
    pub pending: bool,
}

/// A post in its newest version.
#[derive(Debug, Clone, PartialEq)]
pub struct Post {
    /// The newest version, which an edit must name.
    pub hash: Hash,
    /// The first version. It names the post, whatever is edited.
    pub first: Hash,
    /// The first version of the post that began the thread.
    pub thread: Hash,
    /// The first version of the post that this one answers.
    pub reply_to: Option<Hash>,
    /// Who wrote the first version.
    pub author: String,
    /// Who wrote the newest version, if there are several.
    pub editor: Option<String>,
    /// When the first version was posted, in UTC: `2026-11-30T10:23:45Z`.
    pub time: String,
    /// When the newest version was posted, if there are several.
    pub edited: Option<String>,
    /// The thread's title, on the post that began it.
    pub title: Option<String>,
    /// The text's media type, such as `text/x-markdown`.
    pub mimetype: String,
    /// The text. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Whether its author took it back.
    pub deleted: bool,
    /// Whether a moderator has yet to approve this version. Until then only moderators and its author should see it.
    pub pending: bool,
    /// Whether it, or a post above it, is closed to replies and edits.
    pub closed: bool,
    /// When the newest version was posted, as a Julian day.
    julian: f64,
}

impl Forum {
    /// The forum of `repository`.
    #[must_use]
    pub fn of(repository: &Repository) -> Self {
        Self { repository: repository.clone() }
    }
}
