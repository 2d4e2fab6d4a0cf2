//! Checked values: artifact hash, branch, tag, user, wiki page, unversioned file, and file path in a tree.
//!
//! A value here has passed its rules once, so the rest of the library can hand it to Fossil, to the
//! disk and to a person without asking again. Looking a name up in a repository is `repo`'s work;
//! nothing here reads a file or a database.

mod amount;
mod branch;
mod hash;
mod page;
mod password;
mod path;
mod shown;
mod span;
mod tag;
pub mod time;
mod unversioned;
mod user;

pub use amount::Amount;
pub use branch::Branch;
pub use hash::Hash;
pub use page::PageName;
pub use password::Password;
pub use path::{TEMP_PREFIX, TreePath};
pub use shown::shown;
pub use span::Span;
pub use tag::TagName;
pub use unversioned::UnversionedName;
pub use user::User;

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
use text_value;

/// A refused name: "`what` `text` breaks the rule".
fn refused(what: &str, text: &str, rule: impl AsRef<str>, hint: impl Into<String>) -> Error {
    let text = shown::cut_shown(text.as_bytes());
    Error::new(Kind::Invalid, format!("{what} `{text}` {}", rule.as_ref())).with_hint(hint)
}

/// Says why Fossil would read `text` as something other than a plain name, if it would.
///
/// Fossil looks for its special words first, then dates, then hash prefixes, and only then for a
/// branch or tag of that name.
fn look_alike(text: &str) -> Option<&'static str> {
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
