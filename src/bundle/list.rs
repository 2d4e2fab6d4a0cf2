//! What is in a bundle, and whether it is whole, without importing it.

use std::collections::HashMap;

use super::file::Bundle;
use crate::error::{Error, Kind, Result};
use crate::format::artifact::{Manifest, TagAction};
use crate::name::Hash;
use crate::repo::store::{Store, connect};
use crate::transfer::{Bases, Findings};

/// What a bundle holds. Every content was verified against its hash.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Contents {
    /// The code of the project that it comes from.
    pub project_code: Option<String>,
    /// The check-ins, the oldest first.
    pub check_ins: Vec<BundledCheckIn>,
    /// How many artifacts there are: check-ins, files, tags and others.
    pub artifacts: usize,
    /// How many are control artifacts other than check-ins: tags, pages, posts.
    pub other_controls: usize,
    /// Bytes of all artifacts, expanded.
    pub expanded: u64,
    /// Bytes of the file in SQLite's form.
    pub size: u64,
    /// The artifacts that a repository must have to import it.
    pub bases: Vec<Hash>,
}

/// A check-in of a bundle, as its manifest states it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct BundledCheckIn {
    /// Its hash.
    pub hash: Hash,
    /// The comment.
    pub comment: String,
    /// The user's name as stated, which proves nothing.
    pub user: String,
    /// When, in UTC: `2026-11-30T10:23:45.120`.
    pub date: String,
    /// The branch, if this check-in or an ancestor in the bundle begins one.
    pub branch: Option<String>,
    /// Its parents, the primary one first.
    pub parents: Vec<Hash>,
}

impl Bundle {
    /// Verifies every artifact and lists what is in a standalone bundle.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the bundle builds on artifacts that are not in it (use [`contents_with`](Self::contents_with));
    /// [`Kind::Corrupt`], [`Kind::TooLarge`] and [`Kind::Invalid`] as for an import.
    pub fn contents(&self) -> Result<Contents> {
        let missing = |hash: &Hash| {
            let what = format!("the bundle builds on the artifact `{hash}`, which is not in it");
            Error::new(Kind::NotFound, what).with_hint("Name a repository that holds it.")
        };
        if let Some(hash) = self.bases().first() {
            return Err(missing(hash));
        }
        let findings = self.staged().verify(|hash| Err(missing(hash)))?;
        findings.refuse_control_as_content()?;
        Ok(self.contents_of(&findings))
    }

    /// As [`contents`](Self::contents). The artifacts that the bundle builds on are taken from a repository.
    ///
    /// # Errors
    /// As [`contents`](Self::contents); [`Kind::NotFound`] when they are not there with content.
    pub fn contents_with(&self, store: &Store) -> Result<Contents> {
        let db = connect(store.path())?;
        let mut bases = Bases::of(&db, self.staged())?;
        let findings = self.staged().verify(|hash| bases.content(hash))?;
        findings.refuse_control_as_content()?;
        Ok(self.contents_of(&findings))
    }

    /// What was found, as a list.
    pub(super) fn contents_of(&self, findings: &Findings) -> Contents {
        Contents {
            project_code: self.project_code().map(str::to_owned),
            artifacts: self.len(),
            other_controls: findings.structural.len() - findings.check_ins().count(),
            expanded: self.staged().rows().iter().map(|row| row.size as u64).sum(),
            size: self.size(),
            bases: self.bases(),
            check_ins: check_ins(findings),
        }
    }
}

fn check_ins(findings: &Findings) -> Vec<BundledCheckIn> {
    let mut found: Vec<(Hash, &Manifest)> =
        findings.check_ins().map(|(artifact, manifest)| (artifact.hash, manifest)).collect();
    found.sort_by(|a, b| (&a.1.date, a.0).cmp(&(&b.1.date, b.0)));
    let mut branches = HashMap::<Hash, String>::new();
    found
        .into_iter()
        .map(|(hash, manifest)| {
            let begun = manifest.tags.iter().find(|tag| {
                tag.name == "branch" && tag.action == TagAction::Propagate && tag.target.is_none()
            });
            let branch = begun
                .and_then(|tag| tag.value.clone())
                .or_else(|| branches.get(manifest.parents.first()?).cloned());
            if let Some(branch) = &branch {
                branches.insert(hash, branch.clone());
            }
            BundledCheckIn {
                hash,
                comment: manifest.comment.clone().unwrap_or_default(),
                user: manifest.user.clone().unwrap_or_default(),
                date: manifest.date.clone(),
                branch,
                parents: manifest.parents.clone(),
            }
        })
        .collect()
}
