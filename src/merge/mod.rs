//! A merge of three trees as a plan: what happens to each path, and why. No disk, no C, no checkout.
//!
//! One principle decides each case: no byte that somebody wrote is ever in no file and no backup. A side that did
//! nothing yields. Two sides that did different things to one thing are a conflict that names both.
//!
//! A [`Plan`] is made of [`Trees`] alone. [`Plan::settle`] then joins the texts that both sides changed.

mod draft;
mod how;
mod outcome;
mod place;
mod plan;
mod side;
mod step;
mod subject;
mod text;
mod verdict;

pub use how::MergeHow;
pub use outcome::FileOutcome;
pub use plan::{Plan, Wanted};
pub use side::{Side, Trees};
pub use step::{Backup, Owner, Placed, Refusal, Source, Step};
pub use text::{Joined, join};
