//! Every declaration of the catalogue: the form that clients need, and committed snapshots that show each change.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ocx::face::cli;
use ocx::tool::catalogue::TOOLS;
use ocx::tool::schema::{input_schema, output_schema};
use ocx::tool::{Binding, Declaration, FieldKind};
use serde_json::{Value, json};

fn declarations() -> impl Iterator<Item = &'static Declaration> {
    TOOLS.iter().map(|t| t.declaration())
}

/// Compares with the committed file; `OCX_BLESS=1` writes it instead.
#[track_caller]
fn assert_snapshot(name: &str, found: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tools/snapshots").join(name);
    if std::env::var_os("OCX_BLESS").is_some() {
        std::fs::write(&path, found).expect("written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, kept, "{name} differs; OCX_BLESS=1 cargo test --test tools catalogue writes it anew");
}

#[test]
fn each_tool_is_as_its_snapshot_shows() {
    for tool in declarations() {
        let mut shown = json!({
            "name": tool.name,
            "title": tool.title,
            "description": Binding::Local.description(tool),
            "hints": format!("{:?}", tool.hints),
            "command": tool.command(),
            "input": input_schema(tool),
            "result": output_schema(tool)["properties"]["result"],
        });
        if Binding::Remote.summary(tool) != tool.summary {
            shown["description_remote"] = Binding::Remote.description(tool).into();
        }
        assert_snapshot(&format!("{}.json", tool.name), &format!("{shown:#}\n"));
    }
}

#[test]
fn names_are_ones_that_every_client_can_call() {
    let names: BTreeSet<&str> = declarations().map(|t| t.name).collect();
    assert_eq!(names.len(), TOOLS.len());
    for name in names {
        assert!(name.starts_with("ocx_") && name.len() <= 40, "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
    }
}

#[test]
fn summaries_are_short_and_descriptions_end_with_what_is_needed() {
    for (tool, binding) in declarations().flat_map(|t| [(t, Binding::Local), (t, Binding::Remote)]) {
        let length = binding.summary(tool).chars().count();
        assert!(length <= 200, "{} {binding:?}: {length}", tool.name);
        let last = binding.description(tool).lines().last().unwrap_or_default().to_owned();
        assert!(last.starts_with("Needs: ") && last.contains("capability"), "{last}");
    }
}

#[test]
fn schemas_have_no_part_that_some_client_chokes_on() {
    fn check(tool: &str, value: &Value) {
        if let Value::Object(fields) = value {
            for (name, value) in fields {
                let bad = ["oneOf", "anyOf", "allOf", "$ref", "$defs", "format", "nullable", "not"];
                assert!(!bad.contains(&name.as_str()), "{tool}: {name}");
                check(tool, value);
            }
        }
    }
    for tool in declarations() {
        let schema = Value::Object(input_schema(tool));
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
        assert_eq!(schema["properties"]["dry_run"]["type"], "boolean", "{}", tool.name);
        for (name, property) in schema["properties"].as_object().expect("properties") {
            assert!(name.len() <= 64 && property["description"].is_string(), "{}: {name}", tool.name);
        }
        check(tool.name, &schema);
        assert!(!schema.to_string().contains(r#""type":["#), "{}: a list of types", tool.name);
    }
    for tool in declarations() {
        let answer = Value::Object(output_schema(tool));
        assert_eq!(answer["type"], "object");
        check(tool.name, &answer);
    }
}

#[test]
fn each_result_has_a_schema_that_names_its_fields_and_may_be_null() {
    fn check(place: &str, schema: &Value) {
        assert!(!schema["type"].is_null(), "{place} has a type: {schema}");
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            check(&format!("{place}.{name}"), field);
        }
        if let Some(items) = schema.get("items") {
            check(&format!("{place}[]"), items);
        }
    }
    for tool in declarations() {
        let schema = (tool.result)();
        assert_eq!(schema["type"], json!(["object", "null"]), "{}", tool.name);
        assert!(schema["properties"].as_object().is_some_and(|fields| fields.len() > 1), "{}", tool.name);
        check(tool.name, &schema);
        let sent = &output_schema(tool)["properties"]["result"];
        let names =
            |schema: &Value| schema["properties"].as_object().map(|f| f.keys().cloned().collect::<Vec<_>>());
        assert_eq!(names(sent), names(&schema), "{}", tool.name);
    }
}

#[test]
fn the_list_of_tools_takes_less_than_10_000_tokens() {
    let bytes = |tool: &Declaration| {
        let schemas = [input_schema(tool), output_schema(tool)].map(Value::Object);
        let words = [tool.name, tool.title].map(str::len).iter().sum::<usize>();
        words
            + Binding::Local.description(tool).len()
            + schemas.map(|s| s.to_string().len()).iter().sum::<usize>()
    };
    let sum: usize = declarations().map(bytes).sum();
    assert!(sum < 4 * 10_000, "{sum} bytes");
}

#[test]
fn every_text_and_number_has_a_bound() {
    for tool in declarations() {
        for field in tool.fields() {
            match field.kind {
                // A bundle alone fills most of the largest message.
                FieldKind::Text { bytes_max, .. } if field.name == "bundle" => assert!(bytes_max <= 12 << 20),
                FieldKind::Text { bytes_max, .. } => assert!(bytes_max <= 1 << 20, "{}", field.name),
                FieldKind::Number { min, max, default } => {
                    assert!((min..=max).contains(&default), "{}", field.name);
                }
                FieldKind::Word(words) => assert!(!words.is_empty(), "{}", field.name),
                FieldKind::Span { min, max, default } => {
                    assert!((min..=max).contains(&default), "{}", field.name);
                }
                FieldKind::Amount { min, max, default } => {
                    assert!((min..=max).contains(&default), "{}", field.name);
                }
                FieldKind::Logins { count_max }
                | FieldKind::Paths { count_max }
                | FieldKind::Wake { count_max } => {
                    assert!((1..=100).contains(&count_max), "{}", field.name);
                }
                FieldKind::Flag | FieldKind::Switch => {}
            }
        }
    }
}

#[test]
fn the_help_of_every_command_is_as_its_snapshot_shows() {
    let mut help = String::new();
    for command in std::iter::once(String::new()).chain(declarations().map(Declaration::command)) {
        let mut out = Vec::new();
        let mut input = std::io::empty();
        let mut err = std::io::sink();
        let mut terminal = cli::Terminal::on(&mut input, &mut out, &mut err);
        let args = [command.as_str(), "--help"].iter().filter(|a| !a.is_empty()).map(Into::into).collect();
        assert_eq!(cli::run(args, &mut terminal), cli::Next::Exit(0));
        help.extend(["$ ocx ", &command, "\n", &String::from_utf8_lossy(&out), "\n"]);
    }
    assert_snapshot("help.txt", &help);
}

#[test]
fn every_code_of_a_refusal_is_in_the_readme() {
    let readme = include_str!("../../README.md");
    for kind in ocx::error::Kind::ALL {
        assert!(readme.contains(&format!("`{}`", kind.code())), "{}", kind.code());
    }
}
