//! An address or a socket that the server listens on, and the connections to it.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
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
use tokio::io::{AsyncRead, AsyncWrite};
use tower::{Service, ServiceBuilder};

use super::connections::{Connection, Connections, Limits};
use super::gate::{self, Gate};
use super::tokens::{self, Tokens};
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};

/// The longest time for reading the head of a request after the first one. A connection may stay idle for the same
/// time, if no other one needs its place.
const HEAD_WAIT: Duration = Duration::from_mins(1);

/// How long requests at work have to end and to be answered when the server must end.
const CALLS_MAX: Duration = Duration::from_millis(500);

/// The longest time for sending an answer that was already made when the server must end.
const FLUSH: Duration = Duration::from_millis(200);

/// An address that the server listens on, but does not serve yet.
pub struct Listener {
    socket: Socket,
    gate: Gate,
    tokens: Option<Tokens>,
}

enum Socket {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, SocketFile),
}

/// The file of a socket, which goes with it.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Whoever finds it later finds out that nobody listens.
        let _ = fs::remove_file(&self.0);
    }
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
        Ok(Self { gate: gate.before(address), socket: Socket::Tcp(socket, address), tokens })
    }

    /// Listens on a socket at `path`, which only this user can use. A socket there that nobody listens on is replaced.
    ///
    /// # Errors
    /// `Exists`, if something else is there, or another server listens on it. `Io`.
    pub fn bind_socket(path: &Path, gate: Gate, tokens: Option<Tokens>) -> Result<Self> {
        let cannot = |e| Error::io(format!("cannot listen on the socket `{}`", path.display()), e);
        if let Ok(there) = path.symlink_metadata() {
            let (is_socket, what) = (there.file_type().is_socket(), path.display());
            if !is_socket || UnixStream::connect(path).is_ok() {
                let by = if is_socket { "another server listens on it" } else { "it is no socket" };
                return Err(Error::new(Kind::Exists, format!("`{what}` exists: {by}"))
                    .with_hint("Name another path, or end what uses this one."));
            }
        }
        // It gets its name once it is closed to others, so that nobody reaches it before.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let closed = tempfile::Builder::new().prefix(".ocx-").tempdir_in(folder).map_err(cannot)?;
        let made = closed.path().join("s");
        let socket = UnixListener::bind(&made).map_err(cannot)?;
        fs::set_permissions(&made, fs::Permissions::from_mode(0o600)).map_err(cannot)?;
        fs::rename(&made, path).map_err(cannot)?;
        let file = SocketFile(path.to_owned());
        socket.set_nonblocking(true).map_err(cannot)?;
        Ok(Self { socket: Socket::Unix(socket, file), gate, tokens })
    }

    /// The URL for clients, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.socket {
            Socket::Tcp(_, address) => format!("http://{address}"),
            Socket::Unix(..) => "http://localhost".to_owned(),
        }
    }

    /// Serves `routes` until `stop` is done. Then `closing` is cancelled, so that requests at work end; connections
    /// without a complete request are dropped, and the others get a moment for their answers.
    ///
    /// # Errors
    /// `Io`, if the address can't be served.
    pub async fn serve(self, routes: Router, stop: impl Future<Output = ()>, closing: &Cancel) -> Result<()> {
        self.serve_within(Limits::USUAL, routes, stop, closing).await
    }

    async fn serve_within(
        self,
        limits: Limits,
        routes: Router,
        stop: impl Future<Output = ()>,
        closing: &Cancel,
    ) -> Result<()> {
        let accepting = Accepting::on(self.socket)?;
        let gate = Arc::new(self.gate);
        let routes = routes.layer(
            ServiceBuilder::new()
                .layer(from_fn_with_state(gate, gate::admit))
                .layer(from_fn_with_state(self.tokens.map(Arc::new), tokens::prove)),
        );
        let open = Arc::new(Connections::new(limits));
        let ending = GracefulShutdown::new();
        let mut asked = pin!(stop);
        loop {
            tokio::select! {
                () = &mut asked => break,
                (stream, place) = accepting.next(&open) => match stream {
                    Stream::Tcp(stream) => {
                        // An answer is one small write. It must not wait until the client acknowledges the previous one.
                        let _ = stream.set_nodelay(true);
                        attend(stream, (place, Arc::clone(&open)), routes.clone(), &ending);
                    }
                    Stream::Unix(stream) => attend(stream, (place, Arc::clone(&open)), routes.clone(), &ending),
                }
            }
        }
        drop(accepting);
        closing.cancel();
        open.drop_waiting(FLUSH);
        let mut ended = pin!(ending.shutdown());
        if tokio::time::timeout(FLUSH, &mut ended).await.is_err() {
            // By now every answer that was being sent is sent.
            open.drop_waiting(Duration::ZERO);
            let _ = tokio::time::timeout(CALLS_MAX, &mut ended).await;
        }
        Ok(())
    }
}

/// What connections come from.
enum Accepting {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener, #[expect(dead_code, reason = "it goes when this is dropped")] SocketFile),
}

enum Stream {
    Tcp(tokio::net::TcpStream),
    Unix(tokio::net::UnixStream),
}

