//! A run's workspace: the tests a tree declares, running them, and what their passes are good for.
//!
//! - [`Declared`] reads `ocx-tests.json`.
//! - [`Command`] runs one test command and leaves no process behind ([`leash`] says how).
//! - [`Jobs`] runs the tests of one checkout, also longer than one call waits.
//! - [`evidence`] binds a pass to the content it was seen on; [`log`] keeps what tests printed.
//!
//! Everything here blocks and uses threads; nothing needs an async runtime.

pub mod command;
mod declared;
mod environment;
pub mod evidence;
mod job;
pub mod leash;
pub mod log;
mod output;
mod processes;
mod report;
mod snapshot;
mod span;

pub use command::{Command, Ended, Outcome};
pub use declared::{Declared, FILE as DECLARED_FILE, Test};
pub use environment::Environment;
pub use job::{Ask, Ground, Jobs, Which};
pub use leash::Leash;
pub use output::{Count, Kept, Output};
pub use processes::Leftover;
pub use report::{Progress, TestReport, TestResult};
pub use snapshot::{Change, How, Snapshot};
pub use span::Span;
