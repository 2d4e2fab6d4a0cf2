//! The tests that a tree declares: running them, their logs, and what their passes are good for.

mod claim;
mod declared;
pub mod evidence;
mod job;
pub mod log;
mod report;
mod snapshot;

pub use declared::{Declared, FILE as DECLARED_FILE, Test};
pub use job::{Ask, Ground, Jobs, Which};
pub use report::{Progress, TestReport, TestResult};
pub use snapshot::{Change, How, Snapshot};
