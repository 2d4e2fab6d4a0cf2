//! What a check-in changed against its first parent, for those who judge it: a unified diff, and counts of lines.

use std::fmt::Write;
use std::sync::Arc;

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Result;
use crate::format::artifact::FileKind;
use crate::name::{Hash, TreePath};
use crate::repo::store::{FileEntry, Files, Store};
use crate::text;

/// A file that differs from its check-in, within a result.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct ChangedFile {
    pub path: String,
    pub how: String,
}

/// A file that a check-in changed, within a result.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct FileCounts {
    path: String,
    #[serde(flatten)]
    lines: LineCounts,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum LineCounts {
    Text { added: u32, removed: u32 },
    Binary { binary: bool },
}

/// The largest file whose lines are compared, in bytes.
const FILE_BYTES_MAX: usize = 4 << 20;

/// The most bytes of a whole diff. Files beyond it are only named.
const DIFF_BYTES_MAX: usize = 8 << 20;

/// The diff of the check-in, file by file in the order of their paths.
///
/// # Errors
/// Those of reading the repository.
pub fn of(store: &Store, checkin: &Hash) -> Result<String> {
    let (before, after) = both(store, checkin)?;
    let mut diff = String::new();
    for path in changed(&before, &after) {
        one(store, path, before.get(path), after.get(path), &mut diff)?;
    }
    Ok(diff)
}

/// Counts what a check-in changed against its first parent: the lines of the first `max` files, how many files there are,
/// and whether `watched` is among them.
///
/// # Errors
/// Those of reading the repository.
pub(super) fn counts(
    store: &Store,
    checkin: &Hash,
    max: usize,
    watched: &str,
) -> Result<(Vec<FileCounts>, usize, bool)> {
    let (before, after) = both(store, checkin)?;
    let paths = changed(&before, &after);
    let counted = paths.iter().take(max).map(|path| {
        let (old, new) = (content(store, before.get(*path))?, content(store, after.get(*path))?);
        let lines = if let (Some(old), Some(new)) = (old, new) {
            let diff = Diff::compute(Algorithm::Histogram, &InternedInput::new(old.as_str(), new.as_str()));
            LineCounts::Text { added: diff.count_additions(), removed: diff.count_removals() }
        } else {
            LineCounts::Binary { binary: true }
        };
        Ok(FileCounts { path: path.shown(), lines })
    });
    Ok((counted.collect::<Result<_>>()?, paths.len(), paths.iter().any(|path| path.as_str() == watched)))
}

/// The files of a check-in's first parent, and its own.
fn both(store: &Store, checkin: &Hash) -> Result<(Arc<Files>, Arc<Files>)> {
    let before = match store.check_in(checkin)?.parents.first() {
        Some(parent) => store.files(parent)?,
        None => Arc::default(),
    };
    Ok((before, store.files(checkin)?))
}

fn changed<'a>(before: &'a Files, after: &'a Files) -> Vec<&'a TreePath> {
    let gone = before.keys().filter(|p| !after.contains_key(*p));
    let mut paths: Vec<_> = after.keys().filter(|p| before.get(*p) != after.get(*p)).chain(gone).collect();
    paths.sort();
    paths
}

fn one(
    store: &Store,
    path: &TreePath,
    before: Option<&FileEntry>,
    after: Option<&FileEntry>,
    diff: &mut String,
) -> Result<()> {
    let name = path.shown();
    let what = match (before, after) {
        (None, _) => "added",
        (_, None) => "deleted",
        (Some(b), Some(a)) if b.hash == a.hash => "mode changed",
        _ => "edited",
    };
    let _ = write!(diff, "=== {what} {name}");
    for (word, entry) in [("was", before), ("is", after)] {
        match entry.map(|e| e.kind) {
            Some(FileKind::Executable) => write!(diff, " ({word} executable)"),
            Some(FileKind::Symlink) => write!(diff, " ({word} a link)"),
            _ => Ok(()),
        }
        .unwrap_or_default();
    }
    diff.push('\n');
    if what == "mode changed" {
        return Ok(());
    }
    let (old, new) = (content(store, before)?, content(store, after)?);
    match (&old, &new) {
        (Some(old), Some(new)) if diff.len() < DIFF_BYTES_MAX => lines(old, new, diff),
        _ => diff.push_str("(binary, or too large to compare)\n"),
    }
    Ok(())
}

/// The text of a file. Nothing if it is binary or too large; the empty text if there is no file.
fn content(store: &Store, entry: Option<&FileEntry>) -> Result<Option<String>> {
    let Some(entry) = entry else { return Ok(Some(String::new())) };
    if store.content_size(&entry.hash)? > FILE_BYTES_MAX as u64 {
        return Ok(None);
    }
    let content = store.content(&entry.hash)?;
    Ok(text::as_text(&content).map(str::to_owned))
}

fn lines(old: &str, new: &str, diff: &mut String) {
    let input = InternedInput::new(old, new);
    let mut found = Diff::compute(Algorithm::Histogram, &input);
    found.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    let _ = write!(diff, "{}", found.unified_diff(&printer, UnifiedDiffConfig::default(), &input));
    if !diff.ends_with('\n') {
        diff.push('\n');
    }
}
