//! A repository file: made, opened, read and checked.
//!
//! Rust reads what is in it through its [`Store`]. Other modules write to it through the engine.

mod repository;
pub mod setting;
pub mod store;
#[cfg(test)]
mod transaction_tests;

pub use repository::{NewRepository, Repository};
pub(crate) use repository::{make_aside, new_file, remove_unless, vacuum};
pub use store::Store;
