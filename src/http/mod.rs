//! One HTTP listener: its address, its limits, and who may call. It does not know what is served.
//!
//! The caller gives axum routes to serve. Every request passes the [`Gate`] and then the [`Tokens`]. A handler learns
//! from the extension [`Caller`] who calls, and reads a body with [`WholeBody`].

mod body;
mod connections;
mod gate;
mod listener;
pub mod token_file;
mod tokens;

pub use body::{BodyRefusal, WholeBody, drain};
pub use gate::Gate;
pub use listener::Listener;
pub use token_file::random_hex;
pub use tokens::{Caller, Tokens};
