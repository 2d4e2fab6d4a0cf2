//! The files of a checkout on disk: listed, read, searched and written, never outside the checkout.
//!
//! Every access goes through the descriptor of the root folder and follows no symbolic link. So no name leads out, and
//! neither does a change that is made meanwhile. What a file's bytes mean is not decided here.

mod aside;
mod clear;
mod entry;
mod exchange;
mod find;
mod gitignore;
pub mod ignore;
mod missing;
mod put;
mod read;
mod root;
mod rules;
mod temp;
mod tracked;
mod walk;
mod within;
mod write;

pub(crate) use aside::{name_new, new_beside, persist_new, replace_file};
pub(crate) use clear::clear;
pub use entry::{Entry, FileKind, Stamp};
pub(crate) use exchange::Lies;
pub use find::{Found, Hit, LINE_MAX, SEARCHED_MAX, Search, Skipped};
pub use root::Tree;
pub use rules::{LeftOut, Rules, Why};
pub use tracked::{Known, Tracked};
pub use walk::Walk;

#[cfg(test)]
mod tests;
