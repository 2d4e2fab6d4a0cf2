//! What a passage that stands nowhere was probably meant to be. This is a diagnosis, never a match.

use std::collections::HashSet;

use memchr::memmem;
use unicode_normalization::UnicodeNormalization;

use super::lines::{LineEnds, cut, line_at, lines, with_lf, without_end};
use crate::name::shown;

/// The largest text that is diagnosed, in bytes.
const CONTENT_MAX: usize = 8 << 20;

/// How many places are compared to find where a passage goes wrong, and how many lines at each.
const STARTS_MAX: usize = 10_000;
const RUN_MAX: usize = 200;

/// The place in a text that is most like a passage, and how it differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// The line, from 1.
    pub line: usize,
    /// What differs there, as a fragment.
    pub why: String,
}

/// Finds the place in `content` that is most like `old`, which does not stand there.
pub(super) fn nearest(content: &[u8], old: &[u8]) -> Option<Nearest> {
    if content.len() > CONTENT_MAX || old.len() > content.len().saturating_mul(2) + 4096 {
        return None;
    }
    let near = pasted_numbers(content, old)
        .or_else(|| escaped_line_ends(content, old))
        .or_else(|| folded(content, old))
        .or_else(|| longest_run(content, old))
        .or_else(|| most_alike(content, old));
    let note = "the file mixes line ends, and `old` must have those that stand there";
    let mixed = old.contains(&b'\n') && LineEnds::of(content) == LineEnds::Mixed;
    match near {
        Some(near) if mixed && !near.why.contains("mixes line ends") => {
            Some(Nearest { why: format!("{}; {note}", near.why), ..near })
        }
        None if mixed => Some(Nearest { line: 1, why: note.to_owned() }),
        near => near,
    }
}

/// One way in which texts differ that people and models do not see.
#[derive(Clone, Copy, PartialEq)]
enum Fold {
    LineEnds,
    Marks,
    Composition,
    Space,
    Case,
}

const FOLDS: [Fold; 5] = [Fold::LineEnds, Fold::Marks, Fold::Composition, Fold::Space, Fold::Case];

impl Fold {
    /// Returns `text` without this difference. The number of LF stays.
    fn apply(self, text: &[u8]) -> Vec<u8> {
        let as_chars = |map: &dyn Fn(&str) -> String| map(&String::from_utf8_lossy(text)).into_bytes();
        match self {
            Self::LineEnds => with_lf(text),
            Self::Marks => as_chars(&|s| s.chars().map(plain_mark).collect()),
            Self::Composition => as_chars(&|s| s.nfc().collect()),
            Self::Space => lines(text).flat_map(single_spaced).collect(),
            Self::Case => as_chars(&str::to_lowercase),
        }
    }
}

/// Finds the place that matches once some invisible differences are folded away.
fn folded(content: &[u8], old: &[u8]) -> Option<Nearest> {
    for fold in FOLDS {
        if let Some(line) = line_under(content, old, &[fold]) {
            return Some(Nearest { line, why: difference(fold, content, old, line) });
        }
    }
    let line = line_under(content, old, &FOLDS)?;
    let needed = FOLDS.into_iter().filter(|&fold| {
        let others: Vec<Fold> = FOLDS.into_iter().filter(|&f| f != fold).collect();
        line_under(content, old, &others).is_none()
    });
    let whys: Vec<String> = needed.map(|fold| difference(fold, content, old, line)).collect();
    (!whys.is_empty()).then(|| Nearest { line, why: whys.join("; ") })
}

/// Returns the line on which `old` is found when both are folded.
fn line_under(content: &[u8], old: &[u8], folds: &[Fold]) -> Option<usize> {
    let fold_all = |text: &[u8]| folds.iter().fold(text.to_vec(), |text, fold| fold.apply(&text));
    let (content, old) = (fold_all(content), fold_all(old));
    if old.trim_ascii().is_empty() {
        return None;
    }
    memmem::find(&content, &old).map(|at| line_at(&content, at))
}

