//! The table of tools, in the order in which clients list them. Every way in is a reader of it.

use super::declare::Declaration;
use super::interface::Tool;
use super::{
    audit, commit_and_sync, commit_and_sync_guide, context, create, edit, find, post, queue, read, save,
    status, stop, sync, test, unversioned_get, unversioned_list, unversioned_put, wiki_edit, wiki_read,
};

/// Tools that a service offers together. The service hands its catalogue to the dispatcher.
#[derive(Clone, Copy)]
pub struct Catalogue(&'static [&'static dyn Tool]);

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

impl Catalogue {
    /// The catalogue of every tool.
    #[must_use]
    pub fn whole() -> Self {
        Self(&TOOLS)
    }

    /// Its tools.
    pub fn tools(self) -> impl Iterator<Item = &'static dyn Tool> {
        self.0.iter().copied()
    }

    /// Their declarations.
    pub fn declarations(self) -> impl Iterator<Item = &'static Declaration> {
        self.tools().map(Tool::declaration)
    }

    /// The tool of that name.
    #[must_use]
    pub fn find(self, name: &str) -> Option<&'static dyn Tool> {
        self.tools().find(|tool| tool.declaration().name == name)
    }
}

/// The tool of that name among all.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Tool> {
    Catalogue::whole().find(name)
}
