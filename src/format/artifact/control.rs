//! The artifact by which tags are set and cancelled after the fact.

use super::grammar::ArtifactKind;
use super::tag::TagCard;
use super::write::{card, escaped, sealed};
use crate::error::Result;

/// A control artifact: tags on other artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// D: when, as `2026-11-30T10:23:45.120`, in UTC.
    pub date: String,
    /// T: the tags, each with a target.
    pub tags: Vec<TagCard>,
    /// U: the user who made it.
    pub user: String,
}

impl Control {
    /// Returns the artifact's bytes.
    ///
    /// # Errors
    /// `Invalid` when a value cannot stand in an artifact, or a tag has no target.
    pub fn write(&self) -> Result<Vec<u8>> {
        let mut text = String::new();
        card(&mut text, format_args!("D {}", self.date));
        let mut tags: Vec<_> = self.tags.iter().collect();
        tags.sort_by(|a, b| a.key().cmp(&b.key()));
        for tag in tags {
            tag.write(&mut text)?;
        }
        card(&mut text, format_args!("U {}", escaped(&self.user)?));
        sealed(text, ArtifactKind::Control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::format::artifact::{TagAction, looks_like_artifact};
    use crate::name::Hash;

    fn control(name: &str, target: Option<Hash>) -> Control {
        let tag = TagCard { action: TagAction::Add, name: name.into(), target, value: Some("a b\\c".into()) };
        Control { date: "2026-11-30T10:23:45.120".into(), tags: vec![tag], user: "ann".into() }
    }

    #[test]
    fn tags_are_written_as_an_artifact() {
        let bytes = control("sym-v1", Some(Hash::of(b""))).write().unwrap();
        assert!(looks_like_artifact(&bytes));
        assert!(String::from_utf8(bytes).unwrap().contains(
            "T +sym-v1 a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a a\\sb\\\\c\n"
        ));
    }

    #[test]
    fn what_fossil_would_not_take_is_refused() {
        for bad in [control("sym-v1", None), control("beef", Some(Hash::of(b"")))] {
            assert_eq!(bad.write().unwrap_err().kind(), Kind::Invalid);
        }
    }
}
