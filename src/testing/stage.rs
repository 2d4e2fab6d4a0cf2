//! Where a command of a test runs: its folder, its sandbox and its variables.

use std::fs;
use std::path::{Path, PathBuf};

use super::beside::{Beside, Brought, Found, is_database};
use super::home::{Home, layered, mount};
use super::state::CheckoutState;
use super::test_tree::TestTree;
use super::{RunsIn, Test};
use crate::checkout::{Checkout, Status};
use crate::error::{Error, Kind, Result};
use crate::format::FILE_MAX;
use crate::name::{Hash, TreePath, time};
use crate::process::{Command, Environment, Mount, MountKind, Sandbox};
use crate::tree::Tree;

/// Which command of a test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The one that fetches what the test needs.
    Fetch,
    /// The test itself.
    Test,
}

impl Role {
    /// Its command.
    pub fn text(self, test: &Test) -> &str {
        match self {
            Self::Fetch => test.fetch.as_deref().unwrap_or_default(),
            Self::Test => &test.command,
        }
    }
}

/// Where the commands of one checkout's tests run.
pub(super) struct Stage<'a> {
    pub state: &'a CheckoutState,
    pub checkout: &'a Checkout,
    /// Whether there is a sandbox.
    pub sandboxed: bool,
}

impl Stage<'_> {
    /// Where tests see the tree.
    pub fn seen_at(&self) -> PathBuf {
        if self.sandboxed { self.checkout.root().to_owned() } else { self.state.path("tree") }
    }

    /// A command of `test`, ready to start, once the tree is there.
    pub fn command(&self, role: Role, test: &Test, beside: &Beside, tree: &TestTree<'_>) -> Result<Command> {
        let folder = match test.place {
            RunsIn::Tree => self.seen_at(),
            RunsIn::Checkout => self.checkout.root().to_owned(),
        };
        let mut command = Command::new(role.text(test), folder, test.limit.duration());
        if self.sandboxed {
            // What the declaration says of variables must not decide what is shown of the machine.
            let home = Home::new(self.state, self.checkout.root(), command.environment)?;
            let mut mounts = home.mounts;
            mounts.extend(self.files(role, test, beside, tree)?);
            mounts.extend(self.hidden(&home.at));
            command.environment = home.environment;
            let (network, nested) = (test.network || role == Role::Fetch, test.nested);
            command.sandbox = Some(Sandbox { home: home.at, mounts, network, nested, ..Sandbox::default() });
        } else if test.place == RunsIn::Tree {
            self.copy_along(beside, tree)?;
        }
        for (name, value) in &beside.variables {
            if let Some(value) = value {
                command.environment = command.environment.with(name, value);
            }
        }
        Ok(command)
    }

    /// What is out of sight wherever it lies: the repository, and what OCX keeps of tests. If the home or the checkout
    /// lies in the state folder, that is only what is kept of this checkout.
    fn hidden(&self, home: &Path) -> Vec<Mount> {
        let own = self.state.path("");
        let all = own.parent().filter(|all| !home.starts_with(all) && !self.checkout.root().starts_with(all));
        let state = all.unwrap_or(&own).canonicalize().into_iter();
        self.repository_files().chain(state).map(|path| mount(&path, MountKind::Hidden)).collect()
    }

    /// The mounts of the files: the tree and what is brought along, or the working folder with a layer over it.
    fn files(&self, role: Role, test: &Test, beside: &Beside, tree: &TestTree<'_>) -> Result<Vec<Mount>> {
        let root = self.checkout.root();
        if test.place == RunsIn::Checkout {
            return self.working_folder(beside, tree);
        }
        let own = Tree::open(&self.state.path("tree"))?;
        let layers = self.state.holds_layers();
        if !layers {
            self.copy_along(beside, tree)?;
        }
        let tree_itself = match role {
            // Only what is brought along, the home and its caches keep what a fetch command makes.
            Role::Fetch if layers => {
                self.state.empty("layers/fetch")?;
                layered(self.state, &self.state.path("tree"), "fetch")?
            }
            _ => MountKind::Writable(self.state.path("tree")),
        };
        let mut mounts = vec![mount(root, tree_itself)];
        for brought in &beside.paths {
            match &brought.found {
                Some(found) if !found.is_folder => self.copy_file(&own, brought, found, tree)?,
                Some(_) if !layers => {}
                found => {
                    own.put_folder(brought.path.as_str())?;
                    let kind = self.layer(brought, found.as_ref(), tree)?;
                    mounts.push(mount(&root.join(brought.path.as_str()), kind));
                }
            }
        }
        Ok(mounts)
    }

    /// The mounts of the working folder: what is written there goes to a layer, and the databases are hidden.
    fn working_folder(&self, beside: &Beside, tree: &TestTree<'_>) -> Result<Vec<Mount>> {
        let root = self.checkout.root();
        if !self.state.holds_layers() {
            let what = "a test with `place` needs a layer over the working folder, which the disk of OCX's state cannot hold";
            return Err(Error::new(Kind::Unavailable, what)
                .with_hint("Name a folder on another file system, in OCX_STATE."));
        }
        self.state.empty("layers/place")?;
        let mut mounts = vec![mount(root, layered(self.state, root, "place")?)];
        let items = fs::read_dir(root).into_iter().flatten().flatten();
        let databases = items.filter(|item| is_database(&item.file_name())).map(|item| item.path());
        mounts.extend(databases.map(|path| mount(&path, MountKind::Hidden)));
        for brought in beside.paths.iter().filter(|brought| brought.found.is_none()) {
            self.state.make(&format!("layers/place/upper/{}", brought.path))?;
            mounts.push(mount(&root.join(brought.path.as_str()), self.layer(brought, None, tree)?));
        }
        Ok(mounts)
    }

    /// Whether there is something at each path that a fetch command makes.
    pub fn has_fetched(&self, beside: &Beside) -> bool {
        let made = beside.paths.iter().filter(|brought| brought.found.is_none()).map(made_of);
        made.into_iter()
            .all(|name| fs::read_dir(self.state.path(&name)).is_ok_and(|mut items| items.next().is_some()))
    }

    /// Empties what a fetch command makes: what tests did to it must not stand in its way.
    pub fn begin_fetch(&self, beside: &Beside) -> Result<()> {
        for brought in beside.paths.iter().filter(|brought| brought.found.is_none()) {
            self.state.empty(&made_of(brought))?;
        }
        Ok(())
    }

    /// What stands at a folder that is brought along: the folder with a layer over it, or what a fetch command makes.
    fn layer(&self, brought: &Brought, found: Option<&Found>, tree: &TestTree<'_>) -> Result<MountKind> {
        let name = layer_of(brought);
        let Some(found) = found else {
            return Ok(MountKind::Writable(self.state.make(&made_of(brought))?));
        };
        // What tests have written over another state of the folder would hide parts of this one.
        renew(brought, found, tree, || self.state.empty(&format!("layers/{name}")).map(drop))?;
        layered(self.state, &self.checkout.root().join(brought.path.as_str()), &name)
    }

    /// Copies a file that is brought along into the tree.
    fn copy_file(&self, own: &Tree, brought: &Brought, found: &Found, tree: &TestTree<'_>) -> Result<()> {
        let copy = || {
            let entry = self.checkout.tree().stat(&brought.path)?;
            let content = self.checkout.tree().content(&entry, FILE_MAX)?;
            own.put(&brought.path, &content, entry.kind, time::now_ns()).map(drop)
        };
        if own.stamp(&brought.path).is_none() {
            return copy();
        }
        renew(brought, found, tree, copy)
    }

    /// Without layers, what is brought along is copied into the tree.
    fn copy_along(&self, beside: &Beside, tree: &TestTree<'_>) -> Result<()> {
        let own = Tree::open(&self.state.path("tree"))?;
        for brought in &beside.paths {
            match &brought.found {
                Some(found) if !found.is_folder => self.copy_file(&own, brought, found, tree)?,
                Some(found) => renew(brought, found, tree, || {
                    own.put_new_folder(&brought.path)?;
                    let path = brought.path.as_str();
                    copy_folder(&self.checkout.root().join(path), &self.state.path("tree").join(path))
                        .map_err(|e| Error::io(format!("cannot copy `{}`", brought.path.shown()), e))
                })?,
                None => {}
            }
        }
        Ok(())
    }

    /// The repository's file, and what SQLite makes beside it.
    fn repository_files(&self) -> impl Iterator<Item = PathBuf> {
        let file = self.checkout.repository().path().to_owned();
        ["", "-journal", "-wal", "-shm"].into_iter().map(move |end| {
            let mut name = file.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        })
    }
}

