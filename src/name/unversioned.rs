//! The name of an unversioned file.

use super::rule::{refused, text_value};
use crate::error::Result;

/// The longest name that Fossil takes, in bytes.
const MAX: usize = 500;

/// The name of an unversioned file: a relative path without white space, as `fossil unversioned add` takes it.
///
/// ```
/// use ocx::name::UnversionedName;
/// assert!(UnversionedName::parse("download/ocx-1.0.zip").is_ok());
/// assert!(UnversionedName::parse("a b.bin").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnversionedName(Box<str>);

impl UnversionedName {
    /// Takes a name.
    ///
    /// # Errors
    /// `Invalid`, naming the rule: 1 to 500 bytes, relative, no part empty, `.` or `..`, no white space, control character
    /// or backslash, no character that Fossil cannot store (beyond U+FFFF, private use).
    pub fn parse(text: &str) -> Result<Self> {
        let Some(rule) = broken_rule(text) else { return Ok(Self(text.into())) };
        let hint = "Give a relative path without spaces, as in `download/tool-1.0.zip`.";
        Err(refused("unversioned file name", text, rule, hint))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_value!(UnversionedName);

fn broken_rule(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("is empty".into());
    }
    if text.len() > MAX {
        return Some(format!("is {} bytes long, over {MAX}", text.len()));
    }
    if text.starts_with('/') {
        return Some("is absolute".into());
    }
    if text.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Some("has an empty part, `.` or `..`".into());
    }
    let c = text
        .chars()
        .find(|&c| c == '\\' || c.is_whitespace() || c.is_control() || !super::path::fossil_stores(c))?;
    Some(if c.is_whitespace() {
        format!("holds white space (U+{:04X})", u32::from(c))
    } else {
        format!("holds U+{:04X}, which it may not", u32::from(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn s10_names_outside_the_rules_are_refused_with_the_rule() {
        let long = "n".repeat(501);
        for (text, rule) in [
            ("a b.bin", "white space"),
            ("../x", "`..`"),
            ("/abs", "absolute"),
            ("n\nl", "white space"),
            (long.as_str(), "501 bytes"),
            ("", "empty"),
            ("a//b", "empty part"),
            ("a/", "empty part"),
            ("a\\b", "U+005C"),
            ("a\0b", "U+0000"),
            ("e\u{1f600}", "U+1F600"),
        ] {
            let e = UnversionedName::parse(text).unwrap_err();
            assert_eq!(e.kind(), Kind::Invalid);
            assert!(e.to_string().contains(rule), "{e}");
        }
    }

    #[test]
    fn plain_names_are_taken() {
        for text in ["ok.bin", "a/b.c/d", "日本", "-x", "..a", &"n".repeat(500)] {
            assert_eq!(UnversionedName::parse(text).unwrap().as_str(), text);
        }
    }
}
