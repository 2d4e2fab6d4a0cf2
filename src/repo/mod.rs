//! The safe library: repositories, checkouts, check-ins, and the files in them.
//!
//! [`Repository`] and [`Checkout`] are what a host works with, and beside the files of check-ins [`Wiki`], [`Forum`],
//! [`Unversioned`], [`Tags`] and [`Users`]. Below them, what is read is read by Rust
//! ([`store`], [`artifact`], [`delta`], [`tree`]), and what is written goes through Fossil's own code in the engine.

pub mod artifact;
mod audit;
mod author;
pub mod bundle;
mod cards;
mod check_in;
mod checkout;
pub mod delta;
mod forum;
pub mod http;
pub mod ignore;
mod markup;
pub mod packed;
pub mod remote;
mod repository;
mod status;
pub mod store;
mod sync;
mod tags;
pub mod text;
pub mod tree;
mod unversioned;
mod users;
mod wiki;

pub use audit::{Audits, Verdict};
pub use bundle::Bundle;
pub use check_in::{CheckIn, CheckedIn};
pub use checkout::{Checkout, Happened, MergeHow, Updated, UpdatedFile};
pub use forum::{Forum, Post, Thread};
pub use http::{Cancel, Connection, Limits, Reach};
pub use markup::Markup;
pub use remote::Remote;
pub use repository::{NewRepository, Repository};
pub use status::{Change, FILE_MAX, How, Status};
pub use store::Store;
pub use sync::{Outcome, SyncOptions, Synced, UnversionedChanges};
pub use tags::{BranchInfo, Tag, Tags};
pub use unversioned::{UNVERSIONED_MAX, Unversioned, UnversionedFile};
pub use users::{Login, Users};
pub use wiki::{Wiki, WikiContent, WikiPage, WikiText, WikiVersion};

#[cfg(test)]
mod change_tests;
#[cfg(test)]
pub(crate) mod plain_fossil;
