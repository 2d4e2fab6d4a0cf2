//! The replacement that was probably meant if a passage stands nowhere. It is offered whole and never made unasked.
//!
//! It is offered only if exactly one place of the text is the passage except for small differences, and if the new
//! text can be put right in the same way. The differences are those that people and models do not see (line ends,
//! typographic marks, composed letters, white space, case) and those that programs make (line numbers, escapes,
//! fences, the signs of a diff).

use std::collections::BTreeMap;
use std::ops::Range;

use unicode_normalization::char::decompose_canonical;

use super::lines::{LineEnds, lines};
use super::nearest::{plain_mark, without_number};
use super::replace::replace_once;

/// The largest text, and the longest passage, for which this is looked for, in bytes.
const CONTENT_MAX: usize = 2 << 20;
const PASSAGE_MAX: usize = 16 << 10;

/// A replacement that can be made as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The passage, exactly as it stands in the text.
    pub old: String,
    /// What is to stand there instead.
    pub new: String,
}

/// Finds what `old` and `new` were probably meant to be in `content`, in which `old` stands nowhere.
///
/// ```
/// use ocx::text::repair;
/// let found = repair("say(\"a\");\n", "say(\u{201c}a\u{201d});", "say(\u{201c}b\u{201d});").unwrap();
/// assert_eq!((&found.old[..], &found.new[..]), ("say(\"a\");", "say(\"b\");"));
/// assert_eq!(repair("x = 1\n", "y = 1", "y = 2"), None);
/// ```
#[must_use]
pub fn repair(content: &str, old: &str, new: &str) -> Option<Repair> {
    if content.len() > CONTENT_MAX || old.len() > PASSAGE_MAX || new.len() > PASSAGE_MAX {
        return None;
    }
    let mut rewritten = WAYS.iter().filter_map(|&(of_old, of_new)| {
        let old = of_old(old)?;
        Some((old, of_new(new).unwrap_or_else(|| new.to_owned())))
    });
    rewritten.find_map(|(old, new)| {
        let found =
            if replaces(content, &old, &new) { Repair { old, new } } else { alike(content, &old, &new)? };
        (found.old != found.new && replaces(content, &found.old, &found.new)).then_some(found)
    })
}

fn replaces(content: &str, old: &str, new: &str) -> bool {
    !old.is_empty() && replace_once(content.as_bytes(), old.as_bytes(), new.as_bytes()).is_ok()
}

/// One way of reading a text without what a program put around it. Returns nothing if the text is not written in that
/// way.
type Way = fn(&str) -> Option<String>;

/// The ways of reading `old`, each with the way of reading `new` if that is written so too.
const WAYS: [(Way, Way); 7] = [
    (numbered, numbered),
    (escaped, escaped),
    (as_given, as_given),
    (entities, entities),
    (fenced, fenced),
    (removed, added),
    (blank_lined, blank_lined),
];

fn as_given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// With a number before each line.
fn numbered(text: &str) -> Option<String> {
    let lines: Option<Vec<&[u8]>> = lines(text.as_bytes()).map(without_number).collect();
    let text = String::from_utf8(lines?.concat()).ok()?;
    (!text.trim().is_empty()).then_some(text)
}

/// Escaped once too often.
fn escaped(text: &str) -> Option<String> {
    replaced(text, &[("\\r\\n", "\n"), ("\\n", "\n"), ("\\t", "\t"), ("\\\"", "\"")])
}

/// Escaped as HTML is.
fn entities(text: &str) -> Option<String> {
    replaced(text, &[("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")])
}

/// Between two fences of Markdown.
fn fenced(text: &str) -> Option<String> {
    let (first, rest) = text.trim_start_matches('\n').split_once('\n')?;
    let inner = rest.trim_end().strip_suffix("```")?;
    (first.starts_with("```") && !inner.contains("```")).then(|| inner.to_owned())
}

/// As the lines that a diff removes, with their context.
fn removed(text: &str) -> Option<String> {
    signed(text, '-')
}

/// As the lines that a diff adds, with their context.
fn added(text: &str) -> Option<String> {
    signed(text, '+')
}

