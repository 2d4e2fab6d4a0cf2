//! Whether a content is an artifact: for certain, or by its first bytes where thousands are looked at.

use super::grammar;
use super::tokens::{Flaw, without_signature};

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
    !matches!(grammar::parse(content), Err(Flaw::Syntax(_)))
}

/// The beginning of a text that may be an artifact. It proves nothing, but a text without it is no artifact.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sniffed {
    /// It reads like something other than a check-in.
    pub is_other: bool,
    /// The argument of the D card, if that is near.
    pub date: Vec<u8>,
}

/// Looks at a text's first cards. Returns nothing if the text cannot be an artifact.
pub(crate) fn sniff(content: &[u8]) -> Option<Sniffed> {
    if content.last() != Some(&b'\n') {
        return None;
    }
    let text = without_signature(content);
    if text.len() < 10 || !text[0].is_ascii_uppercase() || text[1] != b' ' {
        return None;
    }
    let mut lines = text.split(|&byte| byte == b'\n');
    // In a check-in, only B and C can stand before it.
    let date = lines.by_ref().take(3).find_map(|line| line.strip_prefix(b"D ")).unwrap_or_default();
    let is_other = !matches!(lines.next(), Some([b'F' | b'N' | b'P' | b'Q' | b'R', ..]));
    Some(Sniffed { is_other, date: date.to_vec() })
}
