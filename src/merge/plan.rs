//! The plan of a merge.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::draft::Draft;
use super::outcome::FileOutcome;
use super::side::Trees;
use super::step::{Backup, Placed, Refusal, Source, Step};
use super::text::{Joined, join};
use crate::error::Result;
use crate::name::{Hash, TreePath};

/// What a merge does, path by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// What happens, by path. A path without a step is as it was here.
    pub steps: BTreeMap<TreePath, Step>,
    /// Why it cannot be done. Empty if it can.
    pub refusals: Vec<Refusal>,
    /// Every file afterwards, but what is put beside.
    #[serde(skip)]
    pub tree: BTreeMap<TreePath, Placed>,
    /// The joined texts, by path, once the plan is [settled](Plan::settle).
    #[serde(skip)]
    pub texts: BTreeMap<TreePath, Vec<u8>>,
    /// Where the other side's file is put if a text turns out to be none.
    #[serde(skip)]
    spare: BTreeMap<TreePath, Backup>,
}

/// A content that is needed to join texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Its hash.
    pub hash: &'a Hash,
    /// For this side's content, which may be in no repository, the path that it has here.
    pub here: Option<&'a TreePath>,
}

impl Plan {
    /// Makes the plan. Texts that both sides changed are not joined yet.
    #[must_use]
    pub fn of(trees: &Trees) -> Self {
        let Draft { steps, refusals, tree, spare } = Draft::of(trees);
        Self { steps, refusals, tree, texts: BTreeMap::new(), spare }
    }

    /// Joins the texts that both sides changed, as far as `is_text` says that they are texts. Another file is a conflict then.
    ///
    /// # Errors
    /// Those of `content`.
    pub fn settle(
        &mut self,
        is_text: impl Fn(&TreePath) -> bool,
        mut content: impl FnMut(Wanted<'_>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        for (path, step) in &mut self.steps {
            let Source::Joined { base, here, there } = &step.source else { continue };
            if self.texts.contains_key(path) {
                continue;
            }
            let base = content(Wanted { hash: base, here: None })?;
            let here = content(Wanted { hash: here, here: step.here.as_ref() })?;
            let there = content(Wanted { hash: there, here: None })?;
            let joined = if is_text(path) {
                join(&base, &here, &there)
            } else {
                Joined::Not("the setting `binary-glob` says that it is no text")
            };
            let text = match joined {
                Joined::Clean(text) => text,
                Joined::Marked(text) => {
                    step.what = FileOutcome::ConflictMarked;
                    step.why.push_str("; where they changed the same lines, both are marked in it");
                    text
                }
                Joined::Not(why) => {
                    step.what = FileOutcome::ConflictUnjoinable;
                    let _ = write!(step.why, "; {why}: yours is kept, theirs is put beside");
                    step.source = Source::Here;
                    step.backups.extend(self.spare.get(path).cloned());
                    continue;
                }
            };
            let hash = Hash::of(&text);
            let placed = self.tree.get_mut(path).map(|placed| &mut placed.entry);
            for entry in step.result.iter_mut().chain(placed) {
                entry.hash = hash;
            }
            self.texts.insert(path.clone(), text);
        }
        Ok(())
    }

    /// The steps that somebody must look at.
    pub fn conflicts(&self) -> impl Iterator<Item = &Step> {
        self.steps.values().filter(|step| step.what.is_conflict())
    }

    /// Every file that is put beside another.
    pub fn backups(&self) -> impl Iterator<Item = &Backup> {
        self.steps.values().flat_map(|step| &step.backups)
    }
}
