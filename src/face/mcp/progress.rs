//! Progress of a long call, told to the client that asked for it.

use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};

/// How often a call that takes long says that it goes on.
pub const EVERY: Duration = Duration::from_secs(2);

/// Progress of one call.
pub struct Progress<'a> {
    token: ProgressToken,
    peer: &'a Peer<RoleServer>,
    started: Instant,
}

impl<'a> Progress<'a> {
    /// Returns nothing if the client did not ask for progress.
    pub fn wanted(context: &'a RequestContext<RoleServer>) -> Option<Self> {
        let token = context.meta.get_progress_token()?;
        Some(Self { token, peer: &context.peer, started: Instant::now() })
    }

    /// Tells the client `line`, or only that the call goes on. The number is seconds: the protocol wants one that only
    /// grows. A client that can't be told is no failure of the call.
    pub async fn tell(&self, line: Option<String>) {
        let seconds = self.started.elapsed().as_secs_f64().floor();
        let message = line.unwrap_or_else(|| format!("still running after {seconds} s"));
        let progress = ProgressNotificationParam::new(self.token.clone(), seconds).with_message(message);
        let _ = self.peer.notify_progress(progress).await;
    }
}
