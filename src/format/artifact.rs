//! The text of Fossil's artifacts (check-ins, tags, wiki pages, posts): read, write, and tell artifact from mere content.
//!
//! A manifest is lines of cards in alphabetical order, the last an MD5 of those before. Fossil takes
//! *any* content of that form for a real artifact, whoever stored it, so [`looks_like_artifact`] is asked
//! about each file before it is saved. Storing and crosslinking is not done here.

mod control;
mod date;
mod file;
mod grammar;
mod manifest;
mod names;
mod post;
mod sniff;
mod tag;
mod tokens;
mod values;
mod wiki;
mod write;

pub use control::Control;
pub(crate) use date::{is_canonical, is_fixed, julian_day};
pub use file::{FileCard, FileKind};
pub(crate) use grammar::{ArtifactKind, Cards};
pub use manifest::{Cherrypick, Manifest};
pub use post::ForumPost;
pub use sniff::looks_like_artifact;
pub(crate) use sniff::{Sniffed, sniff};
pub use tag::{TagAction, TagCard};
pub(crate) use tokens::checksum;
pub(crate) use values::{Reading, read};
pub use wiki::WikiEdit;

#[cfg(test)]
pub(crate) mod tests;
