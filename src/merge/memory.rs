//! A merge of two check-ins in memory, without a checkout.

use std::collections::BTreeMap;

use super::base::Versions;
use super::how::MergeHow;
use super::plan::Plan;
use super::side::{Side, Trees};
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TreePath};
use crate::repo::store::{FileEntry, Store};
use crate::tree::ignore::Ignore;

/// Two check-ins merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// What each side was compared with.
    pub base: Hash,
    /// What happens to the files of the first, and why. It is settled.
    pub plan: Plan,
    /// The files of the result.
    pub tree: BTreeMap<TreePath, MergedFile>,
    /// The paths in conflict.
    pub conflicts: Vec<TreePath>,
}

/// A file of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedFile {
    /// What it is.
    pub entry: FileEntry,
    /// Its path in `ours`, if that is another one.
    pub from: Option<TreePath>,
    /// Its content, if it is in neither check-in.
    pub content: Option<Vec<u8>>,
}

/// Merges `theirs` into `ours`. Nothing is written.
///
/// # Errors
/// Those of [`Versions::of`] and of reading the repository; [`Kind::Unchanged`] if `theirs` is part of `ours` already.
pub fn in_memory(store: &Store, ours: &Hash, theirs: &Hash, how: MergeHow) -> Result<Merged> {
    let Versions { base, there } = Versions::of(store, how, theirs, &[*ours])?;
    if base == there {
        let what = format!("there is nothing to take from check-in `{}`", theirs.short());
        return Err(Error::new(Kind::Unchanged, what).with_hint("It is part of what is here already."));
    }
    let trees = Trees {
        base: store.files(&base)?.as_ref().clone(),
        here: Side::of(store, &base, ours)?,
        there: Side::of(store, &base, &there)?,
        ..Trees::default()
    };
    let mut plan = Plan::of(&trees);
    let binary = Ignore::parse(&store.setting("binary-glob")?.unwrap_or_default());
    plan.settle(|path| !binary.matches(path.as_str()), |wanted| store.content(wanted.hash))?;
    let tree = plan.tree.iter().map(|(path, placed)| {
        let from = placed.here.clone().filter(|here| here != path);
        let content = plan.texts.get(path).cloned();
        (path.clone(), MergedFile { entry: placed.entry, from, content })
    });
    let tree = tree.collect();
    let conflicts = plan.conflicts().map(|step| step.path.clone()).collect();
    Ok(Merged { base, plan, tree, conflicts })
}
