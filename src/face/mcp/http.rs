//! The same server over streamable HTTP. There is one path. Each call is one request. Nothing is kept between calls.
//!
//! The code that judges lines judges bodies too, and the same server makes the answers. So a tool's answer has the same
//! bytes as over standard input and output. A client cancels a call by closing the response.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::repair::{self, Judged, MESSAGE_BYTES_MAX};
use super::server::Server;
use crate::http::{BodyRefusal, WholeBody};

/// The only path that is served.
pub const PATH: &str = "/mcp";

type Protocol = StreamableHttpService<Server, NeverSessionManager>;

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
    Router::new().route(PATH, post(answer).fallback_service(protocol.clone())).with_state(protocol)
}

/// The answer for every other path.
pub async fn nothing_here() -> Response {
    (StatusCode::NOT_FOUND, format!("nothing is here; MCP is served at {PATH}\n")).into_response()
}

async fn answer(
    State(protocol): State<Protocol>,
    head: Parts,
    body: Result<WholeBody<MESSAGE_BYTES_MAX>, BodyRefusal>,
) -> Response {
    let body = match body {
        Ok(WholeBody(body)) => body,
        Err(BodyRefusal::TooLarge { declared, .. }) => {
            let what = declared.map_or("the body".to_owned(), |bytes| format!("a body of {bytes} bytes"));
            return json(StatusCode::PAYLOAD_TOO_LARGE, repair::over_the_limit(&what));
        }
        Err(refusal) => return refusal.into_response(),
    };
    if body.trim_ascii().is_empty() {
        return json(StatusCode::BAD_REQUEST, repair::no_message());
    }
    match repair::judge(&body) {
        Judged::Message(message) => match serde_json::to_vec(&*message) {
            Ok(body) => hand_on(protocol, Request::from_parts(head, Body::from(body))).await,
            Err(e) => (StatusCode::BAD_REQUEST, format!("{e}\n")).into_response(),
        },
        Judged::Reply { reply, under_id } => {
            json(if under_id { StatusCode::OK } else { StatusCode::BAD_REQUEST }, reply)
        }
        Judged::Nothing => StatusCode::ACCEPTED.into_response(),
    }
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
