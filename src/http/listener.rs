//! An address that the server listens on, and the connections to it.

use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpStream;
use tower::{Service, ServiceBuilder};

use super::connections::{Connection, Connections, Limits};
use super::gate::{self, Gate};
use super::tokens::{self, Tokens};
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};

/// The longest time for reading the head of a request after the first one. A connection may stay idle for the same
/// time, if no other one needs its place.
const HEAD_WAIT: Duration = Duration::from_mins(1);

/// How long requests at work may continue when the server must end.
const CALLS_MAX: Duration = Duration::from_mins(1);

/// The longest time for sending an answer that was already made when the server must end.
const FLUSH: Duration = Duration::from_secs(1);

/// How long requests that can't be cut short may continue after they were asked to end.
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

    /// Serves `routes` until `stop` is done. Then connections without a complete request are dropped, and requests at
    /// work may go on for a minute, or until a second `stop` is done. After that `closing` is cancelled, and handlers
    /// must end.
    ///
    /// # Errors
    /// `Io`, if the address can't be served.
    pub async fn serve<S: Future<Output = ()>>(
        self,
        routes: Router,
        stop: impl Fn() -> S,
        closing: &Cancel,
    ) -> Result<()> {
        self.serve_within(Limits::USUAL, routes, stop, closing).await
    }

    async fn serve_within<S: Future<Output = ()>>(
        self,
        limits: Limits,
        routes: Router,
        stop: impl Fn() -> S,
        closing: &Cancel,
    ) -> Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.socket)
            .map_err(|e| Error::io(format!("cannot listen on `{}`", self.address), e))?;
        let gate = Arc::new(self.gate.before(self.address));
        let routes = routes.layer(
            ServiceBuilder::new()
                .layer(from_fn_with_state(gate, gate::admit))
                .layer(from_fn_with_state(self.tokens.map(Arc::new), tokens::prove)),
        );
        let open = Arc::new(Connections::new(limits));
        let ending = GracefulShutdown::new();
        let mut asked = pin!(stop());
        loop {
            tokio::select! {
                () = &mut asked => break,
                (stream, place) = accepted(&listener, &open) => {
                    attend(stream, (place, Arc::clone(&open)), routes.clone(), &ending);
                }
            }
        }
        drop(listener);
        open.drop_waiting(FLUSH);
        end(ending, &open, stop(), closing).await;
        Ok(())
    }
}

