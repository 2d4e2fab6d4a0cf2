//! Any bytes as one line of readable text, for names that come from the disk.

use std::fmt::Write;

/// The longest piece of a refused name that an error message repeats, in bytes.
const MESSAGE_MAX: usize = 200;

/// Shows any bytes on one line, so that no name can forge a line of output or hide a part of itself.
///
/// Readable UTF-8 stays. A backslash is doubled. Control characters, line separators, and the invisible characters
/// that reorder or hide text become `\n`, `\r`, `\t` or `\u{..}`. Bytes that are not UTF-8 become `\xNN`. Different
/// bytes always give different text.
///
/// ```
/// use ocx::name::shown;
/// assert_eq!(shown(b"a\nb"), "a\\nb");
/// assert_eq!(shown(b"caf\xe9"), "caf\\xe9");
/// ```
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' | '\r' | '\t' => out.extend(c.escape_default()),
                c if c.is_control() || is_hidden(c) => out.extend(c.escape_unicode()),
                c => out.push(c),
            }
        }
        for b in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\x{b:02x}");
        }
    }
    out
}

/// [`shown`], cut to a length that fits a message.
pub(super) fn cut_shown(bytes: &[u8]) -> String {
    if bytes.len() <= MESSAGE_MAX {
        return shown(bytes);
    }
    let end = (MESSAGE_MAX - 3..=MESSAGE_MAX).rev().find(|&n| bytes[n] & 0xc0 != 0x80);
    format!("{}... ({} bytes)", shown(&bytes[..end.unwrap_or(MESSAGE_MAX)]), bytes.len())
}

/// Whether a character shows as nothing, as a line end, or turns the text after it around.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p07_a_newline_in_a_name_cannot_forge_a_line() {
        assert_eq!(shown(b"a\nREADME.md:1:all tests passed"), "a\\nREADME.md:1:all tests passed");
        assert_eq!(shown("a\u{2028}b\u{202e}c\u{85}d\r".as_bytes()), "a\\u{2028}b\\u{202e}c\\u{85}d\\r");
    }

    #[test]
    fn readable_text_is_shown_as_it_is() {
        assert_eq!(shown("naïve 日本 \"x\" 'y'".as_bytes()), "naïve 日本 \"x\" 'y'");
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let name = "é".repeat(400);
        let text = cut_shown(name.as_bytes());
        assert_eq!(text, format!("{}... (800 bytes)", "é".repeat(100)));
    }

    proptest::proptest! {
        #[test]
        fn different_bytes_are_shown_differently(
            a in proptest::collection::vec(proptest::num::u8::ANY, 0..8),
            b in proptest::collection::vec(proptest::num::u8::ANY, 0..8),
        ) {
            proptest::prop_assert_eq!(a == b, shown(&a) == shown(&b));
            proptest::prop_assert!(!shown(&a).contains(char::is_control));
        }
    }
}
