//! An artifact's text as cards and tokens, separated as Fossil separates them, and what stands around the cards: a
//! clear-signature before and after, a checksum at the end.

use std::borrow::Cow;

use md5::{Digest, Md5};

use crate::error::{Error, Kind, Result as Checked};
use crate::name::Hash;

/// A token, decoded or as it stands.
pub(super) type Bytes<'a> = Cow<'a, [u8]>;

/// The result of a step of the parser.
pub(super) type Outcome<T = ()> = Result<T, Flaw>;

/// Why a text is no artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// `manifest_parse` refuses it.
    Syntax(&'static str),
    /// `manifest_parse` reads wild memory on it, so nobody may be sent such content.
    Crash(&'static str),
}

impl Flaw {
    pub(super) fn why(self) -> &'static str {
        let (Self::Syntax(why) | Self::Crash(why)) = self;
        why
    }
}

pub(super) fn syntax<T>(why: &'static str) -> Outcome<T> {
    Err(Flaw::Syntax(why))
}

/// The cursor over an artifact's text, which always ends with a line end.
pub(super) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
    at_line_end: bool,
    /// The length of the last token that a hash-bearing card read; Fossil's `sz`, stale value and all.
    last_len: usize,
    has_nul: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, at_line_end: true, last_len: 0, has_nul: false }
    }

    pub(super) fn is_at_line_end(&self) -> bool {
        self.at_line_end
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Whether a NUL has ended a word.
    pub(super) fn has_nul(&self) -> bool {
        self.has_nul
    }

    /// Reads `size` bytes of free text, and passes the line end behind them.
    pub(super) fn text(&mut self, size: usize) -> Outcome<&'a [u8]> {
        let start = self.at;
        let end = self.at + size;
        if end + 1 >= self.text.len() {
            return syntax("not enough content after W-card");
        }
        if self.text[end] != b'\n' {
            return syntax("W-card content not \\n terminated");
        }
        self.at = end + 1;
        Ok(&self.text[start..end])
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    pub(super) fn next_card(&mut self) -> Option<u8> {
        if !self.at_line_end || self.at >= self.text.len() {
            return None;
        }
        let card = self.byte(self.at);
        match self.byte(self.at + 1) {
            b' ' => self.at_line_end = false,
            b'\n' => {}
            _ => return None,
        }
        self.at += 2;
        (card != 0).then_some(card)
    }

    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        if self.at_line_end {
            return None;
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        let len = memchr::memchr3(b' ', b'\n', 0, rest).unwrap_or(rest.len());
        self.at_line_end = rest.get(len).is_none_or(|b| *b == b'\n');
        self.has_nul |= rest.get(len) == Some(&0);
        self.at += len + 1;
        Some(&rest[..len])
    }

    pub(super) fn next_sized(&mut self) -> Option<&'a [u8]> {
        let token = self.next()?;
        self.last_len = token.len();
        Some(token)
    }

    pub(super) fn next_decoded(&mut self) -> Option<Bytes<'a>> {
        self.next().map(decode)
    }

    /// A hash that must be there.
    pub(super) fn hash(&mut self, why: &'static str) -> Outcome<&'a [u8]> {
        self.next_sized().filter(|token| is_hash(token)).ok_or(Flaw::Syntax(why))
    }

    /// A run of exactly `len` hex digits, read as Fossil does. If the token is missing, Fossil compares the length of
    /// an earlier one, and reads a null pointer if that fits.
    pub(super) fn hex(&mut self, len: usize, why: &'static str) -> Outcome<&'a [u8]> {
        match self.next_sized() {
            Some(token) if token.len() == len && is_hex(token) => Ok(token),
            None if self.last_len == len => Err(Flaw::Crash(why)),
            _ => syntax(why),
        }
    }
}

pub(super) fn is_hex(token: &[u8]) -> bool {
    // Without an early end, the compiler looks at many digits at once.
    token.iter().fold(true, |is_hex, digit| is_hex & digit.is_ascii_hexdigit())
}

pub(super) fn is_hash(token: &[u8]) -> bool {
    matches!(token.len(), 40 | 64) && is_hex(token)
}

/// Undoes Fossil's escapes. The result ends at the first NUL, as a C string does.
pub(super) fn decode(token: &[u8]) -> Bytes<'_> {
    if memchr::memchr(b'\\', token).is_none() {
        return Cow::Borrowed(token);
    }
    let mut plain = Vec::with_capacity(token.len());
    let mut bytes = token.iter().copied();
    while let Some(byte) = bytes.next() {
        let decoded = if byte == b'\\' { bytes.next().map_or(b'\\', unescaped) } else { byte };
        if decoded == 0 {
            break;
        }
        plain.push(decoded);
    }
    Cow::Owned(plain)
}

fn unescaped(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b's' => b' ',
        b't' => b'\t',
        b'r' => b'\r',
        b'v' => 0x0b,
        b'f' => 0x0c,
        b'0' => 0,
        other => other,
    }
}

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

/// A token as an artifact's hash.
pub(super) fn hash(token: &[u8]) -> Checked<Hash> {
    match str::from_utf8(token) {
        Ok(text) => Hash::parse(text),
        Err(_) => Hash::parse(&String::from_utf8_lossy(token)),
    }
}

/// A token as a name, which must be UTF-8.
pub(super) fn name(token: &[u8]) -> Checked<String> {
    String::from_utf8(token.to_vec()).map_err(|e| {
        let shown = e.as_bytes().escape_ascii().to_string();
        Error::new(Kind::Unsupported, format!("the name `{shown}` is not UTF-8")).caused_by(e)
    })
}

/// A token as text. Bytes that are not UTF-8 are replaced.
pub(super) fn lossy(token: &[u8]) -> String {
    String::from_utf8_lossy(token).into_owned()
}
