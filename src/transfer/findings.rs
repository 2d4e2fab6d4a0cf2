//! What verification found in a set of artifacts.

use std::collections::HashSet;

use crate::error::{Error, Kind, Result};
use crate::format::artifact::{Manifest, TagCard};
use crate::name::Hash;

/// What was found in a set of artifacts whose every content has its hash.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The structural artifacts, in no order.
    pub structural: Vec<Structural>,
    /// Contents that check-ins of the set name as their files.
    pub files: HashSet<Hash>,
}

/// A structural artifact: a check-in, a tag, a page, a post and the like.
#[derive(Debug)]
pub(crate) struct Structural {
    /// The index of its row.
    pub row: usize,
    pub hash: Hash,
    /// The manifest without its files, if it is a check-in.
    pub check_in: Option<Manifest>,
    /// Its tags, if it is none.
    pub other_tags: Vec<TagCard>,
}

impl Structural {
    /// The tags that it sets, whatever it is.
    pub fn tags(&self) -> &[TagCard] {
        self.check_in.as_ref().map_or(&self.other_tags, |manifest| &manifest.tags)
    }
}

impl Findings {
    /// Refuses a structural artifact that a check-in holds as a file: content never becomes control.
    pub fn refuse_control_as_content(&self) -> Result<()> {
        match self.structural.iter().find(|artifact| self.files.contains(&artifact.hash)) {
            Some(artifact) => Err(control_as_content(&artifact.hash)),
            None => Ok(()),
        }
    }

    /// The artifacts that the check-ins name: their files, baselines and parents.
    pub fn named(&self) -> impl Iterator<Item = &Hash> {
        let others =
            self.check_ins().flat_map(|(_, manifest)| manifest.parents.iter().chain(&manifest.baseline));
        self.files.iter().chain(others)
    }

    /// The check-ins with their manifests.
    pub fn check_ins(&self) -> impl Iterator<Item = (&Structural, &Manifest)> {
        self.structural.iter().filter_map(|artifact| Some((artifact, artifact.check_in.as_ref()?)))
    }
}

/// The refusal of a file's content that a server would obey.
pub(super) fn control_as_content(hash: &Hash) -> Error {
    let what = format!(
        "the file content `{hash}` has the form of a Fossil control artifact, which every server would obey"
    );
    Error::new(Kind::Invalid, what).with_hint("Leave out the check-in with that file.")
}
