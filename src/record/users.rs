//! The logins of a repository: who they are, what they may do, and their passwords.
//!
//! A password goes in and is compared. It never comes out, and neither does what is stored of it.

use rusqlite::{Connection, OptionalExtension};
use subtle::ConstantTimeEq;

use super::author::{Author, write_as};
use crate::error::{Error, Kind, Result};
use crate::name::{Password, User};
use crate::repo::Repository;
use crate::repo::store::{has_table, no_user, text};

/// The capability letters that Fossil knows.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz234567ACD";

/// The logins of a repository.
///
/// ```
/// use ocx::{name::{User, Password}, repo::{NewRepository, Repository}, record::Users};
/// let folder = tempfile::tempdir()?;
/// let (ann, bob) = (User::parse("ann")?, User::parse_new("bob")?);
/// let repository = Repository::create(&folder.path().join("r.fossil"), &NewRepository { user: ann.clone() })?;
/// let users = Users::of(&repository);
/// users.create(&bob, "io", "Bob, from next door", Some(&Password::parse("secret")?), &ann)?;
/// assert!(users.check(&bob, &Password::parse("secret")?)?);
/// assert!(!users.check(&bob, &Password::parse("Secret")?)?);
/// assert!(users.set_capabilities(&bob, "!!", &ann).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Users {
    repository: Repository,
}

/// A login as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The name as stored.
    pub name: String,
    /// Its own capability letters, as stored.
    pub caps: String,
    /// Contact information.
    pub info: String,
    /// Whether it has a password.
    pub has_password: bool,
}

impl Users {
    /// The logins of `repository`.
    #[must_use]
    pub fn of(repository: &Repository) -> Self {
        Self { repository: repository.clone() }
    }

    /// Returns all logins, by name. Fossil's groups, such as `nobody`, are among them.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn list(&self) -> Result<Vec<Login>> {
        self.repository.store().ask(|db| {
            let sql = "SELECT login, cap, info, coalesce(length(pw), 0)>0 FROM user ORDER BY login";
            db.prepare_cached(sql)?
                .query_map([], |row| {
                    Ok(Login {
                        name: text(row, 0)?,
                        caps: text(row, 1)?,
                        info: text(row, 2)?,
                        has_password: row.get(3)?,
                    })
                })?
                .collect()
        })
    }

    /// Makes a login, in the name of `by`. Without a password nobody can log in as it.
    ///
    /// # Errors
    /// [`Kind::Exists`] if there is one of that name, in any case of its letters; [`Kind::Invalid`] for a name that a
    /// new login may not have ([`User::parse_new`]), for letters that Fossil does not know and for contact information
    /// of several lines; [`Kind::NotFound`] for `by`; [`Kind::Busy`], [`Kind::DiskFull`].
    pub fn create(
        &self,
        user: &User,
        caps: &str,
        info: &str,
        password: Option<&Password>,
        by: &User,
    ) -> Result<()> {
        let user = User::parse_new(user.as_str())?;
        let caps = checked(caps)?;
        if info.contains(char::is_control) {
            return Err(Error::new(
                Kind::Invalid,
                format!("the contact information of `{user}` holds a control character"),
            )
            .with_hint("Give one line of text."));
        }
        let info = info.to_owned();
        let secret = password.map(|password| self.secret(&user, password)).transpose()?.unwrap_or_default();
        self.write(by, move |db| {
            refuse_taken(db, &user)?;
            let sql =
                "INSERT INTO user(login, pw, cap, info, mtime) VALUES(?1, ?2, ?3, ?4, strftime('%s', 'now'))";
            Ok(db.execute(sql, (user.as_str(), secret, caps, info)).map(drop)?)
        })
    }

    /// Gives a login exactly these capability letters.
    ///
    /// # Errors
    /// Those of [`create`](Self::create); [`Kind::NotFound`] for an unknown user, [`Kind::Denied`] if nobody would be
    /// left who may do everything.
    pub fn set_capabilities(&self, user: &User, caps: &str, by: &User) -> Result<()> {
        let (user, caps) = (user.clone(), checked(caps)?);
        self.write(by, move |db| {
            let sql = "UPDATE user SET cap=?2, mtime=strftime('%s', 'now') WHERE login=?1";
            changed_one(&user, db.execute(sql, (user.as_str(), caps))?)?;
            refuse_masterless(db)
        })
    }

    /// Gives a login a new password.
    ///
    /// # Errors
    /// Those of [`create`](Self::create); [`Kind::NotFound`] for an unknown user, [`Kind::Invalid`] for a group.
    pub fn set_password(&self, user: &User, password: &Password, by: &User) -> Result<()> {
        if User::GROUPS.contains(&user.as_str()) {
            return Err(Error::new(Kind::Invalid, format!("`{user}` is a group, which has no password"))
                .with_hint("Give the password to a login of a person or an agent."));
        }
        let (user, secret) = (user.clone(), self.secret(user, password)?);
        self.write(by, move |db| {
            let sql = "UPDATE user SET pw=?2, mtime=strftime('%s', 'now') WHERE login=?1";
            changed_one(&user, db.execute(sql, (user.as_str(), secret))?)
        })
    }

    /// Gives a login another name. What was written under the old name stays under it. A password is bound to the
    /// name, so nobody can log in as it until it has a new one.
    ///
    /// # Errors
    /// Those of [`create`](Self::create); [`Kind::NotFound`] for an unknown user.
    pub fn rename(&self, user: &User, to: &User, password: Option<&Password>, by: &User) -> Result<()> {
        let (user, to) = (user.clone(), User::parse_new(to.as_str())?);
        let secret = password.map(|password| self.secret(&to, password)).transpose()?.unwrap_or_default();
        self.write(by, move |db| {
            if !user.as_str().eq_ignore_ascii_case(to.as_str()) {
                refuse_taken(db, &to)?;
            }
            let sql = "UPDATE user SET login=?2, pw=?3, mtime=strftime('%s', 'now') WHERE login=?1";
            changed_one(&user, db.execute(sql, (user.as_str(), to.as_str(), secret))?)?;
            if has_table(db, "subscriber")? {
                let sql = "UPDATE subscriber SET suname=?2 WHERE suname=?1";
                db.execute(sql, [user.as_str(), to.as_str()])?;
            }
            Ok(())
        })
    }

    /// Removes a login and its subscriptions. What it wrote stays.
    ///
    /// # Errors
    /// [`Kind::NotFound`] for an unknown user, [`Kind::Denied`] if nobody would be left who may do everything;
    /// [`Kind::Busy`], [`Kind::DiskFull`].
    pub fn remove(&self, user: &User, by: &User) -> Result<()> {
        let user = user.clone();
        self.write(by, move |db| {
            changed_one(&user, db.execute("DELETE FROM user WHERE login=?1", [user.as_str()])?)?;
            if has_table(db, "subscriber")? {
                db.execute("DELETE FROM subscriber WHERE suname=?1", [user.as_str()])?;
            }
            refuse_masterless(db)
        })
    }

    /// Whether `password` opens the login, by Fossil's rules. It never opens a group, a login without capabilities, or
    /// a login after the date in an `expires 20..` of its contact information.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn check(&self, user: &User, password: &Password) -> Result<bool> {
        if User::GROUPS.contains(&user.as_str()) {
            return Ok(false);
        }
        let stored = self.repository.store().ask(|db| {
            let sql = "SELECT pw FROM user WHERE login=?1 AND length(cap)>0 AND length(pw)>0
                 AND (info IS NULL OR info NOT LIKE '%expires 20%'
                   OR substr(info, instr(lower(info), 'expires')+8, 10)>datetime('now'))";
            db.prepare_cached(sql)?.query_row([user.as_str()], |row| text(row, 0)).optional()
        })?;
        let Some(stored) = stored else { return Ok(false) };
        // What is not 40 characters long is the password itself, as in old repositories.
        let given =
            if stored.len() == 40 { self.secret(user, password)? } else { password.reveal().to_owned() };
        Ok(stored.as_bytes().ct_eq(given.as_bytes()).into())
    }

    /// Returns what Fossil stores of a password.
    fn secret(&self, user: &User, password: &Password) -> Result<String> {
        Ok(password.secret(&self.repository.store().project_code()?, user))
    }

    fn write(&self, by: &User, act: impl FnOnce(&Connection) -> Result<()> + Send + 'static) -> Result<()> {
        write_as(&self.repository, by, move |author: &mut Author<'_, '_>| author.unprotected(act))
    }
}

