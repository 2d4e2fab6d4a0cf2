//! Compares a tool's answer with the schema that clients get.

use ocx::tool::catalogue::TOOLS;
use ocx::tool::schema::output_schema;
use ocx::tool::{CallControl, Service};
use serde_json::{Map, Value};

/// Calls a tool in this process.
#[track_caller]
pub fn call(service: &Service, tool: &str, input: Value) -> Value {
    let answer = ocx::tool::call(service, tool, input, &CallControl::default()).into_json();
    assert_fits_schema(&answer);
    answer
}

/// Fails if the answer does not fit its tool's output schema, or has a field that the schema does not name.
#[track_caller]
pub fn assert_fits_schema(answer: &Value) {
    let Some(tool) = TOOLS.iter().find(|t| answer["tool"] == t.declaration().name) else { return };
    let sent = Value::Object(output_schema(tool.declaration()));
    let whole = (tool.declaration().result)();
    let fit = fits(answer, &sent, "answer").and_then(|()| fits(&answer["result"], &whole, "result"));
    if let Err(misfit) = fit {
        panic!("{misfit}\n{answer:#}\n{whole:#}");
    }
}

/// Checks a value against a schema. It knows only the part of JSON Schema that the tools use.
fn fits(value: &Value, schema: &Value, place: &str) -> Result<(), String> {
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().collect(),
        Value::Null => Vec::new(),
        only => vec![only],
    };
    if !types.is_empty() && !types.iter().any(|t| is_of_type(value, t.as_str().unwrap_or_default())) {
        return Err(format!("{place} is not of type {}", schema["type"]));
    }
    if let (Some(words), Value::String(_)) = (schema["enum"].as_array(), value)
        && !words.contains(value)
    {
        return Err(format!("{place} is none of {}", schema["enum"]));
    }
    match value {
        Value::Object(fields) => fields_fit(fields, schema, place),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(at, item)| fits(item, &schema["items"], &format!("{place}[{at}]"))),
        _ => Ok(()),
    }
}

fn fields_fit(fields: &Map<String, Value>, schema: &Value, place: &str) -> Result<(), String> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !fields.contains_key(*name)) {
        return Err(format!("{place}.{missing} is missing"));
    }
    let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
    fields.iter().try_for_each(|(name, value)| match properties.get(name) {
        Some(schema) => fits(value, schema, &format!("{place}.{name}")),
        None => Err(format!("{place}.{name} is not in the schema")),
    })
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type `{other}`"),
    }
}