impl Accepting {
    fn on(socket: Socket) -> Result<Self> {
        match socket {
            Socket::Tcp(socket, _) => tokio::net::TcpListener::from_std(socket).map(Self::Tcp),
            Socket::Unix(socket, file) => {
                tokio::net::UnixListener::from_std(socket).map(|socket| Self::Unix(socket, file))
            }
        }
        .map_err(|e| Error::io("cannot listen", e))
    }

    async fn stream(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(socket) => Ok(Stream::Tcp(socket.accept().await?.0)),
            Self::Unix(socket, _) => Ok(Stream::Unix(socket.accept().await?.0)),
        }
    }

    /// Waits for the next connection, and then for a place for it.
    async fn next(&self, open: &Connections) -> (Stream, Arc<Connection>) {
        loop {
            match self.stream().await {
                Ok(stream) => return (stream, open.add().await),
                // The client has left already, or no descriptor is free. Neither is a reason to stop serving.
                Err(e) => {
                    tracing::warn!("cannot accept a connection: {e}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
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

/// Answers the requests of one connection. It has its place until it ends.
fn attend(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    (place, open): (Arc<Connection>, Arc<Connections>),
    routes: Router,
    ending: &GracefulShutdown,
) {
    let watching = Arc::clone(&place);
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let (mut head, body) = request.into_parts();
        let (body, answering) = watching.request(Body::new(body));
        head.extensions.insert(Arc::clone(&watching));
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
            Self::proved_by(None, limits)
        }

        fn proved_by(tokens: Option<Tokens>, limits: Limits) -> Self {
            let listener =
                Listener::bind("127.0.0.1:0".parse().unwrap(), Gate::new(&[], ""), tokens).unwrap();
            let Socket::Tcp(_, address) = listener.socket else { unreachable!() };
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
            let stopped = async move { asked.acquire_owned().await.unwrap().forget() };
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
        let limits = Limits { count_max: 2, unproven_max: 2, head_wait: LONG, young: Duration::ZERO };
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

    /// Sends a request on an open connection, and reads the head and the `ok` of its answer.
    fn again(stream: &mut std::net::TcpStream, token: &str) -> String {
        let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"\r\n\r\nok") && stream.read(&mut byte).unwrap() == 1 {
            answer.push(byte[0]);
        }
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn v15_silent_connections_and_wrong_tokens_take_no_place_of_those_who_proved_who_they_are() {
        const TOKEN: &str = "0123456789abcdef";
        let limits = Limits { count_max: 4, unproven_max: 2, head_wait: LONG, young: Duration::ZERO };
        let served = Served::proved_by(Some(Tokens::parse(TOKEN).unwrap()), limits);
        let mut proved = served.send("");
        assert!(again(&mut proved, TOKEN).ends_with("ok"));
        let wrong = "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdeX\r\n\r\n";
        let others: Vec<_> = ["", wrong, "GET", "", wrong, ""].iter().map(|sent| served.send(sent)).collect();
        // The last two hold the places for unproven ones, and a new one takes the first of them.
        let mut new = served.send("");
        assert!(again(&mut new, TOKEN).ends_with("ok"));
        assert!(again(&mut proved, TOKEN).ends_with("ok"), "it kept its place");
        for gone in others.into_iter().take(4) {
            let said = rest(gone);
            assert!(said.is_empty() || said.starts_with("HTTP/1.1 401"), "{said}");
        }
    }

    #[test]
    fn v15_a_wrong_token_holds_a_connection_no_longer_than_silence() {
        let head_wait = Duration::from_millis(100);
        let tokens = Tokens::parse("0123456789abcdef").unwrap();
        let served = Served::proved_by(Some(tokens), Limits { head_wait, ..Limits::USUAL });
        let said = rest(served.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert!(said.starts_with("HTTP/1.1 401"), "{said}");
    }

    #[test]
    fn r10_asked_to_end_it_ends_what_is_at_work_answers_it_and_drops_the_rest() {
        let served = Served::within(Limits { head_wait: LONG, ..Limits::USUAL });
        let (at_work, half) = (served.at_work(), served.send("GET / HT"));
        served.stop.add_permits(1);
        assert_eq!(rest(half), "", "half a head holds nothing up");
        assert!(rest(at_work).ends_with("cut"));
        served.thread.join().unwrap();
    }

    #[test]
    fn a_socket_is_its_owners_alone_and_replaces_only_one_that_nobody_listens_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ocx.sock");
        let bind = || Listener::bind_socket(&path, Gate::new(&[], ""), None);
        let listener = bind().unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left there");
        assert_eq!(bind().map(drop).unwrap_err().kind(), Kind::Exists);
        let Socket::Unix(socket, file) = listener.socket else { panic!("a socket") };
        // As a server leaves it that was killed.
        drop(socket);
        std::mem::forget(file);
        drop(bind().unwrap());
        assert!(!path.exists(), "it goes with its server");
        fs::write(&path, "").unwrap();
        assert_eq!(bind().map(drop).unwrap_err().kind(), Kind::Exists);
    }
}
