//! The settings that a checkout reads, in the words of its other files.

pub(super) use crate::repo::setting::GlobalSettings;

/// The settings that leave files of the checkout alone, and that a file of the tree may hold.
pub(super) const VERSIONABLE: [&str; 4] = ["dotfiles", "empty-dirs", "ignore-glob", "manifest"];
