//! `ocx_unversioned_put`: an unversioned file from base64, in the place of any that has the name; then to the server.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, Hints};
use super::deliver::{Delivery, Written, deliver};
use super::encoded;
use super::input::Input;
use super::interface::Tool;
use super::page::counted;
use super::plan::{Permit, Plan};
use super::result::{ToolResult, schema_of};
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, UnversionedName};
use crate::record::{Unversioned, UnversionedFile};
use crate::sync::SyncOptions;

/// The most bytes of `content`, as base64: those of 786,432 bytes.
const CONTENT_BYTES_MAX: usize = 1 << 20;

/// The tool.
pub struct UnversionedPut;

static DECLARATION: Declaration = Declaration {
    name: "ocx_unversioned_put",
    title: "Put an unversioned file",
    summary: "Put an unversioned file of at most 786432 bytes, given as base64, in the place of any of that name, and \
              push it. The old content is not kept.",
    needs: Capability::UnversionedPut,
    acts: Acts::OnRecords,
    writes: true,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: true },
    fields: &[
        Field::text("name", 500).required().positional().doc("the file's name, folders with /"),
        Field::text("content", CONTENT_BYTES_MAX).may_be_empty().doc("the bytes, at most 786432, as standard base64 with padding and no line breaks; leave out only to \
                  send again what is held with `hash`"),
        Field::hash("hash").doc("the SHA3-256 of the bytes, as 64 hex digits: refuses what arrived otherwise"),
    ],
    result: schema_of::<UnversionedPutResult>,
};

/// The file that was put.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct UnversionedPutResult {
    name: String,
    size: usize,
    hash: Hash,
    created: bool,
    replaced: Option<ReplacedFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// When it was put, once it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(flatten)]
    delivery: Option<Delivery>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ReplacedFile {
    hash: Hash,
    size: u64,
}

impl ToolResult for UnversionedPutResult {}

impl Tool for UnversionedPut {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn judge(&self, input: &Input) -> Result<()> {
        if input.text("content").or(input.text("hash")).is_none() {
            return Err(no_content("field `content` is missing (the bytes, as base64)"));
        }
        Ok(())
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let name = UnversionedName::parse(input.required("name")?)?;
        let hash = input.text("hash").map(sha3).transpose()?;
        let files = Unversioned::of(call.repository());
        let held = match files.find(&name) {
            Ok(held) => Some(held).filter(|held| held.here),
            Err(e) if e.kind() == Kind::NotFound => None,
            Err(e) => return Err(e.into()),
        };
        // The empty text is the empty file, but beside the hash of another one it says that no bytes are sent.
        let sent = input.text("content");
        let sent = sent.filter(|text| !text.is_empty() || hash.as_ref().is_none_or(|hash| hash.names(b"")));
        let content = match (sent, hash) {
            (Some(text), hash) => decoded(&name, text, hash.as_ref()).map_err(|stop| {
                stop.or_next(repair(text).map(|text| call.again(input.with("content", text))))
            })?,
            (None, Some(hash)) => again(&files, &name, &hash)?,
            (None, None) => return Err(no_content("neither `content` nor `hash` is given").into()),
        };
        Unversioned::check_size(&name, content.len() as u64)?;
        let is_held = held.as_ref().is_some_and(|held| held.hash.names(&content));
        let remote = call.has_remote()?;
        if is_held && !remote {
            return Err(Error::new(Kind::Unchanged, format!("`{name}` has exactly this content already"))
                .with_hint("There is nothing to do; go on with the next task.")
                .into());
        }
        let mut log = vec![Operation::reads("read_unversioned")];
        log.extend((!is_held).then(|| Operation::changes("put_unversioned")));
        log.extend(remote.then(|| Operation::changes("push")));
        let preview = UnversionedPutResult {
            name: name.to_string(),
            size: content.len(),
            hash: Hash::of(&content),
            created: held.is_none(),
            replaced: held.filter(|_| !is_held).map(|h| ReplacedFile { hash: h.hash, size: h.size }),
            note: is_held.then_some("The file has this content already; only the push is made."),
            time: None,
            delivery: None,
        };
        Ok(Plan::change(log, preview.clone(), move |permit| {
            perform(call, permit, &Putting { files, name, content, is_held }, preview)
        }))
    }
}

