//! What does it cost to call Fossil's code in-process? How soon does a new process answer?
//!
//! `cargo bench --bench engine [-- --quick]`. `OCX_BENCH_REPOSITORY=path` uses your own repository.
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::programs::{FOSSIL, OCX_FOSSIL, USER};
use common::{Options, Result, Way, interleaved, table};
use ocx::engine;
use ocx::name::User;
use ocx::repo::{NewRepository, Repository};

/// The first argument when this program starts itself. The child does one thing and ends.
const CHILD: &str = "child";

fn main() -> Result<()> {
    let options = Options::read();
    if let [child, what, path, ..] = options.words.as_slice()
        && child == CHILD
    {
        return be_child(what, Path::new(path));
    }
    common::heading("Calls of Fossil's code in-process, and the first answer of a fresh process", &options);
    let folder = tempfile::tempdir()?;
    let path = repository(folder.path())?;
    calls(&path, folder.path(), &options)?;
    first_answers(&path, folder.path(), &options)
}

fn repository(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("r.fossil");
    if let Some(own) = common::own_repository() {
        std::fs::copy(own, &path)?;
    } else {
        Repository::create(&path, &NewRepository { user: User::parse(USER)? })?;
    }
    Ok(path)
}

fn calls(path: &Path, home: &Path, options: &Options) -> Result<()> {
    let repository = Repository::open(path)?;
    let mut ways = vec![
        Way::plain("engine: nothing to do, repository kept open", || Ok(engine::remote(path).map(drop)?)),
        Way::plain("engine: `version`, state of its own", || {
            Ok(engine::command(Path::new("/"), &["version"], None).map(drop)?)
        }),
        Way::plain("Rust: resolve `trunk`", || Ok(repository.store().resolve("trunk").map(drop)?)),
    ];
    for program in [FOSSIL, OCX_FOSSIL] {
        if let Some(version) = program.version() {
            let home = home.to_owned();
            ways.push(Way::plain(format!("spawned `{} version` ({version})", program.name), move || {
                program.run(&home, &home, ["version"]).map(drop)
            }));
        }
    }
    table("One call", &interleaved(ways, options.rounds(200))?);
    Ok(())
}

fn first_answers(path: &Path, home: &Path, options: &Options) -> Result<()> {
    let me = std::env::current_exe()?;
    let child = |name: &str, what: &'static str| {
        let (me, path) = (me.clone(), path.to_owned());
        Way::plain(name, move || {
            let mut command = Command::new(&me);
            command.args([CHILD, what]).arg(&path).stdin(Stdio::null()).stdout(Stdio::null());
            if command.status()?.success() { Ok(()) } else { Err("the child failed".into()) }
        })
    };
    let mut ways = vec![
        child("open the repository, read its tip (Rust)", "read"),
        child("the same, and one call of the engine", "engine"),
        child("a process that does nothing", "nothing"),
    ];
    for program in [FOSSIL, OCX_FOSSIL] {
        if program.version().is_some() {
            let (home, path) = (home.to_owned(), path.as_os_str().to_owned());
            ways.push(Way::plain(format!("spawned `{} info trunk`", program.name), move || {
                program
                    .run(&home, &home, ["info".as_ref(), "trunk".as_ref(), "-R".as_ref(), path.as_os_str()])
                    .map(drop)
            }));
        }
    }
    table("A fresh process, from its start to its end", &interleaved(ways, options.rounds(50))?);
    Ok(())
}

fn be_child(what: &str, path: &Path) -> Result<()> {
    if what == "nothing" {
        return Ok(());
    }
    let repository = Repository::open(path)?;
    let tip = repository.store().resolve("trunk")?;
    println!("{}", repository.store().check_in(&tip)?.comment);
    if what == "engine" {
        engine::remote(path)?;
    }
    Ok(())
}