/// Says in words what a fold hides between `old` and the text from `line` on.
fn difference(fold: Fold, content: &[u8], old: &[u8], line: usize) -> String {
    match fold {
        Fold::LineEnds if LineEnds::of(content) == LineEnds::Mixed => {
            "the file mixes line ends, LF and CR LF, and `old` has others than these lines".to_owned()
        }
        Fold::LineEnds => "only the line ends differ, LF or CR LF".to_owned(),
        Fold::Marks => marks_differ(content, old, line),
        Fold::Composition => {
            "accented letters are composed on one side and decomposed on the other".to_owned()
        }
        Fold::Space => space_differs(content, old, line),
        Fold::Case => "only upper and lower case differ".to_owned(),
    }
}

/// Returns the plain character for which a typographic one is often used.
pub(super) fn plain_mark(c: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    }
}

/// Names the first typographic character in `old`, or in the lines that it should match.
fn marks_differ(content: &[u8], old: &[u8], line: usize) -> String {
    let theirs: Vec<u8> = lines(content).skip(line - 1).take(lines(old).count()).flatten().copied().collect();
    let unusual = |text: &[u8], other: &[u8]| {
        let (text, other) = (String::from_utf8_lossy(text), String::from_utf8_lossy(other));
        text.chars().find(|&c| plain_mark(c) != c && !other.contains(c))
    };
    let told = |c: char| format!("U+{:04X} where {{}} has `{}`", u32::from(c), plain_mark(c));
    match (unusual(&theirs, old), unusual(old, &theirs)) {
        (Some(c), _) => format!("the file has {}", told(c).replace("{}", "`old`")),
        (None, Some(c)) => format!("`old` has {}", told(c).replace("{}", "the file")),
        (None, None) => "quotes, dashes or no-break spaces differ".to_owned(),
    }
}

/// Returns a line with no white space at its ends and one space for each run inside.
fn single_spaced(line: &[u8]) -> Vec<u8> {
    let end: &[u8] = if line.ends_with(b"\n") { b"\n" } else { b"" };
    let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    [&words.join(&b' ')[..], end].concat()
}

/// Says how the white space of `old` differs from that of the lines that it should match.
fn space_differs(content: &[u8], old: &[u8], line: usize) -> String {
    for (n, (theirs, ours)) in lines(content).skip(line - 1).zip(lines(old)).enumerate() {
        let (theirs, ours, n) = (without_end(theirs), without_end(ours), line + n);
        if theirs.ends_with(ours) && n == line {
            continue;
        }
        let (their_indent, our_indent) = (indent(theirs), indent(ours));
        if their_indent.contains(&b'\t') != our_indent.contains(&b'\t') && !their_indent.is_empty() {
            let (with, without) =
                if their_indent.contains(&b'\t') { ("the file", "`old`") } else { ("`old`", "the file") };
            return format!(
                "only white space differs: line {n} is indented with tabs in {with}, not in {without}"
            );
        }
        if theirs.trim_ascii_end() == ours && theirs != ours {
            return format!("only white space differs: line {n} ends in white space that `old` lacks");
        }
        if ours.trim_ascii_end() == theirs && theirs != ours {
            return format!("only white space differs: `old` has white space after what is line {n}");
        }
        if their_indent != our_indent {
            let (has, given) = (their_indent.len(), our_indent.len());
            return format!("only white space differs: line {n} is indented by {has}, in `old` by {given}");
        }
    }
    "only white space differs, tabs or the number of spaces".to_owned()
}

fn indent(line: &[u8]) -> &[u8] {
    &line[..line.iter().take_while(|b| matches!(b, b' ' | b'\t')).count()]
}

/// Finds `old` with line numbers before its lines, as some programs show files.
fn pasted_numbers(content: &[u8], old: &[u8]) -> Option<Nearest> {
    let stripped: Option<Vec<&[u8]>> = lines(old).map(without_number).collect();
    let bare = stripped.filter(|s| !s.is_empty())?.concat();
    let line = line_under(content, &bare, &[Fold::LineEnds])
        .or_else(|| line_under(content, &bare, &[Fold::LineEnds, Fold::Space]))?;
    let first = String::from_utf8_lossy(lines(old).next()?).trim_start().to_owned();
    let number: String = first.chars().take_while(char::is_ascii_digit).collect();
    Some(Nearest { line, why: format!("`old` has line numbers pasted in, as `{number}` on its first line") })
}

