//! What a test has beside the stored tree, because its declaration names it: paths of the working folder and variables.
//!
//! A path is known by what tells that nothing in it has changed: names, sizes, inodes and times. Any write moves one of
//! them, so a pass counts only as long as nothing was written there.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use sha3::{Digest, Sha3_256};

use super::{RunsIn, Test};
use crate::checkout::Checkout;
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TreePath, names_database};
use crate::repo::store::Files;
use crate::tree::Tracked;

/// How many links that lead outside are named.
const LINKS_MAX: usize = 5;

/// What a test has beside the stored tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// The paths.
    pub paths: Vec<Brought>,
    /// The variables, each with its value if it has one.
    pub variables: Vec<(String, Option<String>)>,
    /// Whether a fetch command may have written over the paths.
    pub fetched: bool,
    /// All that lies in the working folder, if the test runs there.
    pub folder: Option<Found>,
    /// What it may do that other tests may not, in words.
    pub rights: Vec<&'static str>,
}

/// A path of the working folder that a test is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// The path.
    pub path: TreePath,
    /// What lies there; nothing if the test's fetch command is to make it.
    pub found: Option<Found>,
}

/// What lies at a path that is brought along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// A hash over the names, sizes, inodes and times of all in it.
    pub digest: Hash,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Some links in it that lead out of the checkout.
    pub leading_out: Vec<String>,
}

impl Beside {
    /// Looks at what `test` names, for a tree that holds `files`.
    ///
    /// # Errors
    /// `NotFound` for a path that is not there and that no fetch command makes, `Invalid` for one that a check-in
    /// holds, and what the disk refuses.
    pub fn of(test: &Test, checkout: &Checkout, files: &Files) -> Result<Self> {
        let paths =
            test.with.iter().map(|path| brought(test, path, checkout, files)).collect::<Result<_>>()?;
        let variable = |v: &super::Variable| {
            let value = v.value.clone().or_else(|| std::env::var(&v.name).ok());
            (v.name.clone(), value)
        };
        let folder = (test.place == RunsIn::Checkout).then(|| working_folder(checkout)).transpose()?;
        let variables = test.env.iter().map(variable).collect();
        let rights = [(test.network, "the network"), (test.nested, "namespaces of its own")];
        let rights = rights.into_iter().filter_map(|(given, word)| given.then_some(word)).collect();
        Ok(Self { paths, variables, fetched: test.fetch.is_some(), folder, rights })
    }

    /// A hash over all of it; nothing if there is nothing.
    #[must_use]
    pub fn digest(&self) -> Option<Hash> {
        if self.paths.is_empty() && self.variables.is_empty() && self.folder.is_none() {
            return None;
        }
        let path = |b: &Brought| (b.path.to_string(), b.found.as_ref().map(|f| f.digest.to_string()));
        let paths: Vec<_> = self.paths.iter().map(path).collect();
        let folder = self.folder.as_ref().map(|found| found.digest.to_string());
        Some(Hash::of(&serde_json::to_vec(&(paths, &self.variables, folder)).unwrap_or_default()))
    }

    /// Names what it is, for the evidence and the answer.
    #[must_use]
    pub fn shown(&self) -> Vec<String> {
        let path = |b: &Brought| match &b.found {
            Some(found) if self.fetched => {
                format!("{} {} and what the fetch command made of it", b.path.shown(), found.digest.short())
            }
            Some(found) => format!("{} {}", b.path.shown(), found.digest.short()),
            None => format!("{} (made by the fetch command)", b.path.shown()),
        };
        let folder = self.folder.iter().map(|found| format!("the working folder {}", found.digest.short()));
        let paths = folder.chain(self.paths.iter().map(path));
        let variables = self.variables.iter().map(|(name, _)| format!("${name}"));
        paths.chain(variables).chain(self.rights.iter().map(|&right| right.to_owned())).collect()
    }

    /// Links in what was brought along that lead out of the checkout.
    pub fn leading_out(&self) -> impl Iterator<Item = &String> {
        self.paths.iter().filter_map(|b| b.found.as_ref()).flat_map(|found| &found.leading_out)
    }
}