/// A file that may be put.
struct Putting {
    files: Unversioned,
    name: UnversionedName,
    content: Vec<u8>,
    is_held: bool,
}

fn perform(
    call: &Call<'_>,
    permit: &Permit<'_>,
    putting: &Putting,
    mut result: UnversionedPutResult,
) -> Result<UnversionedPutResult, Refusal> {
    let Putting { files, name, content, is_held } = putting;
    if !is_held {
        let put = files.put(name, content, call.user())?;
        permit.did("put_unversioned");
        result.time = Some(put.time);
    }
    permit.end_turn();
    let again = json!({"name": name.as_str(), "hash": result.hash});
    let written = Written {
        noun: "unversioned file",
        done: "put",
        name: format!("`{name}`"),
        artifact: None,
        tool: DECLARATION.name,
        again: &again,
    };
    let options = SyncOptions::push().with_unversioned();
    let result = deliver(call, permit, &written, &options, |delivery| UnversionedPutResult {
        delivery: Some(delivery),
        ..result
    })?;
    match unreplaced(&files.find(name)?, content) {
        Ok(()) => Ok(result),
        Err(e) => Err(Refusal::from(e).reached(result)),
    }
}

/// Of each unversioned file the newest wins everywhere, so the server's may have taken the place of this one.
fn unreplaced(held: &UnversionedFile, content: &[u8]) -> Result<()> {
    if held.hash.names(content) {
        return Ok(());
    }
    Err(Error::new(Kind::Changed, format!("`{}` was replaced by a newer one, of {}", held.name, held.time))
        .with_hint("Look at what is there now with ocx_unversioned_get, and put again what is still wanted."))
}

fn sha3(text: &str) -> Result<Hash> {
    Hash::parse(text).ok().filter(Hash::is_sha3).ok_or_else(|| {
        Error::new(Kind::Invalid, "field `hash` is no SHA3-256: it must be 64 lower-case hex digits")
            .with_hint("Give the SHA3-256 of the bytes, or leave `hash` out.")
    })
}

fn decoded(name: &UnversionedName, text: &str, hash: Option<&Hash>) -> Result<Vec<u8>, Refusal> {
    let content = encoded::decoded("content", text)?;
    match hash {
        Some(hash) if !hash.names(&content) => {
            let bytes = counted(content.len(), "byte");
            let what = format!(
                "the content for `{name}` is not what `hash` names: {bytes} arrived, with SHA3-256 {}",
                Hash::of(&content)
            );
            Err(Error::new(Kind::Invalid, what)
                .with_hint("Encode the whole file again, and give the SHA3-256 of exactly those bytes.")
                .into())
        }
        _ => Ok(content),
    }
}

/// The base64 that was probably meant; or the text itself encoded, where it is none.
fn repair(text: &str) -> Option<String> {
    let meant = encoded::repair(text).unwrap_or_else(|| encoded::encoded(text.as_bytes()));
    (meant != text).then_some(meant)
}

/// What is held, where a call only sends it again.
fn again(files: &Unversioned, name: &UnversionedName, hash: &Hash) -> Result<Vec<u8>, Refusal> {
    match files.get(name) {
        Ok(content) if hash.names(&content) => Ok(content),
        Ok(_) => Err(no_content(&format!("`{name}` is no longer what `hash` {} names", hash.short())).into()),
        Err(e) if e.kind() == Kind::NotFound => {
            Err(no_content(&format!("no unversioned file `{name}` is held")).into())
        }
        Err(e) => Err(e.into()),
    }
}

fn no_content(what: &str) -> Error {
    Error::new(Kind::Invalid, what).with_hint("Give the bytes in `content`, as base64.")
}