/// Returns what follows a line number and its separator.
pub(super) fn without_number(line: &[u8]) -> Option<&[u8]> {
    let start = line.trim_ascii_start();
    let rest = &start[start.iter().take_while(|b| b.is_ascii_digit()).count()..];
    if rest.len() == start.len() {
        return None;
    }
    let marks = [": ", ":\t", ":", "\t", " | ", "| ", "|", "\u{2192}", ". ", "- ", "  "];
    marks
        .iter()
        .find_map(|mark| rest.strip_prefix(mark.as_bytes()))
        .or_else(|| rest.starts_with(b"\n").then_some(rest))
}

/// Finds `old` with the two characters `\n` for a line end, which comes from escaping twice.
fn escaped_line_ends(content: &[u8], old: &[u8]) -> Option<Nearest> {
    memmem::find(old, b"\\n")?;
    let text = String::from_utf8_lossy(old).replace("\\r\\n", "\n").replace("\\n", "\n");
    let text = text.replace("\\t", "\t").replace("\\\"", "\"");
    let line = line_under(content, text.as_bytes(), &[Fold::LineEnds])?;
    let why = "`old` has a backslash and an n where the file has a line end".to_owned();
    Some(Nearest { line, why })
}

/// Finds where the most lines of a passage follow each other, beginning with its first line.
fn longest_run(content: &[u8], old: &[u8]) -> Option<Nearest> {
    let ours: Vec<&[u8]> = lines(old).map(without_end).collect();
    let theirs: Vec<&[u8]> = lines(content).map(without_end).collect();
    let first = ours.first().filter(|l| ours.len() > 1 && !l.trim_ascii().is_empty())?;
    let run =
        |at: usize| theirs[at + 1..].iter().zip(&ours[1..]).take(RUN_MAX).take_while(|(a, b)| a == b).count();
    let starts = (0..theirs.len()).filter(|&at| theirs[at].ends_with(first)).take(STARTS_MAX);
    let (at, run) = starts.map(|at| (at, run(at))).max_by_key(|&(at, run)| (run, std::cmp::Reverse(at)))?;
    let why = match (theirs.get(at + 1 + run), ours.get(1 + run)) {
        (Some(their_line), Some(our_line)) => format!(
            "it begins like `old`, but line {} is {} and line {} of `old` is {}",
            at + 2 + run,
            quoted(their_line),
            run + 2,
            quoted(our_line)
        ),
        _ => "it begins like `old`, but the file ends before `old` does".to_owned(),
    };
    Some(Nearest { line: at + 1, why })
}

/// Finds the line most like the longest line of `old`, if at least half of their letter pairs agree.
fn most_alike(content: &[u8], old: &[u8]) -> Option<Nearest> {
    let (index, ours) =
        lines(old).enumerate().max_by_key(|(i, l)| (l.trim_ascii().len(), std::cmp::Reverse(*i)))?;
    let ours = ours.trim_ascii();
    let wanted: HashSet<&[u8]> = ours.windows(2).collect();
    let share = |line: &[u8]| {
        let line = line.trim_ascii();
        if wanted.is_empty() || line.len() > ours.len() * 4 + 80 {
            return 0;
        }
        let common = line.windows(2).filter(|pair| wanted.contains(pair)).count();
        common * 200 / (wanted.len() + line.len())
    };
    let best = lines(content)
        .enumerate()
        .map(|(i, l)| (share(l), i))
        .max_by_key(|&(s, i)| (s, std::cmp::Reverse(i)))?;
    let (score, at) = best;
    let theirs = lines(content).nth(at)?;
    (score >= 50).then(|| Nearest {
        line: at + 1,
        why: format!("it is {} where line {} of `old` is {}", quoted(theirs), index + 1, quoted(ours)),
    })
}

