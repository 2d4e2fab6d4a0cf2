//! What becomes of one file, seen alone: where it is wanted, what is in it, and whether the sides are at odds.

use super::outcome::FileOutcome;
use super::step::Source;
use super::subject::{At, Subject, is_link};
use crate::name::{Hash, TreePath};
use crate::repo::store::FileEntry;
use crate::tree::FileKind;

/// What becomes of a file, as long as no other file wants its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Where it is to be; nothing if it is to be gone.
    pub path: Option<TreePath>,
    pub source: Source,
    /// What is to stand there.
    pub entry: FileEntry,
    /// Nothing if it is as it was here.
    pub what: Option<FileOutcome>,
    /// What follows from what the sides did.
    pub then: &'static str,
    /// Whether the other side's file must be put beside.
    pub beside: bool,
}

impl Verdict {
    /// Decides.
    pub fn of(subject: &Subject) -> Option<Self> {
        match (&subject.base, &subject.here, &subject.there) {
            (_, None, None) => None,
            (None, Some(here), None) => Some(Self::as_here(here)),
            (None, None, Some(there)) => Some(Self::theirs(there, FileOutcome::Added, "it comes in")),
            (None, Some(here), Some(there)) => Some(Self::both_added(here, there)),
            (Some(_), Some(here), None) if subject.is_untouched(Some(here)) => Some(Self::gone(here)),
            (Some(_), Some(here), None) => {
                Some(Self::at_odds(here, FileOutcome::ConflictRemovedThere, "yours is kept"))
            }
            (Some(_), None, Some(there)) if subject.is_untouched(Some(there)) => None,
            (Some(_), None, Some(there)) => {
                Some(Self::theirs(there, FileOutcome::ConflictRemovedHere, "theirs is back"))
            }
            (Some(base), Some(here), Some(there)) => Some(Self::both(base, here, there)),
        }
    }

    fn as_here(here: &At) -> Self {
        Self {
            path: Some(here.path.clone()),
            source: Source::Here,
            entry: here.entry,
            what: None,
            then: "yours is kept",
            beside: false,
        }
    }

    fn theirs(there: &At, what: FileOutcome, then: &'static str) -> Self {
        let path = Some(there.path.clone());
        Self { path, source: Source::There, entry: there.entry, what: Some(what), then, beside: false }
    }

    fn gone(here: &At) -> Self {
        let (source, what) = (Source::Nothing, Some(FileOutcome::Removed));
        Self { path: None, source, entry: here.entry, what, then: "it is gone", beside: false }
    }

    fn at_odds(here: &At, what: FileOutcome, then: &'static str) -> Self {
        Self { what: Some(what), then, ..Self::as_here(here) }
    }

    fn both_added(here: &At, there: &At) -> Self {
        if here.entry == there.entry {
            return Self::as_here(here);
        }
        let is_same = body(here.entry) == body(there.entry);
        let then = if is_same { "your mode is kept" } else { "yours is kept, theirs is put beside" };
        Self { beside: !is_same, ..Self::at_odds(here, FileOutcome::ConflictBothAdded, then) }
    }

    /// Both sides have a file of the base.
    fn both(base: &At, here: &At, there: &At) -> Self {
        let mut verdict = Self::contents(base, here, there);
        let path = if here.path == base.path { &there.path } else { &here.path };
        if *path != here.path && !verdict.what.is_some_and(FileOutcome::is_conflict) {
            verdict.what = Some(FileOutcome::Renamed);
            verdict.then = match verdict.source {
                Source::Joined { .. } => "both are in it, under its new name",
                Source::There => "it has the new name and content",
                _ => "yours has the new name",
            };
        }
        let differ = here.path != base.path && there.path != base.path && here.path != there.path;
        if differ && !verdict.what.is_some_and(FileOutcome::is_conflict) {
            verdict.what = Some(FileOutcome::ConflictNames);
            verdict.then = "your name is kept";
        }
        verdict.path = Some(path.clone());
        verdict
    }

    /// What is in the file, wherever it is.
    fn contents(base: &At, here: &At, there: &At) -> Self {
        let (b, h, t) = (base.entry, here.entry, there.entry);
        if t == b || t == h {
            return Self::as_here(here);
        }
        if h == b {
            return Self::theirs(there, FileOutcome::Updated, "theirs is taken");
        }
        if [b, h, t].into_iter().any(is_link) {
            let then = "they cannot be joined: yours is kept, theirs is put beside";
            return Self { beside: true, ..Self::at_odds(here, FileOutcome::ConflictUnjoinable, then) };
        }
        let source = if t.hash == b.hash || t.hash == h.hash {
            Source::Here
        } else if h.hash == b.hash {
            Source::There
        } else {
            Source::Joined { base: b.hash, here: h.hash, there: t.hash }
        };
        let hash = if source == Source::There { t.hash } else { h.hash };
        let kind = joined_kind(b.kind, h.kind, t.kind);
        let entry = FileEntry { hash, kind };
        let what = (entry != h || matches!(source, Source::Joined { .. })).then_some(FileOutcome::Merged);
        Self { path: None, source, entry, what, then: "both are in it", beside: false }
    }
}

/// A mode has two values, so where the sides differ, one of them changed it.
fn joined_kind(base: FileKind, here: FileKind, there: FileKind) -> FileKind {
    if here == base { there } else { here }
}

/// What a file is beside its mode.
fn body(entry: FileEntry) -> (Hash, bool) {
    (entry.hash, is_link(entry))
}
