//! The files on a new manifest: all of them, or what differs from a baseline.
//!
//! A manifest with a baseline (a delta manifest, with a B card) names only what differs. So a check-in in a large tree
//! costs as much as it changes. Fossil writes such manifests once a repository has seen one. OCX begins with them by
//! itself in a large tree.

use std::collections::BTreeSet;

use crate::checkout::status::Status;
use crate::error::Result;
use crate::format::artifact::{FileCard, Manifest};
use crate::name::{Hash, TreePath};
use crate::repo::store::{FileEntry, Files, Store};

/// From this many files on, a tree gets delta manifests even if the repository has seen none. Its whole manifest has
/// some 50 kB, which each check-in would store and each reader parse.
const LARGE_TREE: usize = 500;

/// The F cards of a new manifest, and the baseline that they amend.
pub(super) struct FileCards {
    pub baseline: Option<Hash>,
    pub cards: Vec<FileCard>,
}

impl FileCards {
    /// Returns the cards for the files of `status`, which follows the check-in `parent`.
    pub fn of(store: &Store, parent: &Hash, status: &Status) -> Result<Self> {
        if may_amend(store, status.files.len())?
            && let Some(amending) = Self::amending(store, parent, status)?
            && is_worth_it(amending.cards.len() + 1, status.files.len())
        {
            return Ok(amending);
        }
        let cards = status.files.iter().map(|(path, file)| card(path, Some(file), status));
        Ok(Self { baseline: None, cards: cards.collect() })
    }

    /// Returns what differs from the parent's baseline, or from the parent if that is a baseline itself. Returns
    /// nothing if the baseline is private.
    fn amending(store: &Store, parent: &Hash, status: &Status) -> Result<Option<Self>> {
        let before = store.manifest(parent)?;
        let baseline = before.baseline.unwrap_or(*parent);
        if store.check_in(&baseline).map_or(true, |info| info.private) {
            return Ok(None);
        }
        let files = store.files(&baseline)?;
        let touched = touched(&before, status)?;
        let cards = touched.iter().filter(|path| differs(path, &files, status));
        let cards = cards.map(|path| card(path, status.files.get(path), status));
        Ok(Some(Self { baseline: Some(baseline), cards: cards.collect() }))
    }
}

/// Whether Fossil's settings allow a check-in with a baseline here.
fn may_amend(store: &Store, files: usize) -> Result<bool> {
    if store.is_on("forbid-delta-manifests")? {
        return Ok(false);
    }
    Ok(files >= LARGE_TREE || store.is_on("seen-delta-manifest")?)
}

/// Fossil's rule for storing the fewest cards in the long run. It compares a tree of `whole` files with `amending`
/// cards and three more for each check-in that follows.
fn is_worth_it(amending: usize, whole: usize) -> bool {
    amending * amending + 9 < whole * 3
}

/// The paths at which the new files can differ from the baseline's: where the parent differs from the baseline, and
/// where the new files differ from the parent.
fn touched(before: &Manifest, status: &Status) -> Result<BTreeSet<TreePath>> {
    let mut touched: BTreeSet<TreePath> = status.changes.iter().map(|c| c.path.clone()).collect();
    touched.extend(status.renamed.iter().flat_map(|(new, old)| [new.clone(), old.clone()]));
    if before.baseline.is_some() {
        for card in &before.files {
            touched.insert(TreePath::parse_stored(&card.name)?);
        }
    }
    Ok(touched)
}

/// Whether the manifest must name `path`. Fossil itself looks only at the content and forgets a mode that differs from
/// the baseline's.
fn differs(path: &TreePath, baseline: &Files, status: &Status) -> bool {
    status.files.get(path) != baseline.get(path) || status.renamed.contains_key(path)
}

fn card(path: &TreePath, file: Option<&FileEntry>, status: &Status) -> FileCard {
    FileCard {
        name: path.to_string(),
        hash: file.map(|file| file.hash),
        kind: file.map(|file| file.kind).unwrap_or_default(),
        prior: status.renamed.get(path).map(ToString::to_string),
    }
}

#[cfg(test)]
mod tests {
    use super::is_worth_it;

    #[test]
    fn a_baseline_is_amended_until_the_cards_outgrow_it() {
        assert!(is_worth_it(2, 10) && !is_worth_it(5, 10));
        assert!(is_worth_it(173, 10_000) && !is_worth_it(174, 10_000));
        assert!(!is_worth_it(1, 0) && !is_worth_it(2, 4));
    }
}
