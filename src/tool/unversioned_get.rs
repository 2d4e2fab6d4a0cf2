//! `ocx_unversioned_get`: the bytes of an unversioned file, a part at a time.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::encoded;
use super::input::Input;
use super::interface::Tool;
use super::page::counted;
use super::plan::Plan;
use super::result::{ToolResult, schema_of};
use super::suggest;
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, UnversionedName};
use crate::record::Unversioned;

/// How many bytes an answer gives that is not asked for more: as base64 they stay within 10 KB.
const BYTES_USUAL: u64 = 6_000;

/// The most bytes that one answer gives.
const BYTES_MAX: u64 = 16 << 20;

/// The tool.
pub struct UnversionedGet;

static DECLARATION: Declaration = Declaration {
    name: "ocx_unversioned_get",
    title: "Read an unversioned file",
    summary: "Give the bytes of an unversioned file as base64, with its SHA3-256: 6000 from byte `from`, or as many as \
              `bytes` asks for.",
    needs: Capability::Read,
    acts: Acts::OnRecords,
    writes: false,
    hints: Hints::LOOKS,
    fields: &[
        Field::text("name", 500)
            .required()
            .positional()
            .doc("the file's name, as ocx_unversioned_list gives it"),
        Field::number("from", 0, 1 << 40, 0).doc("the first byte to give, counted from 0"),
        Field::number("bytes", 1, BYTES_MAX, BYTES_USUAL).doc("how many bytes to give"),
    ],
    result: schema_of::<UnversionedGetResult>,
};

/// A part of the file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct UnversionedGetResult {
    name: String,
    size: u64,
    hash: Hash,
    time: String,
    from: u64,
    shown: usize,
    of: usize,
    /// The bytes as base64.
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<usize>,
}

impl ToolResult for UnversionedGetResult {}

impl Tool for UnversionedGet {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let files = Unversioned::of(call.repository());
        let given = input.required("name")?;
        let name = UnversionedName::parse(given).map_err(|e| not_there(&files, given, e))?;
        let file = files.find(&name).map_err(|e| not_there(&files, name.as_str(), e))?;
        let content = files.get(&name)?;
        let (from, count) = (input.number("from").unwrap_or(0), input.number("bytes").unwrap_or(BYTES_USUAL));
        let at = usize::try_from(from).unwrap_or(usize::MAX);
        if at > content.len() {
            let what = format!("`{name}` has no byte {from}: it has {}", counted(content.len(), "byte"));
            return Err(Refusal::from(
                Error::new(Kind::Invalid, what).with_hint("Begin at a byte that there is."),
            )
            .next(DECLARATION.name, json!({"name": name.as_str()})));
        }
        let part =
            &content[at..content.len().min(at.saturating_add(usize::try_from(count).unwrap_or(usize::MAX)))];
        let result = UnversionedGetResult {
            name: file.name,
            size: file.size,
            hash: file.hash,
            time: file.time,
            from,
            shown: part.len(),
            of: content.len(),
            content: encoded::encoded(part),
            next_from: (at + part.len() < content.len()).then_some(at + part.len()),
        };
        Ok(Plan::looked(vec![Operation::reads("read_unversioned")], result))
    }
}

/// A name that is no file's comes with the nearest one that is.
fn not_there(files: &Unversioned, name: &str, error: Error) -> Refusal {
    let all = files.list().unwrap_or_default();
    match suggest::nearest(name, all.iter().map(|f| f.name.as_str())) {
        Some(meant) if matches!(error.kind(), Kind::NotFound | Kind::Invalid) => {
            let hint = format!("Did you mean `{meant}`? ocx_unversioned_list names all.");
            Refusal::from(error.with_hint(hint)).next(DECLARATION.name, json!({"name": meant}))
        }
        _ => Refusal::from(error).next("ocx_unversioned_list", json!({})),
    }
}
