//! The catalogue over the Model Context Protocol: one server, on standard input and output or over HTTP.
//!
//! The server serves both eras: sessions that begin with `initialize`, and requests that carry their own metadata. rmcp
//! is the protocol machinery. Our code handles lines, bad input and the answers of tools.

mod flight;
mod http;
mod lines;
mod listing;
mod progress;
mod repair;
mod server;
mod weight;

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::sync::Notify;

pub use self::http::PATH;
use self::lines::Lines;
use self::server::Server;
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};
use crate::http::Listener;
use crate::tool::Service;

/// The longest time that calls may still run after the server has ended, if they can't be cut short.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// There is more than one worker, so that writing a long answer does not delay other answers.
const WORKERS: usize = 4;

/// Serves one client on `input` and `output` until the input ends, or `stop` is done. Then calls at work are cancelled,
/// and answered.
///
/// # Errors
/// `Io`, if the operating system gives no threads.
pub fn serve(
    service: Service,
    input: File,
    output: File,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    run(serve_lines(service, input, output, stop))
}

/// Serves the clients that connect to `listener`, at [`PATH`], until `stop` is done. Then calls at work are cancelled,
/// and answered.
///
/// # Errors
/// `Io`, if the operating system gives no threads.
pub fn serve_http(service: Service, listener: Listener, stop: impl Future<Output = ()>) -> Result<()> {
    let closing = Cancel::new();
    let routes = http::routes(Server::new(service, closing.clone())).fallback(http::nothing_here);
    run(listener.serve(routes, stop, &closing))
}

/// Runs the server on few threads. They only pass messages on; tools run on other threads.
fn run(serving: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|e| Error::io("cannot start the server", e))?;
    let served = runtime.block_on(serving);
    runtime.shutdown_timeout(SHUTDOWN);
    served
}

async fn serve_lines(
    service: Service,
    input: File,
    output: File,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let (closing, stopping) = (Cancel::new(), Arc::new(Notify::new()));
    let lines = Lines::start(input, output, closing.clone(), Arc::clone(&stopping))
        .map_err(|e| Error::io("cannot start a thread", e))?;
    tokio::spawn(async move {
        stop.await;
        stopping.notify_one();
    });
    match Server::new(service, closing).serve(lines).await {
        Ok(running) => {
            running
                .waiting()
                .await
                .map_err(|e| Error::new(Kind::Internal, "the session broke").caused_by(e))?;
            Ok(())
        }
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(e) => Err(Error::new(Kind::Io, format!("the session did not open: {e}")).caused_by(e)),
    }
}
