//! What a tool found or did, as a type of its own. It becomes JSON only when its answer is rendered.
//!
//! The schema that clients see follows from the type, in the narrow form that every client accepts.

use std::fmt::Debug;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::name::Hash;

/// The result of a tool: the `result` of its answer.
pub trait ToolResult: Debug + Serialize + JsonSchema + Send + Sync + 'static {
    /// The result as text for a person. Without it a person reads an outline of the fields.
    fn readable(&self) -> Option<Readable> {
        None
    }
}

/// A result that a person reads as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Readable {
    /// The text.
    pub text: String,
    /// Which part of the whole the text is, in a few words. Nothing if it is the whole.
    pub part: Option<String>,
    /// The `from` of the call that goes on where the text ends.
    pub next_from: Option<usize>,
    /// A remark on the text.
    pub note: Option<String>,
}

/// A result whose type only its tool knows.
pub(crate) trait AnyResult: Debug + Send + Sync {
    fn to_json(&self) -> Value;
    fn readable(&self) -> Option<Readable>;
}

impl<R: ToolResult> AnyResult for R {
    fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("a result is made of JSON's own types")
    }

    fn readable(&self) -> Option<Readable> {
        ToolResult::readable(self)
    }
}

/// Makes the schema of a result. A tool's declaration holds it.
pub type ResultSchema = fn() -> Value;

/// The schema of a tool that gives results of either type.
#[must_use]
pub fn schema_of_either<R: ToolResult, S: ToolResult>() -> Value {
    let mut schema = narrow_schema::<R>();
    admit(&mut schema, narrow_schema::<S>());
    or_null(schema)
}

/// The schema of a result type. It may be null: a refusal can have no result.
#[must_use]
pub fn schema_of<R: ToolResult>() -> Value {
    or_null(narrow_schema::<R>())
}

fn or_null(mut schema: Map<String, Value>) -> Value {
    schema.insert("type".into(), json!(["object", "null"]));
    Value::Object(schema)
}

fn narrow_schema<R: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|s| (s.inline_subschemas, s.meta_schema) = (true, None));
    narrow(settings.into_generator().into_root_schema_for::<R>().to_value())
}

/// A hash is text to a client.
impl JsonSchema for Hash {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hash".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// Keeps what clients get of a schema: types, the words of an enumeration, and the fields and items. Alternatives become
/// one schema that admits them all.
fn narrow(schema: Value) -> Map<String, Value> {
    let Value::Object(mut wide) = schema else { return Map::new() };
    let mut narrowed = Map::new();
    for key in ["type", "enum"] {
        narrowed.extend(wide.remove(key).map(|value| (key.to_owned(), value)));
    }
    if let Some(items) = wide.remove("items") {
        narrowed.insert("items".into(), Value::Object(narrow(items)));
    }
    if let Some(Value::Object(fields)) = wide.remove("properties") {
        let fields = fields.into_iter().map(|(name, field)| (name, Value::Object(narrow(field))));
        narrowed.insert("properties".into(), Value::Object(fields.collect()));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(alternatives)) = wide.remove(key) {
            for alternative in alternatives {
                admit(&mut narrowed, narrow(alternative));
            }
        }
    }
    narrowed
}

/// Widens a narrow schema so that it also admits what the other one admits.
fn admit(schema: &mut Map<String, Value>, other: Map<String, Value>) {
    if schema.is_empty() {
        *schema = other;
        return;
    }
    if other.get("enum").is_none() {
        schema.remove("enum");
    }
    for (key, value) in other {
        match (schema.get_mut(&key), value) {
            (None, value) if key != "enum" => {
                schema.insert(key, value);
            }
            (Some(Value::Object(fields)), Value::Object(others)) if key == "properties" => {
                for (name, field) in others {
                    match (fields.get_mut(&name), field) {
                        (Some(Value::Object(own)), Value::Object(field)) => admit(own, field),
                        (_, field) => {
                            fields.insert(name, field);
                        }
                    }
                }
            }
            (Some(Value::Object(own)), Value::Object(other)) => admit(own, other),
            (Some(own), other) => both(own, other),
            (None, _) => {}
        }
    }
}

/// Joins the types, or the words of an enumeration, of two schemas.
fn both(own: &mut Value, other: Value) {
    let list = |value: Value| if let Value::Array(all) = value { all } else { vec![value] };
    let mut all = list(own.take());
    for one in list(other) {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    *own = if all.len() == 1 { all.remove(0) } else { Value::Array(all) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Either {
        Words(String),
        Listed { one: u64, two: Option<Hash> },
        Counted { one: Option<bool>, list: Vec<Kind> },
    }

    #[derive(Debug, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Kind {
        Good,
        /// A variant with words of its own.
        Bad,
    }

    #[derive(Debug, Serialize, JsonSchema)]
    struct Whole {
        /// Words that stay here.
        either: Either,
        #[serde(skip_serializing_if = "Option::is_none")]
        absent: Option<Hash>,
        nothing: Option<f64>,
    }

    impl ToolResult for Whole {}

    #[test]
    fn a_schema_admits_every_alternative_without_naming_one() {
        assert_eq!(
            schema_of::<Whole>(),
            json!({
                "type": ["object", "null"],
                "properties": {
                    "either": {
                        "type": ["string", "object"],
                        "properties": {
                            "one": {"type": ["integer", "boolean", "null"]},
                            "two": {"type": ["string", "null"]},
                            "list": {"type": "array", "items": {"type": "string"}},
                        },
                    },
                    "absent": {"type": ["string", "null"]},
                    "nothing": {"type": ["number", "null"]},
                },
            })
        );
    }
}
