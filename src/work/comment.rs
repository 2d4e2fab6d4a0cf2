//! The comment of a saved check-in: four lines that say what, why, where, and what shows it.

use std::fmt;

use crate::error::{Error, Kind, Result};

/// The most bytes of one part.
pub const PART_BYTES_MAX: usize = 2_000;

/// A comment of four lines. Each part is one of them; line breaks in it become spaces.
///
/// ```
/// use ocx::work::Comment;
/// let comment = Comment::new("Fix the clock", "It ran\nslow.", "src/clock.c", "test unit")?;
/// assert_eq!(
///     comment.to_string(),
///     "Fix the clock\nIntent: It ran slow.\nExpression: src/clock.c\nDemonstrates: test unit"
/// );
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    title: String,
    intent: String,
    expression: String,
    demonstrates: String,
}

impl Comment {
    /// Makes a comment of its four parts.
    ///
    /// # Errors
    /// `Invalid` or `TooLarge`, naming the part that is empty, too long, or holds a control character.
    pub fn new(title: &str, intent: &str, expression: &str, demonstrates: &str) -> Result<Self> {
        Ok(Self {
            title: one_line("title", title)?,
            intent: one_line("intent", intent)?,
            expression: one_line("expression", expression)?,
            demonstrates: one_line("demonstrates", demonstrates)?,
        })
    }

    /// Reads the comment of a check-in that was made elsewhere.
    ///
    /// # Errors
    /// As [`new`](Self::new), and `Invalid` if it has not the four lines.
    pub fn parse(text: &str) -> Result<Self> {
        let lines: Vec<&str> = text.trim_end().split('\n').collect();
        let [title, rest @ ..] = &lines[..] else { return Err(not_four(lines.len())) };
        let [intent, expression, demonstrates] = rest else { return Err(not_four(lines.len())) };
        let part = |line: &str, label: &str| {
            line.strip_prefix(label).map(str::to_owned).ok_or_else(|| {
                Error::new(Kind::Invalid, format!("the comment has no line `{label} ...` in its place"))
                    .with_hint(FOUR_LINES)
            })
        };
        let (intent, expression) = (part(intent, "Intent:")?, part(expression, "Expression:")?);
        Self::new(title, &intent, &expression, &part(demonstrates, "Demonstrates:")?)
    }

    /// What the check-in does.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }
}

impl fmt::Display for Comment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\nIntent: {}\nExpression: {}\nDemonstrates: {}",
            self.title, self.intent, self.expression, self.demonstrates
        )
    }
}

const FOUR_LINES: &str = "Give the comment four lines: a title, then `Intent: ...`, `Expression: ...` and \
    `Demonstrates: ...`.";

fn not_four(lines: usize) -> Error {
    let lines = if lines == 1 { "one line".to_owned() } else { format!("{lines} lines") };
    Error::new(Kind::Invalid, format!("the comment has {lines}, not four")).with_hint(FOUR_LINES)
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Drops the part's own label from its beginning: people copy it from a whole comment.
fn without_label<'a>(part: &str, line: &'a str) -> &'a str {
    match line.split_once(':') {
        Some((label, rest)) if label.trim_end().eq_ignore_ascii_case(part) => rest.trim_start(),
        _ => line,
    }
}

/// Makes one line of a part: a line break and the white space around it become one space.
fn one_line(part: &str, text: &str) -> Result<String> {
    let pieces: Vec<&str> = text.split(is_break).map(str::trim).filter(|p| !p.is_empty()).collect();
    let line = without_label(part, &pieces.join(" ")).to_owned();
    if line.is_empty() {
        return Err(Error::new(Kind::Invalid, format!("`{part}` is empty"))
            .with_hint(format!("Give `{part}` in one line.")));
    }
    if line.len() > PART_BYTES_MAX {
        let what = format!("`{part}` has {} bytes, over the limit of {PART_BYTES_MAX}", line.len());
        return Err(
            Error::new(Kind::TooLarge, what).with_hint("Say it in one line; details belong into files.")
        );
    }
    if let Some(c) = line.chars().find(|c| c.is_control() && *c != '\t') {
        return Err(Error::new(
            Kind::Invalid,
            format!("`{part}` holds the control character {}", c.escape_unicode()),
        )
        .with_hint(format!("Give `{part}` in plain characters.")));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_lines_that_look_like_cards_stay_text_and_stay_four() {
        let comment =
            Comment::new("line1", "D 2020-01-01T00:00:00", "U boss\nU admin", "\\s [trunk] <script>")
                .unwrap();
        assert_eq!(comment.to_string().lines().count(), 4);
        assert!(comment.to_string().contains("\nExpression: U boss U admin\n"));
    }

    #[test]
    fn c12_a_part_over_the_limit_is_refused_with_the_limit() {
        let error = Comment::new("t", &"x".repeat(PART_BYTES_MAX + 1), "e", "d").unwrap_err();
        assert_eq!(error.kind(), Kind::TooLarge);
        assert!(error.to_string().contains("`intent`") && error.to_string().contains("2000"));
        assert!(Comment::new("t", &"x".repeat(PART_BYTES_MAX), "e", "d").is_ok());
    }

    #[test]
    fn what_is_read_back_is_what_was_written() {
        let comment = Comment::new("t", "why", "where", "unit").unwrap();
        assert_eq!(Comment::parse(&comment.to_string()).unwrap(), comment);
        assert_eq!(
            Comment::parse("t\r\nIntent:why\r\nExpression:  where\nDemonstrates: unit\n").unwrap(),
            comment
        );
    }

    #[test]
    fn a_comment_of_other_lines_is_refused_saying_which() {
        for (text, words) in [
            ("only a title", "one line"),
            ("t\nIntent: a\nExpression: b\nDemonstrates: c\nmore", "5 lines"),
            ("t\nExpression: b\nIntent: a\nDemonstrates: c", "`Intent: ...`"),
            ("t\nIntent: a\nExpression:\nDemonstrates: c", "`expression` is empty"),
        ] {
            let error = Comment::parse(text).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn every_kind_of_line_break_is_read_as_one_space() {
        let comment = Comment::new("a\r\n\r\n  b\u{2028}c", "i", "e", "d").unwrap();
        assert_eq!(comment.title(), "a b c");
    }

    #[test]
    fn a_label_that_is_given_too_stands_once() {
        let comment = Comment::new("Title: t", "intent : i", "e: Expression: f", "Demonstrates:").map(|_| ());
        assert!(comment.is_err(), "nothing but a label is empty");
        let comment = Comment::new("Title: t", "intent : i", "e: Expression: f", "d").unwrap();
        assert_eq!(comment.to_string(), "t\nIntent: i\nExpression: e: Expression: f\nDemonstrates: d");
    }

    #[test]
    fn an_empty_part_or_a_control_character_is_refused() {
        assert!(Comment::new(" \n", "i", "e", "d").is_err());
        assert!(Comment::new("t", "i", "e\u{1b}[31m", "d").is_err());
    }
}
