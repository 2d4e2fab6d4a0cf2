//! The engine alone: every way that Fossil's code can end gives an error, and the next call works.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

#[path = "../support/mod.rs"]
mod support;

mod damage;
mod endings;
mod fuzz;
mod hostile;
mod linking;
mod modules;
mod neighbours;
mod place;
mod steady;
mod threads;
