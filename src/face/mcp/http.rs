//! The same server over streamable HTTP: one path, one request a call, nothing kept between calls.
//!
//! Bodies go through the judge that reads lines, and answers come from the one server, so that a tool's answer
//! has the same bytes as over standard input and output. A client cancels a call by closing the response.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, EXPECT, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::gate::{Gate, Refusal};
use super::rescue::{self, Judged, MESSAGE_BYTES_MAX};
use super::{Caller, GRACE, SHUTDOWN, Server, runtime};
use crate::error::{Error, Result};
use crate::tool::Service;

/// The one path that is served.
pub const PATH: &str = "/mcp";

/// How many connections are open at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 128;

/// How long the head of a request may take, and a connection may stay idle.
const HEAD_WAIT: Duration = Duration::from_mins(1);

/// How long a body may take.
const BODY_WAIT: Duration = Duration::from_mins(1);

/// How long a body over the limit is read and dropped, so that its sender gets to read the refusal.
const DRAIN_WAIT: Duration = Duration::from_secs(5);

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// An address that is listened on and not served yet.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    gate: Gate,
}

impl Listener {
    /// Listens on `address`; port 0 takes a free one. `names` are what the server is called besides its address, and
    /// `tokens` are lines of `LOGIN TOKEN`, or of a token alone, which stands for the checkout's user: callers must send
    /// one as their bearer token, and act as its login.
    ///
    /// # Errors
    /// `Denied`, when the address is not loopback and there is no token; `Invalid`, naming the line, for tokens that
    /// cannot be used; `Io`, when the address can't be had.
    pub fn bind(address: SocketAddr, names: &[String], tokens: Option<&str>) -> Result<Self> {
        let gate = Gate::new(address, names, tokens)?;
        let cannot = |e| Error::io(format!("cannot listen on `{address}`"), e);
        let socket = TcpListener::bind(address).map_err(cannot)?;
        socket.set_nonblocking(true).map_err(cannot)?;
        let address = socket.local_addr().map_err(cannot)?;
        Ok(Self { socket, address, gate })
    }

    /// Where clients find it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Serves until `stop` is done. Calls in flight then have a moment to end, and are cancelled after it.
    ///
    /// # Errors
    /// `Io`, when the operating system gives no threads.
    pub fn serve(self, session: Service, stop: impl Future<Output = ()>) -> Result<()> {
        let runtime = runtime()?;
        let served = runtime.block_on(self.accept_until(session, stop));
        runtime.shutdown_timeout(SHUTDOWN);
        served
    }

