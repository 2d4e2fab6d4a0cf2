//! The name of a tag on a check-in.

use super::branch::broken_rule;
use super::rule::{refused, text_value};
use crate::error::Result;

/// The name of a symbolic tag, such as `v1.0`, that Fossil can read only as that. The rules are those of a
/// [`Branch`](super::Branch), because Fossil looks both up in one place.
///
/// ```
/// use ocx::name::TagName;
/// assert!(TagName::parse("v1.0").is_ok());
/// assert!(TagName::parse("2026-11-30").is_err()); // Fossil would look for a date
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagName(Box<str>);

impl TagName {
    /// Takes a tag's name.
    ///
    /// # Errors
    /// `Invalid`, naming the rule, as [`Branch::parse`](super::Branch::parse).
    pub fn parse(text: &str) -> Result<Self> {
        let Some((rule, hint)) = broken_rule(text) else { return Ok(Self(text.into())) };
        Err(refused("tag name", text, rule, hint))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_value!(TagName);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn names_that_read_as_something_else_are_refused() {
        for text in ["beef", "2026-11-30", "20261130", "tip", "a b", "", "root:x", "-v1"] {
            let e = TagName::parse(text).unwrap_err();
            assert_eq!(e.kind(), Kind::Invalid);
            assert!(e.to_string().starts_with("tag name"), "{e}");
        }
        assert_eq!(TagName::parse("v1.0").unwrap().as_str(), "v1.0");
    }
}
