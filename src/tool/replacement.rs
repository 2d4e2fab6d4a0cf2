//! The replacement that `ocx_edit` makes in a file and `ocx_wiki_edit` in a page: the same rules, words and answer.

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{NextCall, Refusal};
use super::declare::Field;
use super::input::Input;
use super::page::{LINES_MAX, Page};
use crate::error::{Error, Kind, Result};
use crate::text::{Replaced, as_text, repair, replace_once};

/// The most bytes of `old`, and of `new`.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The text to replace.
pub(super) const OLD: Field = Field::text("old", TEXT_BYTES_MAX)
    .may_be_empty()
    .required()
    .doc("the exact text to replace, white space and all, without line numbers; empty adds at the end");

/// The text that takes its place.
pub(super) const NEW: Field =
    Field::text("new", TEXT_BYTES_MAX).may_be_empty().required().doc("the text to stand there instead");

/// Refuses a replacement that changes nothing.
pub(super) fn judge(input: &Input) -> Result<()> {
    if input.required("old")? != input.required("new")? {
        return Ok(());
    }
    Err(Error::new(Kind::Unchanged, "`old` and `new` are the same")
        .with_hint("Give in `new` what is to differ."))
}

/// Replaces the one place where the input's `old` stands in the text `name`. The refusal of a miss has the corrected call
/// if one is found, else `read`, which reads the text.
pub(super) fn replaced(
    name: &str,
    content: &[u8],
    (tool, input): (&'static str, &Input),
    read: NextCall,
) -> Result<Replaced, Refusal> {
    let (old, new) = (input.required("old")?, input.required("new")?);
    replace_once(content, old.as_bytes(), new.as_bytes()).map_err(|miss| {
        let meant =
            as_text(content).filter(|_| miss.matches.is_empty()).and_then(|text| repair(text, old, new));
        if let Some(meant) = meant {
            let mut arguments = input.with("old", meant.old);
            arguments["new"] = meant.new.into();
            return Refusal::from(miss.into_error(name).with_hint(PUT_RIGHT)).next(tool, arguments);
        }
        let line = miss.nearest.as_ref().map(|n| n.line).or(miss.matches.first().copied()).unwrap_or(1);
        let mut arguments = read.arguments;
        arguments["from"] = line.saturating_sub(5).max(1).into();
        Refusal::from(miss.into_error(name)).next(read.tool, arguments)
    })
}

const PUT_RIGHT: &str = "Read the lines again and copy `old` exactly. The call in next_call has `old` as it stands there, and `new` \
                         to match: make it if that is meant.";

/// Notes on what was done that the caller did not spell out. `whole` is what the text is called.
pub(super) fn notes(replaced: &Replaced, whole: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if replaced.followed_crlf {
        notes.push(format!("Line ends were written as CR LF, as in the rest of the {whole}."));
    }
    if replaced.added_line_end {
        notes.push("The last line had no line end; one was added before the new text.".into());
    }
    notes
}

/// The changed lines within a result, as the reading tool gives them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct ChangedLines {
    lines_changed: usize,
    first_line: usize,
    last_line: usize,
    lines: usize,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The changed lines with the notes. `text` is the whole new text.
pub(super) fn shown(text: &str, replaced: &Replaced, notes: &[String]) -> Result<ChangedLines> {
    let page = Page::of(text, replaced.first_line.max(1), replaced.lines_changed.min(LINES_MAX))?;
    let page = page.shown();
    Ok(ChangedLines {
        lines_changed: replaced.lines_changed,
        first_line: page.first_line,
        last_line: page.last_line,
        lines: page.lines,
        text: page.text,
        note: if notes.is_empty() { page.note } else { Some(notes.join(" ")) },
    })
}
