//! Joining the changes of two sides in one text, as bytes.
//!
//! The two comparisons with the base are [`changes`], which is `imara-diff`'s in bounded time. What is put together
//! from them stands here, because no crate does it as Fossil does: `diffy` 0.5, `gix-merge` 0.24 and `merge3` 0.2 make
//! a conflict of changes that only touch (`1 2 3` to `X 2 3` and to `1 Y 3`), so of 28 in 100 random texts that Fossil
//! joins. Nor has one a bound: 1 MB of lines out of three kinds takes them over 15 s, and this module 0.3 s.

use std::ops::Range;

use crate::text::{Effort, changes};

/// What Fossil writes around the sides of a conflict: before this side, the base and the other side, and at the end.
const MARKS: [&str; 4] = [
    "<<<<<<< BEGIN MERGE CONFLICT: local copy shown first <<<<<<<<<<<<",
    "||||||| COMMON ANCESTOR content follows |||||||||||||||||||||||||",
    "======= MERGED IN content follows ===============================",
    ">>>>>>> END MERGE CONFLICT >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>",
];
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";
const UTF16_BOMS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
/// In how many lines at the start a CRLF says that the marks get one.
const CRLF_LINES: usize = 10;

/// Two texts joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joined {
    /// The changes of both sides are in it.
    Clean(Vec<u8>),
    /// Where both sides changed the same lines, both stand between conflict marks.
    Marked(Vec<u8>),
    /// They cannot be joined. Says why.
    Not(&'static str),
}

/// Joins what `here` and `there` changed in `base`. Each byte of the result comes from one of them, but conflict marks
/// and a line end before one.
///
/// ```
/// use ocx::merge::{join, Joined};
/// let joined = join(b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC");
/// assert_eq!(joined, Joined::Clean(b"A\nb\nC".to_vec()));
/// ```
#[must_use]
pub fn join(base: &[u8], here: &[u8], there: &[u8]) -> Joined {
    if here == there || there == base {
        return Joined::Clean(here.to_vec());
    }
    if here == base {
        return Joined::Clean(there.to_vec());
    }
    let all = [base, here, there];
    if let Some(bom) = UTF16_BOMS.into_iter().find(|bom| all.iter().any(|text| text.starts_with(bom))) {
        return join_utf16(bom, all);
    }
    if all.iter().any(|text| memchr::memchr(0, text).is_some()) {
        return Joined::Not("it is binary");
    }
    let boms = all.map(|text| text.starts_with(UTF8_BOM));
    let bom = if boms[1] == boms[0] { boms[2] } else { boms[1] };
    let start = if bom { UTF8_BOM } else { b"" };
    let [base, here, there] = all.map(|text| text.strip_prefix(UTF8_BOM).unwrap_or(text));
    let texts = Texts { lines: [lines(base), lines(here), lines(there)], end: b"\n" };
    let end: &[u8] = if uses_crlf(&texts.lines[1]) && uses_crlf(&texts.lines[2]) { b"\r\n" } else { b"\n" };
    let (text, conflicts) = texts.write(start, end);
    if conflicts == 0 { Joined::Clean(text) } else { Joined::Marked(text) }
}

/// Joins UTF-16. Marks would not be found in it, so that it has none.
fn join_utf16(bom: &'static [u8], all: [&[u8]; 3]) -> Joined {
    if all.iter().any(|text| !text.starts_with(bom) || text.len() % 2 != 0) {
        return Joined::Not("it is not UTF-16 of one kind on all sides");
    }
    let end: &[u8; 2] = if bom == UTF16_BOMS[0] { b"\n\0" } else { b"\0\n" };
    let texts = Texts { lines: all.map(|text| lines_utf16(&text[2..], *end)), end };
    match texts.write(bom, b"") {
        (text, 0) => Joined::Clean(text),
        _ => Joined::Not("it is UTF-16, changed in the same lines"),
    }
}

