//! Text in pages that a model can take in: whole lines, bounded in number and in bytes of JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::result::Readable;
use crate::error::{Error, Kind, Result};
use crate::text;

/// The most lines of one page.
pub const LINES_MAX: usize = 200;

/// The most bytes that a page's text takes as JSON, so that the whole answer stays near 10 KB.
pub const BYTES_MAX: usize = 8_000;

/// Some lines of a text, and which they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The lines, exactly as they are, unless `cut` says otherwise.
    pub text: String,
    /// The number of the first, from 1.
    pub first_line: usize,
    /// The number of the last. It is one less than the first if the page has no line.
    pub last_line: usize,
    /// How many lines the whole text has.
    pub lines: usize,
    /// The bytes of the first line, if it was cut because it alone is more than a page.
    pub cut: Option<usize>,
}

impl Page {
    /// The page of `content` that begins at line `from` and holds at most `lines_max` lines.
    ///
    /// # Errors
    /// `Invalid`, with the number of lines, when `from` lies past the end.
    pub fn of(content: &str, from: usize, lines_max: usize) -> Result<Self> {
        let lines = text::count_lines(content.as_bytes());
        if from > lines.max(1) {
            let lines = counted(lines, "line");
            return Err(Error::new(Kind::Invalid, format!("there is no line {from}: there are {lines}"))
                .with_hint("Read from a line that there is; the last page is in next_call."));
        }
        let mut page = Self { text: String::new(), first_line: from, last_line: from - 1, lines, cut: None };
        let mut bytes = 0;
        for line in content.split_inclusive('\n').skip(from - 1).take(lines_max) {
            bytes += json_bytes(line);
            if bytes > BYTES_MAX {
                page.cut_first(line);
                break;
            }
            page.text.push_str(line);
            page.last_line += 1;
        }
        Ok(page)
    }

    /// Shows a part of a first line that is more than a page. So no page is empty.
    fn cut_first(&mut self, line: &str) {
        if !self.text.is_empty() {
            return;
        }
        let mut bytes = 0;
        let end = line.char_indices().find(|(_, c)| {
            bytes += char_bytes(*c);
            bytes > BYTES_MAX
        });
        line[..end.map_or(line.len(), |(at, _)| at)].clone_into(&mut self.text);
        self.last_line = self.first_line;
        self.cut = Some(line.len());
    }

    /// Where the last page of a text with this many lines begins.
    #[must_use]
    pub fn last_from(lines: usize) -> usize {
        lines.saturating_sub(LINES_MAX - 1).max(1)
    }

    /// The page as fields of a result.
    #[must_use]
    pub fn shown(self) -> ShownPage {
        let note = self.cut.map(|bytes| {
            let (line, shown) = (self.first_line, self.text.len());
            format!("Line {line} has {bytes} bytes and was cut: the first {shown} are shown.")
        });
        ShownPage {
            first_line: self.first_line,
            last_line: self.last_line,
            lines: self.lines,
            text: self.text,
            next_from: (self.last_line < self.lines).then_some(self.last_line + 1),
            note,
        }
    }
}

/// A page as fields of a result.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShownPage {
    pub first_line: usize,
    pub last_line: usize,
    pub lines: usize,
    pub text: String,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_from: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl ShownPage {
    /// The page as a person reads it.
    pub fn readable(&self) -> Readable {
        let part = format!("Lines {} to {} of {}", self.first_line, self.last_line, self.lines);
        let mut text = self.text.clone();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Readable {
            text,
            part: self.next_from.map(|_| part),
            next_from: self.next_from,
            note: self.note.clone(),
        }
    }
}

/// How many bytes a part of a result takes as JSON.
pub fn rendered_bytes(part: &impl Serialize) -> usize {
    serde_json::to_vec(part).map_or(0, |json| json.len())
}

/// `1 line`, `2 lines`.
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// How many bytes `text` takes within a JSON string.
pub fn json_bytes(text: &str) -> usize {
    text.chars().map(char_bytes).sum()
}

fn char_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_whole_lines_and_says_where_it_goes_on() {
        let content = "x\n".repeat(450);
        let page = Page::of(&content, 201, LINES_MAX).expect("a page");
        assert_eq!((page.first_line, page.last_line, page.lines), (201, 400, 450));
        assert_eq!(page.shown().next_from, Some(401));
        assert_eq!(Page::last_from(450), 251);
    }

    #[test]
    fn t04_a_missing_last_line_end_makes_no_line() {
        let page = Page::of("a\nB", 1, LINES_MAX).expect("a page");
        assert_eq!((page.text.as_str(), page.lines, page.last_line), ("a\nB", 2, 2));
    }

    #[test]
    fn t18_one_huge_line_is_cut_between_characters_and_said_so() {
        let content = format!("{}\nnext\n", "\u{1f600}".repeat(5_000));
        let page = Page::of(&content, 1, LINES_MAX).expect("a page");
        assert!(page.text.len() <= BYTES_MAX && page.text.chars().all(|c| c == '\u{1f600}'));
        assert_eq!((page.last_line, page.cut), (1, Some(20_001)));
        assert_eq!(Page::of(&content, 2, LINES_MAX).expect("a page").text, "next\n");
    }

    #[test]
    fn an_empty_text_has_an_empty_first_page_and_no_second() {
        let page = Page::of("", 1, LINES_MAX).expect("a page");
        assert_eq!((page.first_line, page.last_line, page.lines), (1, 0, 0));
        assert!(Page::of("", 2, LINES_MAX).is_err());
    }

    #[test]
    fn bytes_are_counted_as_json_writes_them() {
        for text in ["plain", "\u{1b}[31m", "a\tb\n", "\"q\\", "\u{7f}é\u{1f600}"] {
            let json = serde_json::to_string(text).expect("json");
            assert_eq!(json_bytes(text) + 2, json.len(), "{text:?}");
        }
    }
}