/// Returns a line in backticks, cut and escaped for a message.
fn quoted(line: &[u8]) -> String {
    let text = shown(without_end(line));
    let short = cut(&text, 120);
    let more = if short.len() < text.len() { "..." } else { "" };
    format!("`{short}{more}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(content: &str, old: &str) -> Nearest {
        nearest(content.as_bytes(), old.as_bytes()).unwrap()
    }

    const FILE: &str = "fn one() {\n    let x = 1;\n}\n\nfn two() {\n    let y = 2; \n}\n";

    #[test]
    fn pasted_line_numbers_are_named() {
        for old in [
            "1: fn one() {\n2:     let x = 1;\n",
            "     1\tfn one() {\n     2\t    let x = 1;",
            "1\u{2192}fn one() {",
        ] {
            let found = near(FILE, old);
            assert!(found.line == 1 && found.why.contains("line numbers"), "{old:?}: {found:?}");
        }
    }

    #[test]
    fn line_ends_are_named() {
        let found = near(FILE, "fn two() {\r\n    let y");
        assert!(found.line == 5 && found.why.contains("line ends"), "{found:?}");
    }

    #[test]
    fn white_space_is_named() {
        let trailing = near(FILE, "    let y = 2;\n}");
        assert!(trailing.line == 6 && trailing.why.contains("ends in white space"), "{trailing:?}");
        let extra = near(FILE, "    let x = 1;  \n}");
        assert!(extra.line == 2 && extra.why.contains("after what is line 2"), "{extra:?}");
        let tabs = near(FILE, "fn one() {\n\tlet x = 1;");
        assert!(tabs.line == 1 && tabs.why.contains("line 2 is indented with tabs in `old`"), "{tabs:?}");
        let depth = near(FILE, "fn one() {\n  let x = 1;");
        assert!(depth.why.contains("line 2 is indented by 4, in `old` by 2"), "{depth:?}");
    }

    #[test]
    fn marks_are_named_with_their_code() {
        let found = near("say \u{201c}hi\u{201d}\n", "say \"hi\"");
        assert!(found.why.contains("the file has U+201C where `old` has `\"`"), "{found:?}");
        let found = near("x\nsay 'hi'\n", "say \u{2018}hi\u{2019}");
        assert!(
            found.line == 2 && found.why.contains("`old` has U+2018 where the file has `'`"),
            "{found:?}"
        );
        let found = near("caf\u{e9}\n", "cafe\u{301}");
        assert!(found.why.contains("composed"), "{found:?}");
    }

    #[test]
    fn case_is_named() {
        assert!(near(FILE, "Fn Two()").why.contains("case"));
    }

    #[test]
    fn differences_of_two_kinds_are_both_named() {
        let found = near("if x {\n\tsay('A');\n}\n", "if x {\n    say(\u{2018}A\u{2019});");
        assert!(found.why.contains("U+2018") && found.why.contains("tabs"), "{found:?}");
    }

    #[test]
    fn escaped_twice_is_named() {
        assert!(near(FILE, "fn one() {\\n    let x = 1;").why.contains("backslash"));
    }

    #[test]
    fn the_first_differing_line_is_named() {
        let found = near(FILE, "fn two() {\n    let z = 3;\n}");
        assert_eq!(found.line, 5);
        assert!(
            found.why.contains("line 6 is `    let y = 2; ` and line 2 of `old` is `    let z = 3;`"),
            "{found:?}"
        );
    }

    #[test]
    fn a_line_much_like_it_is_named() {
        let found = near(FILE, "let x = 100;");
        assert!(found.line == 2 && found.why.contains("`    let x = 1;`"), "{found:?}");
        assert_eq!(nearest(FILE.as_bytes(), b"impl Display for Zebra"), None);
        assert_eq!(nearest(b"", b"x"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_diagnosed_without_a_panic(
            content in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
            old in "[ \t\r\n0-9a-c:\u{2019}\u{e9}]{1,30}",
        ) {
            let lines = crate::text::count_lines(&content).max(1);
            if let Some(found) = nearest(&content, old.as_bytes()) {
                proptest::prop_assert!(found.line >= 1 && found.line <= lines);
                proptest::prop_assert!(!found.why.is_empty());
            }
        }
    }
}
