//! One receiver and one sender of artifacts.
//!
//! The receiver takes a set of artifacts as it came (`Staged`): it expands each, verifies it, judges the whole set by the
//! rules of its source, stores the rows as they are and has Fossil's code link them in. All of this is one
//! transaction. The sender selects artifacts and packs them. Where a set comes from or goes to (a file, a
//! network) is the business of the rooms above.

mod agent;
mod bases;
mod cards;
mod compact;
mod findings;
mod judge;
mod likely;
mod lines;
mod link;
mod order;
mod pack;
mod receive;
mod row;
mod rules;
mod select;
mod spool;
mod staged;
mod store;
mod tags;
mod verdict;
mod walk;

pub(crate) use bases::Bases;
pub(crate) use compact::compact;
pub(crate) use findings::Findings;
pub(crate) use pack::pack;
pub use receive::{Import, Imported};
pub(crate) use receive::{Received, check, receive};
pub use row::Progress;
pub(crate) use row::{Basis, Keep, Row, data_max};
pub use select::Selection;
pub(crate) use select::select;
pub(crate) use spool::{Arrival, Spool, SpoolLimits};
pub(crate) use staged::{Reader, Source, Staged};
pub(crate) use store::make_public;
pub(crate) use verdict::{Origin, judge_own};
