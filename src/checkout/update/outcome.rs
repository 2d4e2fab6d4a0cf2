//! What an update or a merge did, or would do.

use crate::merge::{FileOutcome, Owner, Plan, Step};
use crate::name::Hash;

/// What an update, a merge or an undo did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    /// The check-in that the checkout stands on now.
    pub hash: Hash,
    /// The files that it touched, by path.
    pub files: Vec<UpdatedFile>,
    /// The paths of those in conflict.
    pub conflicts: Vec<String>,
}

/// A file that an update or a merge touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatedFile {
    /// Its path, where it is now or was.
    pub path: String,
    /// What happened to it.
    pub what: FileOutcome,
    /// Why: what each side did to it.
    pub why: String,
    /// Its path before, if that was another.
    pub from: Option<String>,
    /// Where bytes lie that were here and in whose place others stand.
    pub backup: Option<String>,
    /// Where the other side's bytes lie, if this side's stand in their place.
    pub theirs: Option<String>,
}

impl Updated {
    /// What a plan does to a checkout that stands on `hash` afterwards.
    pub(super) fn by(plan: &Plan, hash: Hash) -> Self {
        let files = plan.steps.values().flat_map(files_of).collect();
        Self::with(files, hash)
    }

    pub(super) fn with(files: Vec<UpdatedFile>, hash: Hash) -> Self {
        let conflicts = files.iter().filter(|file| file.what.is_conflict()).map(|file| file.path.clone());
        Self { hash, conflicts: conflicts.collect(), files }
    }
}

/// The file of a step, once for each file that had to be put aside for it.
fn files_of(step: &Step) -> Vec<UpdatedFile> {
    let beside = |of: Owner| step.backups.iter().filter(move |backup| backup.of == of);
    let theirs = beside(Owner::There).next().map(|backup| backup.path.to_string());
    let file = |backup: Option<String>| UpdatedFile {
        path: step.path.to_string(),
        what: step.what,
        why: step.why.clone(),
        from: step.from().map(ToString::to_string),
        backup,
        theirs: theirs.clone(),
    };
    let files: Vec<_> = beside(Owner::Untracked).map(|backup| file(Some(backup.path.to_string()))).collect();
    if files.is_empty() { vec![file(None)] } else { files }
}
