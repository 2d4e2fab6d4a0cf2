//! Repairs a call that cannot be made as it stands. The repaired call goes whole into `next_call`, and the caller makes
//! it. Nothing is coerced and nothing is done here.

use std::path::Path;

use serde_json::{Map, Value};

use super::answer::NextCall;
use super::declare::{Declaration, Field, FieldKind};
use super::input::Input;
use super::suggest;
use crate::name::TreePath;

/// What callers put around the input of a tool.
const WRAPPERS: [&str; 6] = ["arguments", "input", "params", "parameters", "args", "tool_input"];

/// A call of a tool under its real name, with its input put right as far as that goes without looking at the
/// checkout.
#[must_use]
pub fn named(tool: &'static Declaration, given: &Value) -> Option<NextCall> {
    let arguments = Value::Object(fields(tool, given)?);
    Input::fits(tool, &arguments).is_ok().then(|| NextCall::new(tool.name, arguments))
}

/// The fields of `given` under their real names, with values of their types; what means nothing is left out.
pub(super) fn fields(tool: &Declaration, given: &Value) -> Option<Map<String, Value>> {
    let given = unwrapped(tool, given)?;
    let mut meant = Map::new();
    let (known, other): (Vec<_>, Vec<_>) =
        given.iter().partition(|(name, _)| tool.fields().any(|f| f.name == *name));
    for (name, value) in known.into_iter().chain(other) {
        let taken = |field: &&Field| field.name == name || !meant.contains_key(field.name);
        let Some(field) = suggest::field(name, tool.fields().filter(taken)) else { continue };
        if value.is_null() && !field.required {
            continue;
        }
        meant.insert(field.name.to_owned(), fitted(field.kind, value));
    }
    Some(meant)
}

/// The object that holds the fields: within a string, or within another object that says nothing else.
fn unwrapped(tool: &Declaration, given: &Value) -> Option<Map<String, Value>> {
    match given {
        Value::Null => Some(Map::new()),
        Value::String(text) => unwrapped(tool, &serde_json::from_str(text).ok().filter(Value::is_object)?),
        Value::Object(fields) => {
            let inner = WRAPPERS
                .iter()
                .filter(|w| tool.fields().all(|f| f.name != **w))
                .find_map(|w| fields.get(*w).and_then(|inner| unwrapped(tool, inner)));
            Some(inner.unwrap_or_else(|| fields.clone()))
        }
        _ => None,
    }
}

/// A value as a field of this kind takes it, where that can be told.
fn fitted(kind: FieldKind, value: &Value) -> Value {
    match kind {
        FieldKind::Number { min, .. } => number(value).map_or_else(|| value.clone(), |n| n.max(min).into()),
        FieldKind::Text { .. } => text(value).map_or_else(|| value.clone(), Value::from),
        FieldKind::Flag | FieldKind::Switch => flag(value).map_or_else(|| value.clone(), Value::from),
        FieldKind::Word(words) => word(words, value).map_or_else(|| value.clone(), Value::from),
        FieldKind::Span { .. } => measure(value).map_or_else(|| value.clone(), |m| m.to_lowercase().into()),
        FieldKind::Amount { .. } => {
            let unit = |m: String| m.to_uppercase().trim_end_matches('B').trim_end_matches('I').into();
            measure(value).map_or_else(|| value.clone(), unit)
        }
        FieldKind::Logins { .. } | FieldKind::Paths { .. } => listed(value),
        FieldKind::Wake { .. } => match listed(value) {
            Value::Array(events) => events.into_iter().map(event).collect(),
            other => other,
        },
    }
}

/// A number with its unit, without what stands between them.
fn measure(value: &Value) -> Option<String> {
    Some(value.as_str()?.split_whitespace().collect())
}

/// One thing as a list of it.
fn listed(value: &Value) -> Value {
    match value {
        Value::String(_) | Value::Object(_) => Value::Array(vec![value.clone()]),
        _ => value.clone(),
    }
}

/// What wakes an agent, named by its word alone.
fn event(value: Value) -> Value {
    if value.is_string() { serde_json::json!({"on": value}) } else { value }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(n) => n.as_u64().or_else(|| n.to_string().strip_suffix(".0")?.parse().ok()),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.replace('\0', "")),
        Value::Number(n) => Some(n.to_string()),
        Value::Array(lines) => {
            let lines: Option<Vec<&str>> = lines.iter().map(Value::as_str).collect();
            lines.map(|lines| lines.join("\n"))
        }
        _ => None,
    }
}

fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn word(words: &'static [&'static str], value: &Value) -> Option<&'static str> {
    suggest::nearest(value.as_str()?.trim(), words.iter().copied())
}

/// The file of the tree that `text` probably means where it is no path: without what shells, editors and diffs put
/// around paths. With `may_be_new` the file need not be there, unless `text` is absolute. `tracked` says
/// whether a path is one of the check-in that the checkout at `root` builds on.
pub(super) fn path(
    root: Option<&Path>,
    tracked: &dyn Fn(&TreePath) -> bool,
    text: &str,
    may_be_new: bool,
) -> Option<TreePath> {
    let text = text.trim().trim_matches(['"', '\'', '`']).replace('\\', "/");
    let text = text.strip_prefix("file://").unwrap_or(&text);
    let within = root.and_then(Path::to_str).and_then(|root| text.strip_prefix(root));
    let within = within.filter(|rest| rest.starts_with('/'));
    let absolute = text.starts_with('/') && within.is_none();
    let mut parts = Vec::new();
    for part in within.unwrap_or(text).split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    let there = |parts: &[&str]| {
        let path = TreePath::parse_stored(&without_place(&parts.join("/"))).ok()?;
        let on_disk = root.is_some_and(|root| root.join(path.as_str()).symlink_metadata().is_ok());
        (on_disk || tracked(&path)).then_some(path)
    };
    let new = || TreePath::parse(&parts.join("/")).ok().filter(|_| may_be_new && !absolute);
    there(&parts).or_else(|| there(parts.get(1..)?)).or_else(new)
}

/// A path without the line that programs print after it: `a.c:12`, `a.c:12:3`, `a.c#L12`.
fn without_place(path: &str) -> String {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some((path, line)) = path.rsplit_once("#L")
        && line.split("-L").all(digits)
    {
        return path.to_owned();
    }
    match path.rsplit_once(':') {
        Some((path, line)) if digits(line) || line.is_empty() => without_place(path),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_after_a_path_are_dropped() {
        for text in ["a.c:12", "a.c:12:3", "a.c#L12", "a.c#L12-L14", "a.c:"] {
            assert_eq!(without_place(text), "a.c", "{text}");
        }
        assert_eq!(without_place("a:b"), "a:b");
    }
}
