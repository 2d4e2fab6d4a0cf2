//! An artifact's text as cards and tokens, separated as Fossil separates them.

use std::borrow::Cow;

/// A token, decoded or as it stands.
pub(super) type Bytes<'a> = Cow<'a, [u8]>;

/// What a step of the parser gives.
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
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, at_line_end: true, last_len: 0 }
    }

    pub(super) fn is_at_line_end(&self) -> bool {
        self.at_line_end
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// `size` bytes of free text; the line end behind them is passed.
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
        let len = rest.iter().position(|b| matches!(b, b' ' | b'\n' | 0)).unwrap_or(rest.len());
        self.at_line_end = rest.get(len).is_none_or(|b| *b == b'\n');
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

    /// A run of exactly `len` hex digits, read as Fossil does: with a missing token, the length of an
    /// earlier one is compared, and where that fits a null pointer is read.
    pub(super) fn hex(&mut self, len: usize, why: &'static str) -> Outcome<&'a [u8]> {
        match self.next_sized() {
            Some(token) if token.len() == len && is_hex(token) => Ok(token),
            None if self.last_len == len => Err(Flaw::Crash(why)),
            _ => syntax(why),
        }
    }
}

pub(super) fn is_hex(token: &[u8]) -> bool {
    token.iter().all(u8::is_ascii_hexdigit)
}

pub(super) fn is_hash(token: &[u8]) -> bool {
    matches!(token.len(), 40 | 64) && is_hex(token)
}

/// Undoes Fossil's escapes; like a C string, the result ends at the first NUL.
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
