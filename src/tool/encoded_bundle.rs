//! A bundle as an answer carries it: its bytes as base64, within what a client can take.

use schemars::JsonSchema;
use serde::Serialize;

use super::encoded::encoded;
use crate::bundle::Bundle;
use crate::bundle::Selection;
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::repo::Repository;

/// The most bytes of a bundle that a call takes, as base64: those of 9,437,184 bytes.
pub(super) const GIVEN_TEXT_MAX: usize = 12 << 20;

/// The most bytes of a bundle that an answer carries. Some answers carry it twice, and MCP carries each answer twice:
/// clients read lines of 16 MiB.
pub(super) const BYTES_MAX: usize = 2 << 20;

/// How many check-ins are named.
const NAMED_MAX: usize = 50;

/// How a bundle is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The small form, which only OCX reads.
    Wire,
    /// The file that plain Fossil reads.
    Fossil,
}

/// A bundle for an answer.
pub(super) struct EncodedBundle {
    check_ins: Vec<Hash>,
    standalone: bool,
    form: Form,
    bytes: Vec<u8>,
}

/// What is in a bundle, and how it is written, within a result.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct BundleSummary {
    check_ins: Vec<Hash>,
    shown: usize,
    of: usize,
    form: &'static str,
    pub size: usize,
    standalone: bool,
}

impl Form {
    /// The words of the field that chooses it.
    pub const WORDS: &'static [&'static str] = &["wire", "fossil"];

    /// The form of that name.
    pub fn named(word: &str) -> Self {
        if word == "fossil" { Self::Fossil } else { Self::Wire }
    }

    /// The form of a bundle that was given.
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.starts_with(b"SQLite format 3\0") { Self::Fossil } else { Self::Wire }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Wire => "wire",
            Self::Fossil => "fossil",
        }
    }
}

impl EncodedBundle {
    /// Packs what is selected. Returns nothing if nobody lacks anything.
    ///
    /// # Errors
    /// Those of an export.
    pub fn of(repository: &Repository, selection: &Selection, form: Form) -> Result<Option<Self>> {
        let folder = tempfile::tempdir().map_err(|e| Error::io("no room for a bundle", e))?;
        let path = folder.path().join("bundle");
        let exported = match repository.export_bundle(&path, selection) {
            Ok(exported) => exported,
            // What is private is nothing that others could lack.
            Err(e) if matches!(e.kind(), Kind::Unchanged | Kind::Denied) => return Ok(None),
            Err(e) => return Err(e),
        };
        let bundle = Bundle::open(&path)?;
        let mut bytes = Vec::new();
        match form {
            Form::Wire => bundle.write_wire(&mut bytes)?,
            Form::Fossil => bytes = std::fs::read(&path).map_err(|e| Error::io("cannot read a bundle", e))?,
        }
        Ok(Some(Self { check_ins: exported.check_ins, standalone: bundle.is_standalone(), form, bytes }))
    }

    /// Refuses what no answer can carry, with what to do instead.
    ///
    /// # Errors
    /// `TooLarge`, with the size and the limit.
    pub fn fitting(self, instead: &str) -> Result<Self> {
        let (size, of) = (self.bytes.len(), super::page::counted(self.check_ins.len(), "check-in"));
        if size <= BYTES_MAX {
            return Ok(self);
        }
        let what =
            format!("the bundle of {of} has {size} bytes, over the limit of {BYTES_MAX} for an answer");
        Err(Error::new(Kind::TooLarge, what).with_hint(instead))
    }

    /// The bytes as base64.
    pub fn text(&self) -> String {
        encoded(&self.bytes)
    }

    /// What is in it, and how it is written.
    pub fn summary(&self) -> BundleSummary {
        let shown = self.check_ins.len().min(NAMED_MAX);
        BundleSummary {
            check_ins: self.check_ins[..shown].to_vec(),
            shown,
            of: self.check_ins.len(),
            form: self.form.word(),
            size: self.bytes.len(),
            standalone: self.standalone,
        }
    }
}
