//! What can be told of an artifact at a glance, for those who pass by thousands.

use super::cards::{self, ArtifactKind};
use super::{Manifest, envelope, hash};
use crate::error::{Error, Kind, Result};
use crate::name::Hash;

/// What a text that may be an artifact begins with. Nothing of it is certain, but that no other text is one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Glance {
    /// It reads like something other than a check-in.
    pub is_other: bool,
    /// The argument of the D card, if that is near.
    pub date: Vec<u8>,
}

/// Looks at a text's first cards; nothing when the text cannot be an artifact.
pub(crate) fn glance(content: &[u8]) -> Option<Glance> {
    if content.last() != Some(&b'\n') {
        return None;
    }
    let text = envelope::without_signature(content);
    if text.len() < 10 || !text[0].is_ascii_uppercase() || text[1] != b' ' {
        return None;
    }
    let mut lines = text.split(|&byte| byte == b'\n');
    // No more than B and C can stand before it in a check-in.
    let date = lines.by_ref().take(3).find_map(|line| line.strip_prefix(b"D ")).unwrap_or_default();
    let is_other = !matches!(lines.next(), Some([b'F' | b'N' | b'P' | b'Q' | b'R', ..]));
    Some(Glance { is_other, date: date.to_vec() })
}

impl Manifest {
    /// Reads a manifest as [`parse`](Self::parse) does, but of its files only which contents they have.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), but any names of files will do.
    pub(crate) fn parse_apart(content: &[u8]) -> Result<(Self, Vec<Hash>)> {
        let mut cards = cards::parse(content)
            .map_err(|flaw| Error::new(Kind::Corrupt, format!("no manifest: {}", flaw.why())))?;
        if cards.kind() != ArtifactKind::CheckIn {
            return Err(Error::new(Kind::Invalid, "the artifact is no check-in"));
        }
        let files = std::mem::take(&mut cards.files);
        let contents = files.iter().filter_map(|file| file.hash).map(hash).collect::<Result<_>>()?;
        Ok((Self::from_cards(cards)?, contents))
    }
}
