//! `ocx_queue`: what waits on the caller: check-ins of others without its verdict, and posts in its threads since its last.

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::changes::{self, FileCounts};
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::input::Input;
use super::interface::Tool;
use super::page::rendered_bytes;
use super::plan::Plan;
use super::result::{ToolResult, schema_of};
use crate::error::Result;
use crate::name::Hash;
use crate::record::{Audits, Forum};
use crate::testing::DECLARED_FILE;
use crate::text;

/// The most check-ins, and posts, of one answer.
const ENTRIES_MAX: usize = 10;

/// The most files named of one check-in.
const FILES_MAX: usize = 8;

/// The most bytes of JSON that check-ins, and posts, take, so that the whole stays near 10 KB.
const CHECK_INS_BYTES_MAX: usize = 6_500;
const POSTS_BYTES_MAX: usize = 2_500;

/// The tool.
pub struct Queue;

static DECLARATION: Declaration = Declaration {
    name: "ocx_queue",
    title: "What waits on you",
    summary: "What waits on you: others' check-ins without your verdict, newest first, at most 10 (judge one with \
              ocx_audit), and posts in your threads since your last (answer with ocx_post).",
    needs: Capability::Read,
    acts: Acts::OnRecords,
    writes: false,
    hints: Hints::LOOKS,
    fields: &[Field::place("from").doc("the number of the first check-in of the list to give")],
    result: schema_of::<QueueResult>,
};

/// What waits on the caller.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct QueueResult {
    check_ins: WaitingCheckIns,
    posts: WaitingPosts,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct WaitingCheckIns {
    shown: usize,
    of: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<usize>,
    first: Vec<WaitingCheckIn>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct WaitingCheckIn {
    checkin: Hash,
    title: String,
    branch: String,
    author: String,
    time: String,
    files: Vec<FileCounts>,
    files_of: usize,
    tests_changed: bool,
    /// Its page on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum WaitingPosts {
    Blocked { shown: usize, blocker: String },
    Listed { shown: usize, of: usize, first: Vec<WaitingPost> },
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct WaitingPost {
    post: Hash,
    thread: Hash,
    author: String,
    time: String,
    text: String,
    /// The bytes of the whole text, where it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
}

impl ToolResult for QueueResult {}

impl Tool for Queue {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let from = input.place("from");
        let waiting = Audits::of(call.repository()).waiting(call.user())?;
        let rest = waiting.iter().skip(from - 1).take(ENTRIES_MAX);
        let shown = within(rest.map(|hash| check_in(call, hash)), CHECK_INS_BYTES_MAX)?;
        let check_ins = WaitingCheckIns {
            shown: shown.len(),
            of: waiting.len(),
            next_from: (from - 1 + shown.len() < waiting.len()).then_some(from + shown.len()),
            first: shown,
        };
        let result = QueueResult { check_ins, posts: posts(call)? };
        Ok(Plan::looked(vec![Operation::reads("read_queue")], result))
    }
}

/// As many entries as fit; always the first.
fn within<T: Serialize>(entries: impl Iterator<Item = Result<T>>, bytes_max: usize) -> Result<Vec<T>> {
    let (mut shown, mut bytes) = (Vec::new(), 0);
    for entry in entries {
        let entry = entry?;
        bytes += rendered_bytes(&entry);
        if bytes > bytes_max && !shown.is_empty() {
            break;
        }
        shown.push(entry);
    }
    Ok(shown)
}

fn check_in(call: &Call<'_>, hash: &Hash) -> Result<WaitingCheckIn> {
    let info = call.store().check_in(hash)?;
    let (files, of, tests_changed) = changes::counts(call.store(), hash, FILES_MAX, DECLARED_FILE)?;
    Ok(WaitingCheckIn {
        checkin: *hash,
        title: text::cut(info.comment.lines().next().unwrap_or_default(), 200).to_owned(),
        branch: info.branch,
        author: info.user,
        time: info.time,
        files,
        files_of: of,
        tests_changed,
        link: call.link(hash)?,
    })
}

/// The posts that the caller may see.
fn posts(call: &Call<'_>) -> Result<WaitingPosts> {
    if !call.may("2")? {
        let why = format!("`{}` lacks capability `2`, without which no post can be read", call.user());
        return Ok(WaitingPosts::Blocked { shown: 0, blocker: why });
    }
    let moderates = call.may("5")?;
    let mut news = Forum::of(call.repository()).since_own(call.user())?;
    news.retain(|post| !post.deleted && (!post.pending || moderates));
    let entries = news.iter().take(ENTRIES_MAX).map(|post| {
        let shown = text::cut(&post.text, 500);
        Ok(WaitingPost {
            post: post.hash,
            thread: post.thread,
            author: post.editor.as_ref().unwrap_or(&post.author).clone(),
            time: post.edited.as_ref().unwrap_or(&post.time).clone(),
            text: shown.to_owned(),
            bytes: (shown.len() < post.text.len()).then_some(post.text.len()),
        })
    });
    let first = within(entries, POSTS_BYTES_MAX)?;
    Ok(WaitingPosts::Listed { shown: first.len(), of: news.len(), first })
}
