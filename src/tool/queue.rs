//! `ocx_queue`: what waits on the caller: check-ins of others without its verdict, and posts in its threads since its last.

use serde_json::{Map, Value, json};

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::changes;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::input::Input;
use super::interface::Tool;
use super::plan::Plan;
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
};

impl Tool for Queue {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let from = input.place("from");
        let waiting = Audits::of(call.repository()).waiting(call.user())?;
        let rest = waiting.iter().skip(from - 1).take(ENTRIES_MAX);
        let shown = within(rest.map(|hash| check_in(call, hash)), CHECK_INS_BYTES_MAX)?;
        let mut list = Map::new();
        list.insert("shown".into(), shown.len().into());
        list.insert("of".into(), waiting.len().into());
        if from - 1 + shown.len() < waiting.len() {
            list.insert("next_from".into(), (from + shown.len()).into());
        }
        list.insert("first".into(), shown.into());
        let result = json!({"check_ins": list, "posts": posts(call)?});
        Ok(Plan::looked(vec![Operation::reads("read_queue")], result))
    }
}

/// As many entries as fit; always the first.
fn within(entries: impl Iterator<Item = Result<Value>>, bytes_max: usize) -> Result<Vec<Value>> {
    let (mut shown, mut bytes) = (Vec::new(), 0);
    for entry in entries {
        let entry = entry?;
        bytes += entry.to_string().len();
        if bytes > bytes_max && !shown.is_empty() {
            break;
        }
        shown.push(entry);
    }
    Ok(shown)
}

fn check_in(call: &Call<'_>, hash: &Hash) -> Result<Value> {
    let info = call.store().check_in(hash)?;
    let (files, of, tests_changed) = changes::counts(call.store(), hash, FILES_MAX, DECLARED_FILE)?;
    let mut told = json!({
        "checkin": hash,
        "title": text::cut(info.comment.lines().next().unwrap_or_default(), 200),
        "branch": info.branch,
        "author": info.user,
        "time": info.time,
        "files": files,
        "files_of": of,
        "tests_changed": tests_changed,
    });
    if let Some(link) = call.link(hash)? {
        told["link"] = link.into();
    }
    Ok(told)
}

/// The posts that the caller may see.
fn posts(call: &Call<'_>) -> Result<Value> {
    if !call.may("2")? {
        let why = format!("`{}` lacks capability `2`, without which no post can be read", call.user());
        return Ok(json!({"shown": 0, "blocker": why}));
    }
    let moderates = call.may("5")?;
    let mut news = Forum::of(call.repository()).since_own(call.user())?;
    news.retain(|post| !post.deleted && (!post.pending || moderates));
    let told = news.iter().take(ENTRIES_MAX).map(|post| {
        let shown = text::cut(&post.text, 500);
        let mut told = json!({
            "post": post.hash, "thread": post.thread, "author": post.editor.as_ref().unwrap_or(&post.author),
            "time": post.edited.as_ref().unwrap_or(&post.time), "text": shown,
        });
        if shown.len() < post.text.len() {
            told["bytes"] = post.text.len().into();
        }
        Ok(told)
    });
    let shown = within(told, POSTS_BYTES_MAX)?;
    Ok(json!({"shown": shown.len(), "of": news.len(), "first": shown}))
}
