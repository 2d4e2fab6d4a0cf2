//! What the repository's variables and settings say, read as Fossil reads them.

use super::column::text;
use super::{Store, foreign};
use crate::error::Result;
use crate::name::Hash;
use crate::repo::setting::{GlobalSettings, Settings};

/// Fossil's name for the branch that a project goes on on, where its setting names no other.
const TRUNK: &str = "trunk";

impl Store {
    /// The project's code: the same in all its clones, different in any other project.
    ///
    /// # Errors
    /// [`Kind::Foreign`](crate::error::Kind::Foreign) when the file has none.
    pub fn project_code(&self) -> Result<String> {
        self.variable("project-code")?.ok_or_else(|| foreign(&self.path, "it has no project code"))
    }

    /// The project's name, if one was given.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn project_name(&self) -> Result<Option<String>> {
        self.variable("project-name")
    }

    /// The URL that was last synced with, without the password.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn remote_url(&self) -> Result<Option<String>> {
        let url = self.variable("last-sync-url")?;
        Ok(url.filter(|url| !url.is_empty() && url != "off"))
    }

    /// The value of a variable of this repository alone.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn variable(&self, name: &str) -> Result<Option<String>> {
        self.first("SELECT value FROM config WHERE name=?1", [name], |row| text(row, 0))
    }

    /// The value of a setting: this repository's, else the one that its user has for all repositories, where a host
    /// named the file of those.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn setting(&self, name: &str) -> Result<Option<String>> {
        Settings::of_repository(self).value(name)
    }

    /// Whether a setting is on.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn is_on(&self, name: &str) -> Result<bool> {
        Settings::of_repository(self).is_on(name)
    }

    /// The name of the main branch: what the setting `main-branch` says, else `trunk`.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn main_branch(&self) -> Result<String> {
        let name = self.setting("main-branch")?.filter(|name| !name.is_empty());
        Ok(name.unwrap_or_else(|| TRUNK.to_owned()))
    }

    /// Whether this is the name of the main branch. `trunk` is one whatever the setting says.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`](crate::error::Kind::Busy), [`Kind::Corrupt`](crate::error::Kind::Corrupt).
    pub fn is_main_branch(&self, name: &str) -> Result<bool> {
        Ok(name == TRUNK || name == self.main_branch()?)
    }

    /// The settings that the repository's user has for all repositories.
    pub(crate) fn user_settings(&self) -> Option<&GlobalSettings> {
        self.user_settings.as_ref()
    }

    /// The name that content has here, or gets by the repository's hash policy: content that is known under the name
    /// of the other algorithm keeps that, unless the policy forbids it.
    pub(crate) fn name_for(&self, content: &[u8]) -> Result<Hash> {
        let policy = self.hash_policy()?;
        let by_sha1 = matches!(policy, HashPolicy::Sha1 | HashPolicy::Auto);
        if !matches!(policy, HashPolicy::Sha3Only | HashPolicy::ShunSha1) {
            let other = Hash::name_for(content, !by_sha1);
            if self.rid(&other)?.is_some() {
                return Ok(other);
            }
        }
        Ok(Hash::name_for(content, by_sha1))
    }

    /// Whether the hash policy names new content by SHA1.
    pub(crate) fn names_by_sha1(&self) -> Result<bool> {
        Ok(matches!(self.hash_policy()?, HashPolicy::Sha1 | HashPolicy::Auto))
    }

    fn hash_policy(&self) -> Result<HashPolicy> {
        if let Some(policy) = self.variable("hash-policy")? {
            return Ok(match policy.trim() {
                "0" => HashPolicy::Sha1,
                "1" => HashPolicy::Auto,
                "3" => HashPolicy::Sha3Only,
                "4" => HashPolicy::ShunSha1,
                _ => HashPolicy::Sha3,
            });
        }
        // Fossil has not opened it since it knows SHA3. It will choose by what it finds.
        let sql = "SELECT max(length(uuid))=40 FROM blob";
        let old = self.first(sql, [], |row| row.get::<_, Option<bool>>(0))?.flatten().unwrap_or(false);
        Ok(if old { HashPolicy::Auto } else { HashPolicy::Sha3 })
    }
}

/// How a repository names new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HashPolicy {
    Sha1,
    /// By SHA1 until something has a SHA3 name.
    Auto,
    /// By SHA3, except for content that has a SHA1 name already.
    Sha3,
    Sha3Only,
    ShunSha1,
}
