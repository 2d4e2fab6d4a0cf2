//! Child processes: commands and the tests of a checkout as jobs. In a program of their own, since storms of processes
//! and stopped schedulers would slow down every test beside them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod command;
mod job;
