//! The same calls over standard input and output, over HTTP and by `ocx call`: the answers are the same bytes, for
//! every tool of the catalogue, for what is done, rehearsed and refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ocx::tool::catalogue::TOOLS;
use ocx::tool::{Declaration, Field, FieldKind};
use serde_json::{Map, Value, json};

use crate::support::client::{Client, answer};
use crate::support::http::HttpServer;
use crate::support::{Fixture, OCX, fitting, four};

type Calls = Vec<(String, Value)>;

/// Calls that do something, in the order of the work, after those that only look.
fn work() -> Calls {
    let call = |tool: &str, input: Value| (tool.to_owned(), input);
    vec![
        call("ocx_context", json!({})),
        call("ocx_find", json!({"text": "a"})),
        call("ocx_read", json!({"path": "caf\u{e9}.txt"})),
        call("ocx_read", json!({"path": "big.txt"})),
        call("ocx_read", json!({"path": "binary"})),
        call("ocx_read", json!({"path": "no such"})),
        call("ocx_read", json!({"path": "../out"})),
        call("ocx_read", json!({"checkin": "trunk"})),
        call("ocx_edit", json!({"path": "a.txt", "old": "none", "new": "x\u{2028}\u{7f}\u{0}"})),
        call("ocx_edit", json!({"path": "a.txt", "old": "a", "new": "b \u{1f600} \\ \" / \t"})),
        call("ocx_save", four("t")),
        call("ocx_test", json!({})),
        call("ocx_save", four("t")),
        call("ocx_save", four("t")),
        call("ocx_context", json!({})),
        call("no_such_tool", json!({})),
        call("ocx_raed", json!({"dry_run": true})),
    ]
}

/// For one tool: nothing given, everything given as its declaration has it, and each field wrong.
fn probes(tool: &Declaration) -> Calls {
    let whole: Map<String, Value> = tool
        .fields()
        .filter(|f| f.required || f.name == "dry_run")
        .map(|f| (f.name.to_owned(), fitting(f)))
        .collect();
    let mut inputs =
        vec![json!({}), json!({"dry_run": true}), json!({"no such": 1, "dry_run": true}), json!([])];
    inputs.push(Value::Object(whole.clone()));
    for field in tool.fields() {
        for value in wrong(field) {
            let mut input = whole.clone();
            input.insert(field.name.to_owned(), value);
            inputs.push(Value::Object(input));
        }
    }
    // What looks without changing is asked for real too.
    if tool.hints.read_only {
        let mut input = whole;
        input.remove("dry_run");
        inputs.push(Value::Object(input));
    } else {
        inputs.retain(|input| input.get("dry_run").is_some());
    }
    inputs.into_iter().map(|input| (tool.name.to_owned(), input)).collect()
}

fn wrong(field: &Field) -> Vec<Value> {
    let mut values = vec![Value::Null, json!([]), json!({"a": [1, 2.5, "\u{e9}"]})];
    match field.kind {
        FieldKind::Flag | FieldKind::Switch => values.extend([json!("true"), json!(1)]),
        FieldKind::Number { max, .. } => values.extend([json!("1"), json!(-1), json!(1.5), json!(max + 1)]),
        FieldKind::Span { .. } | FieldKind::Amount { .. } => {
            values.extend([
                json!("0s"),
                json!("0M"),
                json!("30 m"),
                json!("99999h"),
                json!("99999999G"),
                json!(30),
            ]);
        }
        FieldKind::Logins { .. } => values.extend([json!(["ann", 5]), json!(["a b"]), json!("ann")]),
        FieldKind::Paths { .. } => values.extend([json!(["a", 5]), json!(["../a"]), json!("a")]),
        FieldKind::Wake { .. } => {
            values.extend([json!([{"on": "check-in"}]), json!(["post"]), json!("post")]);
        }
        _ => values.extend([json!(""), json!(5), json!("\u{0}"), json!("-R")]),
    }
    // A rehearsal stays one.
    values.retain(|_| field.name != "dry_run");
    values
}

