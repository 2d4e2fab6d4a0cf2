//! The library as a host uses it, with plain Fossil as the judge.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "../support/mod.rs"]
mod support;

mod bundle;
mod crash;
mod delta;
mod end_to_end;
mod interop;
mod join;
mod merge;
mod property;
mod random_merge;
mod records;
mod reference;
mod settings;
mod states;
mod status;
mod sync;
mod taken;
mod update;
