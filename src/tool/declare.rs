//! What a tool is, as data: name, words, capability, hints and fields. Schema, subcommand and form are readers of it.
//!
//! Nothing here acts. The limits stand here once; [`super::input`] enforces them, the schema states them.

use std::borrow::Cow;

use super::result::ResultSchema;
use crate::name::{Amount, Span};

/// The field that every tool takes besides its own.
pub const DRY_RUN: Field = Field {
    name: "dry_run",
    kind: FieldKind::Flag,
    required: false,
    positional: false,
    doc: "true: only say what would be done; nothing changes",
};

/// The declaration of one tool.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// The name over MCP, `ocx_` and one or more words.
    pub name: &'static str,
    /// A title for people.
    pub title: &'static str,
    /// What it does and when to use it, at most 200 characters; [`Binding`](super::Binding) has other words where they
    /// depend on the place.
    pub summary: &'static str,
    /// What the caller's login needs.
    pub needs: Capability,
    /// What a client may assume of it.
    pub hints: Hints,
    /// What it takes, without `dry_run`.
    pub fields: &'static [Field],
    /// The schema of its result.
    pub result: ResultSchema,
}

impl Declaration {
    /// Every field, `dry_run` last.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().chain(std::iter::once(&DRY_RUN))
    }

    /// The subcommand's name: `wiki-read` for `ocx_wiki_read`.
    #[must_use]
    pub fn command(&self) -> String {
        self.name.trim_start_matches("ocx_").replace('_', "-")
    }
}

/// A Fossil capability that a tool needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// None: whoever has a login may call.
    Anyone,
    /// Read check-ins and files.
    Read,
    /// Make check-ins.
    CheckIn,
    /// Read wiki pages.
    WikiRead,
    /// Change wiki pages, or make them.
    WikiEdit,
    /// Put unversioned files.
    UnversionedPut,
    /// Post in the forum.
    Post,
    /// Run the project: admin or setup.
    Admin,
}

impl Capability {
    /// Fossil's letters for it, of which the caller needs one; none where everyone may call.
    #[must_use]
    pub fn letters(self) -> &'static str {
        match self {
            Self::Anyone => "",
            Self::Read => "o",
            Self::CheckIn => "i",
            Self::WikiRead => "j",
            Self::WikiEdit => "kf",
            Self::UnversionedPut => "y",
            Self::Post => "3",
            Self::Admin => "as",
        }
    }

    /// What it is, in words for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Anyone => "a login, with any capability or none",
            Self::Read => "read (capability o)",
            Self::CheckIn => "check-in (capability i)",
            Self::WikiRead => "wiki read (capability j)",
            Self::WikiEdit => "wiki edit (capability k; f for a new page)",
            Self::UnversionedPut => "unversioned write (capability y)",
            Self::Post => "forum post (capability 3)",
            Self::Admin => "admin or setup (capability a or s)",
        }
    }
}

/// What a client may assume of a tool, in the words of MCP's annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the four hints of the protocol")]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may overwrite something.
    pub destructive: bool,
    /// The same call again adds nothing.
    pub idempotent: bool,
    /// It reaches beyond this checkout.
    pub open_world: bool,
}

impl Hints {
    /// The hints of a tool that only looks at the checkout.
    pub const LOOKS: Self = Self { read_only: true, destructive: false, idempotent: true, open_world: false };
}

/// One field of a tool's input.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: FieldKind,
    /// Whether the call is refused without it.
    pub required: bool,
    /// Whether the subcommand takes it by place instead of by flag.
    pub positional: bool,
    /// What it means, for models and for people alike.
    pub doc: &'static str,
}

impl Field {
    /// What it means, with the bounds that a schema or a flag can't state.
    #[must_use]
    pub fn words(&self) -> Cow<'static, str> {
        match self.kind {
            FieldKind::Span { min, max, .. } => format!("{}: {min} to {max}, such as 30m", self.doc).into(),
            FieldKind::Amount { min, max, .. } => format!("{}: {min} to {max}, such as 2G", self.doc).into(),
            _ => self.doc.into(),
        }
    }
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Text of at most `bytes_max` bytes, empty only where `empty` says so.
    Text {
        /// The most bytes of UTF-8.
        bytes_max: usize,
        /// Whether the empty text is allowed.
        empty: bool,
    },
    /// A whole number within bounds.
    Number {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
        /// What stands for an absent field.
        default: u64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// true or false; absent is false.
    Flag,
    /// true or false; absent is true.
    Switch,
    /// A length of time within bounds, as [`Span`] reads it.
    Span {
        /// The least.
        min: Span,
        /// The greatest.
        max: Span,
        /// What stands for an absent field.
        default: Span,
    },
    /// An amount of memory within bounds, as [`Amount`] reads it.
    Amount {
        /// The least.
        min: Amount,
        /// The greatest.
        max: Amount,
        /// What stands for an absent field.
        default: Amount,
    },
    /// A list of 1 to `count_max` logins, none of them twice.
    Logins {
        /// The most.
        count_max: usize,
    },
    /// What wakes an agent: a list of 1 to `count_max` of `{"on":"post"}` and `{"on":"check-in","branch":NAME}`.
    Wake {
        /// The most.
        count_max: usize,
    },
}

/// A path in the checkout.
pub const PATH: FieldKind = FieldKind::Text { bytes_max: 4_096, empty: false };
