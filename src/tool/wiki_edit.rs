//! `ocx_wiki_edit`: one exact passage of a wiki page replaced, or text added at its end; then to the server. It neither
//! deletes nor renames.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{NextCall, Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::deliver::{Delivery, Written, deliver};
use super::input::Input;
use super::interface::Tool;
use super::plan::{Permit, Plan};
use super::replacement::{self, ChangedLines};
use super::result::{ToolResult, schema_of};
use super::wiki_read::{PAGE, as_text, not_there};
use crate::error::{Error, Kind, Result};
use crate::format::Markup;
use crate::name::{Hash, PageName};
use crate::record::{Wiki, WikiContent, WikiText, WikiVersion};
use crate::sync::SyncOptions;
use crate::text::replace_once;

/// The tool.
pub struct WikiEdit;

static DECLARATION: Declaration = Declaration {
    name: "ocx_wiki_edit",
    title: "Edit a wiki page",
    summary: "Replace `old`, which must stand on the page exactly once, by `new`, and push. Copy `old` from \
              ocx_wiki_read. Empty `old`: add `new` at the end, making the page (Markdown) if there is none.",
    needs: Capability::WikiEdit,
    acts: Acts::OnRecords,
    writes: true,
    hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: true },
    fields: &[
        PAGE.required().doc("the page's name"),
        replacement::OLD,
        replacement::NEW,
        Field::hash("version")
            .doc("ocx_wiki_read's `version`: refuses the edit if the page has moved on since"),
    ],
    result: schema_of::<WikiEditResult>,
};

/// The page as it is now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct WikiEditResult {
    page: String,
    #[serde(flatten)]
    written: Option<WrittenVersion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    #[serde(flatten)]
    edit: Option<WikiChange>,
    #[serde(flatten)]
    delivery: Option<Delivery>,
}

/// The version that was written.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct WrittenVersion {
    version: Hash,
    user: String,
    time: String,
}

/// What an edit changes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct WikiChange {
    created: bool,
    previous: Option<Hash>,
    mimetype: String,
    #[serde(flatten)]
    lines: ChangedLines,
}

impl ToolResult for WikiEditResult {}

impl WikiEditResult {
    fn of(page: &PageName) -> Self {
        Self { page: page.to_string(), written: None, note: None, edit: None, delivery: None }
    }
}

impl WrittenVersion {
    fn of(version: &WikiVersion) -> Self {
        Self { version: version.hash, user: version.user.clone(), time: version.time.clone() }
    }
}

impl Tool for WikiEdit {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn judge(&self, input: &Input) -> Result<()> {
        replacement::judge(input)
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let (old, new) = (input.required("old")?, input.required("new")?);
        let page = PageName::parse(input.required("page")?)?;
        let seen = input.text("version").map(Hash::parse).transpose()?;
        let wiki = Wiki::of(call.repository());
        let before = match wiki.read(&page, None) {
            Ok(before) => Some(before),
            Err(e) if e.kind() == Kind::NotFound && old.is_empty() => None,
            Err(e) => return Err(not_there(&wiki, &page, e)),
        };
        match before {
            Some(_) => call.require("k", "an edit of a wiki page")?,
            None => call.require("f", "a new wiki page")?,
        }
        let remote = call.has_remote()?;
        let push = remote.then(|| Operation::changes("push"));
        let again = input.again();
        if let Some(made) = &before
            && remote
            && is_this_edit(call, &wiki, &page, made, (old, new), seen.as_ref())?
        {
            let preview = WikiEditResult {
                written: Some(WrittenVersion::of(&made.version)),
                note: Some(
                    "The edit was made before and not sent; it is sent now, and the page is not changed again.",
                ),
                ..WikiEditResult::of(&page)
            };
            let mut log = vec![Operation::reads("read_wiki_page")];
            log.extend(push);
            let hash = made.version.hash;
            return Ok(Plan::change(log, preview.clone(), move |permit| {
                send(call, permit, preview, hash, &page, &again)
            }));
        }
        unmoved(&page, before.as_ref(), seen.as_ref())?;
        let edit = Edit::of(page, before.as_ref(), input)?;
        let mut log = vec![Operation::reads("read_wiki_page"), Operation::changes(edit.op())];
        log.extend(push);
        Ok(Plan::change(log, edit.preview.clone(), move |permit| edit.perform(call, &wiki, permit, &again)))
    }
}

/// An edit that may be made.
struct Edit {
    page: PageName,
    previous: Option<Hash>,
    markup: Markup,
    text: String,
    preview: WikiEditResult,
}