fn signed(text: &str, sign: char) -> Option<String> {
    let lines: Option<Vec<&str>> = text.split_inclusive('\n').map(|l| l.strip_prefix([sign, ' '])).collect();
    text.split_inclusive('\n')
        .any(|line| line.starts_with(sign))
        .then(|| lines.map(|lines| lines.concat()))?
}

/// With empty lines before or after it.
fn blank_lined(text: &str) -> Option<String> {
    let trimmed = text.trim_matches('\n');
    (trimmed != text).then(|| trimmed.to_owned())
}

fn replaced(text: &str, pairs: &[(&str, &str)]) -> Option<String> {
    let plain = pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    (plain != text).then_some(plain)
}

/// Finds the one place that is `old` when both are folded, and puts `new` right in the same way.
fn alike(content: &str, old: &str, new: &str) -> Option<Repair> {
    [false, true].into_iter().find_map(|any_case| {
        let (theirs, ours) = (Folded::of(content, any_case), Folded::of(old, any_case));
        let at = theirs.the_one_place(&ours)?;
        let place = whole_indent(content, theirs.bytes(&at), old);
        let found = &content[place];
        let marks = marks(content, &theirs, &at, old, &ours);
        let new = with_marks(new, &marks);
        let new = with_line_ends(indented(&new, old, found)?, old, found, content);
        Some(Repair { old: found.to_owned(), new })
    })
}

/// A folded text. What is not seen is gone, and each character left knows where it came from.
struct Folded {
    chars: Vec<char>,
    spans: Vec<Range<usize>>,
}

impl Folded {
    fn of(text: &str, any_case: bool) -> Self {
        let mut folded =
            Self { chars: Vec::with_capacity(text.len()), spans: Vec::with_capacity(text.len()) };
        let mut space: Option<usize> = None;
        let mut line_began = false;
        for (at, c) in text.char_indices() {
            let end = at + c.len_utf8();
            if c == '\r' && text[end..].starts_with('\n') {
                continue;
            }
            if c == '\n' {
                folded.push('\n', at..end);
                (space, line_began) = (None, false);
            } else if matches!(plain_mark(c), ' ' | '\t') {
                space = space.or(line_began.then_some(at));
            } else {
                if let Some(start) = space.take() {
                    folded.push(' ', start..at);
                }
                line_began = true;
                decompose_canonical(plain_mark(c), |part| {
                    if any_case {
                        part.to_lowercase().for_each(|lower| folded.push(lower, at..end));
                    } else {
                        folded.push(part, at..end);
                    }
                });
            }
        }
        folded
    }

    fn push(&mut self, c: char, span: Range<usize>) {
        self.chars.push(c);
        self.spans.push(span);
    }

    /// Returns where the characters of `other` stand, if that is in one place only.
    fn the_one_place(&self, other: &Self) -> Option<Range<usize>> {
        if other.chars.iter().all(|&c| c == '\n') {
            return None;
        }
        let mut places = self.chars.windows(other.chars.len()).enumerate().filter(|(_, w)| *w == other.chars);
        let (at, _) = places.next()?;
        places.next().is_none().then(|| at..at + other.chars.len())
    }

    /// Returns the bytes from which these characters came.
    fn bytes(&self, at: &Range<usize>) -> Range<usize> {
        self.spans[at.start].start..self.spans[at.end - 1].end
    }
}

/// Adds the white space before a place to it, if `old` begins with white space too.
fn whole_indent(content: &str, place: Range<usize>, old: &str) -> Range<usize> {
    let before = &content[..place.start];
    let indent = before.len() - before.trim_end_matches([' ', '\t']).len();
    if old.starts_with([' ', '\t'])
        && matches!(before[..before.len() - indent].chars().last(), None | Some('\n'))
    {
        place.start - indent..place.end
    } else {
        place
    }
}

/// Returns, for each typographic mark that `old` has and the text has not, the character that the text has there.
fn marks(
    content: &str,
    theirs: &Folded,
    at: &Range<usize>,
    old: &str,
    ours: &Folded,
) -> BTreeMap<char, char> {
    let char_at = |text: &str, span: &Range<usize>| text[span.start..].chars().next();
    let pairs = theirs.spans[at.clone()].iter().zip(&ours.spans);
    pairs
        .filter_map(|(their, our)| Some((char_at(old, our)?, char_at(content, their)?)))
        .filter(|(our, their)| our != their && plain_mark(*our) == *their)
        .collect()
}

