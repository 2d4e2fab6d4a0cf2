//! The bytes of Fossil's world: artifacts, deltas, packed rows, the cards of its sync protocol, markup.
//!
//! Everything here is a function of bytes. It reads no file, no database and no network.

pub mod artifact;
pub mod delta;
mod markup;
pub mod packed;
pub(crate) mod sync_message;

pub(crate) use markup::FOSSIL_WIKI;
pub use markup::Markup;

/// The most bytes of one file or artifact that can be stored: SQLite's limit for a row, less room for the rest of the
/// row.
pub const FILE_MAX: u64 = 1_000_000_000 - 64 * 1024;
