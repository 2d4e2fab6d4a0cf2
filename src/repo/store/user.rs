//! Users and what they may do, by Fossil's rules for capabilities.

use super::Store;
use super::column::text;
use crate::error::{Error, Kind, Result};
use crate::name::User;

/// A user of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserInfo {
    /// The user's own capability letters, as stored.
    pub caps: String,
    /// Contact information, as stored.
    pub info: String,
}

/// A set of effective capabilities. A letter is in it if it was given, inherited, or comes with another letter (`s`
/// brings all that `a` does, `i` brings `o`, ...).
///
/// ```
/// use ocx::repo::store::Capabilities;
/// let caps = Capabilities::from_letters("iv4");
/// assert!(caps.has('o') && caps.has('3') && !caps.has('a'));
/// assert_eq!(caps.to_string(), "234iov");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u128);

/// The letters that come with a letter, without itself: the same as in Fossil's `login_set_capabilities`.
fn comes_with(letter: char) -> &'static str {
    match letter {
        's' => "abcefghijklmnopqrtwz234567ACD",
        'a' => "bcefghijklmnopqrtwz234567ACD",
        'i' => "o",
        'k' => "jm",
        'w' => "rnc",
        '6' => "5432",
        '5' => "432",
        '4' => "32",
        '3' => "2",
        _ => "",
    }
}

impl Capabilities {
    /// Returns the capabilities that `letters` give by themselves. `u` and `v` stay letters.
    #[must_use]
    pub fn from_letters(letters: &str) -> Self {
        let mut set = Self::default();
        for letter in letters.chars() {
            set.insert(letter);
            comes_with(letter).chars().for_each(|letter| set.insert(letter));
        }
        set
    }

    /// Whether the capability is in the set.
    #[must_use]
    pub fn has(self, letter: char) -> bool {
        letter.is_ascii_alphanumeric() && self.0 >> (letter as u32) & 1 == 1
    }

    fn insert(&mut self, letter: char) {
        if letter.is_ascii_alphanumeric() {
            self.0 |= 1 << (letter as u32);
        }
    }

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::fmt::Display for Capabilities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let order = ('0'..='9').chain('a'..='z').chain('A'..='Z');
        order.filter(|letter| self.has(*letter)).try_for_each(|letter| write!(f, "{letter}"))
    }
}

impl Store {
    /// A user's record.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn user(&self, user: &User) -> Result<Option<UserInfo>> {
        let sql = "SELECT cap, info FROM user WHERE login=?1";
        self.first(sql, [user.as_str()], |row| Ok(UserInfo { caps: text(row, 0)?, info: text(row, 1)? }))
    }

    /// Returns who acts in this repository if nobody else is named, as Fossil chooses: the user of the setting
    /// `default-user`, or else the first user who may do everything. Returns nothing if there is neither.
    ///
    /// # Errors
    /// [`Kind::Invalid`] if that name is no user name; [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn default_user(&self) -> Result<Option<User>> {
        let name = match self.variable("default-user")? {
            Some(name) => Some(name),
            None => self.first_user()?,
        };
        name.map(|name| User::parse(&name)).transpose()
    }

    /// Returns the login of the first user who may do everything.
    pub(crate) fn first_user(&self) -> Result<Option<String>> {
        self.first("SELECT login FROM user WHERE cap GLOB '*s*' ORDER BY uid", [], |row| text(row, 0))
    }

    /// Returns what a user may do. These are the user's own letters, those of `reader` (`u`) and `developer` (`v`),
    /// and those that everyone (`nobody`) and every login (`anonymous`) has.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when there is no such user.
    pub fn capabilities(&self, user: &User) -> Result<Capabilities> {
        let [everyone, every_login, reader, developer] = User::GROUPS;
        let sql = "SELECT login, cap FROM user WHERE login IN (?1, ?2, ?3, ?4, ?5)";
        let names = [user.as_str(), everyone, every_login, reader, developer];
        let found = self.rows(sql, names, |row| Ok((text(row, 0)?, text(row, 1)?)))?;
        let letters = |login: &str| {
            let caps = found.iter().find(|(name, _)| name == login).map(|(_, caps)| caps.as_str());
            caps.map(Capabilities::from_letters)
        };
        let Some(own) = letters(user.as_str()) else {
            return Err(no_user(user));
        };
        let mut all = own.union(letters(everyone).unwrap_or_default());
        if user.as_str() != everyone {
            all = all.union(letters(every_login).unwrap_or_default());
        }
        // Twice, because `reader` itself may have `v`, and `developer` may have `u`.
        for _ in 0..2 {
            for (letter, role) in [('u', reader), ('v', developer)] {
                if all.has(letter) {
                    all = all.union(letters(role).unwrap_or_default());
                }
            }
        }
        Ok(all)
    }
}

/// The error for a login that the repository does not have.
pub(crate) fn no_user(user: &User) -> Error {
    Error::new(Kind::NotFound, format!("no user `{user}`")).with_hint("Give a login that the repository has.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_bring_what_fossil_lets_them_bring() {
        let brings = |letters: &str| Capabilities::from_letters(letters).to_string();
        assert_eq!(brings("w"), "cnrw");
        assert_eq!(brings("k"), "jkm");
        assert_eq!(brings("6"), "23456");
        assert!(Capabilities::from_letters("s").has('a'));
        assert!(!Capabilities::from_letters("a").has('s'));
        assert!(!Capabilities::from_letters("s").has('y'));
        assert!(!Capabilities::from_letters("s").has('x'));
    }

    #[test]
    fn letters_that_are_none_are_dropped() {
        assert_eq!(Capabilities::from_letters("!! é\0").to_string(), "");
        assert!(!Capabilities::default().has('!'));
    }
}
