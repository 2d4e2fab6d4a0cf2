//! Push, pull, sync and clone: Fossil's protocol over HTTP.
//!
//! What comes is staged, judged and taken in by [`transfer`](crate::transfer), all of it or nothing. After a push the server
//! is asked for each artifact that was sent.

pub mod client;
mod clone;
mod connection;
mod fetch;
mod offer;
mod options;
mod outcome;
mod peer;
mod pull;
mod push;
mod push_pull;
mod questions;
mod remembered;
pub mod remote;
mod rounds;
mod unversioned;
mod url;

pub use connection::{Connection, Limits, Reach};
pub use options::SyncOptions;
pub use outcome::{Outcome, Synced};
pub use remote::Remote;
pub use unversioned::UnversionedChanges;
