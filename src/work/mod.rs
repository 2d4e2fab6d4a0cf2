//! An agent's workspace: one checkout with its objective, its working branch, its tests and what it has saved.

mod branch;
mod comment;
mod forbidden;
mod journal;
mod save;
mod workspace;

pub use branch::working_branch;
pub use comment::Comment;
pub use forbidden::{Unresolved, Untested};
pub use journal::{Begun, Journal, Saved};
pub use save::{Delivery, ReadySave, SavePlan, TestChange, ToInclude, Unsent, settings_changed};
pub use workspace::{Standing, Workspace, set_objective};
