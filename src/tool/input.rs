//! Input checked against a declaration before anything happens. Nothing is coerced: `"10"` is not 10.

use std::fmt::Display;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::declare::{DRY_RUN, Declaration, Field, FieldKind};
use super::list::{self, type_of};
use super::suggest;
use crate::error::{Error, Kind, Result};
use crate::name::TreePath;

/// How many problems one refusal names.
const PROBLEMS_MAX: usize = 5;

/// Input that fits its tool's declaration.
#[derive(Debug, Clone)]
pub struct Input {
    fields: Map<String, Value>,
}

impl Input {
    /// Checks `given` against the declaration of `tool`.
    ///
    /// # Errors
    /// `Invalid` or `TooLarge`, naming each field that does not fit and, where it is clear, the one meant.
    pub fn check(tool: &Declaration, given: Value) -> Result<Self> {
        let given = Self::given(tool, given);
        Self::fits(tool, &given)?;
        Ok(Self::of(given))
    }

    /// The fields that are given. Clients with strict schemas send every field: null, and the empty string where a
    /// field is optional and no empty text has a meaning of its own there, mean that it is left out.
    #[must_use]
    pub fn given(tool: &Declaration, sent: Value) -> Value {
        let Value::Object(mut fields) = sent else { return sent };
        for field in tool.fields().filter(|field| !field.required) {
            let empty = match fields.get(field.name) {
                Some(Value::Null) => true,
                Some(Value::String(text)) => {
                    text.is_empty() && !matches!(field.kind, FieldKind::Text { empty: true, .. })
                }
                _ => false,
            };
            if empty {
                fields.shift_remove(field.name);
            }
        }
        Value::Object(fields)
    }

    /// Takes input that [fits](Self::fits).
    pub(super) fn of(given: Value) -> Self {
        match given {
            Value::Object(fields) => Self { fields },
            _ => Self { fields: Map::new() },
        }
    }

    /// Refuses what does not fit the declaration of `tool`.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn fits(tool: &Declaration, given: &Value) -> Result<()> {
        let problems = match given {
            Value::Object(fields) => problems(tool, fields),
            Value::Null => problems(tool, &Map::new()),
            other => {
                let what =
                    format!("the arguments of `{}` must be an object, not {}", tool.name, type_of(other));
                return Err(Error::new(Kind::Invalid, what).with_hint(signature(tool)));
            }
        };
        let Some(first) = problems.first() else { return Ok(()) };
        let kind = first.kind;
        let words: Vec<&str> = problems.iter().take(PROBLEMS_MAX).map(|p| p.words.as_str()).collect();
        Err(Error::new(kind, words.join("; ")).with_hint(signature(tool)))
    }

    /// The input of the same call again, for real.
    #[must_use]
    pub fn again(&self) -> Value {
        self.without(DRY_RUN.name)
    }

    /// The same input with another value in one field.
    #[must_use]
    pub fn with(&self, field: &str, value: impl Into<Value>) -> Value {
        let mut fields = self.fields.clone();
        fields.insert(field.to_owned(), value.into());
        Value::Object(fields)
    }

    /// The same input without a field.
    #[must_use]
    pub fn without(&self, field: &str) -> Value {
        let fields = self.fields.iter().filter(|(name, _)| *name != field);
        Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// The text of a field, where it was given.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }

    /// The text of a required field.
    ///
    /// # Errors
    /// `Internal`, when the declaration does not require the field.
    pub fn required(&self, field: &str) -> Result<&str> {
        self.text(field).ok_or_else(|| Error::new(Kind::Internal, format!("no required field `{field}`")))
    }

    /// The number of a field, where it was given.
    #[must_use]
    pub fn number(&self, field: &str) -> Option<u64> {
        self.fields.get(field).and_then(Value::as_u64)
    }

    /// The number of a field as a place in a text or list, counted from 1; the first where it was not given.
    #[must_use]
    pub fn place(&self, field: &str) -> usize {
        usize::try_from(self.number(field).unwrap_or(1)).unwrap_or(usize::MAX)
    }

    /// A field of any kind, as it was given.
    #[must_use]
    pub fn value(&self, field: &str) -> Option<&Value> {
        self.fields.get(field)
    }

    /// The paths of a list. None if it was not given.
    ///
    /// # Errors
    /// Those of [`TreePath::parse`].
    pub fn paths(&self, field: &str) -> Result<Vec<TreePath>> {
        let given = self.fields.get(field).and_then(Value::as_array).into_iter().flatten();
        given.filter_map(Value::as_str).map(list::listed_path).collect()
    }

    /// Whether a switch is on. It is on where it was not given.
    #[must_use]
    pub fn switch(&self, field: &str) -> bool {
        self.fields.get(field).and_then(Value::as_bool).unwrap_or(true)
    }

    /// Whether a flag is set.
    #[must_use]
    pub fn flag(&self, field: &str) -> bool {
        self.fields.get(field).and_then(Value::as_bool).unwrap_or(false)
    }
}

