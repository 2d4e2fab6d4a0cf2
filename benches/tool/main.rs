//! How long does an agent wait for each tool over MCP, on pipes and over HTTP? How many tokens does it read? One tree
//! is real and has 980 files. The other is generated and has 10,000.
//!
//! `cargo bench --bench tool [-- --quick]`. The real tree is Fossil's own source, as the build unpacked it.
//! `OCX_BENCH_REPOSITORY=path` uses the tip of your own repository instead.
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

#[path = "../common/mod.rs"]
mod common;
mod pings;
mod reading;
mod testing;
mod tokens;
mod writing;

use std::fs;
use std::path::{Path, PathBuf};

use common::programs::USER;
use common::{Options, Result, corpus};
use ocx::checkout::{CheckIn, Checkout};
use ocx::name::User;
use ocx::repo::{NewRepository, Repository};

/// The path where the build script put Fossil's source tree.
const SOURCE: &str = concat!(env!("OUT_DIR"), "/fossil");
/// The number of files of a generated tree that replaces the source, if there is no source.
const GENERATED: usize = 980;
/// The number of files of a large tree.
const MANY: usize = 10_000;

fn main() -> Result<()> {
    let options = Options::read();
    common::heading("Tools over MCP", &options);
    let folder = tempfile::tempdir()?;
    let place = Place::real(folder.path())?;
    println!("Tree: {} files, of which {} are text.", place.files, place.texts.len());
    reading::calls(&place, &options)?;
    reading::first_answers(&place, &options)?;
    pings::pings(&place, &options)?;
    writing::calls(&place, &options)?;
    tokens::count(&place)?;
    testing::runs(&place, &options)?;
    let folder = tempfile::tempdir()?;
    let many = if options.quick { GENERATED } else { MANY };
    let place = Place::generated(folder.path(), many)?;
    reading::search(&place, &options)?;
    testing::runs(&place, &options)
}

/// The place to measure on: a checkout, and the folder that holds it.
pub struct Place {
    home: PathBuf,
    tree: PathBuf,
    files: usize,
    /// The paths of the text files in the tree.
    texts: Vec<String>,
}

impl Place {
    /// A checkout of Fossil's source, or of the caller's own repository.
    fn real(folder: &Path) -> Result<Self> {
        if let Some(own) = common::own_repository() {
            let (file, tree) = (folder.join("r.fossil"), folder.join("tree"));
            fs::copy(own, &file)?;
            Checkout::open(&Repository::open(&file)?, &tree, None, Some(&User::parse(USER)?))?;
            return Self::of(folder);
        }
        if !Path::new(SOURCE).is_dir() {
            return Self::generated(folder, GENERATED);
        }
        Self::filled(folder, |tree| {
            corpus::copy_tree(Path::new(SOURCE), tree)?;
            // Fossil writes two files into a source archive that are not part of the tree. One is a control artifact.
            for name in ["manifest", "manifest.uuid"] {
                let _ = fs::remove_file(tree.join(name));
            }
            Ok(())
        })
    }

    /// A checkout of a generated tree.
    fn generated(folder: &Path, files: usize) -> Result<Self> {
        Self::filled(folder, |tree| corpus::write_tree(tree, files))
    }

    fn filled(folder: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let (file, tree) = (folder.join("r.fossil"), folder.join("tree"));
        let user = User::parse(USER)?;
        let repository = Repository::create(&file, &NewRepository { user: user.clone() })?;
        let checkout = Checkout::open(&repository, &tree, None, Some(&user))?;
        make(&tree)?;
        // Fossil's tree tracks some files that its own ignore rules exclude.
        ocx::engine::command(checkout.root(), &["add", "--dotfiles", "--ignore", "", "."], Some(USER))?;
        let status = checkout.status()?;
        let comment = "the tree".to_owned();
        checkout.check_in(&CheckIn { comment, branch: None, user, time: None }, &status)?;
        Self::of(folder)
    }

    fn of(folder: &Path) -> Result<Self> {
        let tree = folder.join("tree");
        let files = corpus::files(&tree)?;
        Ok(Self { home: folder.to_owned(), texts: texts(&tree, &files)?, files: files.len(), tree })
    }

    /// A text file: another one in each round.
    fn nth(&self, round: usize) -> &str {
        &self.texts[round * 131 % self.texts.len()]
    }
}

/// The names of the text files. A text file has no NUL byte.
fn texts(tree: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for file in files {
        let content = fs::read(tree.join(file))?;
        if !content.contains(&0) && std::str::from_utf8(&content).is_ok() {
            texts.push(file.to_string_lossy().into_owned());
        }
    }
    Ok(texts)
}