fn with_marks(new: &str, marks: &BTreeMap<char, char>) -> String {
    new.chars().map(|c| marks.get(&c).copied().unwrap_or(c)).collect()
}

/// Indents `new` as the text is indented, if `old` is indented otherwise. Returns nothing if that cannot be known.
fn indented(new: &str, old: &str, found: &str) -> Option<String> {
    let pairs: Vec<(&str, &str)> = old
        .lines()
        .zip(found.lines())
        .filter(|(ours, _)| !ours.trim().is_empty())
        .map(|(ours, theirs)| (indent(ours), indent(theirs)))
        .collect();
    if pairs.iter().all(|(ours, theirs)| ours == theirs) {
        return Some(new.to_owned());
    }
    let line = |line: &str| {
        let text = line.trim_start_matches([' ', '\t']);
        if text.trim().is_empty() {
            Some(line.to_owned())
        } else {
            Some(reindented(indent(line), &pairs)? + text)
        }
    };
    new.split_inclusive('\n').map(line).collect()
}

/// Returns the indent that stands for `ours`: that of a line of the passage, or one counted in the same units.
fn reindented(ours: &str, pairs: &[(&str, &str)]) -> Option<String> {
    let mut known = pairs.iter().filter(|(o, _)| *o == ours).map(|(_, theirs)| *theirs);
    if let Some(theirs) = known.next() {
        return known.all(|other| other == theirs).then(|| theirs.to_owned());
    }
    let (our_unit, their_unit) = pairs.iter().find_map(|(o, t)| unit(o, t))?;
    let same = |(o, t): &(&str, &str)| converted(o, our_unit, their_unit).as_deref() == Some(*t);
    pairs.iter().all(same).then(|| converted(ours, our_unit, their_unit))?
}

/// One step of indent on each side: a tab, or that many spaces.
fn unit<'a>(ours: &'a str, theirs: &'a str) -> Option<(&'a str, &'a str)> {
    let steps = |indent: &str| if indent.starts_with('\t') { indent.len() } else { 0 };
    let n = steps(ours).max(steps(theirs));
    let size = |indent: &str| (n > 0 && indent.len().is_multiple_of(n)).then(|| indent.len() / n);
    match (size(ours)?, size(theirs)?) {
        (0, _) | (_, 0) => None,
        (our_size, their_size) => Some((&ours[..our_size], &theirs[..their_size])),
    }
}