/// Returns capability letters without doubles, if Fossil knows each of them.
fn checked(caps: &str) -> Result<String> {
    let mut letters = String::new();
    for letter in caps.chars() {
        if !LETTERS.contains(letter) {
            let shown = crate::name::shown(letter.to_string().as_bytes());
            return Err(Error::new(Kind::Invalid, format!("`{shown}` is no capability"))
                .with_hint(format!("Give letters of `{LETTERS}`.")));
        }
        if !letters.contains(letter) {
            letters.push(letter);
        }
    }
    Ok(letters)
}

/// Refuses a name that is taken in any case of its letters. People would mistake one for the other.
fn refuse_taken(db: &Connection, user: &User) -> Result<()> {
    let sql = "SELECT login FROM user WHERE lower(login)=lower(?1)";
    match db.query_row(sql, [user.as_str()], |row| text(row, 0)).optional()? {
        None => Ok(()),
        Some(taken) => {
            Err(Error::new(Kind::Exists, format!("there is a user `{taken}`"))
                .with_hint("Choose another name."))
        }
    }
}

fn refuse_masterless(db: &Connection) -> Result<()> {
    if db.prepare("SELECT 1 FROM user WHERE cap GLOB '*s*'")?.exists([])? {
        return Ok(());
    }
    Err(Error::new(Kind::Denied, "nobody would be left who may do everything")
        .with_hint("Give the capability `s` to another login first."))
}

fn changed_one(user: &User, rows: usize) -> Result<()> {
    if rows > 0 {
        return Ok(());
    }
    Err(no_user(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_letters_that_fossil_knows_are_capabilities() {
        assert_eq!(checked("ioi4").unwrap(), "io4");
        assert_eq!(checked("").unwrap(), "");
        for bad in ["!!", "i o", "8", "B", "é", "i\0"] {
            assert_eq!(checked(bad).unwrap_err().kind(), Kind::Invalid, "{bad:?}");
        }
    }
}
