//! The text of Fossil's artifacts (check-ins, tags, wiki pages, posts): read, write, and tell artifact from mere content.
//!
//! A manifest is lines of cards in alphabetical order, the last an MD5 of those before. Fossil takes
//! *any* content of that form for a real artifact, whoever stored it, so [`looks_like_artifact`] is asked
//! about each file before it is saved. Storing and crosslinking is not done here.

mod cards;
mod control;
mod date;
pub(crate) mod envelope;
mod glance;
mod post;
mod reserved;
mod seal;
mod tokens;
mod wiki;

use std::fmt::{self, Write as _};

use cards::{ArtifactKind, Cards, FileToken, TagToken};
pub use control::Control;
pub(crate) use glance::{Glance, glance};
pub use post::ForumPost;
use seal::{sealed, unlike, write_text};
use tokens::Flaw;
pub use wiki::WikiEdit;

use crate::error::{Error, Kind, Result};
use crate::name::Hash;

/// A check-in as its manifest states it; tags that came later may have changed what counts.
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
    /// C: the comment; bytes that are not UTF-8 are replaced when read.
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

/// One file of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCard {
    /// The path in the tree, as stored: not checked beyond Fossil's own rules.
    pub name: String,
    /// The content; `None`, in a manifest with a baseline, means that the file is gone.
    pub hash: Option<Hash>,
    /// What the file is.
    pub kind: FileKind,
    /// The name in the parent, where the check-in renamed it.
    pub prior: Option<String>,
}

/// What a stored file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A plain file.
    #[default]
    Regular,
    /// A file with the executable bit.
    Executable,
    /// A symbolic link, whose content is where it leads.
    Symlink,
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

/// A tag that a manifest sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagCard {
    /// What is done with the tag.
    pub action: TagAction,
    /// Its name, such as `branch` or `sym-trunk`.
    pub name: String,
    /// The artifact that it is set on; `None` is the check-in itself.
    pub target: Option<Hash>,
    /// Its value.
    pub value: Option<String>,
}

/// What a tag card does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagAction {
    /// `+`: set on the target alone.
    Add,
    /// `-`: cancelled from the target on.
    Cancel,
    /// `*`: set on the target and its descendants.
    Propagate,
}

impl TagAction {
    fn sigil(self) -> char {
        match self {
            Self::Add => '+',
            Self::Cancel => '-',
            Self::Propagate => '*',
        }
    }
}

impl TagCard {
    /// The tags by which a check-in begins the branch `name`.
    #[must_use]
    pub fn new_branch(name: &str) -> Vec<Self> {
        let tag = |name: String, value: Option<&str>| Self {
            action: TagAction::Propagate,
            name,
            target: None,
            value: value.map(Into::into),
        };
        vec![tag("branch".into(), Some(name)), tag(format!("sym-{name}"), None)]
    }

    /// The order in which Fossil wants tags.
    fn key(&self) -> (char, &str, Option<&str>) {
        (self.action.sigil(), &self.name, self.target.as_ref().map(Hash::as_str))
    }
}

impl Manifest {
    /// Reads the manifest of a check-in, clear-signed or not.
    ///
    /// # Errors
    /// [`Kind::Corrupt`] when Fossil would not take `content` for an artifact, [`Kind::Invalid`] when it
    /// is one but no check-in, [`Kind::Unsupported`] when a name in it is not UTF-8.
    pub fn parse(content: &[u8]) -> Result<Self> {
        let cards = cards::parse(content)
            .map_err(|flaw| Error::new(Kind::Corrupt, format!("no manifest: {}", flaw.why())))?;
        if cards.kind() != ArtifactKind::CheckIn {
            return Err(Error::new(Kind::Invalid, "the artifact is no check-in"));
        }
        Self::from_cards(cards)
    }