fn brought(test: &Test, path: &TreePath, checkout: &Checkout, files: &Files) -> Result<Brought> {
    if files.holds(path.as_str()) || files.reaches_into(path.as_str()) {
        let what = format!("`with` of test `{}` names `{}`, which a check-in holds", test.name, path.shown());
        return Err(
            Error::new(Kind::Invalid, what).with_hint("Leave it out of `with`: the test has it anyway.")
        );
    }
    let at = checkout.root().join(path.as_str());
    let inside = at.parent().and_then(|folder| folder.canonicalize().ok());
    let root = checkout.root().canonicalize().unwrap_or_else(|_| checkout.root().to_owned());
    if inside.is_some_and(|folder| !folder.starts_with(&root)) {
        let what = format!("`with` of test `{}` names `{}`, which leads outside", test.name, path.shown());
        return Err(Error::new(Kind::Invalid, what).with_hint("Name a path within the checkout."));
    }
    let failed = |e| Error::io(format!("cannot look at `{}`", path.shown()), e);
    match fs::symlink_metadata(&at) {
        Ok(meta) if meta.is_symlink() => {
            let what = format!("`{}` of `with` is a symbolic link", path.shown());
            Err(Error::new(Kind::Invalid, what).with_hint("Name what it leads to, or a folder of its own."))
        }
        Ok(meta) => {
            Ok(Brought { path: path.clone(), found: Some(found(&root, &at, &meta).map_err(failed)?) })
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound && test.fetch.is_some() => {
            Ok(Brought { path: path.clone(), found: None })
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let what =
                format!("test `{}` needs `{}` (its `with`), which is not there", test.name, path.shown());
            Err(Error::new(Kind::NotFound, what)
                .with_hint("Make it in the working folder, or declare a `fetch` command that makes it."))
        }
        Err(e) => Err(failed(e)),
    }
}

/// All that lies in the working folder but Fossil's databases, which OCX itself writes.
fn working_folder(checkout: &Checkout) -> Result<Found> {
    let root = checkout.root();
    let failed = |e| Error::io(format!("cannot look at `{}`", root.display()), e);
    let meta = fs::symlink_metadata(root).map_err(failed)?;
    found(root, root, &meta).map_err(failed)
}

fn found(root: &Path, at: &Path, meta: &Metadata) -> io::Result<Found> {
    let mut digest = Sha3_256::new();
    let mut leading_out = Vec::new();
    let mut folders = vec![at.to_owned()];
    if at != root {
        note(&mut digest, at, meta);
    }
    while meta.is_dir()
        && let Some(folder) = folders.pop()
    {
        let mut items = fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()?;
        items.sort_by_key(fs::DirEntry::file_name);
        for item in items {
            if folder == root && is_database(&item.file_name()) {
                continue;
            }
            let (path, meta) = (item.path(), item.metadata()?);
            note(&mut digest, &path, &meta);
            if meta.is_symlink() && leading_out.len() < LINKS_MAX && leads_out(root, &path)? {
                leading_out.push(path.strip_prefix(root).unwrap_or(&path).display().to_string());
            }
            if meta.is_dir() {
                folders.push(path);
            }
        }
    }
    let is_folder = meta.is_dir();
    Ok(Found { digest: Hash::from_digest(&digest.finalize()), is_folder, leading_out })
}

/// Whether this names what Fossil keeps in the folder of a checkout, or SQLite beside it.
pub(super) fn is_database(name: &OsStr) -> bool {
    name.to_str().is_some_and(names_database)
}

fn note(digest: &mut Sha3_256, path: &Path, meta: &Metadata) {
    digest.update(path.as_os_str().as_encoded_bytes());
    // The times of folders count too: they tell of files that came and went.
    let numbers = [
        i64::from(meta.mode()),
        meta.size().cast_signed(),
        meta.ino().cast_signed(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec(),
    ];
    digest.update([0]);
    for number in numbers {
        digest.update(number.to_le_bytes());
    }
}

/// Whether a link leads out of the folder `root`, by its words alone.
fn leads_out(root: &Path, link: &Path) -> io::Result<bool> {
    let target = fs::read_link(link)?;
    let mut at = PathBuf::from(link.parent().unwrap_or(root));
    for part in target.components() {
        match part {
            Component::RootDir | Component::Prefix(_) => at = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => drop(at.pop()),
            Component::Normal(name) => at.push(name),
        }
    }
    Ok(!at.starts_with(root))
}
