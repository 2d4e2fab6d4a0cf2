//! A setting as Fossil finds it: the file in the tree stands over the repository's value.

use crate::error::Result;
use crate::name::TreePath;
use crate::repo::Repository;
use crate::tree::Tree;

/// The most bytes of a file under `.fossil-settings`.
const SETTING_MAX: u64 = 1 << 20;

/// The value of a setting in a checkout; nothing if it has none.
pub(super) fn setting(repository: &Repository, tree: &Tree, name: &str) -> Result<Option<String>> {
    let path = TreePath::parse(&format!(".fossil-settings/{name}"))?;
    match tree.read(&path, SETTING_MAX) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(_) => repository.store().setting(name),
    }
}
