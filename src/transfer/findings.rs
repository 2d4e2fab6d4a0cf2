//! What verification found in a set of artifacts.

use foldhash::HashSet;

use super::cards;
use crate::error::{Error, Kind, Result};
use crate::format::artifact::{ArtifactKind, Manifest, Reading, read};
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
    /// Nothing for a text on which Fossil's parser would read wild memory.
    pub kind: Option<ArtifactKind>,
    /// The manifest without its files, if it is a check-in.
    pub check_in: Option<Manifest>,
    /// The artifacts of its own kind that it names: parents, versions before, the post that is answered.
    pub follows: Vec<Hash>,
    /// Why it must not be linked in, whoever sends it.
    pub fault: Option<String>,
}

impl Structural {
    /// Reads a content. Returns nothing for mere content, and the contents that a check-in names as its files.
    pub fn of(row: usize, hash: Hash, content: &[u8]) -> Option<(Self, Vec<Hash>)> {
        let none = Self { row, hash, kind: None, check_in: None, follows: Vec::new(), fault: None };
        let cards = match read(content) {
            Reading::Content => return None,
            Reading::Wild(why) => {
                let fault = Some(format!("is a text on which Fossil's parser reads wild memory: {why}"));
                return Some((Self { fault, ..none }, Vec::new()));
            }
            Reading::Artifact(cards) => cards,
        };
        let kind = cards.kind();
        let fault = cards::fault(&cards);
        let follows: Vec<Hash> = match kind {
            ArtifactKind::Attachment
            | ArtifactKind::Cluster
            | ArtifactKind::Control
            | ArtifactKind::Ticket => Vec::new(),
            _ => b"GIP".iter().flat_map(|card| cards.hashes(*card)).filter_map(hash_of).collect(),
        };
        let made = Self { kind: Some(kind), follows, fault, ..none };
        if kind != ArtifactKind::CheckIn {
            return Some((made, Vec::new()));
        }
        match Manifest::apart(*cards) {
            Ok((manifest, files)) => Some((Self { check_in: Some(manifest), ..made }, files)),
            Err(e) => Some((Self { fault: made.fault.or_else(|| Some(e.to_string())), ..made }, Vec::new())),
        }
    }
}

fn hash_of(token: &[u8]) -> Option<Hash> {
    Hash::parse(str::from_utf8(token).ok()?).ok()
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
