//! How long does an agent wait for `ocx_read` and `ocx_find` over MCP, on pipes and over HTTP, in a real tree of 980
//! files, and for the first answer after the server's start?
//!
//! `cargo bench --bench tool [-- --quick]`. The tree is Fossil's own source, as the build unpacked it;
//! `OCX_BENCH_REPO=path` takes the tip of a repository of your own.
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod common;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use common::mcp::{Client, Listening};
use common::programs::{FOSSIL, USER};
use common::{Options, Result, Way, corpus, interleaved, table, timed};
use ocx::name::User;
use ocx::repo::{CheckIn, Checkout, NewRepository, Repository};
use serde_json::json;

/// Fossil's source tree, where the build script put it.
const SOURCE: &str = concat!(env!("OUT_DIR"), "/fossil");
/// Files of a generated tree, where there is no source.
const GENERATED: usize = 980;

fn main() -> Result<()> {
    let options = Options::read();
    common::heading("Tools over MCP", &options);
    let folder = tempfile::tempdir()?;
    let tree = checkout(folder.path())?;
    let files = corpus::files(&tree)?;
    println!("Tree: {} files.", files.len());
    calls(&tree, folder.path(), &files, &options)?;
    over_http(&tree, folder.path(), &files, &options)?;
    first_answers(&tree, folder.path(), &files, &options)
}

/// A checkout of the tree that is measured on.
fn checkout(folder: &Path) -> Result<PathBuf> {
    let (file, tree) = (folder.join("r.fossil"), folder.join("tree"));
    let user = User::parse(USER)?;
    if let Some(own) = common::own_repository() {
        fs::copy(own, &file)?;
        Checkout::open(&Repository::open(&file)?, &tree, None, None)?;
        return Ok(tree);
    }
    let repository = Repository::create(&file, &NewRepository { user: user.clone() })?;
    let checkout = Checkout::open(&repository, &tree, None, Some(&user))?;
    if Path::new(SOURCE).is_dir() {
        corpus::copy_tree(Path::new(SOURCE), &tree)?;
    } else {
        corpus::write_tree(&tree, GENERATED)?;
    }
    // Two files that Fossil writes into a source archive are no part of a tree, and one is a control artifact.
    for name in ["manifest", "manifest.uuid"] {
        let _ = fs::remove_file(tree.join(name));
    }
    // Fossil's tree tracks files that its own ignore rules name.
    ocx::engine::command(checkout.root(), &["add", "--dotfiles", "--ignore", "", "."], Some(USER))?;
    let status = checkout.status()?;
    checkout
        .check_in(&CheckIn { comment: "the tree".to_owned(), branch: None, user, time: None }, &status)?;
    Ok(tree)
}

fn calls(tree: &Path, home: &Path, files: &[PathBuf], options: &Options) -> Result<()> {
    let texts = texts(tree, files)?;
    let client = RefCell::new(Client::start(tree, home)?);
    let call =
        |tool: &str, arguments: serde_json::Value| client.borrow_mut().call(tool, &arguments).map(drop);
    let nth = |round: usize| &texts[round * 131 % texts.len()];
    let folder = home.to_owned();
    let read = |round: usize| timed(|| call("ocx_read", json!({"path": nth(round)})));
    let alone = vec![Way::new("ocx_read, another file each time", read)];
    table("Calls of one tool, one after another", &interleaved(alone, options.rounds(400))?);
    let mut ways = vec![
        Way::new("ocx_read, another file each time", read),
        Way::new("ocx_find, rare text", |_| {
            timed(|| call("ocx_find", json!({"text": "manifest_crosslink("})))
        }),
        Way::new("ocx_find, frequent text", |_| timed(|| call("ocx_find", json!({"text": "return"})))),
        Way::new("ocx_find, no such text", |_| {
            timed(|| call("ocx_find", json!({"text": "no such words at all"})))
        }),
        Way::new("spawned `fossil cat`", |round| {
            timed(|| FOSSIL.run(&folder, tree, ["cat", nth(round)]).map(drop))
        }),
        Way::plain("spawned `grep -rnIF`, no such text", || {
            let mut grep = Command::new("grep");
            grep.args(["-rnIF", "no such words at all", "."]).current_dir(tree).stdout(Stdio::null());
            grep.status().map(drop).map_err(Into::into)
        }),
    ];
    if FOSSIL.version().is_none() {
        ways.remove(4);
    }
    table("One call over pipes, taking turns", &interleaved(ways, options.rounds(200))?);
    Ok(())
}

/// The same call by both ways in, and how long a ping waits while another connection keeps tools busy.
fn over_http(tree: &Path, home: &Path, files: &[PathBuf], options: &Options) -> Result<()> {
    let texts = texts(tree, files)?;
    let nth = |round: usize| json!({"path": texts[round * 131 % texts.len()]});
    let client = RefCell::new(Client::start(tree, home)?);
    let server = Listening::start(tree, home)?;
    let kept = RefCell::new(server.connect()?);
    let ways = vec![
        Way::new("ocx_read on pipes", |round| {
            timed(|| client.borrow_mut().call("ocx_read", &nth(round)).map(drop))
        }),
        Way::new("ocx_read over HTTP, one connection", |round| {
            timed(|| kept.borrow_mut().call("ocx_read", &nth(round)).map(drop))
        }),
        Way::new("ocx_read over HTTP, a connection a call", |round| {
            timed(|| server.connect()?.call("ocx_read", &nth(round)).map(drop))
        }),
        Way::new("ping over HTTP", |_| timed(|| kept.borrow_mut().ping())),
    ];
    table("One call by each way in, taking turns", &interleaved(ways, options.rounds(400))?);
    let ended = AtomicBool::new(false);
    let mut busy = server.connect()?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let searched = busy.call("ocx_find", &json!({"text": "no such words at all"}));
                if searched.is_err() {
                    break;
                }
            }
        });
        let ways = vec![Way::new("ping over HTTP", |_| timed(|| kept.borrow_mut().ping()))];
        let times = interleaved(ways, options.rounds(400));
        ended.store(true, Ordering::Relaxed);
        table("While another connection searches the tree without a pause", &times?);
        Ok(())
    })
}

fn first_answers(tree: &Path, home: &Path, files: &[PathBuf], options: &Options) -> Result<()> {
    let texts = texts(tree, files)?;
    let path = texts.first().ok_or("no file in the tree")?;
    let first = |tool: &'static str, arguments: serde_json::Value| {
        Way::new(format!("{tool}, from the start of the process"), move |_| {
            let mut kept = None;
            let time = timed(|| {
                kept = Some(Client::start(tree, home)?)
                    .map(|mut c| c.call(tool, &arguments).map(|_| c))
                    .transpose()?;
                Ok(())
            });
            drop(kept);
            time
        })
    };
    let ways = vec![
        first("ocx_read", json!({"path": path})),
        first("ocx_find", json!({"text": "manifest_crosslink("})),
        first("ocx_context", json!({})),
    ];
    table("First answer after start", &interleaved(ways, options.rounds(40))?);
    Ok(())
}

/// Names of the text files: those without a NUL byte.
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
