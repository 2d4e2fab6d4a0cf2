//! `ocx_unversioned_list`: the unversioned files, by name.

use serde_json::{Value, json};

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::input::Input;
use super::interface::Tool;
use super::plan::Plan;
use crate::error::Result;
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
};

impl Tool for UnversionedList {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let from = input.place("from");
        let all = Unversioned::of(call.repository()).list()?;
        let shown: Vec<Value> = all
            .iter()
            .skip(from - 1)
            .take(FILES_MAX)
            .map(|f| json!({"name": f.name, "size": f.size, "hash": f.hash, "time": f.time, "here": f.here}))
            .collect();
        let mut result = json!({"shown": shown.len(), "of": all.len(), "size_max": UNVERSIONED_MAX});
        if from - 1 + shown.len() < all.len() {
            result["next_from"] = (from + shown.len()).into();
        }
        result["files"] = shown.into();
        Ok(Plan::looked(vec![Operation::reads("list_unversioned")], result))
    }
}
