//! A repository file: made, opened, read and checked.
//!
//! Rust reads what is in it through its [`Store`]. Other modules write to it through the engine.

#[cfg(test)]
mod change_tests;
mod repository;
pub mod store;

pub use repository::{NewRepository, Repository};
pub(crate) use repository::{make_aside, new_file, remove_unless};
pub use store::Store;
