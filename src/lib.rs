//! Fossil SCM as a library: its C sources run in-process, and tools for agents stand on top.
//!
//! Each module uses only the ones above it in this list (`tests/tidy.rs` checks it):
//!
//! | module | what it holds |
//! |---|---|
//! | [`error`] | the one error: kind, what failed, cause, what to do next |
//! | [`name`] | checked values: hash, branch, tag, user, wiki page, path in a tree |
//! | [`engine`] | the boundary to Fossil's C; all `unsafe` |
//! | [`repo`] | repositories, checkouts, check-ins, merges, bundles, sync, wiki, forum, tags, users: the safe library |
//! | [`run`] | a run's workspace: tests, evidence, what is saved and sent |
//! | [`tool`] | the catalogue: a declaration per tool, one dispatcher, one answer |
//! | [`face`] | the catalogue over MCP and as commands |

pub mod engine;
pub mod error;
pub mod face;
pub mod name;
pub mod repo;
pub mod run;
pub mod tool;

/// The examples of the README, which are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
