//! What a test sees of its user's home: toolchains, package caches and the settings of package managers.
//!
//! Everything else of the home is out of sight. A cache takes writes, in a layer of the test tree.

use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::state::CheckoutState;
use crate::error::Result;
use crate::name::{TreePath, time};
use crate::process::{Environment, Mount, MountKind, Sandbox};
use crate::tree::{FileKind, Tree};

/// Folders of toolchains, below the home. Tests only read them.
const TOOLS: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".cargo/bin",
    ".deno/bin",
    ".dotnet/sdk",
    ".dotnet/shared",
    ".dotnet/tools",
    ".elan",
    ".fnm",
    ".ghcup",
    ".jbang/bin",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise/installs",
    ".local/share/pipx",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".nvm",
    ".opam",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "anaconda3",
    "go/bin",
    "miniconda3",
    "miniforge3",
];

/// Folders of package caches, below the home. What tests write there stays in their own layer.
const CACHES: &[&str] = &[
    ".bun/install/cache",
    ".cabal/packages",
    ".cache/composer",
    ".cache/coursier",
    ".cache/Cypress",
    ".cache/deno",
    ".cache/electron",
    ".cache/ms-playwright",
    ".cache/node",
    ".cache/pip",
    ".cache/pnpm",
    ".cache/puppeteer",
    ".cache/uv",
    ".cache/yarn",
    ".cargo/git",
    ".cargo/registry",
    ".composer/cache",
    ".conan2/p",
    ".gem/ruby",
    ".gradle/caches",
    ".gradle/jdks",
    ".gradle/wrapper",
    ".hex/packages",
    ".ivy2/cache",
    ".julia/packages",
    ".local/share/pnpm/store",
    ".m2/repository",
    ".m2/wrapper",
    ".mix/archives",
    ".npm/_cacache",
    ".nuget/packages",
    ".pub-cache/hosted",
    ".sbt/boot",
    ".stack/snapshots",
    ".yarn/berry/cache",
    "go/pkg/mod",
];

/// Settings of package managers. Tests get copies of them without the lines that hold secrets.
const SETTINGS: &[&str] = &[
    ".bunfig.toml",
    ".cargo/config.toml",
    ".condarc",
    ".config/git/config",
    ".config/go/env",
    ".config/pip/pip.conf",
    ".config/pnpm/rc",
    ".config/uv/uv.toml",
    ".gitconfig",
    ".gradle/gradle.properties",
    ".m2/settings.xml",
    ".npmrc",
    ".pip/pip.conf",
    ".yarnrc",
    ".yarnrc.yml",
];

/// Variables that name another place for a folder of the home.
const MOVED: &[(&str, &str)] = &[
    ("BUN_INSTALL", ".bun"),
    ("CARGO_HOME", ".cargo"),
    ("DENO_DIR", ".cache/deno"),
    ("GOMODCACHE", "go/pkg/mod"),
    ("GOPATH", "go"),
    ("GRADLE_USER_HOME", ".gradle"),
    ("NVM_DIR", ".nvm"),
    ("PYENV_ROOT", ".pyenv"),
    ("RBENV_ROOT", ".rbenv"),
    ("RUSTUP_HOME", ".rustup"),
    ("UV_CACHE_DIR", ".cache/uv"),
];

/// Variables that name folders that a program writes in. In the sandbox their defaults hold.
const WRITTEN: &[&str] =
    &["CARGO_TARGET_DIR", "GOCACHE", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];

/// The most bytes of a file of settings.
const SETTINGS_MAX: u64 = 1 << 20;

/// Words that a line with a secret has.
const SECRET: [&str; 7] = ["token", "password", "passwd", "secret", "_auth", "credential", "private_key"];

/// The home of a test, and the toolchains and caches that it sees.
pub(super) struct Home {
    /// Where it is.
    pub at: PathBuf,
    /// Its variables.
    pub environment: Environment,
    /// The mounts that make it.
    pub mounts: Vec<Mount>,
}

impl Home {
    /// The home for tests of the checkout at `root`, whose user has the variables of `environment`.
    pub fn new(state: &CheckoutState, root: &Path, environment: Environment) -> Result<Self> {
        let variable = |name: &str| environment.get(name).map(PathBuf::from);
        let real = variable("HOME").filter(|home| is_home(home));
        // The sandbox has a home of its own where the user has none, or one within the checkout.
        let at = real.clone().filter(|home| !home.starts_with(root)).unwrap_or_else(|| "/tmp/home".into());
        let folder = state.make("home")?;
        let own = Tree::open(&folder)?;
        let mut home = Self { mounts: vec![mount(&at, MountKind::Writable(folder))], at, environment };
        if let Some(real) = real {
            for (folders, layered) in [(TOOLS, false), (CACHES, true)] {
                for folder in folders {
                    let from = home.place_of(&real, folder);
                    home.show(state, &own, &from, layered.then_some(*folder))?;
                }
            }
            for file in SETTINGS {
                home.copy_settings(&home.place_of(&real, file), &own)?;
            }
        }
        home.show_path(state, &own, root)?;
        home.make_way(&own, root)?;
        home.environment = WRITTEN.iter().fold(home.environment, |all, name| all.without(name));
        Ok(home)
    }

    /// Where a folder of the home really is.
    fn place_of(&self, real: &Path, folder: &str) -> PathBuf {
        let mut moved = MOVED.iter().rev().filter_map(|(name, from)| {
            let below = Path::new(folder).strip_prefix(from).ok()?;
            Some(PathBuf::from(self.environment.get(name)?).join(below))
        });
        moved.next().unwrap_or_else(|| real.join(folder))
    }

