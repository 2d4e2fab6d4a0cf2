//! A password, which nothing shows.

use std::fmt;

use crate::error::{Error, Kind, Result};

/// A password; it prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Box<str>);

impl Password {
    /// Takes a password.
    ///
    /// # Errors
    /// [`Kind::Invalid`] when it is empty or holds a control character.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(Error::new(Kind::Invalid, "the password is empty or holds a control character")
                .with_hint("Give the password as it was set on the server."));
        }
        Ok(Self(text.into()))
    }

    /// The password itself, for the one place that must have it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// `text` with `***` wherever the password stands in it.
    #[must_use]
    pub fn wiped_from(&self, text: &str) -> String {
        text.replace(&*self.0, "***")
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
