//! An answer for people. What was found goes to one stream, remarks and refusals go to the other.

use std::fmt::Write;

use serde_json::Value;

use crate::tool::{Answer, Readable};

/// The text to print on each stream.
pub struct Shown {
    /// The text for standard output.
    pub out: String,
    /// The text for standard error.
    pub err: String,
}

/// The answer in words. On a terminal, control characters in file text are escaped. `more` is said after a refusal.
pub fn readable(answer: &Answer, more: &[String], terminal: bool) -> Shown {
    let (mut out, mut err) = match answer.readable() {
        Some(readable) => (readable.text.clone(), remarks(&readable)),
        None => (outline(&answer.result()), String::new()),
    };
    if answer.dry_run() {
        err.push_str("Dry run: nothing was changed.\n");
    }
    if let Some((stopped, next_step)) = answer.refusal() {
        let _ = writeln!(err, "ocx: {stopped}\n{next_step}");
    }
    for line in more {
        let _ = writeln!(err, "{line}");
    }
    if terminal {
        out = harmless(&out);
        err = harmless(&err);
    }
    Shown { out, err }
}

/// The remarks about a text. They are not part of the text.
fn remarks(readable: &Readable) -> String {
    let mut err = String::new();
    match (&readable.part, readable.next_from) {
        (Some(part), Some(from)) => {
            let _ = writeln!(err, "{part}; --from {from} goes on.");
        }
        (Some(part), None) => {
            let _ = writeln!(err, "{part}.");
        }
        (None, _) => {}
    }
    if let Some(note) = &readable.note {
        let _ = writeln!(err, "{note}");
    }
    err
}

/// Any value as indented lines of `name: value`.
fn outline(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Null => {}
        Value::Object(_) | Value::Array(_) => nested(value, 0, &mut out),
        plain => line(plain, 0, &mut out),
    }
    out
}

fn nested(value: &Value, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(_, v)| !v.is_null()) {
                out.push_str(&pad);
                out.push_str(&name.replace('_', " "));
                out.push(':');
                inside(value, depth, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                out.push_str(&pad);
                out.push('-');
                inside(item, depth, out);
            }
        }
        plain => line(plain, depth, out),
    }
}

fn inside(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if fields.is_empty() => out.push_str(" none\n"),
        Value::Array(items) if items.is_empty() => out.push_str(" none\n"),
        Value::Object(_) | Value::Array(_) => {
            out.push('\n');
            nested(value, depth + 1, out);
        }
        plain => {
            out.push(' ');
            line(plain, depth + 1, out);
        }
    }
}

fn line(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::String(text) if text.trim_end().contains('\n') => {
            let pad = "  ".repeat(depth);
            out.push('\n');
            for l in text.lines() {
                let _ = writeln!(out, "{pad}{l}");
            }
        }
        Value::String(text) => {
            let _ = writeln!(out, "{}", text.trim_end());
        }
        Value::Bool(yes) => out.push_str(if *yes { "yes\n" } else { "no\n" }),
        other => {
            let _ = writeln!(out, "{other}");
        }
    }
}

fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && !matches!(c, '\n' | '\t') {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Serialize;

    use super::*;
    use crate::tool::ToolResult;

    #[derive(Debug, Serialize, JsonSchema)]
    struct Text(String);

    impl ToolResult for Text {
        fn readable(&self) -> Option<Readable> {
            Some(Readable { text: self.0.clone(), ..Readable::default() })
        }
    }

    #[test]
    fn what_is_cut_and_where_it_goes_on_is_said_beside_the_text() {
        let mut readable = Readable { part: Some("Lines 1 to 2 of 9".into()), ..Readable::default() };
        assert_eq!(remarks(&readable), "Lines 1 to 2 of 9.\n");
        readable.next_from = Some(3);
        readable.note = Some("A note.".into());
        assert_eq!(remarks(&readable), "Lines 1 to 2 of 9; --from 3 goes on.\nA note.\n");
    }

    #[test]
    fn a_terminal_gets_no_control_characters() {
        let text = Box::new(Text("\u{1b}[31mred\n".into()));
        let answer = Answer::done("ocx_read", false, Vec::new(), text);
        assert_eq!(readable(&answer, &[], true).out, "\\u{1b}[31mred\n");
        assert_eq!(readable(&answer, &[], false).out, "\u{1b}[31mred\n");
    }
}
