//! `ocx_post`: a reply to a forum post, in its thread; then to the server.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::deliver::{Delivery, Written, deliver};
use super::input::Input;
use super::interface::Tool;
use super::plan::{Permit, Plan};
use super::result::{ToolResult, schema_of};
use crate::error::{Error, Kind, Result};
use crate::format::Markup;
use crate::name::Hash;
use crate::record::{Forum, Post as ForumPost};
use crate::sync::SyncOptions;

/// The tool.
pub struct Post;

static DECLARATION: Declaration = Declaration {
    name: "ocx_post",
    title: "Reply in the forum",
    summary: "Reply to the forum post `to` with `text` (Markdown), in its thread, and push. The same reply is made once: \
              after a failed push the same call only sends it.",
    needs: Capability::Post,
    acts: Acts::OnRecords,
    writes: true,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
    fields: &[
        Field::hash("to")
            .required()
            .positional()
            .doc("the full hash of the post that is answered, all 40 or 64 hex digits"),
        Field::text("text", 64 << 10).required().doc("what the reply says"),
    ],
    result: schema_of::<PostResult>,
};

/// The reply.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct PostResult {
    /// Its hash, once it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    post: Option<Hash>,
    thread: Hash,
    reply_to: Option<Hash>,
    user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(flatten)]
    delivery: Option<Delivery>,
}

impl ToolResult for PostResult {}

impl PostResult {
    fn made(post: &ForumPost) -> Self {
        Self {
            post: Some(post.hash),
            thread: post.thread,
            reply_to: post.reply_to,
            user: post.author.clone(),
            time: Some(post.time.clone()),
            delivery: None,
        }
    }
}

impl Tool for Post {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let (to, text) = (input.required("to")?, input.required("text")?);
        let forum = Forum::of(call.repository());
        let answered = forum.post(&full(call, input, to)?).map_err(missing)?;
        forum.check_reply(&answered, text, call.user())?;
        let remote = call.has_remote()?;
        let made = made_before(call, &forum, &answered, text)?;
        if let Some(made) = &made
            && !(remote && call.store().is_unsent(&made.hash)?)
        {
            let what = format!("`{}` has this very reply by {} already", answered.first.short(), made.author);
            return Err(Refusal::from(
                Error::new(Kind::Unchanged, what)
                    .with_hint("Nothing was posted; say something new, or go on."),
            )
            .reached(PostResult::made(made)));
        }
        let mut log = vec![Operation::reads("read_post")];
        log.extend(made.is_none().then(|| Operation::changes("post")));
        log.extend(remote.then(|| Operation::changes("push")));
        let preview = made.as_ref().map_or_else(
            || PostResult {
                post: None,
                thread: answered.thread,
                reply_to: Some(answered.first),
                user: call.user().to_string(),
                time: None,
                delivery: None,
            },
            PostResult::made,
        );
        Ok(Plan::change(log, preview, move |permit| {
            perform(call, permit, made, &answered, text, &input.again(), &forum)
        }))
    }
}

fn perform(
    call: &Call<'_>,
    permit: &Permit<'_>,
    made: Option<ForumPost>,
    answered: &ForumPost,
    text: &str,
    again: &Value,
    forum: &Forum,
) -> Result<PostResult, Refusal> {
    let post = if let Some(made) = made {
        made
    } else {
        let made = forum.reply(&answered.hash, text, Markup::Markdown, call.user())?;
        permit.did("post");
        made
    };
    permit.end_turn();
    let result = PostResult::made(&post);
    if post.pending {
        return Ok(PostResult { delivery: Some(Delivery::held_back()), ..result });
    }
    let written = Written {
        noun: "post",
        done: "made",
        name: post.hash.short().to_owned(),
        artifact: Some(post.hash),
        tool: DECLARATION.name,
        again,
    };
    deliver(call, permit, &written, &SyncOptions::push(), |delivery| PostResult {
        delivery: Some(delivery),
        ..result
    })
}

/// The caller's reply of exactly this text, where it was made before.
fn made_before(
    call: &Call<'_>,
    forum: &Forum,
    answered: &ForumPost,
    text: &str,
) -> Result<Option<ForumPost>> {
    let is_it = |post: &ForumPost| {
        post.author == call.user().as_str() && post.reply_to == Some(answered.first) && post.text == text
    };
    Ok(forum.thread(&answered.thread)?.into_iter().find(is_it))
}

/// The post that a full hash names; of a short one, the same call with the full one is the next.
fn full(call: &Call<'_>, input: &Input, text: &str) -> Result<Hash, Refusal> {
    Hash::parse(text).map_err(|e| {
        let error = Error::new(Kind::Invalid, format!("field `to`: {e}"))
            .with_hint("Give the full hash of the post, all 40 or 64 lower-case hex digits.");
        let meant = call.store().resolve_artifact(text).ok();
        Refusal::from(error).or_next(meant.map(|hash| call.again(input.with("to", hash.as_str()))))
    })
}

fn missing(error: Error) -> Refusal {
    if error.kind() != Kind::NotFound {
        return error.into();
    }
    let hint = "Take a post's full hash from ocx_queue, or as it was given to you; a post that another clone made is here \
                after ocx pull.";
    Refusal::from(error.with_hint(hint)).next("ocx_queue", json!({}))
}
