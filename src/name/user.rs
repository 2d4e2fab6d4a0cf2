//! The name of a user, as in `U` cards and logins.

use super::rule::{look_alike, refused, text_value};
use crate::error::Result;

/// The longest user name, in bytes.
const MAX: usize = 60;

/// A user's login name.
///
/// ```
/// use ocx::name::User;
/// assert!(User::parse("anonymous").is_ok());
/// assert!(User::parse_new("anonymous").is_err());
/// assert!(User::parse_new("claude-1a2b3c4d").is_ok());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct User(Box<str>);

impl User {
    /// The group of everyone, with a login or without.
    pub const NOBODY: &str = "nobody";
    /// The group of everyone with a login.
    pub const ANONYMOUS: &str = "anonymous";
    /// The group of those with the capability `u`.
    pub const READER: &str = "reader";
    /// The group of those with the capability `v`.
    pub const DEVELOPER: &str = "developer";
    /// The names under which Fossil keeps the capabilities of whole groups.
    pub const GROUPS: [&str; 4] = [Self::NOBODY, Self::ANONYMOUS, Self::READER, Self::DEVELOPER];

    /// Takes the name of a user that exists somewhere.
    ///
    /// # Errors
    /// `Invalid`, naming the rule: 1 to 60 bytes, printable, no space, quote or backslash, no
    /// leading dash.
    pub fn parse(text: &str) -> Result<Self> {
        let hint = "Give the login name as Fossil's user list shows it.";
        let fits = |c: char| {
            (c.is_ascii_graphic() && !"\"'`\\<>".contains(c)) || (!c.is_ascii() && c.is_alphanumeric())
        };
        let rule = if text.is_empty() {
            "is empty".to_owned()
        } else if text.len() > MAX {
            format!("is {} bytes long, over {MAX}", text.len())
        } else if let Some(c) = text.chars().find(|&c| !fits(c)) {
            format!("holds `{}`", super::shown::shown(c.to_string().as_bytes()))
        } else if text.starts_with('-') {
            "begins with a dash, as an option does".to_owned()
        } else {
            return Ok(Self(text.into()));
        };
        Err(refused("user name", text, rule, hint))
    }

    /// Takes the name of a user who is to be made. The rules are narrower.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse). Also for characters outside ASCII letters, digits and `-_.@+`, for Fossil's
    /// group names, and for what reads as a hash, a date or a special word.
    pub fn parse_new(text: &str) -> Result<Self> {
        let user = Self::parse(text)?;
        let hint = "Choose another name, of letters, digits, `-`, `_`, `.`, `@` and `+`.";
        if let Some(c) = text.chars().find(|&c| !c.is_ascii_alphanumeric() && !"-_.@+".contains(c)) {
            return Err(refused("user name", text, format!("holds `{c}`"), hint));
        }
        if user.is_group() {
            return Err(refused("user name", text, "is one of Fossil's groups", hint));
        }
        match look_alike(text) {
            Some(why) => Err(refused("user name", text, why, hint)),
            None => Ok(user),
        }
    }

    /// Whether this is the name of one of Fossil's groups, in any case of its letters. Others inherit the rights of a
    /// group, and nobody can be one.
    #[must_use]
    pub fn is_group(&self) -> bool {
        Self::GROUPS.iter().any(|group| group.eq_ignore_ascii_case(&self.0))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_value!(User);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn names_that_exist_in_repositories_are_taken() {
        for text in ["drh", "jan.nijtmans", "a@b.c", "nobody", "José", "o:x", "dead"] {
            assert_eq!(User::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn a_card_cannot_be_forged_through_a_user_name() {
        for text in ["", "a b", "a\nU boss", "a\\sb", "a\"b", "-x", "a\u{202e}b", "a\0b"] {
            assert_eq!(User::parse(text).unwrap_err().kind(), Kind::Invalid, "{text:?}");
        }
    }

    #[test]
    fn a_new_user_gets_an_unmistakable_name() {
        for text in
            ["Nobody", "anonymous", "reader", "developer", "tip", "cafe", "2024-01-01", "José", "a/b", "a:b"]
        {
            assert_eq!(User::parse_new(text).unwrap_err().kind(), Kind::Invalid, "{text}");
        }
        assert!(User::parse_new("claude-1a2b3c4d").is_ok());
    }
}
