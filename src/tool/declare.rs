//! What a tool is, as data: name, words, capability, hints and fields. Schema, subcommand and form are readers of it.
//!
//! Nothing here acts. The limits stand here once; [`super::input`] enforces them, the schema states them.

use std::borrow::Cow;
use std::sync::Arc;

use super::result::ResultSchema;
use super::words;
use crate::name::{Amount, Span};

/// The field that every tool takes besides its own.
pub const DRY_RUN: Field = Field::flag("dry_run").doc("true: only say what would be done; nothing changes");

/// The longest hash, in hex digits.
const HASH_BYTES_MAX: usize = 64;

/// The longest path in a checkout, in bytes.
pub(super) const PATH_BYTES_MAX: usize = 4_096;

/// The greatest number of a line or an entry.
const PLACE_MAX: u64 = 1_000_000_000;

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
    /// What it acts on.
    pub acts: Acts,
    /// Whether it writes in the checkout or the repository. Only one such call of a service is at work at a time.
    pub writes: bool,
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

/// The declarations of the tools that a service offers, in the order in which clients list them, and the names of those
/// that it refuses.
#[derive(Debug, Clone)]
pub struct Declarations {
    offered: Arc<[&'static Declaration]>,
    refused: Arc<[&'static str]>,
}

impl Declarations {
    /// Those of `all` that are `offered`.
    pub(super) fn of(
        all: impl Iterator<Item = &'static Declaration>,
        offered: impl Fn(&Declaration) -> bool,
    ) -> Self {
        let (offered, refused): (Vec<_>, Vec<_>) = all.partition(|tool| offered(tool));
        Self { offered: offered.into(), refused: refused.into_iter().map(|tool| tool.name).collect() }
    }

    /// Every declaration.
    pub fn all(&self) -> impl Iterator<Item = &'static Declaration> + Clone {
        self.offered.iter().copied()
    }

    /// The declaration of the tool of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'static Declaration> {
        self.all().find(|tool| tool.name == name)
    }

    /// Words for callers, without what they say of tools that are refused here.
    #[must_use]
    pub fn said(&self, words: &str) -> String {
        words::without(words, |part| named_tools(part).any(|name| self.refused.contains(&name)))
    }
}

/// What looks like names of tools in a text.
fn named_tools(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
    words.filter(|word| word.starts_with("ocx_"))
}

/// What a tool acts on, and so what a call of it needs besides a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acts {
    /// The repository: it reads, or writes records under the caller's login. It needs no checkout.
    OnRecords,
    /// The files of a checkout, which it only reads. Anyone who may read the repository may call.
    LooksAtCheckout,
    /// The files, tests or working branch of a checkout. Only the checkout's user may call.
    OnCheckout,
    /// The files of a checkout that must be the caller's own.
    OnCallersFiles,
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
    /// An optional field of that kind, which its subcommand takes by flag.
    #[must_use]
    pub const fn new(name: &'static str, kind: FieldKind) -> Self {
        Self { name, kind, required: false, positional: false, doc: "" }
    }

    /// A text of 1 to `bytes_max` bytes.
    #[must_use]
    pub const fn text(name: &'static str, bytes_max: usize) -> Self {
        Self::new(name, FieldKind::Text { bytes_max, empty: false })
    }

    /// The full hash of an artifact or a file.
    #[must_use]
    pub const fn hash(name: &'static str) -> Self {
        Self::text(name, HASH_BYTES_MAX)
    }

    /// The field `path`: a path in the checkout.
    #[must_use]
    pub const fn path() -> Self {
        Self::text("path", PATH_BYTES_MAX)
    }

    /// A whole number from `min` to `max`.
    #[must_use]
    pub const fn number(name: &'static str, min: u64, max: u64, default: u64) -> Self {
        Self::new(name, FieldKind::Number { min, max, default })
    }

    /// A place in a text or a list, counted from 1; the first where it is not given.
    #[must_use]
    pub const fn place(name: &'static str) -> Self {
        Self::number(name, 1, PLACE_MAX, 1)
    }

    /// One of these words.
    #[must_use]
    pub const fn word(name: &'static str, words: &'static [&'static str]) -> Self {
        Self::new(name, FieldKind::Word(words))
    }

    /// A flag, off unless given.
    #[must_use]
    pub const fn flag(name: &'static str) -> Self {
        Self::new(name, FieldKind::Flag)
    }

    /// The same, and the call is refused without it.
    #[must_use]
    pub const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// The same, and the call may leave it out.
    #[must_use]
    pub const fn optional(self) -> Self {
        Self { required: false, ..self }
    }

    /// The same, and its subcommand takes it by place.
    #[must_use]
    pub const fn positional(self) -> Self {
        Self { positional: true, ..self }
    }

    /// The same, and a text may be empty.
    #[must_use]
    pub const fn may_be_empty(self) -> Self {
        match self.kind {
            FieldKind::Text { bytes_max, .. } => {
                Self { kind: FieldKind::Text { bytes_max, empty: true }, ..self }
            }
            _ => self,
        }
    }

    /// The same with its meaning.
    #[must_use]
    pub const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }

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
    /// A list of 1 to `count_max` paths in the checkout, none of them twice.
    Paths {
        /// The most.
        count_max: usize,
    },
    /// What wakes an agent: a list of 1 to `count_max` of `{"on":"post"}` and `{"on":"check-in","branch":NAME}`.
    Wake {
        /// The most.
        count_max: usize,
    },
}
