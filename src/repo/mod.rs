//! The safe library: repositories, checkouts, check-ins, and the files in them.

pub mod artifact;
pub mod delta;
pub mod http;
pub mod ignore;
pub mod packed;
pub mod remote;
pub mod store;
pub mod text;
pub mod tree;

#[cfg(test)]
pub(crate) mod plain_fossil;
