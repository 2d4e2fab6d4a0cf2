//! How the text of a wiki page or a post is marked up.

use crate::error::{Error, Kind, Result};

/// The media type of Fossil's own markup, which an artifact leaves out.
pub(crate) const FOSSIL_WIKI: &str = "text/x-fossil-wiki";

/// A markup that Fossil renders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Markup {
    /// `text/x-fossil-wiki`.
    FossilWiki,
    /// `text/x-markdown`.
    #[default]
    Markdown,
    /// `text/plain`: shown as it stands.
    Plain,
}

impl Markup {
    /// Takes a media type.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a type that Fossil does not render.
    pub fn parse(mimetype: &str) -> Result<Self> {
        [Self::FossilWiki, Self::Markdown, Self::Plain].into_iter().find(|m| m.is(mimetype)).ok_or_else(
            || {
                let shown = crate::name::shown(mimetype.as_bytes());
                Error::new(Kind::Invalid, format!("`{shown}` is no markup that Fossil renders"))
                    .with_hint("Give `text/x-markdown`, `text/x-fossil-wiki` or `text/plain`.")
            },
        )
    }

    /// The media type.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FossilWiki => FOSSIL_WIKI,
            Self::Markdown => "text/x-markdown",
            Self::Plain => "text/plain",
        }
    }

    /// Whether `mimetype` names this markup.
    pub(crate) fn is(self, mimetype: &str) -> bool {
        self.as_str() == mimetype
    }

    /// The media type where an artifact says it.
    pub(crate) fn mimetype(self) -> Option<&'static str> {
        (self != Self::FossilWiki).then_some(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_fossil_renders_is_taken() {
        assert_eq!(Markup::parse("text/x-markdown").unwrap(), Markup::Markdown);
        assert_eq!(Markup::parse("text/plain").unwrap().mimetype(), Some("text/plain"));
        assert_eq!(Markup::parse("text/x-fossil-wiki").unwrap().mimetype(), None);
        for other in ["", "text/html", "Text/Plain", "text/plain\nU boss"] {
            assert_eq!(Markup::parse(other).unwrap_err().kind(), Kind::Invalid);
        }
    }
}