    /// Shows the folder `from` where it is, read-only or with a layer of this name over it.
    fn show(&mut self, state: &CheckoutState, own: &Tree, from: &Path, layer: Option<&str>) -> Result<()> {
        if !from.is_absolute() || !from.is_dir() || self.shows(from) {
            return Ok(());
        }
        self.make_way(own, from)?;
        let secrets = secrets_of(from);
        let kind = match layer {
            Some(name) if state.holds_layers() => {
                layered(state, from, &format!("home-{}", name.replace('/', "-")))?
            }
            _ => MountKind::ReadOnly(from.to_owned()),
        };
        self.mounts.push(mount(from, kind));
        self.mounts.extend(secrets.iter().map(|secret| mount(secret, MountKind::Hidden)));
        Ok(())
    }

    /// Shows the folders of `PATH` that are not shown yet.
    fn show_path(&mut self, state: &CheckoutState, own: &Tree, root: &Path) -> Result<()> {
        let Some(path) = self.environment.get("PATH").map(OsStr::to_owned) else { return Ok(()) };
        for folder in std::env::split_paths(&path) {
            let holds = |inner: &Path| inner.starts_with(&folder);
            if !folder.starts_with(root) && !holds(root) && !holds(&self.at) {
                self.show(state, own, &folder, None)?;
            }
        }
        Ok(())
    }

    /// Whether `path` can be seen already.
    fn shows(&self, path: &Path) -> bool {
        Sandbox::shows(path) || self.mounts.iter().skip(1).any(|mount| path.starts_with(&mount.at))
    }

    /// Makes the place for a mount, if it lies within the home's own folder: the sandbox makes none there.
    fn make_way(&self, own: &Tree, at: &Path) -> Result<()> {
        let Ok(below) = at.strip_prefix(&self.at) else { return Ok(()) };
        // Tests have written here: no link may lead outside.
        below.to_str().map_or(Ok(()), |below| own.put_folder(below))
    }

    fn copy_settings(&self, from: &Path, own: &Tree) -> Result<()> {
        let Ok(below) = from.strip_prefix(&self.at) else { return Ok(()) };
        let Some(to) = below.to_str().and_then(|below| TreePath::parse(below).ok()) else { return Ok(()) };
        if !fs::metadata(from).is_ok_and(|meta| meta.is_file() && meta.len() <= SETTINGS_MAX) {
            return Ok(());
        }
        let Ok(text) = fs::read_to_string(from) else { return Ok(()) };
        // An XML file without some of its lines is none: it goes whole or not at all.
        let copy = without_secrets(&text);
        let is_xml = from.extension() == Some(OsStr::new("xml"));
        if is_xml && copy != text || own.read(&to, SETTINGS_MAX).is_ok_and(|there| there == copy.as_bytes()) {
            return Ok(());
        }
        own.put(&to, copy.as_bytes(), FileKind::Regular, time::now_ns()).map(drop)
    }
}

/// Whether a folder can be a user's home: a plain path to no part of the system.
fn is_home(path: &Path) -> bool {
    let plain = path.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
    let system = ["/dev", "/proc", "/run", "/sys"].iter().any(|folder| path.starts_with(folder));
    path.is_absolute() && plain && path.parent().is_some() && !system && !Sandbox::shows(path)
}

pub(super) fn mount(at: &Path, what: MountKind) -> Mount {
    Mount { at: at.to_owned(), what }
}

/// A layer of this name over the folder `lower`.
pub(super) fn layered(state: &CheckoutState, lower: &Path, name: &str) -> Result<MountKind> {
    let upper = state.make(&format!("layers/{name}/upper"))?;
    let work = state.make(&format!("layers/{name}/work"))?;
    Ok(MountKind::Layered { lower: lower.to_owned(), upper, work })
}

/// The files in a folder that are named as secrets are.
fn secrets_of(folder: &Path) -> Vec<PathBuf> {
    let is_secret = |name: &OsStr| {
        let name = name.to_string_lossy().to_ascii_lowercase();
        SECRET.iter().any(|word| name.contains(word)) || name == "auth.json"
    };
    let items = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = items.filter(|item| item.file_type().is_ok_and(|kind| !kind.is_dir()));
    files.filter(|item| is_secret(&item.file_name())).map(|item| item.path()).collect()
}

/// The lines of `text` that hold no secret: none of the words, and no login in an address.
fn without_secrets(text: &str) -> String {
    let holds_secret = |line: &str| {
        let line = line.to_ascii_lowercase();
        let login = line
            .split("://")
            .skip(1)
            .any(|rest| rest.split(['/', '"', '\'', ' ']).next().is_some_and(|host| host.contains('@')));
        login || SECRET.iter().any(|word| line.contains(word))
    };
    text.split_inclusive('\n').filter(|line| !holds_secret(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_system_is_no_home() {
        for none in ["/", "//", "/usr", "/proc/1", "/dev/shm", "/etc", "/x/../y", "home", ""] {
            assert!(!is_home(Path::new(none)), "{none}");
        }
        assert!(
            is_home(Path::new("/root")) && is_home(Path::new("/home/ann")) && is_home(Path::new("/tmp/x"))
        );
    }

    #[test]
    fn settings_go_without_the_lines_that_hold_secrets() {
        let given = "registry=https://mirror.example/npm/\n//mirror.example/:_authToken=abc\nalways=1\n\
                     index-url = https://me:pw@mirror.example/simple\n[http]\nproxy = \"http://p:1\"\nPASSWORD=x";
        let kept = "registry=https://mirror.example/npm/\nalways=1\n[http]\nproxy = \"http://p:1\"\n";
        assert_eq!(without_secrets(given), kept);
    }
}
