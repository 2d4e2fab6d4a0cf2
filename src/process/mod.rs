//! A child process held for its whole life: its variables, its output, its limits, and its end with all that it started.
//!
//! Nothing here knows what the process is for.

mod command;
mod confine;
mod descendants;
mod environment;
mod exit;
mod hold;
mod identity;
mod launcher;
mod memory;
mod order;
mod output;
mod probe;
mod sandbox;
mod shown_line;
mod supervisor;
mod watch;

pub use command::{Command, Mark, Running, Stopper};
pub use environment::Environment;
pub use exit::{Exit, Finished, Leftover};
pub(crate) use identity::Identity;
pub use output::{Count, Kept, Output};
pub use probe::NoSandboxes;
pub use sandbox::{Mount, MountKind, Sandbox};
#[cfg(test)]
pub(crate) use shown_line::LINE_BYTES_MAX;
pub(crate) use shown_line::ShownLine;
pub use supervisor::{Supervisor, hide_from_debuggers};
