//! A child process held for its whole life: its variables, its output, its limits, and its end with all that it started.
//!
//! Nothing here knows what the process is for.

pub mod command;
mod environment;
pub mod leash;
mod output;
pub(crate) mod processes;

pub use command::{Command, Ended, Outcome};
pub use environment::Environment;
pub use leash::Leash;
pub use output::{Count, Kept, Output};
pub(crate) use output::{MAX_LINE, shown};
pub use processes::Leftover;
