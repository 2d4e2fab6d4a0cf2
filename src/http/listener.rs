//! An address that the server listens on, and the connections to it.

use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceBuilder;

use super::gate::{self, Gate};
use super::tokens::{self, Tokens};
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};

/// How many connections can be open at once. Further connections wait until they are accepted.
const CONNECTIONS_MAX: usize = 128;

/// The longest time for reading the head of a request. A connection may stay idle for the same time.
const HEAD_WAIT: Duration = Duration::from_mins(1);

/// How long running requests may continue when the server must end.
const GRACE: Duration = Duration::from_secs(1);

/// How long requests that can't be cut short may continue after that.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// An address that the server listens on, but does not serve yet.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    gate: Gate,
    tokens: Option<Tokens>,
}

impl Listener {
    /// Listens on `address`. Port 0 means any free port. Every request must pass `gate`. If there are `tokens`, every
    /// request must carry one of them.
    ///
    /// # Errors
    /// `Denied`, if others can reach the address and there are no tokens. `Io`, if the address is not available.
    pub fn bind(address: SocketAddr, gate: Gate, tokens: Option<Tokens>) -> Result<Self> {
        if tokens.is_none() {
            require_loopback(address)?;
        }
        let cannot = |e| Error::io(format!("cannot listen on `{address}`"), e);
        let socket = TcpListener::bind(address).map_err(cannot)?;
        socket.set_nonblocking(true).map_err(cannot)?;
        let address = socket.local_addr().map_err(cannot)?;
        Ok(Self { socket, address, gate, tokens })
    }

    /// The URL for clients, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves `routes` until `stop` is done. Then running requests have a moment to end. After that moment `closing` is
    /// cancelled, and handlers must end.
    ///
    /// # Errors
    /// `Io`, if the address can't be served.
    pub async fn serve(self, routes: Router, stop: impl Future<Output = ()>, closing: &Cancel) -> Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.socket)
            .map_err(|e| Error::io(format!("cannot listen on `{}`", self.address), e))?;
        let routes = routes.layer(
            ServiceBuilder::new()
                .layer(from_fn_with_state(Arc::new(self.gate), gate::admit))
                .layer(from_fn_with_state(self.tokens.map(Arc::new), tokens::prove)),
        );
        let connections = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                (stream, place) = accepted(&listener, &places) => {
                    attend(stream, place, routes.clone(), &connections);
                }
            }
        }
        drop(listener);
        let mut ended = pin!(connections.shutdown());
        if tokio::time::timeout(GRACE, &mut ended).await.is_err() {
            closing.cancel();
            let _ = tokio::time::timeout(SHUTDOWN, ended).await;
        }
        closing.cancel();
        Ok(())
    }
}

/// Refuses an address that others can reach.
fn require_loopback(address: SocketAddr) -> Result<()> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let what = format!("`{address}` can be reached by others and needs a token");
    Err(Error::new(Kind::Denied, what).with_hint("Give it a token, or listen on 127.0.0.1."))
}

/// Waits until there is a place for one more connection. Returns the next connection and its place.
async fn accepted(
    listener: &tokio::net::TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            // The client has left already, or no descriptor is free. Neither is a reason to stop serving.
            Err(e) => {
                tracing::warn!("cannot accept a connection: {e}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Answers the requests of one connection. The connection has `place` until it ends.
fn attend(
    stream: TcpStream,
    place: Option<OwnedSemaphorePermit>,
    routes: Router,
    connections: &GracefulShutdown,
) {
    // An answer is one small write. It must not wait until the client acknowledges the previous answer.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    let watched = connections.watch(connection);
    tokio::spawn(async move {
        if let Err(e) = watched.await {
            tracing::debug!("a connection broke: {e}");
        }
        drop(place);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_others_reach_needs_a_token() {
        for address in ["0.0.0.0:0", "[::]:80", "192.0.2.1:80"] {
            let refused = Listener::bind(address.parse().unwrap(), Gate::new(&[], ""), None).map(drop);
            assert_eq!(refused.unwrap_err().kind(), Kind::Denied, "{address}");
        }
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Gate::new(&[], ""), None).unwrap();
        assert!(listener.url().starts_with("http://127.0.0.1:"));
    }
}
