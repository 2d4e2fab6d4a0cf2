//! The forum: threads, posts, and writing them.
//!
//! Each version of a post is an artifact; Fossil's table `forumpost` ties them together. Whether a user may read or
//! write posts is for the caller to ask ([`Store::capabilities`](crate::repo::Store::capabilities): `2`, `3`); what this keeps is
//! Fossil's moderation: a post by a user without `4` or `5` waits for a moderator, and is sent nowhere until then.

mod read;

use super::author::{Author, Visibility, author};
use crate::error::{Error, Kind, Result};
use crate::format::Markup;
use crate::format::artifact::ForumPost;
use crate::name::{Hash, User};
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
    /// The first version, by which the post is known whatever is edited.
    pub first: Hash,
    /// The first version of the post that began the thread.
    pub thread: Hash,
    /// The first version of the post that this one answers.
    pub reply_to: Option<Hash>,
    /// Who wrote the first version.
    pub author: String,
    /// Who wrote the newest version, where there are several.
    pub editor: Option<String>,
    /// When the first version was posted, in UTC: `2026-11-30T10:23:45Z`.
    pub time: String,
    /// When the newest version was, where there are several.
    pub edited: Option<String>,
    /// The thread's title, on the post that began it.
    pub title: Option<String>,
    /// The text's media type, such as `text/x-markdown`.
    pub mimetype: String,
    /// The text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Whether its author took it back.
    pub deleted: bool,
    /// Whether a moderator has yet to approve this version: only moderators and its author should see it.
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

    /// Begins a thread.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a blank title or text, a title of several lines and a text with a NUL; [`Kind::NotFound`] for an unknown user;
    /// [`Kind::Busy`], [`Kind::DiskFull`].
    pub fn start(&self, title: &str, text: &str, markup: Markup, user: &User) -> Result<Post> {
        let title = Some(titled(title)?);
        let post = Draft { title, text: said(text)?, markup, ..Draft::default() };
        self.put(post, user)
    }

    /// Answers a post, named by any version of it.
    ///
    /// # Errors
    /// As [`start`](Self::start); [`Kind::NotFound`] when there is no such post, [`Kind::Closed`] when its thread is closed.
    pub fn reply(&self, to: &Hash, text: &str, markup: Markup, user: &User) -> Result<Post> {
        let answered = self.post(to)?;
        self.refuse_closed(&answered, user)?;
        let post = Draft {
            thread: Some(answered.thread),
            reply_to: Some(answered.hash),
            text: said(text)?,
            markup,
            after: Some(answered.julian),
            ..Draft::default()
        };
        self.put(post, user)
    }

    /// Refuses a reply to `answered` that [`reply`](Self::reply) would refuse for its text or a closed thread.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a blank text, [`Kind::Closed`] when the thread is closed, and those of any read.
    pub fn check_reply(&self, answered: &Post, text: &str, user: &User) -> Result<()> {
        said(text)?;
        self.refuse_closed(answered, user)
    }

    /// Replaces a post by a new version, of which `post` must be the newest. The title, on a post that began a
    /// thread, stays as it is where none is given.
    ///
    /// # Errors
    /// As [`reply`](Self::reply); [`Kind::Changed`] when the post was edited meanwhile, [`Kind::Denied`] for another's post
    /// without the capability `a`, [`Kind::Invalid`] for a title on a reply.
    pub fn edit(
        &self,
        post: &Hash,
        title: Option<&str>,
        text: &str,
        markup: Markup,
        user: &User,
    ) -> Result<Post> {
        let old = self.own(post, user)?;
        if title.is_some() && old.title.is_none() {
            return Err(Error::new(
                Kind::Invalid,
                format!("the post `{}` is a reply, without a title", post.short()),
            )
            .with_hint("Leave the title out, or edit the post that began the thread."));
        }
        let title = title.map(titled).transpose()?.or_else(|| old.title.clone());
        self.replace(&old, title, said(text)?, markup, user)
    }

    /// Takes a post back, of which `post` must be the newest version: it stays in its place, empty.
    ///
    /// # Errors
    /// As [`edit`](Self::edit).
    pub fn delete(&self, post: &Hash, user: &User) -> Result<Post> {
        let old = self.own(post, user)?;
        let title = old.title.as_ref().map(|_| String::new());
        self.replace(&old, title, String::new(), Markup::FossilWiki, user)
    }

    fn replace(
        &self,
        old: &Post,
        title: Option<String>,
        text: String,
        markup: Markup,
        user: &User,
    ) -> Result<Post> {
        let answered = ForumPost::parse(&self.repository.store().content(&old.hash)?)?.reply_to;
        let draft = Draft {
            thread: Some(old.thread),
            title,
            reply_to: answered,
            previous: Some(old.hash),
            text,
            markup,
            after: Some(old.julian),
        };
        self.put(draft, user)
    }

    /// The post whose newest version `post` is, if the user may edit it.
    fn own(&self, post: &Hash, user: &User) -> Result<Post> {
        let old = self.post(post)?;
        if old.hash != *post {
            return Err(moved_on(post));
        }
        if old.author != user.as_str() && !self.repository.store().capabilities(user)?.has('a') {
            return Err(Error::new(
                Kind::Denied,
                format!("the post `{}` is by {}", post.short(), old.author),
            )
            .with_hint("Reply to it instead; only its author and an administrator may edit it."));
        }
        self.refuse_closed(&old, user)?;
        Ok(old)
    }

    fn refuse_closed(&self, post: &Post, user: &User) -> Result<()> {
        if !post.closed || self.repository.store().capabilities(user)?.has('a') {
            return Ok(());
        }
        Err(Error::new(Kind::Closed, format!("the post `{}` is closed", post.hash.short()))
            .with_hint("Begin another thread, or ask an administrator to open this one."))
    }

    fn put(&self, draft: Draft, user: &User) -> Result<Post> {
        let may = self.repository.store().capabilities(user)?;
        let visibility = Visibility::pending_if(!may.has('4') && !may.has('5'));
        let hash = author(&self.repository, user, move |author: &mut Author<'_, '_>| {
            if let Some(previous) = &draft.previous
                && read::has_successor(author.db(), previous)?
            {
                return Err(moved_on(previous));
            }
            let post = ForumPost {
                date: author.date(draft.after)?,
                thread: draft.thread,
                title: draft.title,
                reply_to: draft.reply_to,
                mimetype: draft.markup.mimetype().map(str::to_owned),
                previous: draft.previous,
                user: author.user().to_owned(),
                text: draft.text.into_bytes(),
            };
            author.put(&post.write()?, draft.previous.as_ref(), visibility)
        })?;
        self.post(&hash)
    }
}

/// A version of a post that is to be.
#[derive(Debug, Default)]
struct Draft {
    thread: Option<Hash>,
    title: Option<String>,
    reply_to: Option<Hash>,
    previous: Option<Hash>,
    text: String,
    markup: Markup,
    /// The time of what it follows, as a Julian day.
    after: Option<f64>,
}

fn said(text: &str) -> Result<String> {
    if text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}').is_empty() {
        return Err(blank("text"));
    }
    Ok(text.to_owned())
}

/// A title stands on one line wherever threads are listed.
fn titled(title: &str) -> Result<String> {
    let title = title.trim();
    if title.is_empty() {
        return Err(blank("title"));
    }
    if title.contains(char::is_control) {
        return Err(Error::new(Kind::Invalid, "the title of the post holds a control character")
            .with_hint("Give one line of text."));
    }
    Ok(title.to_owned())
}

fn blank(what: &str) -> Error {
    Error::new(Kind::Invalid, format!("the {what} of the post is blank")).with_hint("Say something.")
}

fn moved_on(post: &Hash) -> Error {
    Error::new(Kind::Changed, format!("the post `{}` has a newer version", post.short()))
        .with_hint("Read the post again and edit its newest version.")
}
