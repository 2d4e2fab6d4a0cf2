//! The tests that a tree declares: running them on exactly the stored tree, their logs, and what their passes count for.

mod beside;
mod declaration;
mod declared;
pub mod evidence;
mod home;
mod job;
mod jobs;
pub mod log;
mod outcome;
mod report;
mod room;
mod runner;
mod stage;
mod state;
mod test_tree;

pub use declaration::{RunsIn, Test, Variable};
pub use declared::{Declared, FILE as DECLARED_FILE};
pub use job::Waiter;
pub use jobs::{Jobs, Which};
pub use outcome::Outcome;
pub use report::{Activity, Progress, TestReport, TestResult};
pub use room::{Bounds, TreesTaken};
pub use state::StateFolder;