impl Edit {
    fn of(page: PageName, before: Option<&WikiContent>, input: &Input) -> Result<Self, Refusal> {
        let content = before.map(|b| b.text.as_slice()).unwrap_or_default();
        as_text(&page, content)?;
        let read = NextCall::new("ocx_wiki_read", json!({"page": page.as_str()}));
        let replaced = replacement::replaced(page.as_str(), content, (DECLARATION.name, input), read)?;
        let text = as_text(&page, &replaced.content)?.to_owned();
        Wiki::check_text(&page, &text)?;
        let markup = before.map_or(Ok(Markup::Markdown), |b| Markup::parse(&b.mimetype))?;
        let previous = before.map(|b| b.version.hash);
        let change = WikiChange {
            created: previous.is_none(),
            previous,
            mimetype: markup.as_str().to_owned(),
            lines: replacement::shown(&text, &replaced, &replacement::notes(&replaced, "page"))?,
        };
        let preview = WikiEditResult { edit: Some(change), ..WikiEditResult::of(&page) };
        Ok(Self { page, previous, markup, text, preview })
    }

    fn op(&self) -> &'static str {
        if self.previous.is_some() { "write_wiki_page" } else { "create_wiki_page" }
    }

    fn perform(
        &self,
        call: &Call<'_>,
        wiki: &Wiki,
        permit: &Permit<'_>,
        again: &Value,
    ) -> Result<WikiEditResult, Refusal> {
        let text = WikiText { text: &self.text, markup: self.markup, previous: self.previous };
        let made = wiki.write(&self.page, &text, call.user()).map_err(|e| moved(e, &self.page))?;
        permit.did(self.op());
        permit.end_turn();
        let result = WikiEditResult { written: Some(WrittenVersion::of(&made)), ..self.preview.clone() };
        if made.pending {
            return Ok(WikiEditResult { delivery: Some(Delivery::held_back()), ..result });
        }
        send(call, permit, result, made.hash, &self.page, again)
    }
}

fn send(
    call: &Call<'_>,
    permit: &Permit<'_>,
    result: WikiEditResult,
    hash: Hash,
    page: &PageName,
    again: &Value,
) -> Result<WikiEditResult, Refusal> {
    permit.end_turn();
    let written = Written {
        noun: "wiki page",
        done: "written",
        name: format!("`{page}`"),
        artifact: Some(hash),
        tool: DECLARATION.name,
        again,
    };
    deliver(call, permit, &written, &SyncOptions::push(), |delivery| WikiEditResult {
        delivery: Some(delivery),
        ..result
    })
}

/// Whether the newest version is what this very edit made, by this user, and no server has it yet.
fn is_this_edit(
    call: &Call<'_>,
    wiki: &Wiki,
    page: &PageName,
    made: &WikiContent,
    (old, new): (&str, &str),
    seen: Option<&Hash>,
) -> Result<bool> {
    let version = &made.version;
    let is_own = version.user == call.user().as_str() && call.store().is_unsent(&version.hash)?;
    if !is_own || seen.is_some_and(|seen| version.previous.as_ref() != Some(seen)) {
        return Ok(false);
    }
    let before = match &version.previous {
        Some(previous) => wiki.read(page, Some(previous))?.text,
        None => Vec::new(),
    };
    Ok(replace_once(&before, old.as_bytes(), new.as_bytes()).is_ok_and(|done| done.content == made.text))
}

/// Refuses when the caller has seen another version than there is.
fn unmoved(page: &PageName, before: Option<&WikiContent>, seen: Option<&Hash>) -> Result<(), Refusal> {
    let Some(seen) = seen else { return Ok(()) };
    let now = before.map(|b| &b.version);
    let what = match now {
        Some(now) if now.hash == *seen => return Ok(()),
        Some(now) => format!("the wiki page `{page}` has moved on to `{}` by {}", now.hash.short(), now.user),
        None => format!("there is no wiki page `{page}` now, so nothing of it has version {}", seen.short()),
    };
    let error = Error::new(Kind::Changed, what);
    Err(if now.is_some() {
        moved(error, page)
    } else {
        error.with_hint("Leave `version` out to make the page anew.").into()
    })
}

/// The refusal of an edit of what has changed, with the read that helps.
fn moved(error: Error, page: &PageName) -> Refusal {
    if !matches!(error.kind(), Kind::Changed | Kind::Exists) {
        return error.into();
    }
    Refusal::from(error.with_hint("Read the page again, then edit what it holds now."))
        .next("ocx_wiki_read", json!({"page": page.as_str()}))
}
