//! What went wrong elsewhere, one test a case: each is named after its id, makes the least input that showed the
//! fault, and goes through the tools as a client does.

mod bundle;
mod content;
mod identity;
mod line;
mod path;
mod process;
mod protocol;
mod settings;
mod state;
mod stored_tree;
mod sync_tool;
mod taken;
mod text;

use serde_json::{Value, json};

use crate::support::Fixture;

/// The input of an edit.
fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old": old, "new": new})
}

/// The line that says what was wrong.
fn stopped(answer: &Value) -> &str {
    answer["stopped"].as_str().unwrap_or_default()
}

/// The bytes of a file as of a check-in, read by plain Fossil.
fn committed(f: &Fixture, checkin: &Value, path: &str) -> Vec<u8> {
    let mut command = f.plain(&f.root());
    command.args(["cat", path, "-r", checkin.as_str().expect("a hash")]);
    let output = command.output().expect("plain Fossil runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The manifest of a check-in, as plain Fossil gives it.
fn manifest(f: &Fixture, checkin: &Value) -> String {
    f.fossil(&["artifact", checkin.as_str().expect("a hash")])
}
