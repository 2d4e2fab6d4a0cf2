//! `ocx_unversioned_list`: the unversioned files, by name.

use serde_json::{Value, json};

use super::answer::{Operation, Refusal};
use super::catalogue::Tool;
use super::declare::{Capability, Declaration, Field, FieldKind, Hints};
use super::input::Input;
use super::plan::Plan;
use super::service::Call;
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
    hints: Hints::LOOKS,
    fields: &[Field {
        name: "from",
        kind: FieldKind::Number { min: 1, max: 1_000_000_000, default: 1 },
        required: false,
        positional: false,
        doc: "the number of the first file to give",
    }],
};

impl Tool for UnversionedList {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let from = input.place("from");
        let all = Unversioned::of(call.run().checkout().repository()).list()?;
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