/// All calls: the probes first, which change nothing, then the work.
fn calls() -> Calls {
    let mut all: Calls = TOOLS.iter().flat_map(|tool| probes(tool.declaration())).collect();
    // Arguments that are no object.
    for given in [json!([]), json!("{}"), json!(r#"{"path":"a.txt"}"#), json!("x"), json!(5), Value::Null] {
        all.extend(["ocx_read", "ocx_find", "ocx_contxt"].map(|tool| (tool.to_owned(), given.clone())));
    }
    all.extend(work());
    all
}

/// A folder that is put back as it was before each way.
struct Kept {
    f: Fixture,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Kept {
    fn new() -> Self {
        let big = "a line of a long file\n".repeat(5_000);
        let f = Fixture::tested(
            "grep -q b a.txt",
            &[
                ("a.txt", b"a\n"),
                ("big.txt", big.as_bytes()),
                ("caf\u{e9}.txt", "caf\u{e9} \u{1f600} \"quoted\" \\ \t\n".as_bytes()),
                ("binary", b"\0\x01\xff"),
            ],
        );
        let files = f.everything();
        Self { f, files }
    }

    fn put_back(&self) {
        for entry in fs::read_dir(self.f.folder()).expect("listable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
        }
        for (path, content) in &self.files {
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, content).expect("written");
        }
    }
}

/// The answer of one `ocx call`, without the line's end.
fn by_command(f: &Fixture, folder: &Path, tool: &str, input: &Value) -> String {
    let mut command: Command = f.command(OCX, folder);
    command.args(["call", tool, &input.to_string()]).stdin(Stdio::null());
    let out = command.output().expect("ocx runs").stdout;
    String::from_utf8(out).expect("text").trim_end_matches('\n').to_owned()
}

fn text(reply: &Value) -> String {
    answer(reply);
    reply["result"]["content"][0]["text"].as_str().expect("a text").to_owned()
}

/// Hashes, times and durations differ from one run to the next; nothing else may.
fn masked(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    mask(value).to_string()
}

fn mask(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let masked = |(name, value): (String, Value)| match name.as_str() {
                "time" | "seconds" => (name, "masked".into()),
                _ => (name, mask(value)),
            };
            Value::Object(fields.into_iter().map(masked).collect())
        }
        Value::Array(values) => values.into_iter().map(mask).collect(),
        Value::String(text) => without_hashes(&text).into(),
        other => other,
    }
}

fn without_hashes(text: &str) -> String {
    text.split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .map(|word| {
            let body = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let hash = body.len() >= 10 && body.bytes().all(|b| b.is_ascii_hexdigit());
            if hash { word.replace(body, "HASH") } else { word.to_owned() }
        })
        .collect()
}

/// The same where nothing was changed yet, and the same but for hashes and times after that.
#[track_caller]
fn assert_same(call: &(String, Value), exact: bool, ways: [&str; 3]) {
    let [stdio, http, command] = if exact { ways.map(str::to_owned) } else { ways.map(masked) };
    assert_eq!(stdio, http, "over HTTP: {call:?}");
    assert_eq!(stdio, command, "by `ocx call`: {call:?}");
}

#[test]
fn every_tool_answers_with_the_same_bytes_on_every_way_in() {
    let kept = Kept::new();
    let (f, calls) = (&kept.f, calls());
    let params = |(tool, input): &(String, Value)| json!({"name": tool, "arguments": input});
    let work = calls.len() - work().len();

    kept.put_back();
    let mut client = Client::legacy(f);
    let stdio: Vec<_> = calls.iter().map(|call| text(&client.request("tools/call", params(call)))).collect();
    client.end();

    kept.put_back();
    let server = HttpServer::start(f);
    let http: Vec<_> = calls.iter().map(|call| text(&server.request("tools/call", params(call)))).collect();
    drop(server);

    kept.put_back();
    for (at, call) in calls.iter().enumerate() {
        let command = by_command(f, &f.root(), &call.0, &call.1);
        assert_same(call, at < work, [&stdio[at], &http[at], &command]);
    }
    let done = stdio[work..].iter().filter(|answer| answer.starts_with(r#"{"ok":true"#)).count();
    assert_eq!(done, 9, "the work was done: {:#?}", &stdio[work..]);
}

#[test]
fn the_tool_list_is_the_same_over_both() {
    let f = Fixture::with(&[]);
    let mut client = Client::legacy(&f);
    let server = HttpServer::start(&f);
    let over_stdio = client.request("tools/list", json!({}))["result"].to_string();
    assert_eq!(over_stdio, server.request("tools/list", json!({}))["result"].to_string());
}
