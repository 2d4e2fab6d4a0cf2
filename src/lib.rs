//! Fossil SCM as a library: its C sources run in-process, and tools for agents stand on top.
//!
//! Each module uses only the ones above it in this list (`tests/tidy.rs` checks it):
//!
//! | module | its one noun |
//! |---|---|
//! | [`error`] | the one error: kind, what failed, cause, what to do next |
//! | [`cancel`] | the one cancel |
//! | [`name`] | a checked value: hash, branch, tag, user, page, path, password, amount, span |
//! | [`engine`] | the boundary to Fossil's C; all `unsafe` |
//! | [`process`] | a child process, held for its whole life |
//! | [`mod@format`] | bytes of Fossil's world: artifacts, deltas, packed rows, markup |
//! | [`text`] | lines and matches |
//! | [`tree`] | the files beneath a folder |
//! | [`repo`] | a repository: its store of artifacts |
//! | [`transfer`] | one receiver and one sender of artifacts |
//! | [`record`] | wiki pages, the forum, unversioned files, tags, logins, verdicts |
//! | [`merge`] | a merge of three trees as a plan |
//! | [`checkout`] | a working folder: its status, its check-ins, its merges |
//! | [`bundle`] | a file of artifacts |
//! | [`sync`] | Fossil's protocol over HTTP: remote, push, pull, clone |
//! | [`testing`] | declared tests: their runs, logs and evidence |
//! | [`work`] | an agent's workspace: branch, comment, save, journal |
//! | [`tool`] | the catalogue: a declaration per tool, one dispatcher, one answer |
//! | `http` | one HTTP listener: limits, gate, tokens |
//! | `face` | the catalogue over MCP and as commands |
//!
//! What a host works with stands at the top too: [`Repository`], [`Checkout`], [`CheckIn`], [`Bundle`], [`Remote`],
//! [`Wiki`], [`Forum`], [`Unversioned`], [`Tags`], [`Users`], and the one [`Error`].

pub mod bundle;
pub mod cancel;
pub mod checkout;
pub mod engine;
pub mod error;
#[cfg(feature = "program")]
pub mod face;
pub mod format;
#[cfg(feature = "program")]
pub mod http;
pub mod merge;
pub mod name;
pub mod process;
pub mod record;
pub mod repo;
pub mod sync;
pub mod testing;
pub mod text;
pub mod tool;
pub mod transfer;
pub mod tree;
pub mod work;

#[cfg(test)]
pub(crate) mod plain_fossil;

pub use bundle::Bundle;
pub use checkout::{CheckIn, Checkout};
pub use error::Error;
pub use record::{Forum, Tags, Unversioned, Users, Wiki};
pub use repo::{NewRepository, Repository};
pub use sync::Remote;

/// The examples of the README, which are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
