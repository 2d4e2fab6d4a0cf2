//! The three trees of an update or a merge, and what else lies where their files will come.

use std::collections::BTreeSet;

use crate::checkout::open::Checkout;
use crate::checkout::status::Status;
use crate::error::Result;
use crate::format::FILE_MAX;
use crate::merge::{Side, Trees, Versions};
use crate::name::{Hash, TreePath};
use crate::repo::store::FileEntry;
use crate::tree::Lies;

impl Checkout {
    /// The trees of a merge into the files of `status`.
    pub(super) fn trees(&self, status: &Status, versions: Versions) -> Result<Trees> {
        let store = self.repository.store();
        let Versions { base, there } = versions;
        let saved = Side::of(store, &base, &status.parent)?;
        let here = saved.with(status.files.as_ref().clone(), &status.renamed);
        let unsaved = status.changes.iter().map(|change| &change.path);
        let unsaved = unsaved.filter(|path| here.files.contains_key(*path)).cloned().collect();
        let mut trees = Trees {
            base: store.files(&base)?.as_ref().clone(),
            there: Side::of(store, &base, &there)?,
            here,
            unsaved,
            ..Trees::default()
        };
        let mut found = Around { checkout: self, seen: BTreeSet::new(), trees: &mut trees };
        found.look()?;
        Ok(trees)
    }
}

/// Looks around for what is no part of the checkout.
struct Around<'a> {
    checkout: &'a Checkout,
    /// Folders that were looked at.
    seen: BTreeSet<String>,
    trees: &'a mut Trees,
}

impl Around<'_> {
    fn look(&mut self) -> Result<()> {
        let new = self.trees.there.files.keys().filter(|path| !self.trees.here.files.contains_key(*path));
        let new: Vec<TreePath> = new.cloned().collect();
        for path in &new {
            for (at, _) in path.as_str().match_indices('/') {
                let folder = &path.as_str()[..at];
                if self.seen.insert(folder.to_owned()) {
                    self.note(folder, self.checkout.tree.lies(folder)?, Lies::Folder)?;
                }
            }
            match self.checkout.tree.lies(path.as_str())? {
                Lies::Folder => {
                    for (below, lies) in self.checkout.tree.below(path.as_str())? {
                        self.note(&below, lies, Lies::Folder)?;
                    }
                }
                other => self.note(path.as_str(), other, Lies::Nothing)?,
            }
        }
        Ok(())
    }

    /// Notes what lies at a path, unless that is in order.
    fn note(&mut self, path: &str, lies: Lies, in_order: Lies) -> Result<()> {
        if lies == in_order || lies == Lies::Nothing {
            return Ok(());
        }
        let path = TreePath::parse_stored(path)?;
        if self.trees.here.files.contains_key(&path) {
            return Ok(());
        }
        match lies {
            Lies::File(_) => {
                let entry = self.checkout.tree.stat(&path)?;
                let hash = Hash::of(&self.checkout.tree.content(&entry, FILE_MAX)?);
                self.trees.untracked.insert(path, FileEntry { hash, kind: entry.kind });
            }
            _ => drop(self.trees.immovable.insert(path)),
        }
        Ok(())
    }
}
