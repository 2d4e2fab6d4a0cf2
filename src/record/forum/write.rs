//! Writing posts. Each version is an artifact.

use super::read::has_successor;
use super::{Forum, Post};
use crate::error::{Error, Kind, Result};
use crate::format::Markup;
use crate::format::artifact::ForumPost;
use crate::name::{Hash, User};
use crate::record::author::{Author, Visibility, date_after, write_as};

impl Forum {
    /// Begins a thread.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a blank title or text, a title of several lines and a text with a NUL; [`Kind::NotFound`]
    /// for an unknown user; [`Kind::Busy`], [`Kind::DiskFull`].
    pub fn start(&self, title: &str, text: &str, markup: Markup, user: &User) -> Result<Post> {
        let title = Some(checked_title(title)?);
        let post = Draft { title, text: checked_text(text)?, markup, ..Draft::default() };
        self.put(post, user)
    }

    /// Answers a post. Any version names it.
    ///
    /// # Errors
    /// Those of [`start`](Self::start); [`Kind::NotFound`] if there is no such post, [`Kind::Closed`] if its thread is
    /// closed.
    pub fn reply(&self, to: &Hash, text: &str, markup: Markup, user: &User) -> Result<Post> {
        let answered = self.post(to)?;
        self.refuse_closed(&answered, user)?;
        let post = Draft {
            thread: Some(answered.thread),
            reply_to: Some(answered.hash),
            text: checked_text(text)?,
            markup,
            after: Some(answered.julian),
            ..Draft::default()
        };
        self.put(post, user)
    }

    /// Refuses a reply to `answered` that [`reply`](Self::reply) would refuse for its text or for a closed thread.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a blank text, [`Kind::Closed`] when the thread is closed, and those of any read.
    pub fn check_reply(&self, answered: &Post, text: &str, user: &User) -> Result<()> {
        checked_text(text)?;
        self.refuse_closed(answered, user)
    }

    /// Replaces a post by a new version. `post` must be its newest version. If no title is given, a post that began a
    /// thread keeps its title.
    ///
    /// # Errors
    /// Those of [`reply`](Self::reply); [`Kind::Changed`] if the post was edited meanwhile, [`Kind::Denied`] for
    /// another's post without the capability `a`, [`Kind::Invalid`] for a title on a reply.
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
        let title = title.map(checked_title).transpose()?.or_else(|| old.title.clone());
        self.replace(&old, title, checked_text(text)?, markup, user)
    }

    /// Takes a post back. `post` must be its newest version. The post stays in its place, empty.
    ///
    /// # Errors
    /// Those of [`edit`](Self::edit).
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

    /// Returns the post whose newest version `post` is, if the user may edit it.
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
        let hash = write_as(&self.repository, user, move |author: &mut Author<'_, '_>| {
            if let Some(previous) = &draft.previous
                && has_successor(author.db(), previous)?
            {
                return Err(moved_on(previous));
            }
            let post = ForumPost {
                date: date_after(draft.after)?,
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

/// A version of a post that is to be written.
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

/// The text of a post, if it is not blank.
fn checked_text(text: &str) -> Result<String> {
    if text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}').is_empty() {
        return Err(blank("text"));
    }
    Ok(text.to_owned())
}

/// Returns the title of a post, if it is one line that is not blank. Lists of threads show it on one line.
fn checked_title(title: &str) -> Result<String> {
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
