//! A file as a card of a manifest.

use super::grammar::FileToken;
use super::tokens::{hash, name};
use super::write::{after_space, card, escaped};
use crate::error::Result;
use crate::name::Hash;

/// One file of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCard {
    /// The path in the tree, as stored: not checked beyond Fossil's own rules.
    pub name: String,
    /// The content; `None`, in a manifest with a baseline, means that the file is gone.
    pub hash: Option<Hash>,
    /// What the file is.
    pub kind: FileKind,
    /// The name in the parent, where the check-in renamed it.
    pub prior: Option<String>,
}

/// What a stored file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A plain file.
    #[default]
    Regular,
    /// A file with the executable bit.
    Executable,
    /// A symbolic link, whose content is where it leads.
    Symlink,
}

impl FileCard {
    pub(super) fn from_token(token: &FileToken<'_>) -> Result<Self> {
        let perm = token.perm.unwrap_or_default();
        let kind = if perm.contains(&b'x') {
            FileKind::Executable
        } else if perm.contains(&b'l') {
            FileKind::Symlink
        } else {
            FileKind::Regular
        };
        Ok(Self {
            name: name(&token.name)?,
            hash: token.hash.map(hash).transpose()?,
            kind,
            prior: token.prior.as_deref().map(name).transpose()?,
        })
    }

    pub(super) fn write(&self, text: &mut String) -> Result<()> {
        let name = escaped(&self.name)?;
        let Some(hash) = self.hash else {
            card(text, format_args!("F {name}"));
            return Ok(());
        };
        let perm = match (self.kind, &self.prior) {
            (FileKind::Executable, _) => " x",
            (FileKind::Symlink, _) => " l",
            (FileKind::Regular, Some(_)) => " w",
            (FileKind::Regular, None) => "",
        };
        let prior = self.prior.as_deref().map(after_space).transpose()?.unwrap_or_default();
        card(text, format_args!("F {name} {hash}{perm}{prior}"));
        Ok(())
    }
}
