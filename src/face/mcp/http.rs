//! The same server over streamable HTTP. There is one path. Each call is one request. Nothing is kept between calls.
//!
//! The code that judges lines judges bodies too, and the same server makes the answers. So a tool's answer has the same
//! bytes as over standard input and output. A client cancels a call by closing the response, and in the old era also by
//! a notification. Clients of that era get a session id, which nothing is kept for: it tells their requests from those of
//! others.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ClientRequest, RequestId};
use rmcp::service::RxJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::flight::{Flights, Key};
use super::progress::NoStream;
use super::repair::{self, Judged, MESSAGE_BYTES_MAX};
use super::server::Server;
use super::weight::{Scale, Weighed};
use crate::http::{BodyRefusal, Caller, WholeBody, drain, random_hex};

/// The only path that is served.
pub const PATH: &str = "/mcp";

/// The header by which a client of the old era says which one it is.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// What the protocol machinery wants to read of every client.
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

type Protocol = StreamableHttpService<Server, NeverSessionManager>;

/// What all requests share.
#[derive(Clone)]
struct Door {
    protocol: Protocol,
    scale: Scale,
    flights: Flights,
}

/// The route of the server. Only a POST has a message to judge. The protocol machinery refuses every other method.
pub fn routes(server: Server) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(usize::MAX)
        // The gate has already judged the host and the origin. This module judges the body's length.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let protocol = Protocol::new(move || Ok(server.clone()), Arc::default(), config);
    let door = Door { protocol: protocol.clone(), scale: Scale::new(), flights: Flights::default() };
    Router::new().route(PATH, post(answer).fallback_service(protocol)).with_state(door)
}

/// The answer for every other path.
pub async fn nothing_here() -> Response {
    (StatusCode::NOT_FOUND, format!("nothing is here; MCP is served at {PATH}\n")).into_response()
}

async fn answer(State(door): State<Door>, request: Request) -> Response {
    // Memory is promised before the first byte of the body is read.
    let (head, mut body) = request.into_parts();
    let announced = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
    let promised = announced.unwrap_or(MESSAGE_BYTES_MAX);
    let Some(weighed) = door.scale.wait(if promised > MESSAGE_BYTES_MAX { 0 } else { promised }).await else {
        drain(&mut body).await;
        return json(StatusCode::SERVICE_UNAVAILABLE, repair::too_many_bytes(None));
    };
    let body = Request::from_parts(head.clone(), body);
    let body = match WholeBody::<MESSAGE_BYTES_MAX>::from_request(body, &()).await {
        Ok(WholeBody(body)) => body,
        Err(BodyRefusal::TooLarge { declared, .. }) => {
            let what = declared.map_or("the body".to_owned(), |bytes| format!("a body of {bytes} bytes"));
            return json(StatusCode::PAYLOAD_TOO_LARGE, repair::over_the_limit(&what));
        }
        Err(refusal) => return refusal.into_response(),
    };
    let weighed = weighed.only(body.len());
    if body.trim_ascii().is_empty() {
        return json(StatusCode::BAD_REQUEST, repair::no_message());
    }
    let judged = repair::judge(&body);
    drop(body);
    match judged {
        Judged::Message(message) => door.take(Request::from_parts(head, ()), *message, weighed).await,
        Judged::Reply { reply, under_id } => {
            json(if under_id { StatusCode::OK } else { StatusCode::BAD_REQUEST }, reply)
        }
        Judged::Nothing => StatusCode::ACCEPTED.into_response(),
    }
}

