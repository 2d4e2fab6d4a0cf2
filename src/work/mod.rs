//! An agent's workspace: one checkout with its objective, its working branch, its tests and what it has saved.

mod branch;
mod comment;
mod journal;
mod lock;
mod save;
mod workspace;

pub use branch::working_branch;
pub use comment::Comment;
pub use journal::{Begun, Journal, Saved};
pub use save::{Ready, Saving, TestChange, Untested, Way, settings_changed};
pub use workspace::{Run, Standing, set_objective};
