//! One HTTP listener: its address, its limits, and who may call. It knows nothing of what is served.
//!
//! What is served comes as axum routes. Every request passes the [`Gate`] and then the [`Tokens`]; a handler learns from
//! the extension [`Caller`] who calls, and reads a body by [`WholeBody`].

mod body;
mod gate;
mod listener;
mod tokens;

pub use body::{BodyRefusal, WholeBody};
pub use gate::Gate;
pub use listener::Listener;
pub use tokens::{Caller, Tokens};