/// The variables that tell a test which state of the project it sees, for version tools that find no `.git`.
pub(super) fn told(
    environment: Environment,
    checkout: &Checkout,
    parent: &Hash,
    tree: &Hash,
) -> Result<Environment> {
    let parent = checkout.repository().store().check_in(parent)?;
    let environment = environment
        .with("OCX_PARENT", parent.hash.as_str())
        .with("OCX_BRANCH", &parent.branch)
        .with("OCX_TREE", tree.as_str())
        .with("SOURCE_DATE_EPOCH", time::epoch_seconds(parent.julian).to_string());
    Ok(environment)
}

/// The name of the layer over a path that is brought along.
fn layer_of(brought: &Brought) -> String {
    format!("with-{}", Hash::of(brought.path.as_str().as_bytes()).short())
}

/// The folder for what a fetch command makes there.
fn made_of(brought: &Brought) -> String {
    format!("layers/{}/made", layer_of(brought))
}

/// Does `act` if what is brought along is other than when the tests had it last, and remembers it only then: what was cut
/// short is done again.
fn renew(
    brought: &Brought,
    found: &Found,
    tree: &TestTree<'_>,
    act: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let name = format!("with {}", brought.path);
    if tree.word(&name)?.as_deref() == Some(found.digest.as_str()) {
        return Ok(());
    }
    act()?;
    tree.keep_word(&name, found.digest.as_str())
}