    /// Gives the artifact's bytes: files and tags sorted, everything escaped, the checksum at the end.
    ///
    /// # Errors
    /// [`Kind::Invalid`] when a value cannot stand in a manifest: what comes out is exactly what would be
    /// read back, or nothing.
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
            if reserved::is_reserved(file.name.as_bytes()) {
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

impl FileCard {
    fn from_token(token: &FileToken<'_>) -> Result<Self> {
        let perm = token.perm.unwrap_or_default();
        let kind = if perm.contains(&b'x') {
            FileKind::Executable
        } else if perm.contains(&b'l') {
            FileKind::Symlink
        } else {
            FileKind::Regular
        };
        Ok(Self {
            name: name(&token.name)?,
            hash: token.hash.map(hash).transpose()?,
            kind,
            prior: token.prior.as_deref().map(name).transpose()?,
        })
    }

    fn write(&self, text: &mut String) -> Result<()> {
        let name = escaped(&self.name)?;
        let Some(hash) = self.hash else {
            card(text, format_args!("F {name}"));
            return Ok(());
        };
        let perm = match (self.kind, &self.prior) {
            (FileKind::Executable, _) => " x",
            (FileKind::Symlink, _) => " l",
            (FileKind::Regular, Some(_)) => " w",
            (FileKind::Regular, None) => "",
        };
        let prior = self.prior.as_deref().map(after_space).transpose()?.unwrap_or_default();
        card(text, format_args!("F {name} {hash}{perm}{prior}"));
        Ok(())
    }
}

impl TagCard {
    fn from_token(token: &TagToken<'_>) -> Result<Self> {
        let (sigil, word) = token.name.split_at(1);
        let action = match sigil {
            b"+" => TagAction::Add,
            b"-" => TagAction::Cancel,
            _ => TagAction::Propagate,
        };
        Ok(Self {
            action,
            name: name(word)?,
            target: token.target.map(hash).transpose()?,
            value: token.value.as_deref().map(lossy),
        })
    }

    fn write(&self, text: &mut String) -> Result<()> {
        let target = self.target.as_ref().map_or("*", Hash::as_str);
        let value = self.value.as_deref().map(after_space).transpose()?.unwrap_or_default();
        card(text, format_args!("T {}{} {target}{value}", self.action.sigil(), escaped(&self.name)?));
        Ok(())
    }
}

/// Whether a Fossil server that stores `content` takes it for an artifact of any kind: a check-in, a tag,
/// a wiki edit, a post. Such content is never stored as a file's.
///
/// It is true exactly where Fossil's own parser accepts, and also where that parser would crash. Content
/// that only resembles an artifact (a wrong checksum, cards out of order) is none.
///
/// ```
/// use ocx::format::artifact::looks_like_artifact;
/// let forged = "C x\nD 2026-11-30T10:23:45\nU boss\nZ c900aa456869c5a7c1975adf06f7397f\n";
/// assert!(looks_like_artifact(forged.as_bytes()));
/// assert!(!looks_like_artifact(b"C is a letter, and this is a text\n"));
/// ```
#[must_use]
pub fn looks_like_artifact(content: &[u8]) -> bool {
    !matches!(cards::parse(content), Err(Flaw::Syntax(_)))
}

fn cherrypick((target, base): (&[u8], Option<&[u8]>)) -> Result<Cherrypick> {
    let (sign, target) = target.split_at(1);
    Ok(Cherrypick { backout: sign == b"-", target: hash(target)?, base: base.map(hash).transpose()? })
}

fn hash(token: &[u8]) -> Result<Hash> {
    Hash::parse(&String::from_utf8_lossy(token))
}

fn name(token: &[u8]) -> Result<String> {
    String::from_utf8(token.to_vec()).map_err(|e| {
        let shown = e.as_bytes().escape_ascii().to_string();
        Error::new(Kind::Unsupported, format!("the name `{shown}` is not UTF-8")).caused_by(e)
    })
}

fn lossy(token: &[u8]) -> String {
    String::from_utf8_lossy(token).into_owned()
}

fn card(text: &mut String, line: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(line);
    text.push('\n');
}

fn after_space(text: &str) -> Result<String> {
    Ok(format!(" {}", escaped(text)?))
}

/// `text` as one token of a card.
fn escaped(text: &str) -> Result<String> {
    let mut token = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        let letter = match c {
            ' ' => 's',
            '\n' => 'n',
            '\t' => 't',
            '\r' => 'r',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\\' => '\\',
            // Fossil writes `\0` but reads it as the end of the text.
            '\0' => return Err(invalid("a value holds a NUL")),
            other => {
                token.push(other);
                continue;
            }
        };
        token.extend(['\\', letter]);
    }
    Ok(token)
}

fn invalid(why: &str) -> Error {
    Error::new(Kind::Invalid, format!("cannot write the artifact: {why}"))
        .with_hint("Change the value that the message names.")
}

#[cfg(test)]
pub(crate) mod tests;
