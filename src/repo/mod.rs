//! The safe library: repositories, checkouts, check-ins, and the files in them.
//!
//! [`Repository`] and [`Checkout`] are what a host works with. Below them, what is read is read by Rust
//! ([`store`], [`artifact`], [`delta`], [`tree`]), and what is written goes through Fossil's own code in the engine.

pub mod artifact;
mod cards;
mod check_in;
mod checkout;
pub mod delta;
pub mod http;
pub mod ignore;
pub mod packed;
pub mod remote;
mod repository;
mod status;
pub mod store;
mod sync;
pub mod text;
pub mod tree;

pub use check_in::{CheckIn, CheckedIn};
pub use checkout::{Checkout, Updated};
pub use http::{Cancel, Connection, Limits, Reach};
pub use remote::Remote;
pub use repository::{NewRepository, Repository};
pub use status::{Change, FILE_MAX, How, Status};
pub use store::Store;
pub use sync::{Outcome, SyncOptions, Synced, UnversionedChanges};

#[cfg(test)]
mod change_tests;
#[cfg(test)]
pub(crate) mod plain_fossil;
