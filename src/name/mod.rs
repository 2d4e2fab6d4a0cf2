//! Checked values: artifact hash, branch, tag, user, wiki page, unversioned file, and file path in a tree.
//!
//! A value here has passed its rules once. So the rest of the library can hand it to Fossil, to the disk and to a
//! person without asking again. `repo` looks names up in a repository. Nothing here reads a file or a database.
//! [`time`] is the clock and the calendar.

mod amount;
mod branch;
mod hash;
mod page;
mod password;
mod path;
mod rule;
mod sha3;
mod shown;
mod span;
mod tag;
pub mod time;
mod unversioned;
mod user;

pub use amount::Amount;
pub use branch::Branch;
pub(crate) use branch::is_working_branch;
pub use hash::Hash;
pub use page::PageName;
pub use password::Password;
pub(crate) use path::names_database;
pub use path::{TEMP_PREFIX, TreePath};
pub use shown::shown;
pub use span::Span;
pub use tag::TagName;
pub use unversioned::UnversionedName;
pub use user::User;
