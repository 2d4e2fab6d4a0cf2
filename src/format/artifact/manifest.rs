//! The artifact of a check-in.

use super::date;
use super::file::FileCard;
use super::grammar::{self, ArtifactKind, Cards};
use super::names::is_reserved;
use super::tag::TagCard;
use super::tokens::{hash, lossy};
use super::write::{card, escaped, invalid, sealed};
use crate::error::{Error, Kind, Result};
use crate::name::Hash;

/// A check-in as its manifest states it. Tags that came later may have changed what counts.
///
/// ```
/// use ocx::format::artifact::{Manifest, TagCard};
/// let manifest = Manifest {
///     comment: Some("first try".into()),
///     date: "2026-11-30T10:23:45.120".into(),
///     user: Some("ann".into()),
///     tags: TagCard::new_branch("trunk"),
///     ..Manifest::default()
/// };
/// let text = manifest.write()?;
/// assert!(text.starts_with(b"C first\\stry\nD 2026-11-30T10:23:45.120\nT *branch * trunk\n"));
/// assert_eq!(Manifest::parse(&text)?, manifest);
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// B: the check-in whose files this one's `files` amend. Without it, `files` are all files.
    pub baseline: Option<Hash>,
    /// C: the comment. Bytes that are not UTF-8 are replaced when read.
    pub comment: Option<String>,
    /// D: when, as `2026-11-30T10:23:45.120`, in UTC.
    pub date: String,
    /// F: the files, by name.
    pub files: Vec<FileCard>,
    /// N: the comment's media type.
    pub mimetype: Option<String>,
    /// P: the parents, the primary one first.
    pub parents: Vec<Hash>,
    /// Q: check-ins whose changes were taken or backed out.
    pub cherrypicks: Vec<Cherrypick>,
    /// R: 32 hex digits, an MD5 over the names and content of all files.
    pub repo_checksum: Option<String>,
    /// T: the tags, by sigil, name and target.
    pub tags: Vec<TagCard>,
    /// U: the user who made it.
    pub user: Option<String>,
}

/// A check-in whose changes were taken over, or backed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cherrypick {
    /// Whether the changes were backed out.
    pub backout: bool,
    /// The check-in, or the last of a range.
    pub target: Hash,
    /// What the range begins after.
    pub base: Option<Hash>,
}

impl Manifest {
    /// Reads the manifest of a check-in, clear-signed or not.
    ///
    /// # Errors
    /// [`Kind::Corrupt`] when Fossil would not take `content` for an artifact, [`Kind::Invalid`] when it
    /// is one but no check-in, [`Kind::Unsupported`] when a name in it is not UTF-8.
    pub fn parse(content: &[u8]) -> Result<Self> {
        let cards = grammar::parse(content)
            .map_err(|flaw| Error::new(Kind::Corrupt, format!("no manifest: {}", flaw.why())))?;
        if cards.kind() != ArtifactKind::CheckIn {
            return Err(Error::new(Kind::Invalid, "the artifact is no check-in"));
        }
        Self::from_cards(cards)
    }

    /// Takes the cards of a check-in without its files. Returns it with the hashes of their contents. Bytes of names
    /// that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a hash with uppercase digits.
    pub(crate) fn apart(mut cards: Cards<'_>) -> Result<(Self, Vec<Hash>)> {
        let (files, tags) = (std::mem::take(&mut cards.files), std::mem::take(&mut cards.tags));
        let contents = files.iter().filter_map(|file| file.hash).map(hash).collect::<Result<_>>()?;
        let tags = tags.iter().map(TagCard::lossily).collect::<Result<_>>()?;
        Ok((Self { tags, ..Self::from_cards(cards)? }, contents))
    }

    /// Returns the artifact's bytes: files and tags sorted, everything escaped, the checksum at the end.
    ///
    /// # Errors
    /// [`Kind::Invalid`] when a value cannot stand in a manifest. What is written is exactly what would be read back.
    pub fn write(&self) -> Result<Vec<u8>> {
        let mut text = String::new();
        self.write_head(&mut text)?;
        self.write_files(&mut text)?;
        self.write_tail(&mut text)?;
        sealed(text, ArtifactKind::CheckIn)
    }

    fn from_cards(cards: Cards<'_>) -> Result<Self> {
        Ok(Self {
            baseline: cards.baseline.map(hash).transpose()?,
            comment: cards.comment.as_deref().map(lossy),
            date: cards.date.map(lossy).unwrap_or_default(),
            files: cards.files.iter().map(FileCard::from_token).collect::<Result<_>>()?,
            mimetype: cards.mimetype.as_deref().map(lossy),
            parents: cards.parents.into_iter().map(hash).collect::<Result<_>>()?,
            cherrypicks: cards.cherrypicks.into_iter().map(cherrypick).collect::<Result<_>>()?,
            repo_checksum: cards.repo_checksum.map(lossy),
            tags: cards.tags.iter().map(TagCard::from_token).collect::<Result<_>>()?,
            user: cards.user.as_deref().map(lossy),
        })
    }

    fn write_head(&self, text: &mut String) -> Result<()> {
        if let Some(baseline) = self.baseline {
            card(text, format_args!("B {baseline}"));
        }
        if let Some(comment) = &self.comment {
            card(text, format_args!("C {}", escaped(comment)?));
        }
        if !date::is_canonical(&self.date) {
            return Err(invalid(&format!("its date is `{}`", self.date.escape_debug())));
        }
        card(text, format_args!("D {}", self.date));
        Ok(())
    }

    fn write_files(&self, text: &mut String) -> Result<()> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        for file in files {
            if is_reserved(file.name.as_bytes()) {
                return Err(invalid(&format!("`{}` is reserved", file.name)));
            }
            file.write(text)?;
        }
        Ok(())
    }

    fn write_tail(&self, text: &mut String) -> Result<()> {
        if let Some(mimetype) = &self.mimetype {
            card(text, format_args!("N {}", escaped(mimetype)?));
        }
        if !self.parents.is_empty() {
            let parents: Vec<_> = self.parents.iter().map(Hash::as_str).collect();
            card(text, format_args!("P {}", parents.join(" ")));
        }
        for pick in &self.cherrypicks {
            let sign = if pick.backout { '-' } else { '+' };
            let base = pick.base.map(|base| format!(" {base}")).unwrap_or_default();
            card(text, format_args!("Q {sign}{}{base}", pick.target));
        }
        if let Some(sum) = &self.repo_checksum {
            card(text, format_args!("R {}", escaped(sum)?));
        }
        let mut tags: Vec<_> = self.tags.iter().collect();
        tags.sort_by(|a, b| a.key().cmp(&b.key()));
        for tag in tags {
            tag.write(text)?;
        }
        if let Some(user) = &self.user {
            card(text, format_args!("U {}", escaped(user)?));
        }
        Ok(())
    }
}

fn cherrypick((target, base): (&[u8], Option<&[u8]>)) -> Result<Cherrypick> {
    let (sign, target) = target.split_at(1);
    Ok(Cherrypick { backout: sign == b"-", target: hash(target)?, base: base.map(hash).transpose()? })
}
