//! `ocx_unversioned_list`: the unversioned files, by name.

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::input::Input;
use super::interface::Tool;
use super::plan::Plan;
use super::result::{ToolResult, schema_of};
use crate::error::Result;
use crate::name::Hash;
use crate::record::{UNVERSIONED_MAX, Unversioned};

/// How many files one answer shows.
const FILES_MAX: usize = 50;

/// The tool.
pub struct UnversionedList;

static DECLARATION: Declaration = Declaration {
    name: "ocx_unversioned_list",
    title: "List unversioned files",
    summary: "List the unversioned files: name, bytes, SHA3-256 and time of each, 50 at a time. Read one with \
              ocx_unversioned_get.",
    needs: Capability::Read,
    acts: Acts::OnRecords,
    writes: false,
    hints: Hints::LOOKS,
    fields: &[Field::place("from").doc("the number of the first file to give")],
    result: schema_of::<UnversionedListResult>,
};

/// Some of the files, and how many there are.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct UnversionedListResult {
    shown: usize,
    of: usize,
    /// The largest file that can be put.
    size_max: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<usize>,
    files: Vec<ListedFile>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ListedFile {
    name: String,
    size: u64,
    hash: Hash,
    time: String,
    /// Whether its bytes are in this repository.
    here: bool,
}

impl ToolResult for UnversionedListResult {}

impl Tool for UnversionedList {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let from = input.place("from");
        let all = Unversioned::of(call.repository()).list()?;
        let listed = all.iter().skip(from - 1).take(FILES_MAX).map(|f| ListedFile {
            name: f.name.clone(),
            size: f.size,
            hash: f.hash,
            time: f.time.clone(),
            here: f.here,
        });
        let files: Vec<_> = listed.collect();
        let result = UnversionedListResult {
            shown: files.len(),
            of: all.len(),
            size_max: UNVERSIONED_MAX,
            next_from: (from - 1 + files.len() < all.len()).then_some(from + files.len()),
            files,
        };
        Ok(Plan::looked(vec![Operation::reads("list_unversioned")], result))
    }
}
