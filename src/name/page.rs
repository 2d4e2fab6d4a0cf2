//! The name of a wiki page.

use super::rule::{refused, text_value};
use crate::error::Result;

/// The longest name that Fossil takes, in bytes.
const MAX: usize = 100;

/// A wiki page's name, as Fossil's `wiki_name_is_wellformed` takes it.
///
/// Names such as `branch/trunk` and `checkin/HASH` are those of pages that Fossil shows beside a branch or a check-in.
///
/// ```
/// use ocx::name::PageName;
/// assert!(PageName::parse("How to build").is_ok());
/// assert!(PageName::parse("two  spaces").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageName(Box<str>);

impl PageName {
    /// Takes a page's name.
    ///
    /// # Errors
    /// `Invalid`, naming the rule: 1 to 100 bytes, no control character, no space at an end or beside another.
    pub fn parse(text: &str) -> Result<Self> {
        let Some(rule) = broken_rule(text) else { return Ok(Self(text.into())) };
        Err(refused("wiki page name", text, rule, "Give 1 to 100 bytes, words separated by single spaces."))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_value!(PageName);

fn broken_rule(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("is empty".into());
    }
    if text.len() > MAX {
        return Some(format!("is {} bytes long, over {MAX}", text.len()));
    }
    if let Some(c) = text.chars().find(|c| c.is_control()) {
        return Some(format!("holds the control character U+{:04X}", u32::from(c)));
    }
    if text.starts_with(' ') || text.ends_with(' ') {
        return Some("begins or ends with a space".into());
    }
    text.contains("  ").then(|| "holds two spaces side by side".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn names_that_fossil_takes_are_taken() {
        for text in
            ["Home", "How to build", "branch/trunk", "日本 😀", "a?b&c", "beef", "-x", &"n".repeat(100)]
        {
            assert_eq!(PageName::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn names_that_fossil_refuses_are_refused() {
        for text in
            ["", " a", "a ", "a  b", "a\nb", "a\tb", "\u{7f}", "a\0", &"n".repeat(101), &"é".repeat(51)]
        {
            assert_eq!(PageName::parse(text).unwrap_err().kind(), Kind::Invalid, "{text:?}");
        }
    }
}
