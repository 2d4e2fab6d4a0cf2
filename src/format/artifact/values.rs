//! The values of an artifact's cards, by the card's letter, for whoever judges them.

use super::grammar::{self, Cards};
use super::tag::TagCard;
use super::tokens::{Flaw, is_hash};

/// What a content is for Fossil's parser.
pub(crate) enum Reading<'a> {
    /// Mere content.
    Content,
    /// A structural artifact.
    Artifact(Box<Cards<'a>>),
    /// A text on which the parser would read wild memory.
    Wild(&'static str),
}

/// Reads a content as Fossil's parser would.
pub(crate) fn read(content: &[u8]) -> Reading<'_> {
    match grammar::parse(content) {
        Ok(cards) => Reading::Artifact(Box::new(cards)),
        Err(Flaw::Crash(why)) => Reading::Wild(why),
        Err(Flaw::Syntax(_)) => Reading::Content,
    }
}

impl<'a> Cards<'a> {
    /// The names of artifacts on the cards of a letter. What an attachment belongs to counts if it has the length.
    pub(crate) fn hashes(&self, card: u8) -> Vec<&[u8]> {
        let one = |hash: Option<&'a [u8]>| hash.into_iter().collect();
        match card {
            b'A' => self.attachment.iter().flat_map(|(_, to, content)| named(to).chain(*content)).collect(),
            b'B' => one(self.baseline),
            b'E' => one(self.event.map(|(_, id)| id)),
            b'F' => self.files.iter().filter_map(|file| file.hash).collect(),
            b'G' => one(self.thread),
            b'I' => one(self.reply_to),
            b'K' => one(self.ticket),
            b'M' => self.members.clone(),
            b'P' => self.parents.clone(),
            b'Q' => self
                .cherrypicks
                .iter()
                .flat_map(|(target, base)| [&target[1..]].into_iter().chain(*base))
                .collect(),
            b'T' => self.tags.iter().filter_map(|tag| tag.target).collect(),
            _ => Vec::new(),
        }
    }

    /// How many values the cards of a letter have, where there may be many.
    pub(crate) fn count(&self, card: u8) -> usize {
        match card {
            b'F' => self.files.len(),
            b'J' => self.fields.len(),
            b'M' => self.members.len(),
            b'P' => self.parents.len(),
            b'Q' => self.cherrypicks.len(),
            b'T' => self.tags.len(),
            _ => 0,
        }
    }

    /// The text on the card of a letter.
    pub(crate) fn text(&self, card: u8) -> Option<&[u8]> {
        match card {
            b'A' => self.attachment.as_ref().map(|(name, ..)| &**name),
            b'C' => self.comment.as_deref(),
            b'H' | b'L' => self.title.as_deref(),
            b'N' => self.mimetype.as_deref(),
            b'U' => self.user.as_deref(),
            b'W' => self.text,
            _ => None,
        }
    }

    /// The date on the card of a letter.
    pub(crate) fn date_on(&self, card: u8) -> Option<&[u8]> {
        if card == b'E' { self.event.map(|(date, _)| date) } else { self.date }
    }

    /// The tags. Bytes that are not UTF-8 are replaced.
    pub(crate) fn tag_cards(&self) -> Vec<TagCard> {
        self.tags.iter().filter_map(|token| TagCard::lossily(token).ok()).collect()
    }
}

/// What an attachment belongs to, if that is an artifact and not a page.
fn named(target: &[u8]) -> impl Iterator<Item = &[u8]> {
    Some(target).filter(|target| is_hash(target)).into_iter()
}
