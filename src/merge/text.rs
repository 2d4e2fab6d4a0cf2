//! Joining the changes of two sides in one text, as bytes.
//!
//! The two comparisons with the base are `imara-diff`'s. What is put together from them stands here, and not in one of
//! the crates that join whole texts: Fossil's conflict marks name the line on each side, and a last line without a line
//! end must never run into another, neither of which those crates can give.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

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
        let mut input = InternedInput::default();
        input.update_before(self.lines[0].iter().copied());
        input.update_after(self.lines[side].iter().copied());
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_no_heuristic(&input);
        let range = |range: Range<u32>| range.start as usize..range.end as usize;
        diff.hunks().map(|hunk| Change { base: range(hunk.before), side: range(hunk.after) }).collect()
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
