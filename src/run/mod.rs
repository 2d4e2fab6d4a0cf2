//! A run's workspace: the tests a tree declares, running them, and what their passes are good for.
//!
//! - [`Declared`] reads `ocx-tests.json`.
//! - [`Command`] runs one test command and leaves no process behind ([`leash`] says how).
//! - [`Jobs`] runs the tests of one checkout, also longer than one call waits.
//! - [`evidence`] binds a pass to the content it was seen on; [`log`] keeps what tests printed.
//!
//! Everything here blocks and uses threads; nothing needs an async runtime.

mod amount;
mod bound;
mod branch;
mod claim;
pub mod command;
mod comment;
mod declared;
mod environment;
pub mod evidence;
mod job;
mod journal;
pub mod leash;
mod lock;
pub mod log;
mod output;
mod processes;
mod record;
mod report;
mod save;
mod snapshot;
mod span;
mod workspace;

pub use amount::Amount;
pub use branch::working_branch;
pub use command::{Command, Ended, Outcome};
pub use comment::Comment;
pub use declared::{Declared, FILE as DECLARED_FILE, Test};
pub use environment::Environment;
pub use job::{Ask, Ground, Jobs, Which};
pub use journal::{Begun, Journal, Saved};
pub use leash::Leash;
pub use output::{Count, Kept, Output};
pub use processes::Leftover;
pub use record::Record;
pub use report::{Progress, TestReport, TestResult};
pub use save::{Ready, Saving, TestChange, Untested, Way, settings_changed};
pub use snapshot::{Change, How, Snapshot};
pub use span::Span;
pub use workspace::{Run, Standing, set_objective};
