//! A call as a command line that a person can paste into a shell.

use serde_json::Value;

use crate::tool::{Declaration, Field, FieldKind, NextCall, catalogue};

/// The command line that makes this call. `start` is its beginning: `ocx` with the options that say where it acts.
/// Returns nothing if no command line can say it.
pub fn command_line(start: &[String], call: &NextCall) -> Option<String> {
    let tool = catalogue::find(call.tool)?.declaration();
    let mut words = start.to_vec();
    words.push(tool.command());
    words.extend(given(tool, &call.arguments)?);
    let plain = |word: &String| !word.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    words.iter().all(plain).then(|| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// The arguments: first those by place, then those by flag. A place that begins with a hyphen stands last, behind `--`.
fn given(tool: &Declaration, arguments: &Value) -> Option<Vec<String>> {
    let (mut places, mut flags) = (Vec::new(), Vec::new());
    for field in tool.fields() {
        let Some(value) = arguments.get(field.name) else { continue };
        let long = format!("--{}", field.name.replace('_', "-"));
        match field.kind {
            FieldKind::Flag => flags.extend((value == true).then_some(long)),
            FieldKind::Switch => {
                flags.extend((value == false).then(|| format!("--no-{}", &long[2..])));
            }
            _ if field.positional => places.extend(texts(field, value)?),
            _ => texts(field, value)?.into_iter().for_each(|text| flags.extend([long.clone(), text])),
        }
    }
    if places.iter().any(|place| place.starts_with('-')) {
        flags.push("--".to_owned());
        flags.extend(places);
        return Some(flags);
    }
    places.extend(flags);
    Some(places)
}

/// A value as the texts of a flag: one, or one for each entry of a list.
fn texts(field: &Field, value: &Value) -> Option<Vec<String>> {
    match (field.kind, value) {
        (_, Value::String(text)) => Some(vec![text.clone()]),
        (_, Value::Number(number)) => Some(vec![number.to_string()]),
        (FieldKind::Wake { .. }, Value::Array(events)) => events.iter().map(event).collect(),
        (_, Value::Array(entries)) => entries.iter().map(|e| e.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

fn event(event: &Value) -> Option<String> {
    let on = event["on"].as_str()?;
    Some(match event["branch"].as_str() {
        Some(branch) => format!("{on}:{branch}"),
        None => on.to_owned(),
    })
}

/// The word as a shell reads it back.
fn quoted(word: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !word.is_empty() && word.chars().all(safe) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::arguments;
    use super::*;

    /// What a shell makes of a command line, and what `ocx` reads from that.
    fn read_back(line: &str) -> Value {
        let out = std::process::Command::new("sh").args(["-c", &format!("printf '%s\\0' {line}")]).output();
        let out = String::from_utf8(out.expect("a shell").stdout).expect("text");
        let words: Vec<&str> = out.trim_end_matches('\0').split('\0').collect();
        let matches = arguments::command().try_get_matches_from(words).expect("a command line");
        let (command, given) = matches.subcommand().expect("a command");
        let tool = catalogue::TOOLS.iter().map(|t| t.declaration()).find(|t| t.command() == command);
        arguments::input(tool.expect("a tool"), given)
    }

    #[test]
    fn a_pasted_command_line_makes_the_same_call() {
        for (tool, arguments) in [
            ("ocx_edit", json!({"path": "a b's.txt", "old": "-x\n\t$HOME `x`", "new": "", "dry_run": true})),
            ("ocx_read", json!({"path": "-a", "from": 7})),
            ("ocx_context", json!({})),
            (
                "ocx_create",
                json!({"instructions": "x", "network": false, "hears": ["ann", "bob"],
                       "wake": [{"on": "post"}, {"on": "check-in", "branch": "trunk"}]}),
            ),
        ] {
            let start = ["ocx", "-C", "a folder"].map(str::to_owned);
            let line = command_line(&start, &NextCall::new(tool, arguments.clone())).expect("a line");
            assert!(line.starts_with("ocx -C 'a folder' "), "{line}");
            assert_eq!(read_back(&line), arguments, "{line}");
        }
        let bell = NextCall::new("ocx_find", json!({"text": "\u{7}"}));
        assert_eq!(command_line(&["ocx".to_owned()], &bell), None);
    }
}
