//! Who a set of artifacts comes from, which decides what it may hold.

use super::agent::Agent;

/// Who a set of artifacts comes from.
#[derive(Clone, Copy)]
pub(crate) enum Sender<'a> {
    /// Whoever may import anything here, for a person's own bundle.
    Person,
    /// An agent, whose own check-ins on its own branch are taken and nothing else.
    Agent(Agent<'a>),
    /// A server of the project, which has taken the artifacts in before.
    Server,
}

impl Sender<'_> {
    pub fn is_server(self) -> bool {
        matches!(self, Self::Server)
    }
}