struct Problem {
    kind: Kind,
    words: String,
}

fn invalid(words: String) -> Problem {
    Problem { kind: Kind::Invalid, words }
}

fn problems(tool: &Declaration, given: &Map<String, Value>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, value) in given {
        match tool.fields().find(|f| f.name == name) {
            None => problems.push(unknown(tool, given, name)),
            Some(field) => problems.extend(misfit(field, value)),
        }
    }
    for field in tool.fields().filter(|f| f.required && !given.contains_key(f.name)) {
        problems.push(invalid(format!("field `{}` is missing ({})", field.name, field.doc)));
    }
    problems
}

fn unknown(tool: &Declaration, given: &Map<String, Value>, name: &str) -> Problem {
    let free = tool.fields().filter(|f| !given.contains_key(f.name));
    let shown: String = name.chars().take(60).collect();
    invalid(match suggest::field(name, free) {
        Some(meant) => format!("`{}` has no field `{shown}`; did you mean `{}`?", tool.name, meant.name),
        None => format!("`{}` has no field `{shown}`", tool.name),
    })
}

fn misfit(field: &Field, value: &Value) -> Option<Problem> {
    let name = field.name;
    match (field.kind, value) {
        (FieldKind::Text { bytes_max, empty }, Value::String(text)) => {
            text_misfit(name, text, bytes_max, empty)
        }
        (FieldKind::Word(words), Value::String(text)) => (!words.contains(&text.as_str()))
            .then(|| invalid(format!("field `{name}` must be one of {}", words.join(", ")))),
        (FieldKind::Flag | FieldKind::Switch, Value::Bool(_)) => None,
        (FieldKind::Span { min, max, .. }, Value::String(text)) => {
            measure_misfit(name, text, "a length of time such as 30m", (min, max))
        }
        (FieldKind::Amount { min, max, .. }, Value::String(text)) => {
            measure_misfit(name, text, "an amount such as 2G", (min, max))
        }
        (FieldKind::Logins { count_max }, Value::Array(given)) => {
            list::logins_misfit(name, given, count_max).map(invalid)
        }
        (FieldKind::Paths { count_max }, Value::Array(given)) => {
            list::paths_misfit(name, given, count_max).map(invalid)
        }
        (FieldKind::Wake { count_max }, Value::Array(given)) => {
            list::wake_misfit(name, given, count_max).map(invalid)
        }
        (FieldKind::Number { min, max, .. }, Value::Number(n)) => {
            let fits = n.as_u64().is_some_and(|n| (min..=max).contains(&n));
            (!fits).then(|| {
                invalid(format!("field `{name}` must be a whole number from {min} to {max}, not {n}"))
            })
        }
        (kind, other) => {
            Some(invalid(format!("field `{name}` must be {}, not {}", wanted(kind), type_of(other))))
        }
    }
}

fn text_misfit(name: &str, text: &str, bytes_max: usize, empty: bool) -> Option<Problem> {
    if text.len() > bytes_max {
        return Some(Problem {
            kind: Kind::TooLarge,
            words: format!("field `{name}` has {} bytes, over the limit of {bytes_max}", text.len()),
        });
    }
    if text.is_empty() && !empty {
        return Some(invalid(format!("field `{name}` is empty")));
    }
    text.contains('\0').then(|| invalid(format!("field `{name}` holds a NUL character")))
}

