//! An answer for people: what was found on one stream, remarks and refusals on the other.

use std::fmt::Write;

use serde_json::Value;

use crate::tool::Answer;

/// What to print where.
pub struct Shown {
    /// For standard output.
    pub out: String,
    /// For standard error.
    pub err: String,
}

/// The answer in words. On a terminal, control characters in file text are escaped.
pub fn readable(answer: &Answer, terminal: bool) -> Shown {
    let json = answer.json();
    let (mut out, mut err) = match json["tool"].as_str() {
        Some("ocx_read") if answer.ok() => read(&json["result"]),
        Some("ocx_find") if answer.ok() => found(&json["result"]),
        _ => (outline(&json["result"]), String::new()),
    };
    if json["dry_run"] == true {
        err.push_str("Dry run: nothing was changed.\n");
    }
    if let Some(stopped) = json["stopped"].as_str() {
        let _ = writeln!(err, "ocx: {stopped}");
        let _ = writeln!(err, "{}", json["next_step"].as_str().unwrap_or_default());
    }
    if terminal {
        out = harmless(&out);
        err = harmless(&err);
    }
    Shown { out, err }
}

fn read(result: &Value) -> (String, String) {
    let Some(text) = result["text"].as_str() else { return (outline(result), String::new()) };
    let out = if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    let mut err = String::new();
    if result["last_line"].as_u64() < result["lines"].as_u64() {
        let _ = writeln!(
            err,
            "Lines {} to {} of {}; --from {} goes on.",
            result["first_line"],
            result["last_line"],
            result["lines"],
            result["last_line"].as_u64().unwrap_or(0) + 1
        );
    }
    note(result, &mut err);
    (out, err)
}

fn found(result: &Value) -> (String, String) {
    let (mut out, mut err) = (String::new(), String::new());
    for m in result["matches"].as_array().into_iter().flatten() {
        let (path, text) = (m["path"].as_str().unwrap_or_default(), m["text"].as_str().unwrap_or_default());
        let _ = writeln!(out, "{path}:{}:{}", m["line"], text.trim_end_matches(['\r', '\n']));
    }
    if result["shown"] != result["of"] {
        let _ = writeln!(err, "{} of {} lines shown.", result["shown"], result["of"]);
    }
    note(result, &mut err);
    (out, err)
}

fn note(result: &Value, err: &mut String) {
    if let Some(note) = result["note"].as_str() {
        let _ = writeln!(err, "{note}");
    }
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
    use serde_json::json;

    use super::*;

    #[test]
    fn found_lines_are_shown_as_path_line_and_text() {
        let result = json!({"matches": [{"path": "a.c", "line": 3, "text": "int x;"}], "shown": 1, "of": 4});
        let shown = readable(&Answer::done("ocx_find", false, Vec::new(), result), false);
        assert_eq!((shown.out.as_str(), shown.err.as_str()), ("a.c:3:int x;\n", "1 of 4 lines shown.\n"));
    }

    #[test]
    fn a_terminal_gets_no_control_characters() {
        let result = json!({"text": "\u{1b}[31mred\n", "first_line": 1, "last_line": 1, "lines": 1});
        let answer = Answer::done("ocx_read", false, Vec::new(), result);
        assert_eq!(readable(&answer, true).out, "\\u{1b}[31mred\n");
        assert_eq!(readable(&answer, false).out, "\u{1b}[31mred\n");
    }
}
