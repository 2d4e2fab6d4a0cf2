//! A merge of three trees as a plan: what happens to each path, and why. No disk, no C, no checkout.
//!
//! One principle decides each case: no byte that somebody wrote is ever in no file and no backup. A side that did
//! nothing yields. Two sides that did different things to one thing are a conflict that names both.
//!
//! A [`Plan`] is made of [`Trees`] alone. [`Plan::settle`] then joins the texts that both sides changed. [`in_memory`] does all of it
//! for two check-ins.

mod base;
mod draft;
mod how;
mod memory;
mod outcome;
mod place;
mod plan;
mod renames;
mod side;
mod step;
mod subject;
mod text;
mod verdict;

#[cfg(test)]
mod base_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod state_tests;

pub use base::{Versions, common_ancestor};
pub use how::MergeHow;
pub use memory::{Merged, MergedFile, in_memory};
pub use outcome::FileOutcome;
pub(crate) use place::beside;
pub use plan::{Plan, Wanted};
pub use renames::renames;
pub use side::{Side, Trees};
pub use step::{Backup, Owner, Placed, Refusal, Source, Step};
pub use text::{Joined, join};
