//! What the names have in common: their traits, how one is refused, and what Fossil would read as something else.

use super::shown::cut_shown;
use crate::error::{Error, Kind};

/// Gives a checked text value its common traits; the type has `as_str`.
macro_rules! text_value {
    ($type:ident) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($type), "({:?})"), self.as_str())
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl std::str::FromStr for $type {
            type Err = crate::error::Error;

            fn from_str(text: &str) -> crate::error::Result<Self> {
                Self::parse(text)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.as_str())
            }
        }
    };
}
pub(super) use text_value;

/// Refuses a name: "`what` `text` breaks the rule".
pub(super) fn refused(what: &str, text: &str, rule: impl AsRef<str>, hint: impl Into<String>) -> Error {
    let text = cut_shown(text.as_bytes());
    Error::new(Kind::Invalid, format!("{what} `{text}` {}", rule.as_ref())).with_hint(hint)
}

/// Says why Fossil would read `text` as something other than a plain name. Returns nothing if it would not.
///
/// Fossil looks for its special words first, then dates, then hash prefixes, and only then for a
/// branch or tag of that name.
pub(super) fn look_alike(text: &str) -> Option<&'static str> {
    const WORDS: [&str; 7] = ["tip", "current", "prev", "previous", "next", "ckout", "latest"];
    let bytes = text.as_bytes();
    if WORDS.iter().any(|w| w.eq_ignore_ascii_case(text)) {
        return Some("is one of Fossil's special words");
    }
    let date = b"dddd-dd-dd";
    let fits = |(b, d): (&u8, &u8)| if *d == b'd' { b.is_ascii_digit() } else { b == d };
    if bytes.len() >= date.len() && bytes.iter().zip(date).all(fits) {
        return Some("begins like a date");
    }
    let digits = bytes.strip_suffix(b"Z").or_else(|| bytes.strip_suffix(b"z"));
    if digits.is_some_and(|d| d.len() >= 8 && d.iter().all(u8::is_ascii_digit)) {
        return Some("looks like a date");
    }
    if bytes.len() >= 4 && bytes.iter().all(u8::is_ascii_hexdigit) {
        return Some("looks like an artifact hash, being four or more hex digits");
    }
    None
}