/// The base's lines, this side's, and the other side's, each with its end.
struct Texts<'a> {
    lines: [Vec<&'a [u8]>; 3],
    /// How a line ends.
    end: &'static [u8],
}

/// A part of the base, and what stands for it on each side.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    base: Range<usize>,
    here: Range<usize>,
    there: Range<usize>,
}

/// Lines of the base, and what one side has in their place.
#[derive(Debug, Clone)]
struct Change {
    base: Range<usize>,
    side: Range<usize>,
}

impl Texts<'_> {
    fn changes(&self, side: usize) -> Vec<Change> {
        let changes = changes(&self.lines[0], &self.lines[side], &mut Effort::default());
        changes.into_iter().map(|(base, side)| Change { base, side }).collect()
    }

    /// The parts of the base that a side changed. Changes of the two sides that meet are one part.
    fn parts(&self) -> Vec<Part> {
        let (here, there) = (self.changes(1), self.changes(2));
        let (mut h, mut t) = (0, 0);
        let mut parts = Vec::new();
        // How much longer each side is than the base, up to here.
        let mut shift = [0_isize; 2];
        while h < here.len() || t < there.len() {
            let (first_h, first_t) = (h, t);
            let is_here =
                there.get(t).is_none_or(|t| here.get(h).is_some_and(|h| h.base.start <= t.base.start));
            let mut base = if is_here { here[h].base.clone() } else { there[t].base.clone() };
            if is_here {
                h += 1;
            } else {
                t += 1;
            }
            loop {
                let open = (h > first_h && self.is_open(1)) || (t > first_t && self.is_open(2));
                if here.get(h).is_some_and(|change| self.meet(&base, &change.base, h == first_h, open)) {
                    base.end = base.end.max(here[h].base.end);
                    h += 1;
                } else if there
                    .get(t)
                    .is_some_and(|change| self.meet(&base, &change.base, t == first_t, open))
                {
                    base.end = base.end.max(there[t].base.end);
                    t += 1;
                } else {
                    break;
                }
            }
            let side = |changes: &[Change], shift: &mut isize| {
                let start = base.start.saturating_add_signed(*shift);
                *shift += changes.iter().map(grown).sum::<isize>();
                start..base.end.saturating_add_signed(*shift)
            };
            let (ours, theirs) =
                (side(&here[first_h..h], &mut shift[0]), side(&there[first_t..t], &mut shift[1]));
            parts.push(Part { base, here: ours, there: theirs });
        }
        parts
    }

    /// Whether a change belongs to the part `so_far`: it begins where that begins, or within it. Behind a last line
    /// that has no end, what comes at the end of the base belongs to it too.
    fn meet(&self, so_far: &Range<usize>, next: &Range<usize>, is_first: bool, open: bool) -> bool {
        let is_at_end = next.start == so_far.end && next.start == self.lines[0].len();
        (is_first && next.start == so_far.start) || next.start < so_far.end || (open && is_at_end)
    }

    /// Whether the last line of a text has no end.
    fn is_open(&self, text: usize) -> bool {
        self.lines[text].last().is_some_and(|line| !line.ends_with(self.end))
    }

    /// Returns the joined text, and the number of conflicts in it.
    fn write(&self, start: &[u8], end: &[u8]) -> (Vec<u8>, usize) {
        let [base, here, there] = &self.lines;
        let mut text = start.to_vec();
        let (mut at, mut conflicts) = (0, 0);
        for part in self.parts() {
            text.extend(base[at..part.base.start].concat());
            at = part.base.end;
            let was = &base[part.base.clone()];
            let (ours, theirs) = (&here[part.here.clone()], &there[part.there.clone()]);
            if ours == theirs || theirs == was {
                text.extend(ours.concat());
            } else if ours == was {
                text.extend(theirs.concat());
            } else {
                conflicts += 1;
                let starts = [part.here.start, part.base.start, part.there.start];
                for ((mark, start), lines) in MARKS.iter().zip(starts).zip([ours, was, theirs]) {
                    end_line(&mut text, end);
                    text.extend(format!("{mark} (line {})", start + 1).into_bytes());
                    text.extend(end);
                    text.extend(lines.concat());
                }
                end_line(&mut text, end);
                text.extend(MARKS[3].as_bytes());
                text.extend(end);
            }
        }
        text.extend(base[at..].concat());
        (text, conflicts)
    }
}

