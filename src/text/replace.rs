//! The exact replacement of the one place where a passage stands.

use std::borrow::Cow;

use memchr::memmem::Finder;

use super::lines::{LineEnds, count_lines, line_at, with_crlf};
use super::nearest::{Nearest, nearest};
use crate::error::{Error, Kind};

/// How many places an ambiguous passage is listed at.
const PLACES_MAX: usize = 100;

/// A text after a replacement, and what was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The whole new text.
    pub content: Vec<u8>,
    /// The first line that holds new bytes, from 1.
    pub first_line: usize,
    /// How many lines hold new bytes. It is 0 only if the text became empty.
    pub lines_changed: usize,
    /// Whether each LF in what was given became CR LF, as every line of the text ends.
    pub followed_crlf: bool,
    /// Whether a line end was added to the last line before appending.
    pub added_line_end: bool,
}

/// Why nothing was replaced: the passage stands nowhere, or in several places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// The lines, from 1, on which a match begins, at most 100. Empty if there is no match.
    pub matches: Vec<usize>,
    /// Whether there are more matches than listed.
    pub more: bool,
    /// The place most like the passage, if there is no match.
    pub nearest: Option<Nearest>,
}

/// Replaces `old`, which must stand in `content` exactly once, by `new`. An empty `old` adds `new` at the end.
///
/// Bytes are compared exactly, and every byte outside the match stays. Overlapping matches count. If every line of
/// `content` ends in CR LF, a bare LF in `old` and `new` is taken as CR LF. Lines that are added at the end begin on a
/// line of their own: if the last line has no line end, one is added first, provided that `new` holds a line end and
/// does not begin with one.
///
/// ```
/// use ocx::text::replace_once;
/// let done = replace_once(b"one\r\ntwo\r\n", b"one\ntwo", b"1\n2").unwrap();
/// assert_eq!(done.content, b"1\r\n2\r\n");
/// assert!(done.followed_crlf);
/// assert_eq!(replace_once(b"aaa", b"aa", b"b").unwrap_err().matches, [1, 1]);
/// ```
///
/// # Errors
/// A [`Miss`] if there is not exactly one match.
pub fn replace_once(content: &[u8], old: &[u8], new: &[u8]) -> Result<Replaced, Miss> {
    let crlf =
        (old.is_empty() || has_bare_lf(old) || has_bare_lf(new)) && LineEnds::of(content) == LineEnds::CrLf;
    let (old_bytes, new_bytes) = if crlf { (follow(old), follow(new)) } else { (old.into(), new.into()) };
    let followed_crlf = matches!((&old_bytes, &new_bytes), (Cow::Owned(_), _) | (_, Cow::Owned(_)));
    if old.is_empty() {
        return Ok(Replaced { followed_crlf, ..append(content, &new_bytes, crlf) });
    }
    let at = the_one_match(content, &old_bytes).map_err(|(matches, more)| Miss {
        nearest: if matches.is_empty() { nearest(content, old) } else { None },
        matches,
        more,
    })?;
    let after = &content[at + old_bytes.len()..];
    let content = [&content[..at], &new_bytes, after].concat();
    let (first_line, lines_changed) = lines_touched(&content, at, new_bytes.len());
    Ok(Replaced { content, first_line, lines_changed, followed_crlf, added_line_end: false })
}

impl Miss {
    /// Makes the error for an edit of the text that is shown as `path`.
    #[must_use]
    pub fn into_error(self, path: &str) -> Error {
        match (self.matches.len(), self.nearest) {
            (0, None) => Error::new(Kind::NotFound, format!("`old` stands nowhere in `{path}`"))
                .with_hint("Read the lines again and copy `old` exactly from their text."),
            (0, Some(near)) => {
                let what =
                    format!("`old` stands nowhere in `{path}`; nearest is line {}: {}", near.line, near.why);
                Error::new(Kind::NotFound, what).with_hint(format!(
                    "Read `{path}` again from line {} and copy `old` exactly from its text.",
                    near.line
                ))
            }
            (n, _) => {
                let lines: Vec<String> = self.matches.iter().take(20).map(ToString::to_string).collect();
                let more = if self.more || n > 20 { ", ..." } else { "" };
                let count = if self.more { format!("over {n}") } else { n.to_string() };
                let what = format!(
                    "`old` stands in {count} places in `{path}`, beginning on lines {}{more}",
                    lines.join(", ")
                );
                Error::new(Kind::Ambiguous, what)
                    .with_hint("Add a line before or after to `old` to make it unique.")
            }
        }
    }
}

/// Returns `text` with CR LF for each bare LF. It is owned only if something changed.
fn follow(text: &[u8]) -> Cow<'_, [u8]> {
    if has_bare_lf(text) { with_crlf(text).into() } else { text.into() }
}

fn has_bare_lf(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', text).any(|at| !text[..at].ends_with(b"\r"))
}

