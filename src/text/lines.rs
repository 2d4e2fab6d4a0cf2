//! Where lines end, and what is text.

use memchr::{memchr, memchr_iter, memmem, memrchr};

/// Returns the lines of `content`, each with its LF. The last one may have none.
///
/// ```
/// use ocx::text::lines;
/// let found: Vec<&[u8]> = lines(b"alpha\nbeta\rx\n\ngamma").collect();
/// assert_eq!(found, [&b"alpha\n"[..], b"beta\rx\n", b"\n", b"gamma"]);
/// ```
pub fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = content;
    std::iter::from_fn(move || {
        let end = memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let line;
        (line, rest) = rest.split_at(end);
        (!line.is_empty()).then_some(line)
    })
}

/// Counts the lines of `content`, as [`lines`] gives them.
#[must_use]
pub fn count_lines(content: &[u8]) -> usize {
    let open_end = content.last().is_some_and(|&b| b != b'\n');
    memchr_iter(b'\n', content).count() + usize::from(open_end)
}

/// The number, from 1, of the line that holds the byte at `offset`.
#[must_use]
pub fn line_at(content: &[u8], offset: usize) -> usize {
    memchr_iter(b'\n', &content[..offset]).count() + 1
}

/// The last `n` lines of `content`.
#[must_use]
pub fn tail(content: &[u8], n: usize) -> &[u8] {
    let mut start = content.len();
    for _ in 0..n {
        if start == 0 {
            break;
        }
        start = memrchr(b'\n', &content[..start - 1]).map_or(0, |at| at + 1);
    }
    &content[start..]
}

/// Cuts `text` to at most `max` bytes, between characters.
#[must_use]
pub fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// A line without its line end: LF, and the CR before it.
#[must_use]
pub fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns `content` as text, unless it is binary: not UTF-8, or with a NUL in it.
#[must_use]
pub fn as_text(content: &[u8]) -> Option<&str> {
    memchr(0, content).is_none().then(|| str::from_utf8(content).ok())?
}

/// How the lines of a text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnds {
    /// No line has an end.
    None,
    /// Every line end is a bare LF.
    Lf,
    /// Every line end is CR LF.
    CrLf,
    /// Some are LF, some CR LF.
    Mixed,
}

impl LineEnds {
    /// Finds how the lines of `content` end.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        let mut found = Self::None;
        for at in memchr_iter(b'\n', content) {
            let this = if content[..at].ends_with(b"\r") { Self::CrLf } else { Self::Lf };
            if found != Self::None && found != this {
                return Self::Mixed;
            }
            found = this;
        }
        found
    }
}

/// Returns `text` with a CR before each LF that has none.
pub(super) fn with_crlf(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 16);
    for line in lines(text) {
        match line.strip_suffix(b"\n") {
            Some(body) if !body.ends_with(b"\r") => {
                out.extend_from_slice(body);
                out.extend_from_slice(b"\r\n");
            }
            _ => out.extend_from_slice(line),
        }
    }
    out
}

/// Returns `text` with each CR LF made LF.
pub(super) fn with_lf(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in memmem::find_iter(text, b"\r\n") {
        out.extend_from_slice(&text[from..at]);
        from = at + 1;
    }
    out.extend_from_slice(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t04_a_missing_last_line_end_makes_no_extra_line() {
        assert_eq!(count_lines(b"a\nB"), 2);
        assert_eq!(count_lines(b"a\nB\n"), 2);
        assert_eq!(count_lines(b""), 0);
        assert_eq!(count_lines(b"\n"), 1);
    }

    #[test]
    fn t17_a_lone_cr_is_no_line_end() {
        let text = b"alpha\nbeta\rx\ngamma\n";
        assert_eq!(line_at(text, memmem::find(text, b"gamma").unwrap()), 3);
        assert_eq!(lines(text).nth(1).unwrap(), b"beta\rx\n");
        assert_eq!(LineEnds::of(text), LineEnds::Lf);
    }

    #[test]
    fn t15_a_cut_falls_between_characters() {
        let emoji = "\u{1f600}".repeat(5000);
        assert_eq!(cut(&emoji, 499).len(), 496);
        assert_eq!(cut("ab", 5), "ab");
    }

    #[test]
    fn t06_utf16_and_nul_bytes_are_no_text() {
        assert_eq!(as_text(b"\xff\xfea\0\n\0"), None);
        assert_eq!(as_text(b"a\0\n\0"), None);
        assert_eq!(as_text("\u{feff}é\n".as_bytes()), Some("\u{feff}é\n"));
    }

    #[test]
    fn line_ends_are_told_apart() {
        assert_eq!(LineEnds::of(b"ab"), LineEnds::None);
        assert_eq!(LineEnds::of(b"a\r\nb\r\nc"), LineEnds::CrLf);
        assert_eq!(LineEnds::of(b"a\r\nb\n"), LineEnds::Mixed);
        assert_eq!(LineEnds::of(b"\na\r\n"), LineEnds::Mixed);
    }

    #[test]
    fn the_tail_is_the_last_lines() {
        assert_eq!(tail(b"a\nb\nc\n", 2), b"b\nc\n");
        assert_eq!(tail(b"a\nb\nc", 2), b"b\nc");
        assert_eq!(tail(b"a\nb", 9), b"a\nb");
        assert_eq!(tail(b"a\n\n", 1), b"\n");
        assert_eq!(tail(b"a\n", 0), b"");
        assert_eq!(tail(b"", 3), b"");
    }

    proptest::proptest! {
        #[test]
        fn lines_lose_no_byte(text in "[a\\r\\n]{0,40}", n in 0usize..6) {
            let text = text.as_bytes();
            let all: Vec<&[u8]> = lines(text).collect();
            proptest::prop_assert_eq!(all.concat(), text);
            proptest::prop_assert_eq!(all.len(), count_lines(text));
            proptest::prop_assert_eq!(tail(text, n), all[all.len().saturating_sub(n)..].concat());
            proptest::prop_assert!(with_lf(&with_crlf(text)) == with_lf(text));
        }
    }
}
