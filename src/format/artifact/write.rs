//! What the writers of all kinds of artifact share: cards, escapes, the text, the checksum at the end.

use std::fmt::{self, Write as _};

use super::date;
use super::grammar::{self, ArtifactKind};
use super::tokens::{checksum, lossy};
use crate::error::{Error, Kind, Result};

/// Adds a card.
pub(super) fn card(text: &mut String, line: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(line);
    text.push('\n');
}

/// `text` as one more token of a card.
pub(super) fn after_space(text: &str) -> Result<String> {
    Ok(format!(" {}", escaped(text)?))
}

/// `text` as one token of a card.
pub(super) fn escaped(text: &str) -> Result<String> {
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

/// The error for a value that cannot stand in an artifact.
pub(super) fn invalid(why: &str) -> Error {
    Error::new(Kind::Invalid, format!("cannot write the artifact: {why}"))
        .with_hint("Change the value that the message names.")
}

/// Adds the Z card, and lets nothing through that would not be read as an artifact of the kind.
pub(super) fn sealed(mut text: String, kind: ArtifactKind) -> Result<Vec<u8>> {
    let sum = checksum(text.as_bytes());
    card(&mut text, format_args!("Z {sum}"));
    let read = grammar::parse(text.as_bytes()).map_err(|flaw| invalid(flaw.why()))?;
    if read.kind() != kind {
        return Err(invalid("it would be an artifact of another kind"));
    }
    if !read.date.is_some_and(|date| date::is_canonical(&lossy(date))) {
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
