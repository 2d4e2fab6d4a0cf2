//! The folders that a checkout has whatever is in them: the setting `empty-dirs`.

use super::settings::Settings;
use crate::error::{Error, Kind, Result};
use crate::name::{TreePath, shown};
use crate::tree::ignore;

impl Settings<'_> {
    /// The folders, as paths in the tree.
    ///
    /// # Errors
    /// [`Kind::Denied`] for a name that leads out of the tree, or cannot be one in it.
    pub fn empty_dirs(&self) -> Result<Vec<TreePath>> {
        let value = self.value("empty-dirs")?.unwrap_or_default();
        ignore::patterns(&value).into_iter().map(folder).filter_map(Result::transpose).collect()
    }
}

/// The folder of this name. Nothing if it is the root.
fn folder(name: &str) -> Result<Option<TreePath>> {
    if name.starts_with('/') {
        return Err(outside(name));
    }
    let parts = name.split('/').filter(|part| !matches!(*part, "" | "."));
    let path = parts.collect::<Vec<_>>().join("/");
    if path.is_empty() {
        return Ok(None);
    }
    TreePath::parse_stored(&path).map(Some).map_err(|e| outside(name).caused_by(e))
}

fn outside(name: &str) -> Error {
    let what = format!(
        "the setting `empty-dirs` names `{}`, which is no folder in the tree",
        shown(name.as_bytes())
    );
    Error::new(Kind::Denied, what).with_hint(
        "Nothing was made. Have the setting name only folders in the tree, by `.fossil-settings/empty-dirs`.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v17_an_empty_folder_is_one_in_the_tree() {
        let path = |name| folder(name).map(|path| path.map(|path| path.to_string()));
        for (name, is) in [("a", "a"), ("a/b/", "a/b"), ("./a//b", "a/b"), ("...", "...")] {
            assert_eq!(path(name).unwrap().unwrap(), is);
        }
        assert_eq!(path(".").unwrap(), None);
        for name in ["..", "../x", "a/../../x", "/tmp/x", "/", "a\\b", "a/.fslckout"] {
            assert_eq!(path(name).unwrap_err().kind(), Kind::Denied, "{name}");
        }
    }
}
