//! The server as rmcp sees it. Every call of a tool goes through here, over every transport.

use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult, ErrorCode,
    ErrorData, Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;

use super::flight::Flight;
use super::progress::{self, NoStream, Progress};
use super::{listing, repair};
use crate::cancel::{Cancel, OnCancel};
use crate::error::{Error, Kind};
use crate::http::Caller;
use crate::tool::{self, Answer, CallControl, Hints, Service};

/// The catalogue for MCP clients. All clones are the same server.
#[derive(Clone)]
pub struct Server {
    service: Arc<Service>,
    closing: Cancel,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new("ocx", env!("CARGO_PKG_VERSION"))
                    .with_title(listing::title(&self.service)),
            )
            .with_instructions(listing::instructions(&self.service))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(listing::tools(&self.service))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(reason) = context.meta.get(repair::REFUSAL) {
            let answer = match reason.get("given") {
                Some(given) => {
                    let service = self.service_for(&context);
                    let control = CallControl::default();
                    tokio::task::block_in_place(|| {
                        tool::call(&service, &request.name, given.clone(), &control)
                    })
                }
                None => refused(&request.name, reason),
            };
            return Ok(result(answer).into());
        }
        Ok(self.call(request, context).await.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let modern = context.meta.protocol_version().is_some();
        let known =
            KNOWN_METHODS.contains(&request.method.as_str()) && !(modern && request.method == "initialize");
        Err(if known {
            ErrorData::invalid_params(format!("the parameters of {} do not fit", request.method), None)
        } else {
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("no method {}", cut(&request.method)), None)
        })
    }
}

/// Methods that reach [`ServerHandler::on_custom_request`] only if their parameters do not fit. `initialize` is not a
/// method for requests that carry their own metadata.
const KNOWN_METHODS: [&str; 4] = ["initialize", "server/discover", "tools/list", "tools/call"];

impl Server {
    /// Makes a server. Its calls act where `service` acts, and end when `closing` is cancelled.
    pub fn new(service: Service, closing: Cancel) -> Self {
        Self { service: Arc::new(service), closing }
    }

    /// Ends a call with the server, and when its client says so in another message. Lasts as long as what it returns.
    fn ends(&self, context: &RequestContext<RoleServer>, cancel: &Cancel) -> Vec<OnCancel> {
        let flight = extension::<Arc<Flight>>(context);
        let causes = flight.map(|flight| flight.handle()).into_iter().chain([&self.closing]);
        causes
            .map(|cause| {
                let cancel = cancel.clone();
                cause.on_cancel(move || cancel.cancel())
            })
            .collect()
    }

    /// The service that acts as the caller.
    fn service_for(&self, context: &RequestContext<RoleServer>) -> Arc<Service> {
        match extension::<Caller>(context).and_then(|caller| caller.login.clone()) {
            Some(login) => Arc::new(self.service.acting_as(login)),
            None => Arc::clone(&self.service),
        }
    }

    /// Runs the call so that nothing else waits for it. A call that only looks runs on this thread, after the other
    /// tasks are moved to other threads. Every other call runs on a thread of its own.
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let tool = self.service.catalogue().find(&request.name);
        let looks = tool.is_some_and(|tool| tool.declaration().hints == Hints::LOOKS);
        if looks && context.meta.get_progress_token().is_none() {
            let (service, control) = (self.service_for(&context), CallControl::default());
            let _bridge = CancelBridge::new(context.ct.clone().cancelled_owned(), control.handle());
            let _ended = self.ends(&context, control.handle());
            let input = request.arguments.map_or(Value::Null, Value::Object);
            return tokio::task::block_in_place(|| {
                result(tool::call(&service, &request.name, input, &control))
            });
        }
        self.call_beside(request, context).await
    }

    /// Runs the call on a thread of its own. Tells the client now and then that the call still runs.
    async fn call_beside(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let name = request.name.into_owned();
        let control = Arc::new(CallControl::default());
        // Over HTTP the call is dropped when its connection is dropped.
        let _gone = Gone(control.handle().clone());
        let _ended = self.ends(&context, control.handle());
        let mut job = tokio::task::spawn_blocking({
            let (service, control, name) = (self.service_for(&context), Arc::clone(&control), name.clone());
            let input = request.arguments.map_or(Value::Null, Value::Object);
            move || result(tool::call(&service, &name, input, &control))
        });
        let progress = Progress::wanted(&context).filter(|_| extension::<NoStream>(&context).is_none());
        // A client that takes no progress, or a session that ends, does not hold up the answer.
        let told = async {
            let Some(progress) = progress else { return std::future::pending().await };
            loop {
                tokio::time::sleep(progress::EVERY).await;
                progress.tell(control.last_line()).await;
            }
        };
        let answer = tokio::select! {
            done = &mut job => done,
            () = told => unreachable!("it goes on until it is dropped"),
            () = context.ct.cancelled() => {
                control.cancel();
                job.await
            }
        };
        answer.unwrap_or_else(|e| {
            let error = Error::new(Kind::Internal, "the tool's thread broke").caused_by(e);
            result(Answer::refused(&name, false, Vec::new(), error.into()))
        })
    }
}

/// What was found out about a request before it came here, by the transport or by the layers of the HTTP server.
fn extension<T: Send + Sync + 'static>(context: &RequestContext<RoleServer>) -> Option<&T> {
    let by_layers = || context.extensions.get::<Parts>()?.extensions.get();
    context.extensions.get().or_else(by_layers)
}

/// Cancels a call when nobody waits for it any more.
struct Gone(Cancel);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Passes the protocol's cancellation on to a call, until this is dropped.
struct CancelBridge(tokio::task::AbortHandle);

impl CancelBridge {
    fn new(cancelled: impl Future<Output = ()> + Send + 'static, cancel: &Cancel) -> Self {
        let cancel = cancel.clone();
        let waiting = tokio::spawn(async move {
            cancelled.await;
            cancel.cancel();
        });
        Self(waiting.abort_handle())
    }
}

impl Drop for CancelBridge {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The same JSON as text and as structured content. Some clients show the text to a model, others the structured
/// content.
fn result(answer: Answer) -> CallToolResult {
    if answer.ok() {
        CallToolResult::structured(answer.into_json())
    } else {
        CallToolResult::structured_error(answer.into_json())
    }
}

/// The refusal of a call whose arguments could not be read.
fn refused(name: &str, reason: &Value) -> Answer {
    let why = reason["why"].as_str().unwrap_or("the arguments cannot be read");
    let error =
        Error::new(Kind::Invalid, why).with_hint("Send `arguments` as a JSON object of well-formed strings.");
    Answer::refused(name, false, Vec::new(), error.into())
}

fn cut(text: &str) -> String {
    text.chars().take(100).collect()
}
