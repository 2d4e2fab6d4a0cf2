//! `ocx_wiki_read`: the pages of the wiki, and the lines of one, exactly as they are.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::input::Input;
use super::interface::Tool;
use super::page::{LINES_MAX, Page, ShownPage, counted};
use super::plan::Plan;
use super::result::{ToolResult, schema_of};
use super::suggest;
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, PageName};
use crate::record::{Wiki, WikiVersion};
use crate::text;

/// How many pages a list shows.
const PAGES_MAX: usize = 100;

/// The name of a page.
pub(super) const PAGE: Field = Field::text("page", 100).positional();

/// The tool.
pub struct WikiRead;

static DECLARATION: Declaration = Declaration {
    name: "ocx_wiki_read",
    title: "Read the wiki",
    summary: "Read up to 200 lines of a wiki page, exactly as they are; with `version`, as it was then. Without `page`: \
              the names of all pages.",
    needs: Capability::WikiRead,
    acts: Acts::OnRecords,
    writes: false,
    hints: Hints::LOOKS,
    fields: &[
        PAGE.doc("the page's name; leave it out for the list of pages"),
        Field::place("from").doc("the number of the first line, or page of the list, to give"),
        Field::hash("version")
            .doc("the full hash of a version of the page, as `versions` lists them: the text of then"),
    ],
    result: schema_of::<WikiReadResult>,
};

/// The list of pages, or a page.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum WikiReadResult {
    Pages(WikiPages),
    Page(Box<WikiLines>),
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct WikiPages {
    shown: usize,
    of: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<usize>,
    pages: Vec<ListedPage>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ListedPage {
    page: String,
    version: Hash,
    user: String,
    time: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct WikiLines {
    page: String,
    version: Hash,
    user: String,
    time: String,
    /// It waits for a moderator's approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<bool>,
    mimetype: String,
    versions: Versions,
    #[serde(flatten)]
    lines: ShownPage,
}

/// The newest versions of a page, and how many it has.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Versions {
    of: usize,
    newest: Vec<Hash>,
}

impl ToolResult for WikiReadResult {}

impl Tool for WikiRead {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn judge(&self, input: &Input) -> Result<()> {
        if input.text("version").is_some() && input.text("page").is_none() {
            let what = "field `page` is missing: `version` is a version of it";
            return Err(Error::new(Kind::Invalid, what).with_hint("Give `page` too."));
        }
        Ok(())
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let wiki = Wiki::of(call.repository());
        let from = input.place("from");
        let (op, result) = match (input.text("page"), input.text("version")) {
            (Some(page), version) => ("read_wiki_page", page_of(&wiki, page, version, from)?),
            (None, _) => ("list_wiki_pages", pages(&wiki, from)?),
        };
        Ok(Plan::looked(vec![Operation::reads(op)], result))
    }
}

fn pages(wiki: &Wiki, from: usize) -> Result<WikiReadResult> {
    let all = wiki.list()?;
    let listed = all.iter().skip(from - 1).take(PAGES_MAX).map(|page| ListedPage {
        page: page.name.clone(),
        version: page.version.hash,
        user: page.version.user.clone(),
        time: page.version.time.clone(),
    });
    let pages: Vec<_> = listed.collect();
    Ok(WikiReadResult::Pages(WikiPages {
        shown: pages.len(),
        of: all.len(),
        next_from: (from - 1 + pages.len() < all.len()).then_some(from + pages.len()),
        pages,
    }))
}

fn page_of(wiki: &Wiki, page: &str, version: Option<&str>, from: usize) -> Result<WikiReadResult, Refusal> {
    let name = PageName::parse(page)?;
    let hash = version.map(Hash::parse).transpose()?;
    let found = wiki.read(&name, hash.as_ref()).map_err(|e| not_there(wiki, &name, e))?;
    let content = as_text(&name, &found.text)?;
    let lines = Page::of(content, from, LINES_MAX).map_err(|e| {
        let mut last = json!({"page": page, "from": Page::last_from(text::count_lines(&found.text))});
        if let Some(version) = version {
            last["version"] = version.into();
        }
        Refusal::from(e).next(DECLARATION.name, last)
    })?;
    let WikiVersion { hash, user, time, pending, .. } = found.version;
    Ok(WikiReadResult::Page(Box::new(WikiLines {
        versions: versions(wiki, &name)?,
        page: name.to_string(),
        version: hash,
        user,
        time,
        pending: pending.then_some(true),
        mimetype: found.mimetype,
        lines: lines.shown(),
    })))
}

fn versions(wiki: &Wiki, page: &PageName) -> Result<Versions> {
    const SHOWN: usize = 5;
    let all = wiki.history(page)?;
    Ok(Versions { of: all.len(), newest: all.iter().take(SHOWN).map(|v| v.hash).collect() })
}

/// The text of a page.
///
/// # Errors
/// `Invalid`, with the size, when it is not UTF-8 or holds a NUL.
pub(super) fn as_text<'a>(name: &PageName, content: &'a [u8]) -> Result<&'a str> {
    text::as_text(content).ok_or_else(|| {
        let bytes = counted(content.len(), "byte");
        let what = format!("the wiki page `{name}` is binary: {bytes} that are not UTF-8 text");
        Error::new(Kind::Invalid, what)
    })
}

/// A page that is not there comes with the nearest one that is.
pub(super) fn not_there(wiki: &Wiki, page: &PageName, error: Error) -> Refusal {
    let pages = wiki.list().unwrap_or_default();
    match suggest::nearest(page.as_str(), pages.iter().map(|p| p.name.as_str())) {
        Some(meant) if error.kind() == Kind::NotFound && meant != page.as_str() => {
            let hint = format!("Did you mean `{meant}`? Without `page`, all pages are listed.");
            Refusal::from(error.with_hint(hint)).next(DECLARATION.name, json!({"page": meant}))
        }
        _ => Refusal::from(error).next(DECLARATION.name, json!({})),
    }
}
