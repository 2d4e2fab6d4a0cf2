//! Push, pull, sync and clone: Fossil's own sync code over our own HTTP.
//!
//! Fossil's result and exit status say "fine" for most failures. What happened is read from the cards that
//! pass by, and after a push the server is asked whether it holds what was sent.

pub mod client;
mod clone;
mod connection;
mod fossil_client;
mod options;
mod outcome;
mod peer;
mod push_pull;
mod questions;
mod quick;
mod remembered;
pub mod remote;
mod unversioned;
mod url;

pub use connection::{Connection, Limits, Reach};
pub use options::SyncOptions;
pub use outcome::{Outcome, Synced};
pub use remote::Remote;
pub use unversioned::UnversionedChanges;
