//! The tools of the catalogue, called in this process, over standard input and output, over HTTP and as commands.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "../support/mod.rs"]
mod support;

mod cases;
mod catalogue;
mod command;
mod front_door;
mod http;
mod kill;
mod mcp;
mod parity;
mod push;
mod readme;
mod refusals;
mod tool;
