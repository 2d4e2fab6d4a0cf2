//! Where a repository is synced with: a URL and, apart from it, a login.
//!
//! The URL that is kept, shown and compared never holds credentials, and a password is never shown at
//! all. Only `http` and `https` are known: OCX starts no `ssh` and syncs with no file.

use std::fmt;

use super::connection::Connection;
use super::url::Url;
use crate::error::{Error, Kind, Result};
use crate::name::{Password, User};

/// A server's repository and the login to use there.
///
/// ```
/// use ocx::sync::remote::Remote;
/// let remote = Remote::parse("https://ann:s%40cret@example.org/project")?;
/// assert_eq!(remote.to_string(), "https://example.org/project");
/// assert_eq!(remote.user().unwrap().as_str(), "ann");
/// assert_eq!(remote.password().unwrap().reveal(), "s@cret");
/// assert!(!format!("{remote:?}").contains("cret"));
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    url: Url,
    user: Option<User>,
    password: Option<Password>,
    connection: Connection,
}

impl Remote {
    /// Takes a URL such as `https://USER:PASSWORD@HOST:PORT/PATH`. User, password, port and path may be missing.
    /// Special characters in user and password are percent-encoded.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] for other schemes, [`Kind::Invalid`] for anything else that is wrong. The
    /// message never repeats what might be a password.
    pub fn parse(text: &str) -> Result<Self> {
        let (scheme, rest) = text.split_once("://").unwrap_or((text.split(':').next().unwrap_or(""), ""));
        let authority_len = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(authority_len);
        let (userinfo, host) = match authority.rsplit_once('@') {
            Some((userinfo, host)) => (Some(userinfo), host),
            None => (None, authority),
        };
        let url = Url::new(scheme, host, path)?;
        let (mut user, mut password) = (None, None);
        if let Some(userinfo) = userinfo.filter(|userinfo| !userinfo.is_empty()) {
            let (name, secret) = userinfo.split_once(':').unwrap_or((userinfo, ""));
            user = Some(User::parse(&percent_decoded(name)?)?);
            password = Some(secret)
                .filter(|s| !s.is_empty())
                .map(|secret| Password::parse(&percent_decoded(secret)?))
                .transpose()?;
        }
        Ok(Self { url, user, password, connection: Connection::default() })
    }

    /// The same place with another login.
    #[must_use]
    pub fn with_login(self, user: User, password: Password) -> Self {
        Self { user: Some(user), password: Some(password), ..self }
    }

    /// The same with the password, where it names a user and has none yet.
    #[must_use]
    pub fn with_password(self, password: Option<&Password>) -> Self {
        match (&self.user, &self.password, password) {
            (Some(_), None, Some(password)) => Self { password: Some(password.clone()), ..self },
            _ => self,
        }
    }

    /// The same place and login, reached in another way. Otherwise it is the way that the whole process
    /// shares: [`Connection::default`].
    #[must_use]
    pub fn over(self, connection: Connection) -> Self {
        Self { connection, ..self }
    }

    /// How it is reached.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The URL, without credentials.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.to_string()
    }

    /// The URL with the user, but without the password: what Fossil remembers, in the form in which it reads it.
    #[must_use]
    pub fn url_with_user(&self) -> String {
        let login = self.user.as_ref().map(|user| format!("{}@", percent_encoded(user.as_str())));
        self.url.kept(&login.unwrap_or_default())
    }

    /// The user to log in as.
    #[must_use]
    pub fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// The password, where one was given.
    #[must_use]
    pub fn password(&self) -> Option<&Password> {
        self.password.as_ref()
    }

    /// User and password. Returns nothing if either is missing.
    #[must_use]
    pub fn login(&self) -> Option<(&User, &Password)> {
        self.user.as_ref().zip(self.password.as_ref())
    }

    pub(crate) fn place(&self) -> &Url {
        &self.url
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

fn percent_encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn percent_decoded(text: &str) -> Result<String> {
    let wrong = || {
        Error::new(Kind::Invalid, "the user or password in the URL is wrongly encoded")
            .with_hint("Write each special character in them as `%` and two hex digits.")
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).ok_or_else(wrong)?;
        let value =
            digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?));
        bytes.push(value.and_then(|value| u8::try_from(value).ok()).ok_or_else(wrong)?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind(url: &str) -> Kind {
        Remote::parse(url).unwrap_err().kind()
    }

    #[test]
    fn the_parts_of_a_url_are_told_apart() {
        let remote = Remote::parse("HTTP://bob:p%3Aw%2F@Host.Example:8080/a/b%20c").unwrap();
        assert_eq!(remote.url(), "http://host.example:8080/a/b%20c");
        let (user, password) = remote.login().unwrap();
        assert_eq!((user.as_str(), password.reveal()), ("bob", "p:w/"));
        let remote = Remote::parse("http://127.0.0.1").unwrap();
        assert_eq!((remote.url().as_str(), remote.user()), ("http://127.0.0.1", None));
        let remote = Remote::parse("https://ann@[::1]:8443/").unwrap();
        assert_eq!(remote.url(), "https://[::1]:8443/");
        assert!(remote.user().is_some() && remote.password().is_none() && remote.login().is_none());
        assert_eq!(remote.url_with_user(), "https://ann@%3A%3A1:8443/");
        assert_eq!(Remote::parse(&remote.url_with_user()).unwrap(), remote);
        assert_eq!(Remote::parse("http://%3a%3A1/x").unwrap().url(), "http://[::1]/x");
        assert_eq!(Remote::parse("http://a:b@c@h/").unwrap().password().unwrap().reveal(), "b@c");
    }

    #[test]
    fn other_schemes_are_unsupported() {
        for url in ["file:///tmp/x", "ssh://host/x", "ftp://h/", "/tmp/x.fossil", "x.fossil", "", "file:x"] {
            assert_eq!(kind(url), Kind::Unsupported, "{url}");
        }
    }

    #[test]
    fn malformed_urls_are_refused() {
        for url in [
            "http://",
            "http:///x",
            "http://h:x/",
            "http://h:0/",
            "http://h:70000/",
            "http://-oProxy/",
            "http://h h/",
            "http://h/a b",
            "http://h/?q",
            "http://h/#f",
            "http://h/\n",
            "http://u:%zz@h/",
            "http://u:%4@h/",
            "http://u:%00@h/",
            "http://u:%ff@h/",
            "http://a%20b:c@h/",
            "http://[::1/",
            "http://h%3A1/",
            "http://[%3A%3A1]/",
            "http://h\u{e9}/",
        ] {
            assert_eq!(kind(url), Kind::Invalid, "{url}");
        }
    }

    #[test]
    fn s02_a_password_is_in_no_text() {
        for url in [
            "http://u:hunter2@h:x/",
            "http://u:hun/hunter2@h/",
            "http://u:hunter2%@h/",
            "nope://u:hunter2@h/",
        ] {
            if let Err(e) = Remote::parse(url) {
                assert!(!format!("{e} {e:?}").contains("hunter2"), "{e}");
            }
        }
        let remote = Remote::parse("http://u:hunter2@h/").unwrap();
        let password = remote.password().unwrap();
        assert_eq!(format!("{password} {password:?}"), "*** ***");
        assert!(!format!("{remote} {remote:?} {}", remote.url()).contains("hunter2"));
        assert_eq!(password.wiped_from("no hunter2 here"), "no *** here");
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in "(https?://)?[ -~]{0,40}") {
            if let Ok(remote) = Remote::parse(&text) {
                prop_assert_eq!(Remote::parse(&remote.url()).unwrap().url(), remote.url());
            }
        }
    }
}
