//! What a plan comes to on the disk: which file stands in which place of another.

use std::collections::BTreeMap;

use crate::checkout::open::Checkout;
use crate::error::Result;
use crate::merge::{Owner, Plan, Source, Step, Trees};
use crate::name::TreePath;
use crate::repo::store::FileEntry;

/// What becomes of the file at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub path: TreePath,
    /// What lies there.
    pub old: Option<FileEntry>,
    /// What is to lie there.
    pub new: Option<FileEntry>,
    /// Where the new content is.
    pub content: Content,
}

/// Where a content is before anything is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// In the repository.
    Stored,
    /// On the disk, at this path.
    OnDisk(TreePath),
    /// Nowhere yet.
    Made(Vec<u8>),
}

impl Checkout {
    /// The changes of a plan, by path.
    pub(super) fn changes(&self, plan: &Plan, trees: &Trees) -> Result<Vec<Change>> {
        let wanted = self.wanted(plan)?;
        let mut changes = Vec::new();
        for (path, new) in wanted {
            let old = match trees.here.files.get(path) {
                Some(entry) => Some(self.laid(*entry)?),
                None => trees.untracked.get(path).copied(),
            };
            let (new, content) = new.map_or((None, Content::Stored), |(new, content)| (Some(new), content));
            if old != new {
                changes.push(Change { path: path.clone(), old, new, content });
            }
        }
        Ok(changes)
    }

    /// What is to lie at each path that a plan touches.
    fn wanted<'a>(&self, plan: &'a Plan) -> Result<BTreeMap<&'a TreePath, Option<(FileEntry, Content)>>> {
        let mut wanted = BTreeMap::new();
        for step in plan.steps.values() {
            if let Some(entry) = step.result
                && step.source != Source::Nothing
            {
                wanted.insert(&step.path, Some((self.laid(entry)?, content(plan, step))));
            }
            for backup in &step.backups {
                let file = match backup.of {
                    Owner::There => (self.laid(backup.entry)?, Content::Stored),
                    Owner::Untracked => (backup.entry, Content::OnDisk(backup.from.clone())),
                };
                wanted.insert(&backup.path, Some(file));
            }
        }
        for step in plan.steps.values() {
            let moved = step.backups.iter().filter(|backup| backup.of == Owner::Untracked);
            for left in step.here.iter().chain(moved.map(|backup| &backup.from)) {
                if !plan.tree.contains_key(left) {
                    wanted.entry(left).or_insert(None);
                }
            }
        }
        Ok(wanted)
    }

    /// A file of a check-in as it lies on the disk.
    fn laid(&self, entry: FileEntry) -> Result<FileEntry> {
        Ok(FileEntry { kind: self.kind_on_disk(entry.kind)?, ..entry })
    }
}

fn content(plan: &Plan, step: &Step) -> Content {
    match (&step.source, &step.here) {
        (Source::Here, Some(here)) => Content::OnDisk(here.clone()),
        (Source::Joined { .. }, _) => {
            plan.texts.get(&step.path).map_or(Content::Stored, |text| Content::Made(text.clone()))
        }
        _ => Content::Stored,
    }
}
