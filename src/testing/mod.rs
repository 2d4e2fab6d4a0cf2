//! The tests that a tree declares: running them, their logs, and what their passes count for.

mod declared;
pub mod evidence;
mod job;
pub mod log;
mod outcome;
mod report;
mod test_lock;

pub use declared::{Declared, FILE as DECLARED_FILE, Test};
pub use job::{Jobs, Waiter, Which};
pub use outcome::Outcome;
pub use report::{Progress, TestReport, TestResult};
