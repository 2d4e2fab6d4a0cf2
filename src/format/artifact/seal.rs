//! What the writers of all kinds of artifact end with: the text, and the checksum.

use super::cards::{self, ArtifactKind};
use super::{card, envelope, invalid};
use crate::error::{Error, Kind, Result};

/// Adds the Z card, and lets nothing through that would not be read as an artifact of the kind.
pub(super) fn sealed(mut text: String, kind: ArtifactKind) -> Result<Vec<u8>> {
    let sum = envelope::checksum(text.as_bytes());
    card(&mut text, format_args!("Z {sum}"));
    let read = cards::parse(text.as_bytes()).map_err(|flaw| invalid(flaw.why()))?;
    if read.kind() != kind {
        return Err(invalid("it would be an artifact of another kind"));
    }
    if !read.date.is_some_and(|date| super::date::is_canonical(&super::lossy(date))) {
        return Err(invalid("its date is not of Fossil's form"));
    }
    Ok(text.into_bytes())
}

/// Adds the W card. Fossil takes the text for a C string, so that a NUL would end it.
pub(super) fn write_text(artifact: &mut String, text: &[u8]) -> Result<()> {
    let text = str::from_utf8(text).map_err(|e| invalid("the text is not UTF-8").caused_by(e))?;
    if text.contains('\0') {
        return Err(invalid("the text holds a NUL"));
    }
    card(artifact, format_args!("W {}\n{text}", text.len()));
    Ok(())
}

/// The error for bytes that are no artifact of the kind.
pub(super) fn unlike(kind: &str, why: &str) -> Error {
    Error::new(Kind::Corrupt, format!("no artifact of a {kind}: {why}"))
}
