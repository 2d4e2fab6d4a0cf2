//! The files of a call's checkout: read, searched and listed, and the refusals of paths that are none.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::answer::{NextCall, Refusal};
use super::call::Call;
use super::input::Input;
use super::page::counted;
use super::result::ToolResult;
use super::{repair, suggest};
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TreePath};
use crate::repo::store::Files;
use crate::text;
use crate::tree::{Found, Search, Tree};

/// The largest file that is read as text, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 64 << 20;

/// What a refusal gives of a folder where a file is wanted.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct FolderResult {
    folder: String,
    entries: Vec<String>,
}

impl ToolResult for FolderResult {}

impl Call<'_> {
    /// The checkout's files.
    ///
    /// # Errors
    /// As [`workspace`](Self::workspace).
    pub fn tree(&self) -> Result<&Tree> {
        Ok(self.workspace()?.checkout().tree())
    }

    /// The path that the input names, as `parse` takes it. What it does not take comes with the same call of the file
    /// that was probably meant; with `may_be_new` that need not be there.
    ///
    /// # Errors
    /// Those of `parse`.
    pub(super) fn path(
        &self,
        input: &Input,
        may_be_new: bool,
        parse: impl Fn(&str) -> Result<TreePath>,
    ) -> Result<TreePath, Refusal> {
        let text = input.required("path")?;
        parse(text).map_err(|error| {
            let meant = self.meant(text, may_be_new).filter(|path| parse(path.as_str()).is_ok());
            Refusal::from(error).or_next(meant.map(|path| self.again(input.with("path", path.as_str()))))
        })
    }

    /// The fields with the file that was probably meant, where their path is none.
    pub(super) fn with_path(&self, mut fields: Map<String, Value>) -> Map<String, Value> {
        let may_be_new = fields.get("old").is_some_and(|old| old == "");
        let bad = |text: &&str| TreePath::parse_stored(text).is_err();
        if let Some(text) = fields.get("path").and_then(Value::as_str).filter(bad)
            && let Some(meant) = self.meant(text, may_be_new)
        {
            fields.insert("path".into(), meant.as_str().into());
        }
        fields
    }

    /// The file that this text probably means, which is no path.
    fn meant(&self, text: &str, may_be_new: bool) -> Option<TreePath> {
        let root = self.workspace_if_any().map(|workspace| workspace.checkout().root());
        let tracked = |path: &TreePath| self.tracked().is_ok_and(|files| files.contains_key(path));
        repair::path(root, &tracked, text, may_be_new)
    }

    /// The content of a file of the checkout, and its SHA3-256.
    ///
    /// # Errors
    /// As [`Tree::read`]; a path that is not there comes with the call that `offer` makes of the nearest one that is.
    pub(super) fn read_file(
        &self,
        path: &TreePath,
        offer: &dyn Fn(&TreePath) -> NextCall,
    ) -> Result<(Vec<u8>, Hash), Refusal> {
        let checkout = self.workspace()?.checkout();
        checkout.read_file(path, FILE_BYTES_MAX).map_err(|e| match (e.kind(), self.tracked()) {
            (Kind::NotFound, Ok(files)) => not_there(e, path, &files.keys(), offer),
            (Kind::Invalid, Ok(files)) => match entries(files.keys(), Some(path)) {
                none if none.is_empty() => Refusal::from(e),
                some => Refusal::from(e.with_hint("Name a file; the folder's entries are in `result`."))
                    .reached(FolderResult { folder: path.to_string(), entries: shortened(some) }),
            },
            (_, _) => Refusal::from(e),
        })
    }

    /// The same, and nothing when there is no such file.
    ///
    /// # Errors
    /// As [`Tree::read`], but for a file that is not there.
    pub fn read_if_there(&self, path: &TreePath) -> Result<Option<(Vec<u8>, Hash)>, Refusal> {
        match self.workspace()?.checkout().read_file(path, FILE_BYTES_MAX) {
            Ok(content) => Ok(Some(content)),
            Err(e) if e.kind() == Kind::NotFound => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Looks for a text in the files that a save would commit.
    ///
    /// # Errors
    /// As [`Tree::find`].
    pub fn find(&self, text: &[u8], under: Option<&TreePath>, limit: usize) -> Result<Found> {
        let checkout = self.workspace()?.checkout();
        let (rules, tracked) = (checkout.rules()?, checkout.tracked()?);
        checkout.tree().find(text, &Search { under, rules: &rules, tracked: &tracked, limit })
    }

    /// The files of the check-in that the checkout builds on.
    ///
    /// # Errors
    /// Those of reading the checkout and the repository.
    pub fn tracked(&self) -> Result<Arc<Files>> {
        self.store().files(&self.workspace()?.checkout().parent()?)
    }
}

/// The content of a file as text.
///
/// # Errors
/// `Invalid`, with the size, when it is not UTF-8 or holds a NUL.
pub(super) fn as_text<'a>(path: &TreePath, content: &'a [u8]) -> Result<&'a str> {
    text::as_text(content).ok_or_else(|| {
        let bytes = counted(content.len(), "byte");
        Error::new(Kind::Invalid, format!("`{}` is binary: {bytes} that are not UTF-8 text", path.shown()))
            .with_hint("Leave this file to a test or another program; ocx_save commits its bytes exactly.")
    })
}

