//! The one reader of Fossil's settings, in Fossil's order: a file of the tree, then the repository, then what the user has
//! set for all repositories.

use super::declared::declared;
use super::hooks::{self, Hook};
use crate::error::{Kind, Result};
use crate::name::TreePath;
use crate::repo::store::{Files, Store};
use crate::tree::Tree;

/// The most bytes of a file under `.fossil-settings`.
const SETTING_MAX: u64 = 1 << 20;

/// Where settings are read.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    pub(super) store: &'a Store,
    versioned: Versioned<'a>,
}

/// Where the files of versioned settings are.
#[derive(Clone, Copy)]
enum Versioned<'a> {
    Nowhere,
    Folder(&'a Tree),
    CheckIn(&'a Files),
}

impl<'a> Settings<'a> {
    /// Those of a repository without a tree.
    pub fn of_repository(store: &'a Store) -> Self {
        Self { store, versioned: Versioned::Nowhere }
    }

    /// Those of a checkout whose files are in `tree`.
    pub fn of(store: &'a Store, tree: &'a Tree) -> Self {
        Self { store, versioned: Versioned::Folder(tree) }
    }

    /// Those that a checkout of these files will have.
    pub fn of_check_in(store: &'a Store, files: &'a Files) -> Self {
        Self { store, versioned: Versioned::CheckIn(files) }
    }

    /// The value of a setting. Nothing if it is set nowhere.
    pub fn value(&self, name: &str) -> Result<Option<String>> {
        if declared(name).is_some_and(|setting| setting.versionable)
            && let Some(value) = self.versioned(name)?
        {
            return Ok(Some(value));
        }
        if let Some(value) = self.store.variable(name)? {
            return Ok(Some(value));
        }
        self.store.user_settings().map_or(Ok(None), |global| global.value(name))
    }

    /// Whether a setting is on that is off by default.
    pub fn is_on(&self, name: &str) -> Result<bool> {
        Ok(self.value(name)?.is_some_and(|value| means_yes(&value)))
    }

    /// Whether a setting is off that is on by default.
    pub fn is_off(&self, name: &str) -> Result<bool> {
        Ok(self.value(name)?.is_some_and(|value| means_no(&value)))
    }

    /// The commands that Fossil would run around a check-in, and OCX does not.
    pub fn hooks(&self) -> Result<Vec<Hook>> {
        Ok(hooks::of(&self.value("hooks")?.unwrap_or_default()))
    }

    fn versioned(&self, name: &str) -> Result<Option<String>> {
        let path = TreePath::parse(&format!(".fossil-settings/{name}"))?;
        let bytes = match self.versioned {
            Versioned::Nowhere => return Ok(None),
            Versioned::Folder(tree) => match tree.read(&path, SETTING_MAX) {
                Ok(bytes) => bytes,
                // There is no such file, or a folder or a link stands there.
                Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Invalid | Kind::Denied) => {
                    return Ok(None);
                }
                Err(e) => return Err(e),
            },
            Versioned::CheckIn(files) => match files.get(&path) {
                Some(file) => self.store.content(&file.hash)?,
                None => return Ok(None),
            },
        };
        Ok(Some(without_comments(&String::from_utf8_lossy(&bytes))))
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

/// The text without lines that begin with `#`. A line that begins with `\#` loses the backslash.
fn without_comments(text: &str) -> String {
    let lines = text.split_inclusive('\n').filter(|line| !line.starts_with('#'));
    let lines: String = lines.map(|line| if line.starts_with("\\#") { &line[1..] } else { line }).collect();
    lines.trim_matches(|c: char| matches!(c, ' ' | '\t'..='\r')).to_owned()
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
