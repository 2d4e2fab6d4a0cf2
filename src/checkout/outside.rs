//! Folders that a setting wants in a checkout and that would lie outside it.

use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TreePath};
use crate::repo::Store;
use crate::repo::setting::Settings;
use crate::repo::store::Files;
use crate::tree::FileKind;

/// Refuses a check-in whose setting `empty-dirs`, or the repository's, names a folder that is not in the tree.
pub(super) fn refuse_folders_outside(store: &Store, hash: &Hash) -> Result<()> {
    let files = store.files(hash)?;
    let folders = Settings::of_check_in(store, &files).empty_dirs()?;
    match folders.iter().find_map(|folder| link_on(&files, folder).map(|link| (folder, link))) {
        None => Ok(()),
        Some((folder, link)) => {
            let what = format!(
                "the setting `empty-dirs` names `{}`, and `{link}` is a symbolic link in the tree",
                folder.shown()
            );
            Err(Error::new(Kind::Denied, what)
                .with_hint("Nothing was made. Have the setting name only folders in the tree."))
        }
    }
}

/// The symbolic link among the files that lies on the way to `folder`, or in its place.
fn link_on<'a>(files: &Files, folder: &'a TreePath) -> Option<&'a str> {
    let path = folder.as_str();
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.map(|end| &path[..end])
        .find(|part| files.get(*part).is_some_and(|file| file.kind == FileKind::Symlink))
}