    async fn accept_until(self, session: Service, stop: impl Future<Output = ()>) -> Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.socket)
            .map_err(|e| Error::io(format!("cannot listen on `{}`", self.address), e))?;
        let closing = CancellationToken::new();
        let server = Server { session: Arc::new(session), closing: closing.clone() };
        let door = Arc::new(Door::new(self.gate, server));
        let connections = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                (stream, place) = accepted(&listener, &places) => {
                    Arc::clone(&door).attend(stream, place, &connections);
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

/// The next connection, once there is a place for it.
async fn accepted(
    listener: &tokio::net::TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            // A client that left again, or no descriptor free: neither is a reason to stop serving.
            Err(e) => {
                tracing::warn!("cannot accept a connection: {e}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Takes requests in: who may come, how much they may send, and what of it reaches the protocol.
struct Door {
    gate: Gate,
    service: StreamableHttpService<Server, NeverSessionManager>,
}

impl Door {
    fn new(gate: Gate, server: Server) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(usize::MAX)
            // The gate has judged both, and the body's length is judged here.
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let service = StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config);
        Self { gate, service }
    }

    /// Answers what comes over one connection.
    fn attend(
        self: Arc<Self>,
        stream: TcpStream,
        place: Option<OwnedSemaphorePermit>,
        connections: &GracefulShutdown,
    ) {
        // An answer is one small write; it must not wait for the client's acknowledgement of the last one.
        let _ = stream.set_nodelay(true);
        let answer = service_fn(move |request| {
            let door = Arc::clone(&self);
            async move { Ok::<_, Infallible>(door.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WAIT)
            .serve_connection(TokioIo::new(stream), answer);
        let watched = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(e) = watched.await {
                tracing::debug!("a connection broke: {e}");
            }
            drop(place);
        });
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let login = match self.gate.admit(request.uri(), request.headers()) {
            Ok(login) => login,
            Err(refusal) => return turned_away(refusal),
        };
        if request.uri().path() != PATH {
            return words(StatusCode::NOT_FOUND, format!("nothing is here; MCP is served at {PATH}"));
        }
        if request.method() != Method::POST {
            return self.service.handle(request).await;
        }
        let may_wait = request.headers().contains_key(EXPECT);
        let (mut head, body) = request.into_parts();
        // It has done its work, and no log may ever show it.
        head.headers.remove(AUTHORIZATION);
        if let Some(login) = login {
            head.extensions.insert(Caller(login));
        }
        let body = match whole(body, may_wait).await {
            Ok(body) => body,
            Err(answer) => return answer,
        };
        match rescue::judge(&body) {
            Judged::Message(message) => match serde_json::to_vec(&*message) {
                Ok(body) => self.hand_on(Request::from_parts(head, Full::from(body))).await,
                Err(e) => words(StatusCode::BAD_REQUEST, e.to_string()),
            },
            Judged::Reply { reply, under_id } => {
                json(if under_id { StatusCode::OK } else { StatusCode::BAD_REQUEST }, reply)
            }
            Judged::Nothing => words(StatusCode::ACCEPTED, String::new()),
        }
    }

    /// Gives a message to the protocol on a thread of its own: there a long answer is written out without holding up
    /// the calls that share a worker with it. Dropping the future ends the call.
    async fn hand_on(&self, request: Request<Full<Bytes>>) -> Answer {
        let gone = CancellationToken::new();
        let _gone = gone.clone().drop_guard();
        let (service, runtime) = (self.service.clone(), Handle::current());
        let handled = tokio::task::spawn_blocking(move || {
            runtime.block_on(gone.run_until_cancelled(service.handle(request)))
        });
        match handled.await {
            Ok(Some(answer)) => answer,
            _ => words(StatusCode::INTERNAL_SERVER_ERROR, "the call broke off".to_owned()),
        }
    }
}

/// The whole body, in bounded memory and time.
async fn whole(mut body: Incoming, may_wait: bool) -> std::result::Result<Vec<u8>, Answer> {
    let declared = body.size_hint().lower();
    let limit = u64::try_from(MESSAGE_BYTES_MAX).unwrap_or(u64::MAX);
    if declared > limit {
        // Who asks before sending has sent nothing yet, and would send it all if it were read.
        if !may_wait {
            drain(&mut body).await;
        }
        return Err(too_large(&format!("a body of {declared} bytes")));
    }
    let mut held = Vec::new();
    let reading = async {
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|e| words(StatusCode::BAD_REQUEST, format!("the body broke off: {e}")))?;
            if let Ok(data) = frame.into_data() {
                if held.len() + data.len() > MESSAGE_BYTES_MAX {
                    return Ok(false);
                }
                held.extend_from_slice(&data);
            }
        }
        Ok(true)
    };
    match tokio::time::timeout(BODY_WAIT, reading).await {
        Ok(Ok(true)) => Ok(held),
        Ok(Ok(false)) => {
            drop(held);
            drain(&mut body).await;
            Err(too_large("the body"))
        }
        Ok(Err(answer)) => Err(answer),
        Err(_) => {
            Err(words(StatusCode::REQUEST_TIMEOUT, format!("the body took over {} s", BODY_WAIT.as_secs())))
        }
    }
}

async fn drain(body: &mut Incoming) {
    let all = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = tokio::time::timeout(DRAIN_WAIT, all).await;
}

fn too_large(what: &str) -> Answer {
    json(StatusCode::PAYLOAD_TOO_LARGE, rescue::over_the_limit(what))
}

fn turned_away(refusal: Refusal) -> Answer {
    match refusal {
        Refusal::Host => words(
            StatusCode::FORBIDDEN,
            "this server is not called by that Host; name it with `ocx mcp --host NAME`".to_owned(),
        ),
        Refusal::Origin => {
            words(StatusCode::FORBIDDEN, "pages of that Origin may not call this server".to_owned())
        }
        Refusal::Token => {
            let mut answer = words(
                StatusCode::UNAUTHORIZED,
                "send a token of this server as `Authorization: Bearer TOKEN`".to_owned(),
            );
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"ocx\""));
            answer
        }
    }
}

fn words(status: StatusCode, mut words: String) -> Answer {
    if !words.is_empty() {
        words.push('\n');
    }
    whole_answer(status, "text/plain; charset=utf-8", words.into_bytes())
}

fn json(status: StatusCode, json: Vec<u8>) -> Answer {
    whole_answer(status, "application/json", json)
}

fn whole_answer(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::from(body).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
