//! `ocx_edit`: one exact passage of a file replaced, or text added at its end. It neither deletes nor renames.

use serde_json::{Map, Value, json};

use super::answer::{Operation, Stop};
use super::catalogue::Tool;
use super::declare::{Capability, Declaration, Field, FieldKind, Hints, PATH};
use super::input::Input;
use super::page::{LINES_MAX, Page};
use super::plan::Plan;
use super::read::as_text;
use super::session::Call;
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TreePath};
use crate::repo::artifact::looks_like_artifact;
use crate::repo::text::{Replaced, replace_once};
use crate::run::{DECLARED_FILE, Declared};

/// The most bytes of `old` and of `new`.
const TEXT_BYTES_MAX: usize = 1 << 20;

const TEXT: FieldKind = FieldKind::Text { bytes_max: TEXT_BYTES_MAX, empty: true };

/// The tool.
pub struct Edit;

static DECLARATION: Declaration = Declaration {
    name: "ocx_edit",
    title: "Edit a file",
    summary: "Replace `old`, which must stand in the file exactly once, by `new`. Copy `old` from ocx_read's `text`. \
              Empty `old`: add `new` at the end, making the file if there is none.",
    needs: Capability::CheckIn,
    hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: false },
    fields: &[
        Field {
            name: "path",
            kind: PATH,
            required: true,
            positional: true,
            doc: "the file, from the checkout's top, with /",
        },
        Field {
            name: "old",
            kind: TEXT,
            required: true,
            positional: false,
            doc: "the exact text to replace, white space and all, without line numbers; empty adds at the end",
        },
        Field {
            name: "new",
            kind: TEXT,
            required: true,
            positional: false,
            doc: "the text to stand there instead",
        },
        Field {
            name: "file_hash",
            kind: FieldKind::Text { bytes_max: 64, empty: false },
            required: false,
            positional: false,
            doc: "ocx_read's `file_hash`: refuses the edit if the file has changed since",
        },
    ],
};

impl Tool for Edit {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn writes(&self) -> bool {
        true
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Stop> {
        let (old, new) = (input.required("old")?, input.required("new")?);
        let path = path(call, input.required("path")?)?;
        let before = if old.is_empty() { call.read_if_there(&path)? } else { Some(call.read_file(&path)?) };
        unchanged_since(&path, before.as_deref(), input.text("file_hash"))?;
        let content = before.as_deref().unwrap_or_default();
        as_text(&path, content)?;
        let replaced = replaced(&path, content, old, new)?;
        let mut notes = notes(&path, &replaced);
        notes.extend(ignored(call, &path)?);
        let result = result(&path, &replaced, before.is_none(), &notes)?;
        let op = if before.is_none() { "create_file" } else { "write_file" };
        let log = vec![Operation::reads("read_file"), Operation::changes(op)];
        let was = before.as_deref().map(Hash::of);
        Ok(Plan::change(log, result.clone(), move |permit| {
            match was {
                None => call.tree().create(&path, &replaced.content)?,
                Some(was) => call.tree().replace(&path, &replaced.content, Some(&was))?,
            };
            permit.did(op);
            Ok(result)
        }))
    }
}

/// A path that a new file may have, or that a tracked one has had from of old.
fn path(call: &Call<'_>, text: &str) -> Result<TreePath, Stop> {
    TreePath::parse(text).or_else(|refused| {
        let stored = TreePath::parse_stored(text)?;
        if call.tracked()?.contains_key(&stored) { Ok(stored) } else { Err(refused.into()) }
    })
}

/// Refuses when the caller has seen another content than there is.
fn unchanged_since(path: &TreePath, before: Option<&[u8]>, seen: Option<&str>) -> Result<(), Stop> {
    let Some(seen) = seen else { return Ok(()) };
    let seen = Hash::parse(seen)?;
    if before.is_some_and(|content| seen.names(content)) {
        return Ok(());
    }
    let what = format!("`{}` is no longer what `file_hash` {} names", path.shown(), seen.short());
    let stop =
        Stop::from(Error::new(Kind::Changed, what).hint("Read the file again, then edit what it holds now."));
    Err(if before.is_some() { stop.next("ocx_read", json!({"path": path.as_str()})) } else { stop })
}

fn replaced(path: &TreePath, content: &[u8], old: &str, new: &str) -> Result<Replaced, Stop> {
    if old == new {
        return Err(Error::new(Kind::Unchanged, "`old` and `new` are the same")
            .hint("Give in `new` what is to differ.")
            .into());
    }
    let replaced = replace_once(content, old.as_bytes(), new.as_bytes()).map_err(|miss| {
        let line = miss.nearest.as_ref().map(|n| n.line).or(miss.matches.first().copied()).unwrap_or(1);
        let from = line.saturating_sub(5).max(1);
        Stop::from(miss.into_error(path)).next("ocx_read", json!({"path": path.as_str(), "from": from}))
    })?;
    if looks_like_artifact(&replaced.content) {
        let what = format!("`{}` would be read as a Fossil artifact, not as a file", path.shown());
        return Err(Error::new(Kind::Refused, what)
            .hint("Put a line before it or leave out its last line, so that it is no well-formed artifact.")
            .into());
    }
    Ok(replaced)
}

/// What the answer says: the changed lines as `ocx_read` gives them, and what was done that was not spelled out.
fn result(path: &TreePath, replaced: &Replaced, created: bool, notes: &[String]) -> Result<Value> {
    let text = as_text(path, &replaced.content)?;
    let page = Page::of(text, replaced.first_line.max(1), replaced.lines_changed.min(LINES_MAX))?;
    let mut result = Map::new();
    result.insert("path".into(), path.as_str().into());
    result.insert("created".into(), created.into());
    result.insert("file_hash".into(), Hash::of(&replaced.content).as_str().into());
    result.insert("lines_changed".into(), replaced.lines_changed.into());
    let mut fields = page.fields();
    fields.remove("next_from");
    result.extend(fields);
    if !notes.is_empty() {
        result.insert("note".into(), notes.join(" ").into());
    }
    Ok(Value::Object(result))
}

/// A file that a save leaves out is worth a word now.
fn ignored(call: &Call<'_>, path: &TreePath) -> Result<Option<String>> {
    let ignored =
        call.run().checkout().ignore()?.matches(path.as_str()) && !call.tracked()?.contains_key(path);
    Ok(ignored.then(|| "An ignore rule leaves this file out: no save commits it.".into()))
}

fn notes(path: &TreePath, replaced: &Replaced) -> Vec<String> {
    let mut notes = Vec::new();
    if replaced.followed_crlf {
        notes.push("Line ends were written as CR LF, as in the rest of the file.".into());
    }
    if replaced.added_line_end {
        notes.push("The last line had no line end; one was added before the new text.".into());
    }
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
