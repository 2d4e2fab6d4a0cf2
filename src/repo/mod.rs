//! The safe library: repositories, checkouts, check-ins, and the files in them.

pub mod text;
