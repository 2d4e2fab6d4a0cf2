//! What stands around an artifact's cards: a clear-signature before and after, a checksum at the end.

use md5::{Digest, Md5};

/// The signed text within a PGP or SSH clear-signed message, or all of `content`.
pub(super) fn without_signature(content: &[u8]) -> &[u8] {
    const BEGIN: [&[u8]; 2] = [b"-----BEGIN PGP SIGNED MESSAGE-----", b"-----BEGIN SSH SIGNED MESSAGE-----"];
    // Fossil compares 29 bytes, one less than these markers have.
    const END: [&[u8]; 2] = [b"\n-----BEGIN PGP SIGNATURE----", b"\n-----BEGIN SSH SIGNATURE----"];
    if !BEGIN.iter().any(|b| content.starts_with(b)) {
        return content;
    }
    let after_blank_line = |i: &usize| {
        let before = &content[..*i];
        before.ends_with(b"\n\n") || before.ends_with(b"\n\r\n")
    };
    let Some(start) = (34..content.len()).find(after_blank_line) else { return content };
    let text = &content[start..];
    let end = memchr::memrchr_iter(b'\n', text).find(|&i| END.iter().any(|e| text[i..].starts_with(e)));
    end.map_or(text, |i| &text[..=i])
}

/// Whether the last 35 bytes are a Z card that does not fit what stands before it.
pub(super) fn has_wrong_checksum(text: &[u8]) -> bool {
    let Some(start) = text.len().checked_sub(35) else { return false };
    let (body, card) = text.split_at(start);
    card.starts_with(b"Z ") && card[2..34] != *checksum(body).as_bytes()
}

/// The MD5 of `body` in hex, as a Z card has it.
pub(crate) fn checksum(body: &[u8]) -> String {
    Md5::digest(body).iter().fold(String::with_capacity(32), |mut hex, byte| {
        for nibble in [byte >> 4, byte & 15] {
            hex.push(char::from(b"0123456789abcdef"[usize::from(nibble)]));
        }
        hex
    })
}
