//! The engine alone: every way that Fossil's code can end gives an error, and the next call works.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod alone;
mod damage;
mod endings;
mod hostile;
mod neighbours;
mod place;
mod steady;
mod threads;