impl Door {
    /// Takes a message that was judged.
    async fn take(
        self,
        mut request: Request<()>,
        message: RxJsonRpcMessage<RoleServer>,
        weighed: Weighed,
    ) -> Response {
        fit_accept(&mut request);
        let mut opens = false;
        match &message {
            RxJsonRpcMessage::<RoleServer>::Request(sent) => {
                opens = matches!(sent.request, ClientRequest::InitializeRequest(_));
                let key = key(&request, &sent.id);
                let flight = if request.headers().contains_key(SESSION) {
                    self.flights.enter(key, weighed)
                } else {
                    Some(self.flights.join(key, weighed))
                };
                let Some(flight) = flight else {
                    return json(StatusCode::OK, repair::not_taken(&sent.id));
                };
                request.extensions_mut().insert(flight);
            }
            RxJsonRpcMessage::<RoleServer>::Notification(sent) => {
                if let ClientNotification::CancelledNotification(cancelled) = &sent.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.flights.cancel(&key(&request, id));
                }
            }
            _ => {}
        }
        let mut answer = match serde_json::to_vec(&message) {
            Ok(body) => {
                drop(message);
                hand_on(self.protocol, request.map(|()| Body::from(body))).await
            }
            Err(e) => return (StatusCode::BAD_REQUEST, format!("{e}\n")).into_response(),
        };
        if opens
            && answer.status() == StatusCode::OK
            && let Some(id) = random_hex().ok().and_then(|id| HeaderValue::try_from(id).ok())
        {
            answer.headers_mut().insert(SESSION, id);
        }
        answer
    }
}

/// The key of a request with this id: its login, and the session id that its client was given.
fn key(request: &Request<()>, id: &RequestId) -> Key {
    let caller = request.extensions().get::<Caller>();
    let session = request.headers().get(SESSION);
    Key { client: format!("{caller:?} {session:?}"), id: id.clone() }
}

/// A client that reads JSON is served, whether or not it reads streams of events too, as the protocol machinery wants.
fn fit_accept(request: &mut Request<()>) {
    let (json, stream) = accepted(request.headers());
    if json {
        request.headers_mut().insert(ACCEPT, BOTH);
        if !stream {
            request.extensions_mut().insert(NoStream);
        }
    }
}

/// Whether a client reads JSON, and whether it asks for streams of events. Without the header it reads anything.
fn accepted(headers: &HeaderMap) -> (bool, bool) {
    let refuses = |parameter: &str| {
        let weight = parameter.trim().strip_prefix("q=").unwrap_or("1");
        weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0)
    };
    let all: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let (mut json, mut stream) = (all.is_empty(), false);
    for range in all.iter().flat_map(|value| value.split(',')) {
        let mut parts = range.split(';');
        let media = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        if !parts.any(refuses) {
            json |= ["application/json", "application/*", "*/*"].contains(&media.as_str());
            stream |= media == "text/event-stream";
        }
    }
    (json, stream)
}

/// Passes a message to the protocol machinery on a thread of its own. So writing a long answer does not delay the calls
/// that share a worker with it. Dropping the future ends the call.
async fn hand_on(protocol: Protocol, request: Request) -> Response {
    let (_here, gone) = oneshot::channel::<()>();
    let runtime = Handle::current();
    let handled = tokio::task::spawn_blocking(move || {
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = gone => None,
                answer = protocol.handle(request) => Some(answer),
            }
        })
    });
    match handled.await {
        Ok(Some(answer)) => answer.map(Body::new),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "the call broke off\n").into_response(),
    }
}

fn json(status: StatusCode, json: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], json).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m18_whoever_reads_json_is_served() {
        for (given, wanted) in [
            (&[][..], (true, false)),
            (&["*/*"], (true, false)),
            (&["application/json"], (true, false)),
            (&["text/html", "Application/*;q=0.1"], (true, false)),
            (&["application/json, text/event-stream"], (true, true)),
            (&["text/event-stream"], (false, true)),
            (&["application/json;q=0, text/html"], (false, false)),
        ] {
            let mut headers = HeaderMap::new();
            for value in given {
                headers.append(ACCEPT, HeaderValue::from_static(value));
            }
            assert_eq!(accepted(&headers), wanted, "{given:?}");
        }
    }
}