fn converted(indent: &str, unit: &str, other: &str) -> Option<String> {
    let steps = indent.len() / unit.len();
    (unit.repeat(steps) == indent).then(|| other.repeat(steps))
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Gives `new` the line ends of the lines that it replaces.
fn with_line_ends(new: String, old: &str, found: &str, content: &str) -> String {
    let crlf = |text: &str| LineEnds::of(text.as_bytes()) == LineEnds::CrLf;
    if crlf(found) && !crlf(content) && !new.contains('\r') {
        new.replace('\n', "\r\n")
    } else if old.contains('\r') && !found.contains('\r') {
        new.replace("\r\n", "\n")
    } else {
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(content: &str, old: &str, new: &str) -> String {
        let found = repair(content, old, new).expect("it can be told what was meant");
        let done =
            replace_once(content.as_bytes(), found.old.as_bytes(), found.new.as_bytes()).expect("it fits");
        String::from_utf8(done.content).expect("text")
    }

    #[test]
    fn pasted_line_numbers_go_from_both() {
        let file = "one\n  two\nthree\n";
        assert_eq!(becomes(file, "2:   two\n3: three\n", "2:   2\n3: 3\n"), "one\n  2\n3\n");
        assert_eq!(becomes(file, "     2\t  two\n", "  2\n"), "one\n  2\nthree\n");
    }

    #[test]
    fn escapes_are_read_once_more() {
        assert_eq!(becomes("a\n\tb \"c\"\n", "a\\n\\tb \\\"c\\\"", "a\\n\\td"), "a\n\td\n");
    }

    #[test]
    fn what_programs_put_around_text_is_taken_off() {
        let file = "a\nif (x < 1 && y)\nb\n";
        assert_eq!(becomes(file, "x &lt; 1 &amp;&amp; y", "x &gt; 1"), "a\nif (x > 1)\nb\n");
        assert_eq!(becomes("a\nb\nc\n", "```\nb\n```", "```\nB\n```"), "a\nB\nc\n");
        assert_eq!(becomes("a\nb\nc\n", " a\n-b\n", " a\n+B\n"), "a\nB\nc\n");
        assert_eq!(becomes("a\nb\nc\n", "\n\na\nb\n\n", "\n\na\nB\n\n"), "a\nB\nc\n");
    }

    #[test]
    fn marks_become_those_of_the_file() {
        assert_eq!(
            becomes("say('it')\n", "say(\u{2018}it\u{2019})", "say(\u{2018}no\u{2019})"),
            "say('no')\n"
        );
        assert_eq!(becomes("say \u{201c}hi\u{201d}\n", "say \"hi\"", "say nothing"), "say nothing\n");
        assert_eq!(becomes("a - b\n", "a \u{2014} b", "a \u{2014} c"), "a - c\n");
        assert_eq!(becomes("a b\n", "a\u{a0}b", "a\u{a0}c"), "a c\n");
    }

    #[test]
    fn composed_letters_and_case_find_their_place() {
        assert_eq!(becomes("caf\u{e9} au lait\n", "cafe\u{301} au", "tea"), "tea lait\n");
        assert_eq!(becomes("Fn One()\n", "fn one()", "fn two()"), "fn two()\n");
    }

    #[test]
    fn indents_follow_the_file() {
        let tabs = "fn a() {\n\tif x {\n\t\ty();\n\t}\n}\n";
        let (old, new) =
            ("    if x {\n        y();\n    }\n", "    if x {\n        y();\n        z();\n    }\n");
        assert_eq!(becomes(tabs, old, new), "fn a() {\n\tif x {\n\t\ty();\n\t\tz();\n\t}\n}\n");
        let deeper = "    if x {\n        if q {\n            y();\n        }\n    }\n";
        assert_eq!(becomes(tabs, old, deeper), "fn a() {\n\tif x {\n\t\tif q {\n\t\t\ty();\n\t\t}\n\t}\n}\n");
        assert_eq!(becomes("    x = 1\n", "  x = 1", "  x = 2"), "    x = 2\n");
        assert_eq!(becomes("x: \n  y  \n", "x:\n  y\n", "x:\n  z\n"), "x:\n  z\n");
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        assert_eq!(becomes("a\nb\nc\n", "a\r\nb\r\n", "A\r\nB\r\n"), "A\nB\nc\n");
        assert_eq!(becomes("a\nb\r\nc\r\nd\n", "b\nc\n", "B\nC\n"), "a\nB\r\nC\r\nd\n");
    }

    #[test]
    fn nothing_is_offered_where_it_cannot_be_told() {
        assert_eq!(repair("x  = 1\nx\t= 1\n", "x = 1\n", "x = 2\n"), None, "two places");
        assert_eq!(repair("one\n", "two", "three"), None);
        assert_eq!(
            repair("\tx\n\ty\n", "  x\n    y\n", "  x\n   q\n"),
            None,
            "an indent that stands for nothing"
        );
        assert_eq!(repair("a\n", "\n\n", "b"), None);
        assert_eq!(repair("x  = 1\n", "x = 1", "x  = 1"), None, "nothing would change");
    }

    proptest::proptest! {
        #[test]
        fn what_is_offered_can_always_be_made(
            content in "[ \tab\u{e9}\u{2019}'\r\n0-9:]{0,80}",
            old in "[ \tabAB\u{2019}'\r\n0-9:\\\\n]{0,20}",
            new in "[ \tabc\u{2019}'\n]{0,20}",
        ) {
            if let Some(found) = repair(&content, &old, &new) {
                proptest::prop_assert!(replaces(&content, &found.old, &found.new));
                proptest::prop_assert!(found.old != found.new);
            }
        }
    }
}
