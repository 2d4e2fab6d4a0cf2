//! What the repository's settings say, read as Fossil reads them.

use super::column::text;
use super::{Store, foreign};
use crate::error::Result;

impl Store {
    /// The project's code: the same in all its clones, different in any other project.
    ///
    /// # Errors
    /// [`Kind::Foreign`](crate::error::Kind::Foreign) when the file has none.
    pub fn project_code(&self) -> Result<String> {
        self.setting("project-code")?.ok_or_else(|| foreign(&self.path, "it has no project code"))
    }

    /// The project's name, if one was given.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn project_name(&self) -> Result<Option<String>> {
        self.setting("project-name")
    }

    /// The URL that was last synced with, without the password.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn remote_url(&self) -> Result<Option<String>> {
        let url = self.setting("last-sync-url")?;
        Ok(url.filter(|url| !url.is_empty() && url != "off"))
    }

    /// A setting's value in this repository. Ignores the user's global settings.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn setting(&self, name: &str) -> Result<Option<String>> {
        self.first("SELECT value FROM config WHERE name=?1", [name], |row| text(row, 0))
    }

    /// Whether a setting of this repository is on.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn is_on(&self, name: &str) -> Result<bool> {
        Ok(self.setting(name)?.is_some_and(|value| means_yes(&value)))
    }

    /// Whether the hash policy names new content by SHA1.
    pub(crate) fn names_by_sha1(&self) -> Result<bool> {
        if let Some(policy) = self.setting("hash-policy")? {
            // `sha1`, or `auto`, which means SHA1 until the first SHA3 name.
            return Ok(matches!(policy.as_str(), "0" | "1"));
        }
        // Fossil has not opened it since it knows SHA3. It will choose by what it finds.
        let sql = "SELECT max(length(uuid))=40 FROM blob";
        Ok(self.first(sql, [], |row| row.get::<_, Option<bool>>(0))?.flatten().unwrap_or(false))
    }
}

/// Whether the value means yes.
pub(crate) fn means_yes(value: &str) -> bool {
    is_one_of(value, ["1", "on", "yes", "true"])
}

/// Whether the value means no.
pub(crate) fn means_no(value: &str) -> bool {
    is_one_of(value, ["0", "off", "no", "false"])
}

fn is_one_of(value: &str, words: [&str; 4]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(value.trim()))
}