#[expect(clippy::cast_possible_wrap, reason = "a text has fewer lines than half the address space has bytes")]
fn grown(change: &Change) -> isize {
    change.side.len() as isize - change.base.len() as isize
}

/// Ends the last line, if it has no end.
fn end_line(text: &mut Vec<u8>, end: &[u8]) {
    let is_open = text.last().is_some_and(|last| *last != b'\n') && text != UTF8_BOM;
    if is_open {
        text.extend_from_slice(end);
    }
}

/// The lines of a text, with their ends. The last one may have none.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn lines_utf16(text: &[u8], end: [u8; 2]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut start = 0;
    for (at, unit) in text.chunks_exact(2).enumerate() {
        let next = at * 2 + 2;
        if unit == end {
            lines.push(&text[start..next]);
            start = next;
        }
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

fn uses_crlf(lines: &[&[u8]]) -> bool {
    lines.iter().take(CRLF_LINES).any(|line| line.ends_with(b"\r\n"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clean(base: &str, here: &str, there: &str) -> String {
        match join(base.as_bytes(), here.as_bytes(), there.as_bytes()) {
            Joined::Clean(text) => String::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn marked(base: &str, here: &str, there: &str) -> String {
        match join(base.as_bytes(), here.as_bytes(), there.as_bytes()) {
            Joined::Marked(text) => String::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn k01_a_last_line_without_an_end_never_runs_into_another() {
        let base = "alpha\nbeta\ngamma";
        assert_eq!(
            clean(base, "ALPHA\nbeta\ngamma", "alpha\nbeta\ngamma\ndelta"),
            "ALPHA\nbeta\ngamma\ndelta"
        );
        let base = "alpha\nbeta\n";
        for (here, there) in
            [("alpha\nBETA", "alpha\nbeta\ngamma\n"), ("alpha\nbeta", "alpha\nbeta\ngamma\n")]
        {
            for text in [marked(base, here, there), marked(base, there, here)] {
                assert!(text.contains("\ngamma\n") && !text.contains("BETAgamma"), "{text}");
                assert!(text.lines().any(|line| line.eq_ignore_ascii_case("beta")), "{text}");
            }
        }
    }

    #[test]
    fn k09_a_byte_order_mark_is_kept_and_counts_as_no_part_of_the_first_line() {
        let bom = |text: &str| format!("\u{feff}{text}");
        assert_eq!(clean(&bom("a\nb\nc\n"), &bom("A\nb\nc\n"), &bom("a\nb\nC\n")), bom("A\nb\nC\n"));
        assert_eq!(clean(&bom("a\nb\n"), "a\nb\n", &bom("A\nb\n")), "A\nb\n");
        assert_eq!(clean("a\nb\n", &bom("a\nb\n"), "A\nb\n"), bom("A\nb\n"));
        assert!(marked(&bom("a\n"), &bom("b\n"), &bom("c\n")).starts_with("\u{feff}<<<<<<< BEGIN MERGE"));
    }

    #[test]
    fn marks_are_fossils_with_the_line_on_each_side() {
        let text = marked("1\n2\n3\n4\n", "0\n1\n2\nX\n4\n", "1\nY\n4\n");
        let expected = "0\n1\n\
            <<<<<<< BEGIN MERGE CONFLICT: local copy shown first <<<<<<<<<<<< (line 3)\n2\nX\n\
            ||||||| COMMON ANCESTOR content follows ||||||||||||||||||||||||| (line 2)\n2\n3\n\
            ======= MERGED IN content follows =============================== (line 2)\nY\n\
            >>>>>>> END MERGE CONFLICT >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>\n4\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn marks_end_as_the_lines_do() {
        let text = marked("a\r\nb\r\n", "X\r\nb\r\n", "Y\r\nb\r\n");
        assert!(text.lines().count() == 8 && text.split_inclusive('\n').all(|line| line.ends_with("\r\n")));
        assert_eq!(clean("a\r\nb\nc\r\n", "A\r\nb\nc\r\n", "a\r\nb\nc\n"), "A\r\nb\nc\n");
    }

    #[test]
    fn changes_side_by_side_are_both_taken_and_at_one_place_are_a_conflict() {
        assert_eq!(clean("1\n2\n3\n", "X\n2\n3\n", "1\nY\n3\n"), "X\nY\n3\n");
        assert_eq!(clean("1\n2\n", "X\n2\n", "1\nnew\n2\n"), "X\nnew\n2\n");
        assert_eq!(clean("1\n2\n", "1\nX\n", "1\n2\n3\n"), "1\nX\n3\n");
        marked("1\n2\n", "1\nX\n2\n", "1\nY\n2\n");
        marked("1\n2\n3\n", "1\n3\n", "1\nY\n3\n");
        assert_eq!(clean("1\n2\n3\n", "0\n1\n3\n", "1\n3\n"), "0\n1\n3\n");
    }

    #[test]
    fn utf16_is_joined_as_such_or_not_at_all() {
        for (bom, little) in [(UTF16_BOMS[0], true), (UTF16_BOMS[1], false)] {
            let text = |text: &str| {
                let units = text.encode_utf16();
                let bytes =
                    units.flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() });
                bom.iter().copied().chain(bytes).collect::<Vec<u8>>()
            };
            // A character with the byte of a line end is none: U+0A0A, U+0A41, U+410A.
            let (base, odd) = (text("a\nb\nc\u{a0a}\u{a41}\u{410a}"), "c\u{a0a}\u{a41}\u{410a}");
            let joined = join(&base, &text(&format!("A\nb\n{odd}")), &text(&format!("a\nb\n{odd}\nd")));
            assert_eq!(joined, Joined::Clean(text(&format!("A\nb\n{odd}\nd"))));
            assert!(matches!(join(&base, &text("1"), &text("2")), Joined::Not(_)));
            assert!(matches!(join(&base, &text("1"), b"2\n"), Joined::Not(_)));
        }
    }

    #[test]
    fn binary_files_are_never_joined() {
        assert!(matches!(join(b"1\n2\n3\n", b"\0\n2\n3\n", b"1\n2\n4\n"), Joined::Not(_)));
        assert!(matches!(join(b"\x001\n2\n3\n", b"0\n2\n3\n", b"1\n2\n4\n"), Joined::Not(_)));
    }

    #[test]
    fn hostile_texts_are_joined_in_bounded_time() {
        let same = "x\n".repeat(100_000);
        let mixed: String =
            (0..100_000).fold(String::new(), |text, i| text + ["a\n", "b\n", "c\n"][i * i % 3]);
        let start = std::time::Instant::now();
        let _joined = join(same.as_bytes(), mixed.as_bytes(), same.replace("x\nx\nx\n", "x\ny\n").as_bytes());
        let _joined = join(mixed.as_bytes(), same.as_bytes(), mixed.replace("a\nb", "b\na\nb").as_bytes());
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }

    /// A text of few different lines, so that they meet often. The last one may have no end.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![Just("a\n"), Just("b\n"), Just("c\n"), Just("d\r\n"), Just("\n")];
        (prop::collection::vec(line, 0..12), prop_oneof![3 => Just(""), 1 => Just("a"), 1 => Just("e")])
            .prop_map(|(lines, last)| (lines.concat() + last).into_bytes())
    }

    /// The lines of a text without their ends.
    fn bare(text: &[u8]) -> Vec<&[u8]> {
        lines(text).into_iter().map(<[u8]>::trim_ascii_end).collect()
    }

    fn is_mark(line: &[u8]) -> bool {
        MARKS.iter().any(|mark| line.starts_with(mark.as_bytes()))
    }

    fn bytes(joined: Joined) -> (bool, Vec<u8>) {
        match joined {
            Joined::Clean(text) => (true, text),
            Joined::Marked(text) => (false, text),
            Joined::Not(why) => panic!("{why}"),
        }
    }

    /// The marked text with the sides of each conflict exchanged, without the numbers of lines.
    fn exchanged(text: &[u8], exchange: bool) -> Vec<Vec<u8>> {
        let mut all: Vec<Vec<u8>> = Vec::new();
        let mut sections: Vec<Vec<Vec<u8>>> = Vec::new();
        for line in bare(text) {
            match MARKS.iter().position(|mark| line.starts_with(mark.as_bytes())) {
                Some(3) => {
                    if exchange {
                        sections.swap(0, 2);
                    }
                    all.extend(sections.drain(..).flatten());
                }
                Some(_) => sections.push(vec![b"mark".to_vec()]),
                None => sections.last_mut().unwrap_or(&mut all).push(line.to_vec()),
            }
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn a_side_that_did_nothing_yields(base in text(), other in text()) {
            prop_assert_eq!(join(&base, &other, &base), Joined::Clean(other.clone()));
            prop_assert_eq!(join(&base, &base, &other), Joined::Clean(other.clone()));
            prop_assert_eq!(join(&base, &other, &other), Joined::Clean(other));
        }

        #[test]
        fn sides_are_equal_but_for_their_order_in_conflicts(base in text(), here in text(), there in text()) {
            let (one, other) = (bytes(join(&base, &here, &there)), bytes(join(&base, &there, &here)));
            prop_assert_eq!(one.0, other.0);
            if one.0 {
                prop_assert_eq!(one.1, other.1);
            } else {
                prop_assert_eq!(exchanged(&one.1, false), exchanged(&other.1, true));
            }
        }

        #[test]
        fn each_line_comes_from_a_side(base in text(), here in text(), there in text()) {
            let (_, text) = bytes(join(&base, &here, &there));
            let from: Vec<_> = [&base, &here, &there].into_iter().flat_map(|text| bare(text)).collect();
            for line in bare(&text).into_iter().filter(|line| !is_mark(line)) {
                prop_assert!(from.contains(&line), "{:?}", String::from_utf8_lossy(line));
            }
        }

        #[test]
        fn no_line_that_a_side_added_is_lost(base in text(), here in text(), there in text(), at in 0..12_usize) {
            let mut here = lines(&here);
            here.insert(at.min(here.len()), b"new here\n");
            let mut there = lines(&there);
            there.insert(at.min(there.len()), b"new there\n");
            let (_, text) = bytes(join(&base, &here.concat(), &there.concat()));
            let text = bare(&text);
            prop_assert!(text.iter().any(|line| line.ends_with(b"new here")));
            prop_assert!(text.iter().any(|line| line.ends_with(b"new there")));
        }

        #[test]
        fn edits_apart_are_both_there(
            start in prop::collection::vec("[a-z]{4}\n", 1..6), between in "[A-Z]{4}\n",
            end in prop::collection::vec("[0-9]{4}\n", 1..6), one in 0..6_usize, other in 0..6_usize,
        ) {
            let (one, other) = (one % start.len(), other % end.len());
            let of = |start: &[String], end: &[String]| start.concat() + &between + &end.concat();
            let (mut new_start, mut new_end) = (start.clone(), end.clone());
            new_start[one] = "here\n".into();
            new_end[other] = "there\n".into();
            let joined = clean(&of(&start, &end), &of(&new_start, &end), &of(&start, &new_end));
            prop_assert_eq!(joined, of(&new_start, &new_end));
        }
    }
}
