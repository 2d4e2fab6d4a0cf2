//! Bytes as they travel in a call: standard base64 with padding, on one line.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use crate::error::{Error, Kind, Result};

/// The bytes of a field.
///
/// # Errors
/// `Invalid`, saying where the text is no base64.
pub(super) fn decoded(field: &str, text: &str) -> Result<Vec<u8>> {
    STANDARD.decode(text).map_err(|e| {
        Error::new(Kind::Invalid, format!("field `{field}` is not base64: {}", plainly(&e)))
            .with_hint("Encode the bytes as standard base64 with padding, on one line (`base64 -w0 FILE`).")
    })
}

/// The text for a field.
pub(super) fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The base64 that was probably meant: in lines, as a data URL, in the alphabet for URLs or without its padding.
pub(super) fn repair(text: &str) -> Option<String> {
    let bare = text.rsplit_once(";base64,").map_or(text, |(_, data)| data);
    let plain = |c: char| match c {
        '-' => '+',
        '_' => '/',
        c => c,
    };
    let bare: String = bare.chars().filter(|c| !c.is_whitespace() && *c != '=').map(plain).collect();
    STANDARD_NO_PAD.decode(&bare).ok().map(|bytes| encoded(&bytes))
}

fn plainly(error: &base64::DecodeError) -> String {
    match error {
        base64::DecodeError::InvalidByte(at, byte) => {
            format!("character {} is `{}`", at + 1, crate::name::shown(&[*byte]))
        }
        other => {
            let text = other.to_string();
            let mut letters = text.chars();
            letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
        }
    }
}
