//! Fossil's settings as a checkout finds them, in Fossil's order: a file of the tree, then the repository, then what the
//! user has set for all repositories.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::error::{Error, Kind, Result};
use crate::name::TreePath;
use crate::repo::Repository;
use crate::repo::store::means_yes;
use crate::tree::Tree;

/// The most bytes of a file under `.fossil-settings`.
const SETTING_MAX: u64 = 1 << 20;

/// The settings read here that Fossil also takes from a file of the tree.
pub(super) const VERSIONABLE: [&str; 3] = ["dotfiles", "ignore-glob", "manifest"];

/// Where the settings of a checkout are read.
pub(super) struct Settings<'a> {
    repository: &'a Repository,
    tree: &'a Tree,
    global: Option<&'a GlobalSettings>,
}

impl<'a> Settings<'a> {
    pub fn of(repository: &'a Repository, tree: &'a Tree, global: Option<&'a GlobalSettings>) -> Self {
        Self { repository, tree, global }
    }

    /// The value of a setting. Nothing if it is set nowhere.
    pub fn value(&self, name: &str) -> Result<Option<String>> {
        if VERSIONABLE.contains(&name)
            && let Some(value) = self.versioned(name)?
        {
            return Ok(Some(value));
        }
        match (self.repository.store().setting(name)?, self.global) {
            (None, Some(global)) => global.value(name),
            (value, _) => Ok(value),
        }
    }

    /// Whether a setting is on that is off by default.
    pub fn is_on(&self, name: &str) -> Result<bool> {
        Ok(self.value(name)?.is_some_and(|value| means_yes(&value)))
    }

    fn versioned(&self, name: &str) -> Result<Option<String>> {
        let path = TreePath::parse(&format!(".fossil-settings/{name}"))?;
        match self.tree.read(&path, SETTING_MAX) {
            Ok(bytes) => Ok(Some(without_comments(&String::from_utf8_lossy(&bytes)))),
            // There is no such file, or a folder or a link stands there.
            Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Invalid | Kind::Denied) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// The text without lines that begin with `#`. A line that begins with `\#` loses the backslash.
fn without_comments(text: &str) -> String {
    let lines = text.split_inclusive('\n').filter(|line| !line.starts_with('#'));
    let lines: String = lines.map(|line| if line.starts_with("\\#") { &line[1..] } else { line }).collect();
    lines.trim_matches(|c: char| matches!(c, ' ' | '\t'..='\r')).to_owned()
}

/// The settings that a user has made for all repositories: Fossil's own file, such as `~/.config/fossil.db`. It is only
/// read. A host names it or does not; the library looks for none.
#[derive(Debug, Clone)]
pub(super) struct GlobalSettings(PathBuf);

impl GlobalSettings {
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Nothing if there is no such file, or none with settings.
    fn value(&self, name: &str) -> Result<Option<String>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if !self.0.is_file() {
            return Ok(None);
        }
        let read = || {
            let db = Connection::open_with_flags(&self.0, flags)?;
            db.busy_timeout(super::database::BUSY_TIMEOUT)?;
            let sql = "SELECT CAST(value AS TEXT) FROM global_config WHERE name=?1";
            db.query_row(sql, [name], |row| row.get(0)).optional()
        };
        read().map_err(|e| {
            let what = format!("cannot read the user's settings in `{}`: {e}", self.0.display());
            Error::new(Kind::Io, what).caused_by(e)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_stripped_as_fossil_strips_them() {
        for (text, value) in [
            ("", ""),
            ("# only\n", ""),
            ("*.o\n# c\n*.a\n", "*.o\n*.a"),
            ("\\#x\n #y\n", "#x\n #y"),
            ("#a\r\n on \r\n", "on"),
            ("a#b", "a#b"),
        ] {
            assert_eq!(without_comments(text), value, "{text:?}");
        }
    }
}
