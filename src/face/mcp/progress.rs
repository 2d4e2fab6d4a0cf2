//! Progress of a long call. It is sent to the client if the client asked for it.

use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};

/// The time between two progress messages of a long call.
pub const EVERY: Duration = Duration::from_secs(2);

/// Marks a request whose client reads one JSON text and no stream of events, so that it gets no progress.
#[derive(Clone, Copy)]
pub struct NoStream;

/// Progress of one call.
pub struct Progress<'a> {
    token: ProgressToken,
    peer: &'a Peer<RoleServer>,
    started: Instant,
}

impl<'a> Progress<'a> {
    /// The progress of this call. Returns nothing if the client did not ask for it.
    pub fn wanted(context: &'a RequestContext<RoleServer>) -> Option<Self> {
        let token = context.meta.get_progress_token()?;
        Some(Self { token, peer: &context.peer, started: Instant::now() })
    }

    /// Sends `line` to the client, or only says that the call still runs. The number is seconds, because the protocol
    /// wants a number that only grows. If the client can't be reached, the call does not fail.
    pub async fn tell(&self, line: Option<String>) {
        let seconds = self.started.elapsed().as_secs_f64().floor();
        let message = line.unwrap_or_else(|| format!("still running after {seconds} s"));
        let progress = ProgressNotificationParam::new(self.token.clone(), seconds).with_message(message);
        let _ = self.peer.notify_progress(progress).await;
    }
}
