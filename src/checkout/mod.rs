//! A checkout: a folder with the files of a check-in, and Fossil's database beside them.
//!
//! The database is Fossil's own (`.fslckout`), so plain `fossil` works in the same folder. OCX keeps a few tables of its
//! own there. Their names begin with `ocx_`, and Fossil leaves them alone.

mod asked;
mod beside;
mod check_in;
mod conflict;
mod database;
mod follow;
mod guards;
mod laid;
mod lock;
mod manifest_files;
mod merged;
mod open;
mod outside;
mod stat_cache;
mod status;
mod stored;
mod tracked;
mod update;
mod vfile;

pub use check_in::{CheckIn, CheckedIn};
pub use conflict::Conflicted;
pub(crate) use lock::CheckoutLock;
pub use open::Checkout;
pub use status::{Change, How, Status};
pub use tracked::TrackedPaths;
pub use update::{Updated, UpdatedFile};

pub use crate::merge::{FileOutcome, MergeHow};
