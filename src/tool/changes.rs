//! What a check-in changed against its first parent, for those who judge it: a unified diff, and counts of lines.

use std::fmt::Write;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Result;
use crate::format::artifact::FileKind;
use crate::name::{Hash, TreePath};
use crate::repo::store::{FileEntry, Files, Store};
use crate::text::{self, Comparison, Effort};

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
    Text {
        added: u32,
        removed: u32,
        /// Where too much changed to compare it all: a part counts as replaced whole.
        #[serde(skip_serializing_if = "is_false")]
        not_all_compared: bool,
    },
    Binary {
        binary: bool,
    },
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
    let (mut diff, mut effort) = (String::new(), Effort::default());
    for path in changed(&before, &after) {
        one(store, path, (before.get(path), after.get(path)), &mut effort, &mut diff)?;
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
    let mut effort = Effort::default();
    let counted = paths.iter().take(max).map(|path| {
        let (old, new) = (content(store, before.get(*path))?, content(store, after.get(*path))?);
        let lines = if let (Some(old), Some(new)) = (old, new) {
            let compared = Comparison::of(&old, &new, &mut effort);
            LineCounts::Text {
                added: compared.added(),
                removed: compared.removed(),
                not_all_compared: !compared.is_complete(),
            }
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
    (before, after): (Option<&FileEntry>, Option<&FileEntry>),
    effort: &mut Effort,
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
        (Some(old), Some(new)) if diff.len() < DIFF_BYTES_MAX => lines(old, new, effort, diff),
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

fn lines(old: &str, new: &str, effort: &mut Effort, diff: &mut String) {
    let compared = Comparison::of(old, new, effort);
    if !compared.is_complete() {
        diff.push_str("(too much changed to compare all lines: a part is shown as replaced whole)\n");
    }
    compared.write(diff);
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}
