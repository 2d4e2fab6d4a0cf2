//! The table of tools, in the order in which clients list them. Every way in is a reader of it.

use serde_json::{Map, Value};

use super::answer::{NextCall, Refusal};
use super::declare::Declaration;
use super::input::Input;
use super::plan::Plan;
use super::service::Call;
use super::{
    audit, commit_and_sync, commit_and_sync_guide, context, create, edit, find, post, queue, read, save,
    status, stop, sync, test, unversioned_get, unversioned_list, unversioned_put, wiki_edit, wiki_read,
};

/// What a call acts on besides the repository's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acts {
    /// Nothing: it reads, or writes records under the caller's login.
    OnRecords,
    /// The files, tests or working branch of the checkout, which are its user's.
    OnCheckout,
    /// Files of a checkout that must be the caller's own.
    OnCallersFiles,
}

/// One tool: what it is, and what it would do.
pub trait Tool: Sync {
    /// What it is.
    fn declaration(&self) -> &'static Declaration;

    /// What it acts on.
    fn acts(&self) -> Acts {
        Acts::OnRecords
    }

    /// Whether it writes in the checkout, so that only one of its kind may be at work there.
    fn writes(&self) -> bool {
        false
    }

    /// The call that was probably meant by input of these fields, which stand under their real names.
    fn repair(&self, _call: &Call<'_>, fields: Map<String, Value>) -> NextCall {
        NextCall::new(self.declaration().name, Value::Object(fields))
    }

    /// Reads and checks, and says what would be done.
    ///
    /// # Errors
    /// Whatever stands in the way, with the call that helps.
    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal>;
}

/// Every tool.
pub static TOOLS: [&dyn Tool; 20] = [
    &context::Context,
    &find::Find,
    &read::Read,
    &edit::Edit,
    &test::Test,
    &save::Save,
    &sync::Sync,
    &commit_and_sync::CommitAndSync,
    &commit_and_sync_guide::Guide,
    &wiki_read::WikiRead,
    &wiki_edit::WikiEdit,
    &unversioned_list::UnversionedList,
    &unversioned_get::UnversionedGet,
    &unversioned_put::UnversionedPut,
    &post::Post,
    &audit::Audit,
    &queue::Queue,
    &status::Status,
    &create::Create,
    &stop::Stop,
];

/// The tool of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Tool> {
    TOOLS.iter().copied().find(|t| t.declaration().name == name)
}
