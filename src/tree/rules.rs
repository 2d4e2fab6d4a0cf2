//! The one rule for what a save takes: every tracked file, and each other one that nothing here leaves out.

use std::collections::BTreeSet;
use std::fmt;

use super::gitignore::{GitIgnore, Unread};
use super::ignore::Ignore;
use super::root::Tree;
use crate::name::TreePath;

/// What leaves files out that are not tracked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Fossil's setting `ignore-glob`.
    pub ignore: Ignore,
    /// Fossil's setting `dotfiles`: whether files and folders whose names begin with a dot are taken like others.
    pub dotfiles: bool,
    /// Files that are taken all the same, and folders with all that is in them.
    pub included: BTreeSet<TreePath>,
    /// Files that somebody told Fossil to track no longer.
    pub removed: BTreeSet<TreePath>,
    /// Files that an update or a merge put beside others.
    pub beside: BTreeSet<TreePath>,
}

/// Why a file that is not tracked is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// Fossil's setting `ignore-glob` matches it, or a folder that it is in.
    IgnoreGlob,
    /// A `.gitignore` of the checkout names it, or a folder that it is in.
    GitIgnore,
    /// Somebody told Fossil to track it no longer (`fossil rm`), and it is still there.
    Removed,
    /// An update or a merge put it beside another file, so that nothing was lost.
    Backup,
    /// Its name begins with a dot, or that of a folder that it is in, and Fossil's setting `dotfiles` is off.
    DotFile,
    /// It is what another version control system keeps in the folder.
    DataOf(&'static str),
    /// It is in another checkout.
    NestedCheckout,
}

impl Why {
    /// Whether it can be taken along if somebody asks for it by name.
    #[must_use]
    pub fn can_be_included(self) -> bool {
        !matches!(self, Self::DataOf(_) | Self::NestedCheckout)
    }
}

/// The weightier of two reasons: what somebody wrote in a rule counts before a name.
pub(super) fn weightier(one: Option<Why>, other: Option<Why>) -> Option<Why> {
    let weight = |why: &Option<Why>| match why {
        None => 0,
        Some(Why::DotFile) => 1,
        Some(Why::GitIgnore) => 2,
        Some(Why::IgnoreGlob) => 3,
        Some(Why::Removed | Why::Backup) => 4,
        Some(Why::DataOf(_) | Why::NestedCheckout) => 5,
    };
    if weight(&other) > weight(&one) { other } else { one }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IgnoreGlob => f.write_str("ignore-glob"),
            Self::GitIgnore => f.write_str(".gitignore"),
            Self::Backup => f.write_str("put beside by an update or a merge"),
            Self::Removed => f.write_str("removed from the check-ins"),
            Self::DotFile => f.write_str("a dot-file"),
            Self::DataOf(system) => write!(f, "data of {system}"),
            Self::NestedCheckout => f.write_str("another checkout"),
        }
    }
}

/// What is left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// The file, shown on one line. A folder ends in `/` and stands for everything in it.
    pub path: String,
    /// The rule that leaves it out.
    pub why: Why,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.path, self.why)
    }
}

/// What other systems keep in the folder that they look after.
const DATA: [(&str, &str); 7] = [
    (".git", "git"),
    (".hg", "hg"),
    (".svn", "svn"),
    (".bzr", "bzr"),
    (".jj", "jj"),
    ("CVS", "cvs"),
    ("_darcs", "darcs"),
];

impl Rules {
    /// Why a file or folder is left out by its own name, whatever folders it is in.
    ///
    /// # Errors
    /// Names a `.gitignore` that cannot be read.
    pub(super) fn why(
        &self,
        tree: &Tree,
        git: Option<&GitIgnore>,
        path: &str,
        is_folder: bool,
    ) -> Result<Option<Why>, Unread> {
        if let Some(data) = data_of(path, is_folder) {
            return Ok(Some(data));
        }
        if !is_folder && self.removed.contains(path) {
            return Ok(Some(Why::Removed));
        }
        if !is_folder && self.beside.contains(path) {
            return Ok(Some(Why::Backup));
        }
        let globbed = if is_folder { self.ignore.matches_folder(path) } else { self.ignore.matches(path) };
        if globbed {
            return Ok(Some(Why::IgnoreGlob));
        }
        if let Some(git) = git
            && git.leaves_out(tree, path, is_folder)?
        {
            return Ok(Some(Why::GitIgnore));
        }
        Ok((!self.dotfiles && name(path).starts_with('.')).then_some(Why::DotFile))
    }

    /// Whether this file or folder was asked for, or a folder that it is in.
    pub(super) fn includes(&self, path: &str) -> bool {
        !self.included.is_empty() && ends(path).any(|end| self.included.contains(&path[..end]))
    }

    /// Whether something in this folder was asked for.
    pub(super) fn includes_in(&self, folder: &str) -> bool {
        let within =
            |path: &TreePath| path.as_str().strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self.included.iter().any(within)
    }
}

/// The other system whose data this is, by its name.
pub(super) fn data_of(path: &str, is_folder: bool) -> Option<Why> {
    let name = name(path);
    let is = |data: &str| if data.starts_with('.') { data.eq_ignore_ascii_case(name) } else { data == name };
    let (data, system) = DATA.iter().find(|(data, _)| is(data))?;
    // A submodule has a file `.git`, which says where the folder is.
    (is_folder || *data == ".git").then_some(Why::DataOf(system))
}

/// Where each part of a path ends: the folders that it is in, from the top, and itself.
pub(super) fn ends(path: &str) -> impl Iterator<Item = usize> {
    path.match_indices('/').map(|(at, _)| at).chain([path.len()])
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g11_data_of_other_systems_is_known_by_name() {
        for (path, is_folder, system) in [
            (".git", true, Some("git")),
            ("sub/.git", false, Some("git")),
            (".GIT", true, Some("git")),
            (".hg", true, Some("hg")),
            (".hg", false, None),
            ("a/CVS", true, Some("cvs")),
            ("cvs", true, None),
            ("CVS", false, None),
            ("_darcs", true, Some("darcs")),
            (".gitignore", false, None),
            ("x.git", true, None),
        ] {
            assert_eq!(data_of(path, is_folder), system.map(Why::DataOf), "{path}");
        }
    }

    #[test]
    fn a_folder_that_is_included_stands_for_all_in_it() {
        let included = ["a/b", ".env"].map(|path| TreePath::parse(path).unwrap()).into();
        let rules = Rules { included, ..Rules::default() };
        for path in ["a/b", "a/b/c/d", ".env"] {
            assert!(rules.includes(path), "{path}");
        }
        for path in ["a", "a/bc", "env", "b", ".env2"] {
            assert!(!rules.includes(path), "{path}");
        }
        assert!(rules.includes_in("a") && !rules.includes_in("a/b") && !rules.includes_in(".e"));
    }
}
