//! What clients are told about the server: its instructions and its tools.

use std::sync::Arc;

use rmcp::model::{ListToolsResult, Tool, ToolAnnotations};

use crate::tool::{self, Binding, Declaration, Service};

/// How long a client may keep the tool list. The list changes only when the program changes.
const LIST_TTL_MS: u64 = 3_600_000;

const INSTRUCTIONS: &str = "Work in a Fossil checkout. Start with ocx_context: it gives the objective, the working \
branch, what is changed and the tests. Find with ocx_find, read with ocx_read, change with ocx_edit (copy `old` \
exactly from what ocx_read gave), run ocx_test, then ocx_save, which commits and pushes. Every answer begins with \
`ok`; when it is false, do what `next_step` says, or make the call in `next_call` as it stands.";

/// The instructions if there is a repository and no checkout.
const NO_CHECKOUT: &str = "Work with the records of a Fossil repository; there is no checkout here, so nothing acts on \
files. Start with ocx_status, then ocx_queue: it gives the check-ins and posts that wait on you. Read check-ins with ocx_read's \
`checkin`, judge them with ocx_audit, answer with ocx_post, and use the wiki. Every answer begins with `ok`; when it is \
false, do what `next_step` says, or make the call in `next_call` as it stands.";

/// The extra instructions if the checkout is not among the caller's files.
const REMOTE: &str = " The checkout is on this server: no call reaches the files of your computer. If you have a Fossil \
clone of your own, or can make one, say so in `caller` of ocx_context.";

/// The title of the server.
pub fn title(service: &Service) -> &'static str {
    if service.is_in_checkout() {
        "OCX: tools for a Fossil checkout"
    } else {
        "OCX: tools for a Fossil repository"
    }
}

/// The instructions for a model. They depend on where the service acts.
pub fn instructions(service: &Service) -> String {
    match service.binding() {
        _ if !service.is_in_checkout() => NO_CHECKOUT.to_owned(),
        Binding::Local => INSTRUCTIONS.to_owned(),
        Binding::Remote => format!("{INSTRUCTIONS}{REMOTE}"),
    }
}

/// Every tool that the service offers, in the order of the catalogue.
pub fn tools(service: &Service) -> ListToolsResult {
    let tools = service.offered().all().map(|tool| listed(tool, service)).collect();
    ListToolsResult::with_all_items(tools).with_ttl_ms(LIST_TTL_MS)
}

fn listed(tool: &Declaration, service: &Service) -> Tool {
    let hints = ToolAnnotations::with_title(tool.title)
        .read_only(tool.hints.read_only)
        .destructive(tool.hints.destructive)
        .idempotent(tool.hints.idempotent)
        .open_world(tool.hints.open_world);
    let mut listed = Tool::new(tool.name, service.description(tool), tool::schema::input_schema(tool))
        .with_raw_output_schema(Arc::new(tool::schema::output_schema(tool)))
        .with_annotations(hints);
    listed.title = Some(tool.title.to_owned());
    listed
}
