//! The artifact of one version of a wiki page.

use super::grammar::{ArtifactKind, parse, unlike};
use super::tokens::{hash, lossy};
use super::write::{card, escaped, sealed, write_text};
use crate::error::Result;
use crate::name::Hash;

/// One version of a wiki page, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WikiEdit {
    /// D: when, as `2026-11-30T10:23:45.120`, in UTC.
    pub date: String,
    /// L: the page's name.
    pub page: String,
    /// N: the text's media type, where that is not Fossil's own wiki markup.
    pub mimetype: Option<String>,
    /// P: the version before.
    pub previous: Option<Hash>,
    /// U: the user who made it.
    pub user: String,
    /// W: the text, byte for byte.
    pub text: Vec<u8>,
}

impl WikiEdit {
    /// Reads the artifact.
    ///
    /// # Errors
    /// `Corrupt` when it is no artifact, or one of another kind.
    pub fn parse(content: &[u8]) -> Result<Self> {
        let cards = parse(content).map_err(|flaw| unlike("wiki page", flaw.why()))?;
        let (ArtifactKind::Wiki, Some(text)) = (cards.kind(), cards.text) else {
            return Err(unlike("wiki page", "it is of another kind"));
        };
        Ok(Self {
            date: cards.date.map(lossy).unwrap_or_default(),
            page: cards.title.as_deref().map(lossy).unwrap_or_default(),
            mimetype: cards.mimetype.as_deref().map(lossy),
            previous: cards.parents.first().copied().map(hash).transpose()?,
            user: cards.user.as_deref().map(lossy).unwrap_or_default(),
            text: text.to_vec(),
        })
    }

    /// Returns the artifact's bytes.
    ///
    /// # Errors
    /// `Invalid` when a value cannot stand in an artifact.
    pub fn write(&self) -> Result<Vec<u8>> {
        let mut head = String::new();
        card(&mut head, format_args!("D {}", self.date));
        card(&mut head, format_args!("L {}", escaped(&self.page)?));
        if let Some(mimetype) = &self.mimetype {
            card(&mut head, format_args!("N {}", escaped(mimetype)?));
        }
        if let Some(previous) = self.previous {
            card(&mut head, format_args!("P {previous}"));
        }
        card(&mut head, format_args!("U {}", escaped(&self.user)?));
        write_text(&mut head, &self.text)?;
        sealed(head, ArtifactKind::Wiki)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use proptest::prelude::*;

    fn edit(text: &[u8]) -> WikiEdit {
        WikiEdit {
            date: "2026-11-30T10:23:45.120".into(),
            page: "A \\ page 😀".into(),
            mimetype: Some("text/x-markdown".into()),
            previous: Some(Hash::of(b"x")),
            user: "ann".into(),
            text: text.to_vec(),
        }
    }

    #[test]
    fn another_kind_and_other_bytes_are_refused() {
        assert_eq!(WikiEdit::parse(b"hello\n").unwrap_err().kind(), Kind::Corrupt);
        assert_eq!(edit(b"a\0b").write().unwrap_err().kind(), Kind::Invalid);
        assert_eq!(edit(b"a\xffb").write().unwrap_err().kind(), Kind::Invalid);
        assert_eq!(WikiEdit { page: " x".into(), ..edit(b"a") }.write().unwrap_err().kind(), Kind::Invalid);
        assert_eq!(WikiEdit { date: "now".into(), ..edit(b"a") }.write().unwrap_err().kind(), Kind::Invalid);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(text in "([^\\x00]|\r\n|\nZ |😀){0,60}") {
            let made = edit(text.as_bytes());
            prop_assert_eq!(WikiEdit::parse(&made.write().unwrap()).unwrap(), made);
        }
    }
}