fn append(content: &[u8], new: &[u8], crlf: bool) -> Replaced {
    let open_end = content.last().is_some_and(|&b| b != b'\n');
    let whole_lines = new.contains(&b'\n') && !new.starts_with(b"\n") && !new.starts_with(b"\r\n");
    let added_line_end = open_end && whole_lines;
    let end: &[u8] = match (added_line_end, crlf) {
        (false, _) => b"",
        (true, false) => b"\n",
        (true, true) => b"\r\n",
    };
    let at = content.len() + end.len();
    let content = [content, end, new].concat();
    let (first_line, lines_changed) = lines_touched(&content, at, new.len());
    Replaced { content, first_line, lines_changed, followed_crlf: false, added_line_end }
}

/// Returns the place of the only match. Otherwise returns the lines of the matches and whether there are more.
fn the_one_match(content: &[u8], old: &[u8]) -> Result<usize, (Vec<usize>, bool)> {
    let finder = Finder::new(old);
    let next = |from: usize| finder.find(content.get(from..)?).map(|at| from + at);
    let Some(first) = next(0) else { return Err((Vec::new(), false)) };
    let Some(mut at) = next(first + 1) else { return Ok(first) };
    let (mut counted, mut line) = (first, line_at(content, first));
    let mut lines = vec![line];
    loop {
        line += memchr::memchr_iter(b'\n', &content[counted..at]).count();
        counted = at;
        lines.push(line);
        match next(at + 1) {
            Some(_) if lines.len() == PLACES_MAX => return Err((lines, true)),
            Some(further) => at = further,
            None => return Err((lines, false)),
        }
    }
}

