//! `ocx_find`: the lines that hold a text, in the files that a save would commit.

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::input::Input;
use super::interface::Tool;
use super::page::json_bytes;
use super::plan::Plan;
use super::result::{Readable, ToolResult, schema_of};
use crate::error::{Error, Kind};
use crate::name::TreePath;
use crate::tree::Hit;

/// The most lines of one answer.
const LINES_MAX: usize = 50;

/// The most bytes that the lines of one answer take as JSON.
const BYTES_MAX: usize = 8_500;

/// What a match takes beside its path and text: `{"path":"","line":123456,"text":""},`.
const FRAME_BYTES: usize = 40;

/// The tool.
pub struct Find;

static DECLARATION: Declaration = Declaration {
    name: "ocx_find",
    title: "Find text",
    summary: "Find the lines that hold `text`, matched exactly, case and all: path, line number and text of each, at \
              most 50, and how many there are. `path` narrows it to a file or folder.",
    needs: Capability::Read,
    acts: Acts::LooksAtCheckout,
    writes: false,
    hints: Hints::LOOKS,
    fields: &[
        Field::text("text", 10_000)
            .required()
            .positional()
            .doc("the text to find, character for character; no pattern"),
        Field::path().positional().doc("a file or folder to search, from the checkout's top"),
    ],
    result: schema_of::<FindResult>,
};

/// The lines that were found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct FindResult {
    shown: usize,
    of: usize,
    matches: Vec<Match>,
    /// There is more than was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_at_least: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_searched: Option<NotSearched>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Match {
    path: String,
    line: usize,
    text: String,
    /// The bytes of the whole line, where it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_bytes: Option<usize>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct NotSearched {
    files: usize,
    first: String,
    why: &'static str,
}

impl ToolResult for FindResult {
    fn readable(&self) -> Option<Readable> {
        let line = |m: &Match| format!("{}:{}:{}\n", m.path, m.line, m.text.trim_end_matches(['\r', '\n']));
        Some(Readable {
            text: self.matches.iter().map(line).collect(),
            part: (self.shown != self.of).then(|| format!("{} of {} lines shown", self.shown, self.of)),
            next_from: None,
            note: self.note.map(str::to_owned),
        })
    }
}

impl Tool for Find {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let wanted = input.required("text")?;
        let under = input.text("path").map(|_| under(call, input)).transpose()?;
        let found =
            call.find(wanted.as_bytes(), under.as_ref(), LINES_MAX).map_err(|e| not_there(call, input, e))?;
        let matches = shown(&found.hits);
        let note = if found.total == 0 {
            Some(NOTHING)
        } else {
            (matches.len() < found.total).then_some("Give `path`, or a longer `text`, to see the others.")
        };
        let result = FindResult {
            shown: matches.len(),
            of: found.total,
            matches,
            of_at_least: found.more.then_some(true),
            note,
            not_searched: found.skipped.first().map(|first| NotSearched {
                files: found.skipped.len(),
                first: first.path.shown(),
                why: first.why,
            }),
        };
        Ok(Plan::looked(vec![Operation::reads("find_text")], result))
    }
}

/// The file or folder to search. For the checkout's top, which others call `.` or `/`, the path is left out.
fn under(call: &Call<'_>, input: &Input) -> Result<TreePath, Refusal> {
    let top = input.required("path")?.trim_matches(['.', '/']).is_empty();
    call.path(input, true, |text| TreePath::parse_stored(text.trim_end_matches('/')))
        .map_err(|stop| stop.or_next(top.then(|| call.again(input.without("path")))))
}

/// Where the path is not there, the next call looks everywhere.
fn not_there(call: &Call<'_>, input: &Input, error: Error) -> Refusal {
    let everywhere = (error.kind() == Kind::NotFound).then(|| call.again(input.without("path")));
    Refusal::from(error).or_next(everywhere)
}

const NOTHING: &str =
    "Nothing holds this text. It is matched exactly, case and all: try a shorter part of it.";

/// The matches as the answer gives them, as many as fit.
fn shown(hits: &[Hit]) -> Vec<Match> {
    let mut bytes = 0;
    let mut shown = Vec::new();
    for hit in hits {
        let path = hit.path.shown();
        bytes += json_bytes(&path) + json_bytes(&hit.text) + FRAME_BYTES;
        if bytes > BYTES_MAX && !shown.is_empty() {
            break;
        }
        shown.push(Match {
            path,
            line: hit.line,
            text: hit.text.clone(),
            line_bytes: (hit.text.len() < hit.length).then_some(hit.length),
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_lines_are_shown_as_path_line_and_text() {
        let found = Match { path: "a.c".into(), line: 3, text: "int x;".into(), line_bytes: None };
        let result = FindResult {
            shown: 1,
            of: 4,
            matches: vec![found],
            of_at_least: None,
            note: None,
            not_searched: None,
        };
        let readable = result.readable().expect("text");
        assert_eq!(readable.text, "a.c:3:int x;\n");
        assert_eq!(readable.part.as_deref(), Some("1 of 4 lines shown"));
    }
}