/// The refusal of a path that is not there, with the call that `offer` makes of the nearest one that is.
pub(super) fn not_there<'a>(
    error: Error,
    path: &TreePath,
    there: &(impl Iterator<Item = &'a TreePath> + Clone),
    offer: &dyn Fn(&TreePath) -> NextCall,
) -> Refusal {
    let same_name = || there.clone().find(|p| p.file_name() == path.file_name());
    let near = || suggest::nearest(path.as_str(), there.clone().map(TreePath::as_str));
    let near = || near().and_then(|name| there.clone().find(|p| p.as_str() == name));
    let Some(meant) = same_name().or_else(near) else {
        let text = path.file_name();
        let plain = !text.chars().any(char::is_control);
        let stop = Refusal::from(error);
        return if plain { stop.next("ocx_find", json!({"text": text})) } else { stop };
    };
    let hint = format!("Did you mean `{}`? ocx_find looks for text in all files.", meant.shown());
    Refusal::from(error.with_hint(hint)).or_next(Some(offer(meant)))
}

/// How many entries of a folder are shown.
const ENTRIES_MAX: usize = 60;

/// What lies directly in a folder, or at the top: files by name, folders with `/` and how many files they hold.
pub(super) fn entries<'a>(
    files: impl Iterator<Item = &'a TreePath>,
    folder: Option<&TreePath>,
) -> Vec<String> {
    let mut found: Vec<(String, usize)> = Vec::new();
    for path in files.filter(|p| folder.is_none_or(|f| *p != f && p.is_within(f))) {
        let below = folder.map_or(path.as_str(), |f| &path.as_str()[f.as_str().len() + 1..]);
        let (name, inside) =
            below.split_once('/').map_or((below.to_owned(), 0), |(f, _)| (format!("{f}/"), 1));
        match found.last_mut().filter(|(last, _)| inside == 1 && *last == name) {
            Some((_, count)) => *count += 1,
            None => found.push((name, inside)),
        }
    }
    let show = |(name, count): (String, usize)| {
        let name = crate::name::shown(name.as_bytes());
        if count == 0 { name } else { format!("{name} ({count})") }
    };
    found.into_iter().map(show).collect()
}

/// The entries that are shown, and how many there are beside them.
pub(super) fn shortened(mut entries: Vec<String>) -> Vec<String> {
    let more = entries.len().saturating_sub(ENTRIES_MAX);
    entries.truncate(ENTRIES_MAX);
    if more > 0 {
        entries.push(format!("and {more} more"));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_directly_within_with_folders_counted() {
        let files: Vec<TreePath> = ["a.c", "src/b.c", "src/x/c.c", "src/x/d.c", "srcs"]
            .iter()
            .map(|p| TreePath::parse(p).unwrap())
            .collect();
        assert_eq!(entries(files.iter(), None), ["a.c", "src/ (3)", "srcs"]);
        let src = TreePath::parse("src").unwrap();
        assert_eq!(entries(files.iter(), Some(&src)), ["b.c", "x/ (2)"]);
    }
}
