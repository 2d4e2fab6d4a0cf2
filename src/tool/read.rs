//! `ocx_read`: lines of a file, exactly as they are; as of a check-in too, and a check-in's own changes.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::files::FolderResult;
use super::files::{FILE_BYTES_MAX, as_text, not_there};
use super::input::Input;
use super::interface::Tool;
use super::page::{self, Page, ShownPage};
use super::plan::Plan;
use super::result::{Readable, ToolResult, schema_of_either};
use super::suggest;
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TreePath};
use crate::record::Tags;
use crate::text;

/// The tool.
pub struct Read;

static DECLARATION: Declaration = Declaration {
    name: "ocx_read",
    title: "Read a file",
    summary: "Read up to 200 lines of a file, exactly as they are. Copy `old` for ocx_edit from `text`. With `checkin`: \
              the file as of that check-in; without `path`, what it changed.",
    needs: Capability::Read,
    acts: Acts::OnRecords,
    writes: false,
    hints: Hints::LOOKS,
    fields: &[
        Field::path()
            .positional()
            .doc("the file, from the checkout's top, with /; required unless `checkin` is given"),
        Field::place("from").doc("the number of the first line to give"),
        Field::text("checkin", 200)
            .doc("a check-in's hash, or a branch or tag for its newest: read there, not in the checkout"),
    ],
    result: schema_of_either::<ReadResult, FolderResult>,
};

/// What was read.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum ReadResult {
    File(FileLines),
    CheckIn(CheckInChanges),
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct FileLines {
    path: String,
    /// The check-in that the file is of, where it is not the checkout's.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkin: Option<Hash>,
    file_hash: Hash,
    #[serde(flatten)]
    page: ShownPage,
}

/// A check-in with its changes as a diff.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct CheckInChanges {
    checkin: Hash,
    parent: Option<Hash>,
    branch: String,
    user: String,
    time: String,
    comment: String,
    #[serde(flatten)]
    page: ShownPage,
}

impl ToolResult for ReadResult {
    fn readable(&self) -> Option<Readable> {
        let (Self::File(FileLines { page, .. }) | Self::CheckIn(CheckInChanges { page, .. })) = self;
        Some(page.readable())
    }
}

impl Tool for Read {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    /// A file as of a check-in needs no checkout.
    fn acts(&self, input: &Input) -> Acts {
        let in_checkout = input.text("path").is_some() && input.text("checkin").is_none();
        if in_checkout { Acts::LooksAtCheckout } else { DECLARATION.acts }
    }

    fn judge(&self, input: &Input) -> Result<()> {
        if input.text("path").or(input.text("checkin")).is_none() {
            return Err(Error::new(Kind::Invalid, "field `path` is missing (the file to read)")
                .with_hint("Give `path`, or `checkin`. ocx_find looks for text in all files."));
        }
        Ok(())
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let from = input.place("from");
        match (input.text("path"), input.text("checkin")) {
            (Some(_), Some(checkin)) => in_checkin(call, input, checkin, from),
            (None, Some(checkin)) => changes(call, input, checkin, from),
            (_, None) => in_checkout(call, input, from),
        }
    }
}

fn in_checkout<'a>(call: &Call<'_>, input: &Input, from: usize) -> Result<Plan<'a>, Refusal> {
    let path = call.path(input, false, TreePath::parse_stored)?;
    let (content, hash) = call.read_file(&path, &|meant| call.again(input.with("path", meant.as_str())))?;
    let page = page_of(&path, &content, from, &json!({"path": path.as_str()}))?.shown();
    let read = FileLines { path: path.to_string(), checkin: None, file_hash: hash, page };
    Ok(Plan::looked(vec![Operation::reads("read_file")], ReadResult::File(read)))
}

fn in_checkin<'a>(call: &Call<'_>, input: &Input, checkin: &str, from: usize) -> Result<Plan<'a>, Refusal> {
    let path = call.path(input, false, TreePath::parse_stored)?;
    let store = call.store();
    let hash = resolved(call, input, checkin)?;
    let files = store.files(&hash)?;
    let Some(file) = files.get(&path) else {
        let what = format!("check-in {} holds no file `{}`", hash.short(), path.shown());
        let offer = |meant: &TreePath| call.again(input.with("path", meant.as_str()));
        return Err(not_there(Error::new(Kind::NotFound, what), &path, &files.keys(), &offer));
    };
    let content = store.content_within(&file.hash, usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX))?;
    let page = page_of(&path, &content, from, &json!({"path": path.as_str(), "checkin": checkin}))?.shown();
    let read = FileLines { path: path.to_string(), checkin: Some(hash), file_hash: file.hash, page };
    Ok(Plan::looked(vec![Operation::reads("read_check_in")], ReadResult::File(read)))
}

/// The check-in of that name; one that is not there comes with the same call of the nearest branch or tag.
fn resolved(call: &Call<'_>, input: &Input, checkin: &str) -> Result<Hash, Refusal> {
    call.store().resolve(checkin).map_err(|error| {
        let tags = Tags::of(call.repository());
        let branches = tags.branches().unwrap_or_default();
        let branches = branches.iter().map(|branch| branch.name.as_str());
        let names = tags.names().unwrap_or_default();
        let meant = suggest::nearest(checkin, branches.chain(names.iter().map(String::as_str)));
        let meant = meant.filter(|_| error.kind() == Kind::NotFound);
        Refusal::from(error).or_next(meant.map(|name| call.again(input.with("checkin", name))))
    })
}

fn changes<'a>(call: &Call<'_>, input: &Input, checkin: &str, from: usize) -> Result<Plan<'a>, Refusal> {
    let store = call.store();
    let hash = resolved(call, input, checkin)?;
    let info = store.check_in(&hash)?;
    let diff = super::changes::of(store, &hash)?;
    let page = paged(&diff, from, &json!({"checkin": checkin}))?.shown();
    let read = CheckInChanges {
        checkin: hash,
        parent: info.parents.first().copied(),
        comment: text::cut(&info.comment, 2_000).to_owned(),
        branch: info.branch,
        user: info.user,
        time: info.time,
        page,
    };
    Ok(Plan::looked(vec![Operation::reads("read_check_in")], ReadResult::CheckIn(read)))
}

/// The page of a file that is text; `again` is the input that reads the same file.
fn page_of(path: &TreePath, content: &[u8], from: usize, again: &Value) -> Result<Page, Refusal> {
    paged(as_text(path, content)?, from, again)
}

fn paged(content: &str, from: usize, again: &Value) -> Result<Page, Refusal> {
    Page::of(content, from, page::LINES_MAX).map_err(|e| {
        let mut last = again.clone();
        last["from"] = Page::last_from(text::count_lines(content.as_bytes())).into();
        Refusal::from(e).next(DECLARATION.name, last)
    })
}
