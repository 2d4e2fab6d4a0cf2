//! A password, which nothing shows.

use std::fmt;

use sha1::{Digest, Sha1};

use super::hash::Hash;
use super::user::User;
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

    /// What Fossil stores of this password, and what a login proves to know: the SHA1 of the project, the user and the
    /// password, in hex digits.
    #[must_use]
    pub fn secret(&self, project_code: &str, user: &User) -> String {
        Hash::from_digest(&Sha1::digest(format!("{project_code}/{user}/{}", self.0))).to_string()
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
