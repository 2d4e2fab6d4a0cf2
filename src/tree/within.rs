//! What holds for everything in one folder of a walk.

use std::sync::Arc;

use super::gitignore::{GitIgnore, Unread};
use super::root::Tree;
use super::rules::{Rules, Why, ends, weightier};
use super::tracked::Tracked;
use crate::error::{Error, Kind, Result};
use crate::name::TreePath;

/// What is known of a folder, for the sake of what is in it.
#[derive(Clone)]
pub(super) struct Within {
    /// The `.gitignore` files that count in it.
    pub git: Option<Arc<GitIgnore>>,
    out: Out,
}

/// Whether a folder is left out itself.
#[derive(Clone, Copy)]
enum Out {
    Judged(Option<Why>),
    /// It was entered for the sake of tracked files. If there are no others, nobody asks.
    Unjudged,
}

impl Within {
    /// The root, which is never left out.
    pub fn root() -> Self {
        Self { git: None, out: Out::Judged(None) }
    }

    /// A folder of which nothing is known yet.
    pub fn unknown(folder: &str) -> Self {
        if folder.is_empty() {
            Self::root()
        } else {
            Self { git: Some(GitIgnore::around(folder)), out: Out::Unjudged }
        }
    }

    /// The same for a folder that is left out, or is not.
    pub fn judged(self, why: Option<Why>) -> Self {
        Self { out: Out::Judged(why), ..self }
    }

    /// A folder in this one that is entered for the sake of tracked files.
    pub fn for_tracked(&self) -> Self {
        let out = match self.out {
            // Its name does not tell.
            Out::Judged(Some(Why::NestedCheckout)) => self.out,
            _ => Out::Unjudged,
        };
        Self { git: self.git.clone(), out }
    }

    /// Why the folder itself is left out.
    fn why_itself(&mut self, rules: &Rules, tree: &Tree, folder: &str) -> Result<Option<Why>, Unread> {
        if let Out::Judged(why) = self.out {
            return Ok(why);
        }
        let mut found = None;
        for end in ends(folder) {
            found = weightier(found, rules.why(tree, self.git.as_deref(), &folder[..end], true)?);
        }
        self.out = Out::Judged(found);
        Ok(found)
    }

    /// Why what lies at `path` in `folder` is left out, if it is not tracked and nobody asked for it.
    pub fn why(
        &mut self,
        (rules, tree): (&Rules, &Tree),
        folder: &str,
        path: &str,
        is_folder: bool,
    ) -> Result<Option<Why>, Unread> {
        let itself = self.why_itself(rules, tree, folder)?;
        Ok(weightier(itself, rules.why(tree, self.git.as_deref(), path, is_folder)?))
    }
}

impl Tree {
    /// Why a save would leave this file or folder out. There need not be one yet.
    ///
    /// # Errors
    /// `Invalid` if a `.gitignore` cannot be read.
    pub fn why_left_out(&self, path: &TreePath, rules: &Rules, tracked: &dyn Tracked) -> Result<Option<Why>> {
        let text = path.as_str();
        if tracked.holds(text) {
            return Ok(None);
        }
        let folder = text.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_checkout = |end: usize| self.is_checkout(&text[..end]).unwrap_or(false);
        if ends(text).any(is_checkout) {
            return Ok(Some(Why::NestedCheckout));
        }
        let mut within = Within::unknown(folder);
        within.git = Some(GitIgnore::around(text));
        let why = within.why((rules, self), folder, text, self.open_folder(text).is_ok());
        let why = why.map_err(|(name, why)| Error::new(Kind::Invalid, format!("`{name}` {why}")))?;
        Ok(why.filter(|why| !(why.can_be_included() && rules.includes(text))))
    }
}