/// Copies a folder with its links, modes and times.
fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut folders = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = folders.pop() {
        for item in fs::read_dir(&from)? {
            let item = item?;
            let (meta, there) = (item.metadata()?, to.join(item.file_name()));
            if meta.is_dir() {
                fs::create_dir(&there)?;
                folders.push((item.path(), there));
            } else if meta.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(item.path())?, &there)?;
            } else if meta.is_file() {
                fs::copy(item.path(), &there)?;
                fs::File::open(&there)?.set_modified(meta.modified()?)?;
            }
        }
    }
    Ok(())
}

/// A hash over the stored files that say which packages a project needs, or over all files where none is known.
pub(super) fn packages(status: &Status) -> Hash {
    const NAMES: &[&str] = &[
        "Cargo.lock",
        "Cargo.toml",
        "Gemfile",
        "Gemfile.lock",
        "Pipfile",
        "Pipfile.lock",
        "build.gradle",
        "build.gradle.kts",
        "build.sbt",
        "bun.lock",
        "composer.json",
        "composer.lock",
        "deno.lock",
        "go.mod",
        "go.sum",
        "gradle.lockfile",
        "mix.exs",
        "mix.lock",
        "package-lock.json",
        "package.json",
        "pnpm-lock.yaml",
        "poetry.lock",
        "pom.xml",
        "pyproject.toml",
        "settings.gradle",
        "settings.gradle.kts",
        "setup.cfg",
        "setup.py",
        "uv.lock",
        "yarn.lock",
    ];
    let is_list = |path: &TreePath| {
        let name = path.as_str().rsplit('/').next().unwrap_or_default();
        let requirements =
            name.strip_prefix("requirements").is_some_and(|rest| rest.strip_suffix(".txt").is_some());
        NAMES.contains(&name) || requirements
    };
    let lists: Vec<_> = status.files.iter().filter(|(path, _)| is_list(path)).collect();
    if lists.is_empty() {
        return status.tree_hash();
    }
    let lines: Vec<_> = lists.iter().map(|(path, file)| format!("{} {path}", file.hash)).collect();
    Hash::of(lines.join("\n").as_bytes())
}
