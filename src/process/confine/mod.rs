//! How a sandbox is made: the watcher's part outside, and that of the first process inside.

mod etc;
mod filter;
mod judge;
mod lock;
mod loopback;
mod namespace;
mod point;
mod view;

pub(super) use judge::judge;
pub(super) use lock::lock;
pub(super) use namespace::{Outside, separate};
pub(super) use view::{Entered, enter};
