//! `ocx_read`, `ocx_find` and `ocx_context`, compared with programs that do the same work once and end.

use std::cell::RefCell;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Place;
use super::common::mcp::{Client, Listening};
use super::common::programs::FOSSIL;
use super::common::{Options, Result, Way, interleaved, table, timed};

/// A text that is in no file.
const NOWHERE: &str = "no such words at all";

pub fn calls(place: &Place, options: &Options) -> Result<()> {
    let pipes = RefCell::new(Client::start(&place.tree, &place.home)?);
    let server = Listening::start(&place.tree, &place.home)?;
    let kept = RefCell::new(server.connect()?);
    let read = |round: usize| json!({"path": place.nth(round)});
    let alone = Way::new("ocx_read on pipes, another file each time", |round| {
        pipes.borrow_mut().time("ocx_read", &read(round))
    });
    let alone = vec![alone];
    table("Calls of one tool, one after another", &interleaved(alone, options.rounds(400))?);
    let mut ways = vec![
        Way::new("ocx_read on pipes", |round| pipes.borrow_mut().time("ocx_read", &read(round))),
        Way::new("ocx_read over HTTP, one connection", |round| {
            kept.borrow_mut().time("ocx_read", &read(round))
        }),
        Way::new("ocx_read over HTTP, a connection a call", |round| {
            timed(|| server.connect()?.call("ocx_read", &read(round)).map(drop))
        }),
        Way::new("ocx_context on pipes", |_| pipes.borrow_mut().time("ocx_context", &json!({}))),
        Way::new("ocx_context over HTTP", |_| kept.borrow_mut().time("ocx_context", &json!({}))),
    ];
    if FOSSIL.version().is_some() {
        ways.push(Way::new("spawned `fossil cat`", |round| {
            timed(|| FOSSIL.run(&place.home, &place.tree, ["cat", place.nth(round)]).map(drop))
        }));
    }
    table("One call by each way in, taking turns", &interleaved(ways, options.rounds(200))?);
    search(place, options)
}

/// Measures searches of a whole tree.
pub fn search(place: &Place, options: &Options) -> Result<()> {
    let pipes = RefCell::new(Client::start(&place.tree, &place.home)?);
    let server = Listening::start(&place.tree, &place.home)?;
    let kept = RefCell::new(server.connect()?);
    let text = |text: &str| json!({"text": text});
    let spawned = |program: &'static str, args: &'static [&'static str]| {
        Way::plain(format!("spawned `{program} {}`", args.join(" ")), move || {
            let mut command = Command::new(program);
            command.args(args).args([NOWHERE, "."]).current_dir(&place.tree).stdout(Stdio::null());
            command.status().map(drop).map_err(Into::into)
        })
    };
    let mut ways = vec![
        Way::new("ocx_find on pipes, no such text", |_| pipes.borrow_mut().time("ocx_find", &text(NOWHERE))),
        Way::new("ocx_find over HTTP, no such text", |_| kept.borrow_mut().time("ocx_find", &text(NOWHERE))),
        Way::new("ocx_find on pipes, frequent text", |_| {
            pipes.borrow_mut().time("ocx_find", &text("return"))
        }),
        spawned("grep", &["-rnIF"]),
    ];
    if Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_ok() {
        ways.push(spawned("rg", &["-nF", "--hidden"]));
    }
    table(&format!("A search of {} files", place.files), &interleaved(ways, options.rounds(60))?);
    Ok(())
}

pub fn first_answers(place: &Place, options: &Options) -> Result<()> {
    let path = place.nth(0);
    let first = |tool: &'static str, arguments: Value| {
        Way::new(format!("{tool}, from the start of the process"), move |_| {
            let mut kept = None;
            let time = timed(|| {
                kept = Some(Client::start(&place.tree, &place.home)?)
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
        first("ocx_find", json!({"text": NOWHERE})),
        first("ocx_context", json!({})),
    ];
    table("First answer after start", &interleaved(ways, options.rounds(40))?);
    Ok(())
}