/// Returns the first line that holds one of the `len` bytes at `at`, and how many lines do. If there are no bytes, the
/// first is the line on which they would stand.
fn lines_touched(content: &[u8], at: usize, len: usize) -> (usize, usize) {
    let total = count_lines(content);
    let first = line_at(content, at).min(total.max(1));
    let count = count_lines(&content[at..at + len]).max(1);
    (first, count.min(total))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn done(content: &[u8], old: &str, new: &str) -> Replaced {
        replace_once(content, old.as_bytes(), new.as_bytes()).unwrap()
    }

    fn miss(content: &[u8], old: &str) -> Miss {
        replace_once(content, old.as_bytes(), b"-").unwrap_err()
    }

    #[test]
    fn t01_multi_line_edit_follows_crlf_file() {
        let done = done(b"one\r\ntwo\r\nthree\r\n", "one\ntwo", "ONE\nTWO");
        assert_eq!(done.content, b"ONE\r\nTWO\r\nthree\r\n");
        assert!(done.followed_crlf);
        assert_eq!((done.first_line, done.lines_changed), (1, 2));
        let miss = miss(b"one\r\ntwo\nthree\r\n", "one\ntwo");
        assert!(miss.matches.is_empty());
        assert!(miss.nearest.unwrap().why.contains("mixes line ends"));
    }

    #[test]
    fn t01_crlf_in_old_and_new_is_taken_as_it_is() {
        let done = done(b"one\r\ntwo\r\n", "one\r\n", "1\r\n");
        assert_eq!((&done.content[..], done.followed_crlf), (&b"1\r\ntwo\r\n"[..], false));
    }

    #[test]
    fn t02_one_bare_lf_changes_no_other_line_end() {
        let done = done(b"a\r\nb\nc\r\n", "b", "B");
        assert_eq!(done.content, b"a\r\nB\nc\r\n");
        assert!(!done.followed_crlf);
    }

    #[test]
    fn t03_lines_added_at_the_end_begin_on_their_own_line() {
        let added = done(b"x", "", "y\n");
        assert_eq!((&added.content[..], added.added_line_end), (&b"x\ny\n"[..], true));
        assert_eq!((added.first_line, added.lines_changed), (2, 1));
        let crlf = done(b"a\r\nx", "", "y\nz");
        assert_eq!((&crlf.content[..], crlf.added_line_end), (&b"a\r\nx\r\ny\r\nz"[..], true));
        let own = done(b"x", "", "\ny\n");
        assert_eq!((&own.content[..], own.added_line_end), (&b"x\ny\n"[..], false));
        assert!(!done(b"x\n", "", "y\n").added_line_end);
        assert!(!done(b"", "", "y\n").added_line_end);
    }

    #[test]
    fn t04_the_last_line_end_is_neither_added_nor_dropped() {
        assert_eq!(done(b"a\nb", "b", "B").content, b"a\nB");
        assert_eq!(done(b"a\nb\n", "b", "B").content, b"a\nB\n");
    }

    #[test]
    fn t05_the_byte_order_mark_stays() {
        assert_eq!(done(b"\xef\xbb\xbfhello\n", "hello", "hi").content, b"\xef\xbb\xbfhi\n");
    }

    #[test]
    fn t07_bytes_that_are_not_utf8_stay() {
        assert_eq!(done(b"x = 1\n// caf\xe9\n", "x = 1", "x = 2").content, b"x = 2\n// caf\xe9\n");
    }

    #[test]
    fn t09_dollar_patterns_are_plain_text() {
        let new = "log(\"$& $$ $1 $` $' \\1 \\n\");";
        assert_eq!(done(b"log(\"done\");\n", "log(\"done\");", new).content, format!("{new}\n").into_bytes());
    }

    #[test]
    fn t10_tabs_match_tabs_only() {
        let file = b"\tif(x){\n\t\ty();\n";
        assert_eq!(done(file, "\t\ty();", "\t\tz();").content, b"\tif(x){\n\t\tz();\n");
        let near = miss(file, "    if(x){\n        y();").nearest.unwrap();
        assert_eq!(near.line, 1);
        assert!(near.why.contains("tab"), "{}", near.why);
    }

    #[test]
    fn t11_curly_quotes_are_not_folded() {
        let file = "don\u{2019}t\u{a0}stop\n";
        let near = miss(file.as_bytes(), "don't stop").nearest.unwrap();
        assert!(near.line == 1 && near.why.contains("U+2019"), "{}", near.why);
        assert_eq!(
            done(file.as_bytes(), "stop", "\u{2019}").content,
            "don\u{2019}t\u{a0}\u{2019}\n".as_bytes()
        );
    }

    #[test]
    fn t13_an_empty_old_inserts_once_at_the_end() {
        let done = done(b"ab", "", "X");
        assert_eq!((&done.content[..], done.added_line_end), (&b"abX"[..], false));
    }

    #[test]
    fn overlapping_matches_are_all_counted() {
        assert_eq!(miss(b"aaa", "aa").matches, [1, 1]);
        assert_eq!(miss(b"x\nabab\nab\n", "ab").matches, [2, 2, 3]);
        let many = miss("a\n".repeat(101).as_bytes(), "a");
        assert_eq!((many.matches.len(), many.more), (100, true));
        assert!(!miss("a\n".repeat(100).as_bytes(), "a").more);
    }

    #[test]
    fn a_deletion_names_the_line_that_took_its_place() {
        let gone = done(b"a\nb\nc\n", "b\n", "");
        assert_eq!((&gone.content[..], gone.first_line, gone.lines_changed), (&b"a\nc\n"[..], 2, 1));
        assert_eq!(done(b"a", "a", "").lines_changed, 0);
        assert_eq!(done(b"a\nb\n", "b\n", "").first_line, 1);
    }

    #[test]
    fn a_miss_becomes_an_error_with_a_way_out() {
        let e = miss(b"a a", "a").into_error("a.txt");
        assert_eq!((e.kind(), e.to_string().contains("2 places")), (Kind::Ambiguous, true));
        let e = miss(b"zzz", "a").into_error("a.txt");
        assert_eq!((e.kind(), e.hint().is_some()), (Kind::NotFound, true));
    }

    proptest! {
        #[test]
        fn every_byte_outside_the_match_stays(
            before in prop::collection::vec(any::<u8>(), 0..200),
            after in prop::collection::vec(any::<u8>(), 0..200),
            old in prop::collection::vec(any::<u8>().prop_filter("a line end may follow the text's", |b| *b != b'\n'), 1..9),
            new in prop::collection::vec(any::<u8>().prop_filter("a line end may follow the text's", |b| *b != b'\n'), 0..9),
        ) {
            let content = [&before[..], &old, &after].concat();
            let count = content.windows(old.len()).filter(|w| *w == old).count();
            match replace_once(&content, &old, &new) {
                Ok(done) => {
                    prop_assert_eq!(count, 1);
                    prop_assert_eq!(done.content, [&before[..], &new, &after].concat());
                }
                Err(miss) => prop_assert_eq!(miss.matches.len(), count),
            }
        }

        #[test]
        fn a_crlf_text_stays_one(text in "([ab]{0,3}\r\n){1,8}[ab]{0,2}", old in "[ab\n]{1,4}", new in "[ab\n]{0,4}") {
            if let Ok(done) = replace_once(text.as_bytes(), old.as_bytes(), new.as_bytes()) {
                prop_assert!(matches!(LineEnds::of(&done.content), LineEnds::CrLf | LineEnds::None));
                let naive = text.replacen(&old.replace('\n', "\r\n"), &new.replace('\n', "\r\n"), 1);
                prop_assert_eq!(done.content, naive.into_bytes());
            }
        }

        #[test]
        fn lines_told_are_those_that_differ(text in "([ab]{1,3}\n){1,8}", old in "[ab]{1,2}", new in "[cd\n]{1,4}") {
            if let Ok(done) = replace_once(text.as_bytes(), old.as_bytes(), new.as_bytes()) {
                let all: Vec<&[u8]> = crate::text::lines(&done.content).collect();
                let told = all[done.first_line - 1..][..done.lines_changed].concat();
                let start = all[..done.first_line - 1].concat().len();
                let at = text.find(&old).unwrap();
                prop_assert!(start <= at && at + new.len() <= start + told.len());
            }
        }
    }
}
