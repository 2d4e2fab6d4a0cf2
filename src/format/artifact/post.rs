//! The artifact of one version of a forum post.

use super::grammar::{ArtifactKind, parse, unlike};
use super::tokens::{hash, lossy};
use super::write::{card, escaped, sealed, write_text};
use crate::error::Result;
use crate::name::Hash;

/// One version of a post, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForumPost {
    /// D: when, as `2026-11-30T10:23:45.120`, in UTC.
    pub date: String,
    /// G: the first version of the post that began the thread; `None` for that post itself.
    pub thread: Option<Hash>,
    /// H: the thread's title; replies have none.
    pub title: Option<String>,
    /// I: the post that is answered.
    pub reply_to: Option<Hash>,
    /// N: the text's media type, where that is not Fossil's own wiki markup.
    pub mimetype: Option<String>,
    /// P: the version that this one replaces.
    pub previous: Option<Hash>,
    /// U: the author of this version.
    pub user: String,
    /// W: the text, byte for byte; empty when the post was deleted.
    pub text: Vec<u8>,
}

impl ForumPost {
    /// Reads the artifact.
    ///
    /// # Errors
    /// `Corrupt` when it is no artifact, or one of another kind.
    pub fn parse(content: &[u8]) -> Result<Self> {
        let cards = parse(content).map_err(|flaw| unlike("forum post", flaw.why()))?;
        let (ArtifactKind::Forum, Some(text)) = (cards.kind(), cards.text) else {
            return Err(unlike("forum post", "it is of another kind"));
        };
        Ok(Self {
            date: cards.date.map(lossy).unwrap_or_default(),
            thread: cards.thread.map(hash).transpose()?,
            title: cards.title.as_deref().map(lossy),
            reply_to: cards.reply_to.map(hash).transpose()?,
            mimetype: cards.mimetype.as_deref().map(lossy),
            previous: cards.parents.first().copied().map(hash).transpose()?,
            user: cards.user.as_deref().map(lossy).unwrap_or_default(),
            text: text.to_vec(),
        })
    }

    /// Returns the artifact's bytes.
    ///
    /// # Errors
    /// `Invalid` when a value cannot stand in an artifact, or a post has both a title and one that it answers.
    pub fn write(&self) -> Result<Vec<u8>> {
        let mut head = String::new();
        card(&mut head, format_args!("D {}", self.date));
        if let Some(thread) = self.thread {
            card(&mut head, format_args!("G {thread}"));
        }
        if let Some(title) = &self.title {
            card(&mut head, format_args!("H {}", escaped(title)?));
        }
        if let Some(reply_to) = self.reply_to {
            card(&mut head, format_args!("I {reply_to}"));
        }
        if let Some(mimetype) = &self.mimetype {
            card(&mut head, format_args!("N {}", escaped(mimetype)?));
        }
        if let Some(previous) = self.previous {
            card(&mut head, format_args!("P {previous}"));
        }
        card(&mut head, format_args!("U {}", escaped(&self.user)?));
        write_text(&mut head, &self.text)?;
        sealed(head, ArtifactKind::Forum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use proptest::prelude::*;

    fn post(text: &[u8]) -> ForumPost {
        ForumPost {
            date: "2026-11-30T10:23:45.120".into(),
            thread: Some(Hash::of(b"first")),
            title: None,
            reply_to: Some(Hash::of(b"before")),
            mimetype: Some("text/x-markdown".into()),
            previous: None,
            user: "ann".into(),
            text: text.to_vec(),
        }
    }

    #[test]
    fn a_title_and_a_post_that_is_answered_exclude_each_other() {
        let both = ForumPost { title: Some("t".into()), ..post(b"x") };
        assert_eq!(both.write().unwrap_err().kind(), Kind::Invalid);
        assert_eq!(ForumPost::parse(b"hello\n").unwrap_err().kind(), Kind::Corrupt);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(text in "([^\\x00]|\r\n|\nZ |😀){0,60}", title in "[^\\x00]{0,20}") {
            let reply = post(text.as_bytes());
            prop_assert_eq!(ForumPost::parse(&reply.write().unwrap()).unwrap(), reply.clone());
            let first = ForumPost { thread: None, title: Some(title), reply_to: None, ..reply };
            prop_assert_eq!(ForumPost::parse(&first.write().unwrap()).unwrap(), first);
        }
    }
}