/// A number with its unit, within bounds.
fn measure_misfit<T: FromStr + Display + PartialOrd>(
    name: &str,
    text: &str,
    what: &str,
    (min, max): (T, T),
) -> Option<Problem> {
    let Ok(given) = text.parse::<T>() else {
        let shown: String = text.chars().take(30).collect();
        return Some(invalid(format!("field `{name}` must be {what}, not `{}`", shown.escape_debug())));
    };
    let fits = min <= given && given <= max;
    (!fits).then(|| invalid(format!("field `{name}` must be from {min} to {max}, not {given}")))
}

fn wanted(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Text { .. } | FieldKind::Word(_) => "a string",
        FieldKind::Number { .. } => "a whole number",
        FieldKind::Flag | FieldKind::Switch => "true or false",
        FieldKind::Span { .. } => "a length of time in a string, such as \"30m\"",
        FieldKind::Amount { .. } => "an amount in a string, such as \"2G\"",
        FieldKind::Logins { .. } => "a list of logins",
        FieldKind::Paths { .. } => "a list of paths",
        FieldKind::Wake { .. } => "a list of {\"on\":\"post\"} and {\"on\":\"check-in\",\"branch\":NAME}",
    }
}

/// The sentence that says what the tool takes.
fn signature(tool: &Declaration) -> String {
    let takes: Vec<String> = tool
        .fields()
        .map(|f| if f.required { f.name.to_owned() } else { format!("{} (optional)", f.name) })
        .collect();
    format!("{} takes {}; correct the input and call again.", tool.name, takes.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::declare::{Acts, Capability, Hints};

    const TOOL: Declaration = Declaration {
        name: "ocx_sample",
        title: "Sample",
        summary: "Does nothing.",
        needs: Capability::Read,
        acts: Acts::OnRecords,
        writes: false,
        hints: Hints::LOOKS,
        fields: &[
            Field::path().required().positional().doc("a file"),
            Field::number("from", 1, 1_000, 1).doc("a line"),
        ],
        result: || Value::Null,
    };

    fn refusal(given: Value) -> String {
        Input::check(&TOOL, given).expect_err("refused").to_string()
    }

    #[test]
    fn m04_a_wrong_type_or_range_is_refused_naming_the_field() {
        for from in [json!("10"), json!(0), json!(-1), json!(1e9), json!(1.5), json!([1])] {
            let words = refusal(json!({"path": "a", "from": from}));
            assert!(words.contains("`from`"), "{words}");
        }
        assert!(refusal(json!({"path": 5})).contains("field `path` must be a string, not a number"));
    }

    #[test]
    fn what_is_required_is_never_left_out() {
        assert!(refusal(json!({"path": null})).contains("field `path` must be a string, not null"));
        assert_eq!(refusal(json!({"path": ""})), "field `path` is empty");
    }

    #[test]
    fn t08_a_nul_is_refused() {
        assert_eq!(refusal(json!({"path": "a.txt\0.png"})), "field `path` holds a NUL character");
    }

    #[test]
    fn an_unknown_field_is_refused_with_the_one_meant() {
        let words = refusal(json!({"file_path": "a"}));
        assert!(words.contains("has no field `file_path`; did you mean `path`?"), "{words}");
    }

    #[test]
    fn a_huge_argument_is_refused_with_the_limit() {
        let error = Input::check(&TOOL, json!({"path": "a".repeat(5_000)})).expect_err("refused");
        assert_eq!(error.kind(), Kind::TooLarge);
        assert!(error.to_string().contains("over the limit of 4096"));
    }

    #[test]
    fn every_problem_is_named_at_once() {
        let words = refusal(json!({"from": 0, "zzz": 1}));
        assert!(words.contains("`from`") && words.contains("`zzz`") && words.contains("`path` is missing"));
    }

    #[test]
    fn good_input_is_taken_as_it_is() {
        let input = Input::check(&TOOL, json!({"path": "a", "from": 3})).expect("fits");
        assert_eq!((input.text("path"), input.number("from")), (Some("a"), Some(3)));
        assert!(!input.flag("dry_run"));
    }
}
