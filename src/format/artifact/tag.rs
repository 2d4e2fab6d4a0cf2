//! A tag as a card of an artifact.

use super::grammar::TagToken;
use super::tokens::{hash, lossy, name};
use super::write::{after_space, card, escaped};
use crate::error::Result;
use crate::name::Hash;

/// A tag that a manifest sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagCard {
    /// What is done with the tag.
    pub action: TagAction,
    /// Its name, such as `branch` or `sym-trunk`.
    pub name: String,
    /// The artifact that it is set on; `None` is the check-in itself.
    pub target: Option<Hash>,
    /// Its value.
    pub value: Option<String>,
}

/// What a tag card does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagAction {
    /// `+`: set on the target alone.
    Add,
    /// `-`: cancelled from the target on.
    Cancel,
    /// `*`: set on the target and its descendants.
    Propagate,
}

impl TagAction {
    /// The sign that stands before the name.
    pub(crate) fn sigil(self) -> char {
        match self {
            Self::Add => '+',
            Self::Cancel => '-',
            Self::Propagate => '*',
        }
    }
}

impl TagCard {
    /// The tags by which a check-in begins the branch `name`.
    #[must_use]
    pub fn new_branch(name: &str) -> Vec<Self> {
        let tag = |name: String, value: Option<&str>| Self {
            action: TagAction::Propagate,
            name,
            target: None,
            value: value.map(Into::into),
        };
        vec![tag("branch".into(), Some(name)), tag(format!("sym-{name}"), None)]
    }

    /// The order in which Fossil wants tags.
    pub(super) fn key(&self) -> (char, &str, Option<&str>) {
        (self.action.sigil(), &self.name, self.target.as_ref().map(Hash::as_str))
    }
}

impl TagCard {
    pub(super) fn from_token(token: &TagToken<'_>) -> Result<Self> {
        Ok(Self { name: name(&token.name[1..])?, ..Self::lossily(token)? })
    }

    /// Bytes of the name that are not UTF-8 are replaced.
    pub(super) fn lossily(token: &TagToken<'_>) -> Result<Self> {
        let (sigil, word) = token.name.split_at(1);
        let action = match sigil {
            b"+" => TagAction::Add,
            b"-" => TagAction::Cancel,
            _ => TagAction::Propagate,
        };
        Ok(Self {
            action,
            name: lossy(word),
            target: token.target.map(hash).transpose()?,
            value: token.value.as_deref().map(lossy),
        })
    }

    pub(super) fn write(&self, text: &mut String) -> Result<()> {
        let target = self.target.as_ref().map_or("*", Hash::as_str);
        let value = self.value.as_deref().map(after_space).transpose()?.unwrap_or_default();
        card(text, format_args!("T {}{} {target}{value}", self.action.sigil(), escaped(&self.name)?));
        Ok(())
    }
}
