//! A child process held for its whole life: its variables, its output, its limits, and its end with all that it started.
//!
//! Nothing here knows what the process is for.

mod command;
mod descendants;
mod environment;
mod exit;
mod identity;
mod output;
mod supervisor;

pub use command::{Command, Mark, Running, Stopper};
pub use environment::Environment;
pub use exit::{Exit, Finished, Leftover};
pub(crate) use identity::Identity;
pub use output::{Count, Kept, Output};
pub(crate) use output::{LINE_BYTES_MAX, shown};
pub use supervisor::Supervisor;
