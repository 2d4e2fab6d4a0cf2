//! A declaration as JSON Schema, in the narrow form that every client accepts.
//!
//! One object, no `oneOf`, `anyOf`, `allOf`, `$ref` or `format`: a single schema outside this form can cost a
//! client its whole session.

use serde_json::{Map, Value, json};

use super::declare::{Declaration, Field, FieldKind, PATH_BYTES_MAX};

/// The schema of a tool's input.
#[must_use]
pub fn input_schema(tool: &Declaration) -> Map<String, Value> {
    let properties: Map<String, Value> = tool.fields().map(|f| (f.name.to_owned(), property(f))).collect();
    let required: Vec<&str> = tool.fields().filter(|f| f.required).map(|f| f.name).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema.insert("additionalProperties".into(), false.into());
    schema
}

/// The schema of a tool's answers. It names the fields and their types only, because it goes to the client once for
/// each tool. The server's instructions say what the fields are for.
#[must_use]
pub fn output_schema(tool: &Declaration) -> Map<String, Value> {
    let (text, flag) = (json!({"type": "string"}), json!({"type": "boolean"}));
    let properties = json!({
        "ok": flag, "tool": text, "dry_run": flag, "log": {"type": "array"}, "result": outer(&(tool.result)()),
        "stopped": {"type": ["string", "null"]}, "code": text, "next_step": text, "next_call": {"type": "object"},
    });
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties);
    schema.insert("required".into(), json!(["ok", "tool", "dry_run", "log", "result", "stopped"]));
    schema
}

/// The most bytes of the schema of a result, so that the list of all tools stays small.
const RESULT_BYTES_MAX: usize = 1_000;

/// The deepest level of fields that is named.
const LEVELS_MAX: usize = 4;

/// The schema of a result with as many levels of fields as fit, at least one.
fn outer(schema: &Value) -> Value {
    let short = |schema: &Value| schema.to_string().len() <= RESULT_BYTES_MAX;
    let cut = (2..=LEVELS_MAX).rev().map(|levels| cut_below(levels, schema)).find(short);
    cut.unwrap_or_else(|| cut_below(1, schema))
}

/// The schema without the fields below a number of levels.
fn cut_below(levels: usize, schema: &Value) -> Value {
    let Value::Object(parts) = schema else { return schema.clone() };
    let kept = parts.iter().filter_map(|(key, part)| {
        let part = match (key.as_str(), part) {
            ("properties", Value::Object(_)) if levels == 0 => return None,
            ("properties", Value::Object(fields)) => {
                fields.iter().map(|(name, field)| (name.clone(), cut_below(levels - 1, field))).collect()
            }
            ("items", items) => cut_below(levels, items),
            (_, part) => part.clone(),
        };
        Some((key.clone(), part))
    });
    Value::Object(kept.collect())
}

fn property(field: &Field) -> Value {
    let mut p = match field.kind {
        FieldKind::Text { bytes_max, empty } => {
            let mut p = json!({"type": "string", "maxLength": bytes_max});
            if !empty {
                p["minLength"] = 1.into();
            }
            p
        }
        FieldKind::Number { min, max, default } => {
            json!({"type": "integer", "minimum": min, "maximum": max, "default": default})
        }
        FieldKind::Word(words) => json!({"type": "string", "enum": words}),
        FieldKind::Flag => json!({"type": "boolean", "default": false}),
        FieldKind::Switch => json!({"type": "boolean", "default": true}),
        FieldKind::Span { default, .. } => measure(&default),
        FieldKind::Amount { default, .. } => measure(&default),
        FieldKind::Logins { count_max } => {
            let login = json!({"type": "string", "minLength": 1, "maxLength": 60});
            json!({"type": "array", "minItems": 1, "maxItems": count_max, "items": login})
        }
        FieldKind::Paths { count_max } => {
            let path = json!({"type": "string", "minLength": 1, "maxLength": PATH_BYTES_MAX});
            json!({"type": "array", "minItems": 1, "maxItems": count_max, "items": path})
        }
        FieldKind::Wake { count_max } => {
            let event = json!({
                "type": "object",
                "properties": {
                    "on": {"type": "string", "enum": ["post", "check-in"]},
                    "branch": {"type": "string", "description": "with check-in only: the branch that it arrives on"},
                },
                "required": ["on"],
                "additionalProperties": false,
            });
            json!({
                "type": "array", "minItems": 1, "maxItems": count_max, "items": event, "default": [{"on": "post"}],
            })
        }
    };
    p["description"] = field.words().into();
    p
}

/// A number with its unit, as text.
fn measure(default: &impl ToString) -> Value {
    json!({"type": "string", "minLength": 2, "maxLength": 20, "default": default.to_string()})
}
