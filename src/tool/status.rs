//! `ocx_status`: who calls, with which capabilities, on which repository and host. Anyone may ask, so it tells nothing
//! of what the files hold.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::answer::{NextCall, Operation, Refusal};
use super::binding::Guidance;
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Hints};
use super::facts::{self, CallerReport, ServerFacts};
use super::input::Input;
use super::interface::Tool;
use super::left_out::LeftOutFiles;
use super::plan::Plan;
use super::publication::{self, Asking};
use super::result::{ToolResult, schema_of};
use crate::testing::Bounds;

/// The tool.
pub struct Status;

static DECLARATION: Declaration = Declaration {
    name: "ocx_status",
    title: "Who and where you are",
    summary: "Who and where you are: your login and its capabilities, the repository, the host, the tools of this \
              connection, and whether the server takes pushes. For the work itself call ocx_context.",
    needs: Capability::Anyone,
    acts: Acts::OnRecords,
    writes: false,
    hints: Hints { open_world: true, ..Hints::LOOKS },
    fields: &facts::CALLER,
    result: schema_of::<StatusResult>,
};

/// Who and where the caller is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct StatusResult {
    login: String,
    capabilities: String,
    repository: RepositoryFacts,
    host: String,
    server_facts: ServerFacts,
    caller_report: CallerReport,
    guidance: Guidance,
    next_call: Option<NextCall>,
    /// What a save would leave out, for those who may read.
    #[serde(flatten)]
    left_out: LeftOutFiles,
    /// What the tests' own trees take on the disk, once tests have run.
    #[serde(skip_serializing_if = "Option::is_none")]
    test_trees: Option<TestTrees>,
    /// Why there is no next call.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocker: Option<String>,
}

/// What test trees take on the disk, in bytes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct TestTrees {
    /// Of this checkout.
    bytes: u64,
    /// Of all checkouts.
    all_bytes: u64,
    /// With more than this, the tree that was not used for longest is emptied.
    bound: u64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct RepositoryFacts {
    project: Option<String>,
    project_code: String,
    file: Option<String>,
}

impl ToolResult for StatusResult {}

impl Tool for Status {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let store = call.store();
        let asking = Asking::of(call)?;
        let may_read = call.may(Capability::Read.letters())?;
        let begin = match call.workspace_if_any() {
            Some(_) => NextCall::new("ocx_context", facts::caller_fields(input)),
            None => NextCall::new("ocx_queue", json!({})),
        };
        let mut preview = StatusResult {
            login: call.user().to_string(),
            capabilities: store.capabilities(call.user())?.to_string(),
            repository: RepositoryFacts {
                project: store.project_name()?,
                project_code: store.project_code()?,
                file: store.path().file_name().map(|name| crate::name::shown(name.as_encoded_bytes())),
            },
            host: host(),
            server_facts: facts::server_facts(call, asking.unasked())?,
            caller_report: facts::caller_report(input),
            guidance: facts::guidance(call, input),
            next_call: if may_read { facts::next_call(call, input, Some(begin)) } else { None },
            left_out: if may_read { left_out(call) } else { LeftOutFiles::default() },
            test_trees: test_trees(call),
            blocker: (!may_read).then(|| {
                format!("`{}` lacks capability `o`, without which no file can be read", call.user())
            }),
        };
        let mut log = vec![Operation::reads("read_user")];
        let Some(remote) = asking.remote else { return Ok(Plan::looked(log, preview)) };
        log.push(Operation::reads("ask_server"));
        Ok(Plan::change(log, preview.clone(), move |_| {
            preview.server_facts.publication = publication::asked(call, &remote);
            Ok(preview)
        }))
    }
}

/// What a save would leave out here. Nothing where there is no checkout, or it cannot be looked at.
fn left_out(call: &Call<'_>) -> LeftOutFiles {
    let status = call.workspace_if_any().and_then(|workspace| workspace.checkout().status().ok());
    status.map(|status| LeftOutFiles::of(&status.left_out)).unwrap_or_default()
}

fn test_trees(call: &Call<'_>) -> Option<TestTrees> {
    let taken = call.workspace_if_any()?.test_trees().ok()?;
    let bound = Bounds::default().total;
    (taken.all > 0).then_some(TestTrees { bytes: taken.own, all_bytes: taken.all, bound })
}

fn host() -> String {
    crate::name::shown(rustix::system::uname().nodename().to_bytes())
}
