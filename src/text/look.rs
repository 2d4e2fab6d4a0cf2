//! What a text looks like to one who is to read its changes: whether it is one, its line ends, its encoding.
//!
//! The same questions as Fossil's, with the same answers: it asks before it checks in what may be no text.

/// The most bytes of a line in a text, with its end.
const LINE_MAX: usize = (1 << 15) - 1;

/// The most characters of a line in UTF-16, with its end.
const WIDE_LINE_MAX: usize = (1 << 14) - 1;

/// What a file looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub kind: LookKind,
    pub ends: Ends,
}

/// Whether a file is a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookKind {
    Utf8,
    Utf16,
    /// Text of another encoding.
    OtherText,
    /// It has a line that no text has.
    LongLines,
    Binary,
}

/// Which ends the lines of a text have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// LF alone, or none at all.
    Lf,
    CrLf,
    Cr,
    Mixed,
}

impl Look {
    pub fn of(content: &[u8]) -> Self {
        match content {
            [0xFF, 0xFE, rest @ ..] if rest.len() % 2 == 0 => wide(content, u16::from_le_bytes),
            [0xFE, 0xFF, rest @ ..] if rest.len() % 2 == 0 => wide(content, u16::from_be_bytes),
            _ => narrow(content),
        }
    }
}

fn narrow(content: &[u8]) -> Look {
    let ends = ends(content.iter().map(|&b| u16::from(b)));
    let is_long = |line: &[u8]| line.len() > LINE_MAX;
    let kind = if memchr::memchr(0, content).is_some() {
        LookKind::Binary
    } else if content.split_inclusive(|&b| b == b'\n').any(is_long) {
        LookKind::LongLines
    } else if is_utf8(content) {
        LookKind::Utf8
    } else {
        LookKind::OtherText
    };
    Look { kind, ends }
}

fn wide(content: &[u8], unit: fn([u8; 2]) -> u16) -> Look {
    let units: Vec<u16> = content.as_chunks::<2>().0.iter().map(|&pair| unit(pair)).collect();
    let is_long = |line: &[u16]| line.len() > WIDE_LINE_MAX;
    let kind = if units.contains(&0) {
        LookKind::Binary
    } else if units.split_inclusive(|&c| c == u16::from(b'\n')).any(is_long) {
        LookKind::LongLines
    } else {
        LookKind::Utf16
    };
    Look { kind, ends: ends(units.into_iter()) }
}

/// Whether this is UTF-8 as Fossil takes it: also with a NUL of two bytes, and with halves of surrogate pairs.
fn is_utf8(content: &[u8]) -> bool {
    let mut rest = content;
    while let Err(e) = str::from_utf8(rest) {
        rest = match &rest[e.valid_up_to()..] {
            [0xC0, 0x80, rest @ ..] | [0xED, 0xA0..=0xBF, 0x80..=0xBF, rest @ ..] => rest,
            _ => return false,
        };
    }
    true
}

fn ends(characters: impl Iterator<Item = u16>) -> Ends {
    const CR: u16 = b'\r' as u16;
    const LF: u16 = b'\n' as u16;
    let (mut crlf, mut cr, mut lf) = (false, false, false);
    let mut after_cr = false;
    for character in characters {
        match (after_cr, character) {
            (true, LF) => crlf = true,
            (true, _) => cr = true,
            (false, LF) => lf = true,
            (false, _) => {}
        }
        after_cr = character == CR;
    }
    cr |= after_cr;
    match (crlf, cr, lf) {
        (false, false, _) => Ends::Lf,
        (true, false, false) => Ends::CrLf,
        (false, true, false) => Ends::Cr,
        _ => Ends::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_told_from_what_is_none() {
        let kind = |content: &[u8]| Look::of(content).kind;
        for text in [&b""[..], b"a\n", "\u{e9}".as_bytes(), b"\xC0\x80", b"\xED\xA0\x80"] {
            assert_eq!(kind(text), LookKind::Utf8, "{text:?}");
        }
        assert_eq!(kind(b"\xE9\n"), LookKind::OtherText);
        assert_eq!(kind(b"a\0b"), LookKind::Binary);
        assert_eq!(kind(&b"a".repeat(LINE_MAX)), LookKind::Utf8);
        assert_eq!(kind(&b"a".repeat(LINE_MAX + 1)), LookKind::LongLines);
        assert_eq!(kind(b"\xFF\xFEa\0"), LookKind::Utf16);
        assert_eq!(kind(b"\xFE\xFF\0a"), LookKind::Utf16);
        assert_eq!(kind(b"\xFF\xFE\0\0"), LookKind::Binary);
    }

    #[test]
    fn line_ends_are_told_apart() {
        let ends = |content: &[u8]| Look::of(content).ends;
        for (content, is) in [
            (&b"a\nb\n"[..], Ends::Lf),
            (b"a", Ends::Lf),
            (b"a\r\nb", Ends::CrLf),
            (b"a\rb\r", Ends::Cr),
            (b"a\r\nb\n", Ends::Mixed),
            (b"a\r\r\n", Ends::Mixed),
            (b"\r", Ends::Cr),
            (b"\xFF\xFE\r\0\n\0", Ends::CrLf),
        ] {
            assert_eq!(ends(content), is, "{content:?}");
        }
    }
}
