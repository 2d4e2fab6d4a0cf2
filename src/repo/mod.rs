//! A repository file: made, opened, read and checked.
//!
//! What is in it is read by Rust through its [`Store`]. Other rooms write to it, through the engine.

mod repository;
pub mod store;
#[cfg(test)]
mod transaction_tests;

pub use repository::{NewRepository, Repository};
pub(crate) use repository::{make_aside, new_file, remove_unless};
pub use store::Store;