/// Waits until the requests at work are answered: for a bounded time, and not if `at_once` is done before.
async fn end(
    ending: GracefulShutdown,
    open: &Connections,
    at_once: impl Future<Output = ()>,
    closing: &Cancel,
) {
    let mut ended = pin!(ending.shutdown());
    let answered = async {
        if tokio::time::timeout(FLUSH, &mut ended).await.is_ok() {
            return true;
        }
        // By now every answer that was being sent is sent.
        open.drop_waiting(Duration::ZERO);
        tokio::time::timeout(CALLS_MAX, &mut ended).await.is_ok()
    };
    let is_ended = tokio::select! {
        is_ended = answered => is_ended,
        () = at_once => false,
    };
    closing.cancel();
    if !is_ended {
        let _ = tokio::time::timeout(SHUTDOWN, ended).await;
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

/// Waits for the next connection, and then for a place for it.
async fn accepted(listener: &tokio::net::TcpListener, open: &Connections) -> (TcpStream, Arc<Connection>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, open.add().await),
            // The client has left already, or no descriptor is free. Neither is a reason to stop serving.
            Err(e) => {
                tracing::warn!("cannot accept a connection: {e}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Answers the requests of one connection. It has its place until it ends.
fn attend(
    stream: TcpStream,
    (place, open): (Arc<Connection>, Arc<Connections>),
    routes: Router,
    ending: &GracefulShutdown,
) {
    // An answer is one small write. It must not wait until the client acknowledges the previous answer.
    let _ = stream.set_nodelay(true);
    let watching = Arc::clone(&place);
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let (head, body) = request.into_parts();
        let (body, answering) = watching.request(Body::new(body));
        let answer = routes.clone().call(Request::from_parts(head, body));
        async move { answer.await.map(|answer| answer.map(|body| answering.keep(body))) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .serve_connection(TokioIo::new(stream), answer);
    let watched = ending.watch(connection);
    tokio::spawn(async move {
        tokio::select! {
            served = watched => {
                if let Err(e) = served {
                    tracing::debug!("a connection broke: {e}");
                }
            }
            () = place.must_leave(open.limits().head_wait) => {}
        }
        open.remove(&place);
    });
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::JoinHandle;

    use axum::routing::get;
    use tokio::sync::{Notify, Semaphore};

    use super::*;

    /// The end of what hangs.
    const HANG: Duration = Duration::from_mins(1);
    const LONG: Duration = Duration::from_hours(1);

    /// A server with `/`, which answers at once, and `/wait`, which waits until it is released.
    struct Served {
        address: SocketAddr,
        waiting: Arc<AtomicUsize>,
        release: Arc<Notify>,
        stop: Arc<Semaphore>,
        thread: JoinHandle<()>,
    }

    impl Served {
        fn within(limits: Limits) -> Self {
            let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Gate::new(&[], ""), None).unwrap();
            let address = listener.address;
            let (waiting, release, stop) =
                (Arc::<AtomicUsize>::default(), Arc::<Notify>::default(), Arc::new(Semaphore::new(0)));
            let closing = Cancel::new();
            let wait = {
                let (waiting, release, closing) =
                    (Arc::clone(&waiting), Arc::clone(&release), closing.clone());
                move || wait(Arc::clone(&waiting), Arc::clone(&release), closing.clone())
            };
            let routes = Router::new().route("/", get(|| async { "ok" })).route("/wait", get(wait));
            let asked = Arc::clone(&stop);
            let stopped = move || {
                let asked = Arc::clone(&asked);
                async move { asked.acquire_owned().await.unwrap().forget() }
            };
            let thread = std::thread::spawn(move || {
                let runtime = tokio::runtime::Runtime::new().unwrap();
                runtime.block_on(listener.serve_within(limits, routes, stopped, &closing)).unwrap();
            });
            Self { address, waiting, release, stop, thread }
        }

        fn send(&self, text: &str) -> std::net::TcpStream {
            let mut stream = std::net::TcpStream::connect(self.address).unwrap();
            stream.set_read_timeout(Some(HANG)).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
            stream
        }

        fn ask(&self, path: &str) -> std::net::TcpStream {
            self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
        }

        /// A request that is at work.
        fn at_work(&self) -> std::net::TcpStream {
            let stream = self.ask("/wait");
            let start = std::time::Instant::now();
            while self.waiting.load(Ordering::SeqCst) == 0 {
                assert!(start.elapsed() < HANG);
                std::thread::sleep(Duration::from_millis(1));
            }
            stream
        }
    }

    async fn wait(waiting: Arc<AtomicUsize>, release: Arc<Notify>, closing: Cancel) -> &'static str {
        let closed = Arc::new(Notify::new());
        let told = Arc::clone(&closed);
        let _closing = closing.on_cancel(move || told.notify_one());
        waiting.fetch_add(1, Ordering::SeqCst);
        tokio::select! {
            () = release.notified() => "done",
            () = closed.notified() => "cut",
        }
    }

    /// The rest of what the server sends before it closes.
    fn rest(mut stream: std::net::TcpStream) -> String {
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes) {
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => panic!("still open"),
            _ => String::from_utf8(bytes).unwrap(),
        }
    }

    #[test]
    fn an_address_that_others_reach_needs_a_token() {
        for address in ["0.0.0.0:0", "[::]:80", "192.0.2.1:80"] {
            let refused = Listener::bind(address.parse().unwrap(), Gate::new(&[], ""), None).map(drop);
            assert_eq!(refused.unwrap_err().kind(), Kind::Denied, "{address}");
        }
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Gate::new(&[], ""), None).unwrap();
        assert!(listener.url().starts_with("http://127.0.0.1:"));
    }

    #[test]
    fn a_connection_without_a_whole_head_is_closed() {
        let head_wait = Duration::from_millis(100);
        let served = Served::within(Limits { head_wait, ..Limits::USUAL });
        for sent in ["", "GET / HTTP/1.1\r\nHost: loc"] {
            assert_eq!(rest(served.send(sent)), "", "{sent}");
        }
        assert!(rest(served.ask("/")).ends_with("ok"));
    }

    #[test]
    fn a_connection_that_waits_gives_way_and_one_at_work_does_not() {
        let limits = Limits { count_max: 2, head_wait: LONG, young: Duration::ZERO };
        let served = Served::within(limits);
        let at_work = served.at_work();
        for sent in ["", "GET / HT", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n12"] {
            let silent = served.send(sent);
            assert!(rest(served.ask("/")).ends_with("ok"));
            drop(rest(silent));
        }
        served.release.notify_one();
        assert!(rest(at_work).ends_with("done"));
    }

    #[test]
    fn r10_asked_to_end_it_answers_what_is_at_work_and_drops_the_rest() {
        let served = Served::within(Limits { head_wait: LONG, ..Limits::USUAL });
        let (at_work, half) = (served.at_work(), served.send("GET / HT"));
        served.stop.add_permits(1);
        assert_eq!(rest(half), "", "half a head holds nothing up");
        served.release.notify_one();
        assert!(rest(at_work).ends_with("done"));
        served.thread.join().unwrap();
    }

    #[test]
    fn r10_asked_twice_it_ends_at_once() {
        let served = Served::within(Limits { head_wait: LONG, ..Limits::USUAL });
        let at_work = served.at_work();
        served.stop.add_permits(2);
        assert!(rest(at_work).ends_with("cut"));
        served.thread.join().unwrap();
    }
}
