//! `ocx_edit`: one exact passage of a file replaced, or text added at its end. It neither deletes nor renames.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::answer::{NextCall, Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::files::FolderResult;
use super::files::{FILE_BYTES_MAX, as_text};
use super::input::Input;
use super::interface::Tool;
use super::left_out;
use super::plan::Plan;
use super::replacement::{self, ChangedLines};
use super::result::{ToolResult, schema_of_either};
use crate::error::{Error, Kind, Result};
use crate::format::artifact::looks_like_artifact;
use crate::name::{Hash, TreePath};
use crate::testing::{DECLARED_FILE, Declared};
use crate::text::{Replaced, replace_once};
use crate::tree::Why;

/// The tool.
pub struct Edit;

static DECLARATION: Declaration = Declaration {
    name: "ocx_edit",
    title: "Edit a file",
    summary: "Replace `old`, which must stand in the file exactly once, by `new`. Copy `old` from ocx_read's `text`. \
              Empty `old`: add `new` at the end, making the file if there is none.",
    needs: Capability::CheckIn,
    acts: Acts::OnCheckout,
    writes: true,
    hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: false },
    fields: &[
        Field::path().required().positional().doc("the file, from the checkout's top, with /"),
        replacement::OLD,
        replacement::NEW,
        Field::hash("file_hash")
            .doc("ocx_read's `file_hash`: refuses the edit if the file has changed since"),
    ],
    result: schema_of_either::<EditResult, FolderResult>,
};

/// The file as it is now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct EditResult {
    path: String,
    created: bool,
    file_hash: Hash,
    #[serde(flatten)]
    changed: ChangedLines,
}

impl ToolResult for EditResult {}

impl Tool for Edit {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    /// Without `old` a file that is not there is to be made; one that is there has to be read first.
    fn repair(&self, call: &Call<'_>, mut fields: Map<String, Value>) -> NextCall {
        let path = fields.get("path").and_then(Value::as_str).and_then(|p| TreePath::parse(p).ok());
        if let Some(path) = path.filter(|_| !fields.contains_key("old")) {
            if call.read_if_there(&path).is_ok_and(|content| content.is_some()) {
                return NextCall::new("ocx_read", json!({"path": path.as_str()}));
            }
            fields.insert("old".into(), "".into());
        }
        NextCall::new(DECLARATION.name, Value::Object(fields))
    }

    fn judge(&self, input: &Input) -> Result<()> {
        replacement::judge(input)
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let old = input.required("old")?;
        let path = call.path(input, old.is_empty(), |text| path(call, text))?;
        let before = if old.is_empty() {
            call.read_if_there(&path)?
        } else {
            Some(call.read_file(&path, &|meant| elsewhere(call, input, meant))?)
        };
        let (content, was) = before.map_or((Vec::new(), None), |(content, hash)| (content, Some(hash)));
        let content = &content[..];
        unchanged_since(&path, was.map(|_| content), input.text("file_hash"))?;
        as_text(&path, content)?;
        let replaced = replaced(&path, content, input)?;
        let mut notes = notes(&path, &replaced);
        let left_out = call.workspace()?.checkout().why_left_out(&path)?;
        // A dot-file that a tool makes is meant.
        let is_meant = was.is_none() && left_out == Some(Why::DotFile);
        notes.extend(left_out.filter(|_| !is_meant).map(left_out::note));
        let result = result(&path, &replaced, was.is_none(), &notes)?;
        let op = if was.is_none() { "create_file" } else { "write_file" };
        let log = vec![Operation::reads("read_file"), Operation::changes(op)];
        Ok(Plan::change(log, result.clone(), move |permit| {
            match was {
                None => call.tree()?.create(&path, &replaced.content)?,
                Some(was) => call.tree()?.replace(&path, &replaced.content, Some(&was))?,
            };
            permit.did(op);
            if is_meant {
                call.workspace()?.checkout().include(std::slice::from_ref(&path))?;
            }
            Ok(result)
        }))
    }
}

/// A path that a new file may have, or that a tracked one has had from of old.
fn path(call: &Call<'_>, text: &str) -> Result<TreePath> {
    TreePath::parse(text).or_else(|refused| {
        let stored = TreePath::parse_stored(text)?;
        if call.tracked()?.contains_key(&stored) { Ok(stored) } else { Err(refused) }
    })
}

/// The call for a file of another path than the one given: the same edit where it can be made there, else to read it.
fn elsewhere(call: &Call<'_>, input: &Input, meant: &TreePath) -> NextCall {
    let content = call.tree().and_then(|tree| tree.read(meant, FILE_BYTES_MAX)).unwrap_or_default();
    let text = |field| input.text(field).unwrap_or_default().as_bytes();
    if replace_once(&content, text("old"), text("new")).is_ok() {
        call.again(input.with("path", meant.as_str()))
    } else {
        NextCall::new("ocx_read", json!({"path": meant.as_str()}))
    }
}

/// Refuses when the caller has seen another content than there is.
fn unchanged_since(path: &TreePath, before: Option<&[u8]>, seen: Option<&str>) -> Result<(), Refusal> {
    let Some(seen) = seen else { return Ok(()) };
    let seen = Hash::parse(seen)?;
    if before.is_some_and(|content| seen.names(content)) {
        return Ok(());
    }
    let what = format!("`{}` is no longer what `file_hash` {} names", path.shown(), seen.short());
    let stop = Refusal::from(
        Error::new(Kind::Changed, what).with_hint("Read the file again, then edit what it holds now."),
    );
    Err(if before.is_some() { stop.next("ocx_read", json!({"path": path.as_str()})) } else { stop })
}

fn replaced(path: &TreePath, content: &[u8], input: &Input) -> Result<Replaced, Refusal> {
    let read = NextCall::new("ocx_read", json!({"path": path.as_str()}));
    let replaced = replacement::replaced(&path.shown(), content, (DECLARATION.name, input), read)?;
    if looks_like_artifact(&replaced.content) {
        let what = format!("`{}` would be read as a Fossil artifact, not as a file", path.shown());
        return Err(Error::new(Kind::Refused, what)
            .with_hint(
                "Put a line before it or leave out its last line, so that it is no well-formed artifact.",
            )
            .into());
    }
    Ok(replaced)
}

/// What the answer says: the changed lines as `ocx_read` gives them, and what was done that was not spelled out.
fn result(path: &TreePath, replaced: &Replaced, created: bool, notes: &[String]) -> Result<EditResult> {
    Ok(EditResult {
        path: path.to_string(),
        created,
        file_hash: Hash::of(&replaced.content),
        changed: replacement::shown(as_text(path, &replaced.content)?, replaced, notes)?,
    })
}

fn notes(path: &TreePath, replaced: &Replaced) -> Vec<String> {
    let mut notes = replacement::notes(replaced, "file");
    if path.as_str() == DECLARED_FILE {
        notes.push(match Declared::parse(&replaced.content) {
            Ok(_) => "This changes which tests a save needs; the save's answer names the change.".into(),
            Err(e) => format!("As it is now no test can run and nothing can be saved: {e}."),
        });
    } else if path.as_str().starts_with(".fossil-settings/") {
        notes.push(
            "This changes Fossil's settings for everyone who uses the check-in; the save's answer names it."
                .into(),
        );
    }
    notes
}
