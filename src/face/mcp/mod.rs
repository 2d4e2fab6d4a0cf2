//! The catalogue over the Model Context Protocol: one server, on standard input and output or over HTTP.
//!
//! Both eras are served: sessions that begin with `initialize`, and requests that carry their own metadata. The
//! protocol machinery is rmcp's; lines, bad input and what a tool answers are ours.

mod gate;
pub mod http;
pub mod lines;
mod rescue;
mod tokens;

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use hyper::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult, ErrorCode,
    ErrorData, Implementation, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProgressToken, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{Peer, RequestContext, ServerInitializeError};
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::lines::Lines;
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};
use crate::name::User;
use crate::tool::{self, Answer, Binding, CallControl, Catalogue, Declaration, Hints, Refusal, Service};

/// How often a call that takes long says that it goes on.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// How long calls in flight may go on when the client has gone or the server is to end.
const GRACE: Duration = Duration::from_secs(1);

/// How long calls that can't be cut short may take to end after the session has.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// How long a client may keep the tool list; it changes only with the program.
const LIST_TTL_MS: u64 = 3_600_000;

/// More than one, so that a long answer that is being written holds no other up.
const WORKERS: usize = 4;

const INSTRUCTIONS: &str = "Work in a Fossil checkout. Start with ocx_context: it gives the objective, the working \
branch, what is changed and the tests. Find with ocx_find, read with ocx_read, change with ocx_edit (copy `old` \
exactly from what ocx_read gave), run ocx_test, then ocx_save, which commits and pushes. Every answer begins with \
`ok`; when it is false, do what `next_step` says, or make the call in `next_call` as it stands.";

/// What is said where there is a repository and no checkout.
const NO_CHECKOUT: &str = "Work with the records of a Fossil repository; there is no checkout here, so nothing acts on \
files. Start with ocx_status, then ocx_queue: it gives the check-ins and posts that wait on you. Read check-ins with ocx_read's \
`checkin`, judge them with ocx_audit, answer with ocx_post, and use the wiki. Every answer begins with `ok`; when it is \
false, do what `next_step` says, or make the call in `next_call` as it stands.";

/// What is said besides where the checkout is not among the caller's files.
const REMOTE: &str = " The checkout is on this server: no call reaches the files of your computer. If you have a Fossil \
clone of your own, or can make one, say so in `caller` of ocx_context.";

/// Serves one client on `input` and `output` until the input ends.
///
/// # Errors
/// `Io`, when the operating system gives no threads.
pub fn serve(session: Service, input: File, output: File) -> Result<()> {
    let runtime = runtime()?;
    let served = runtime.block_on(serve_lines(session, input, output));
    runtime.shutdown_timeout(SHUTDOWN);
    served
}

/// Few threads: they only pass messages on, tools run on others.
fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|e| Error::io("cannot start the server", e))
}

async fn serve_lines(session: Service, input: File, output: File) -> Result<()> {
    let closing = CancellationToken::new();
    let lines =
        Lines::start(input, output, closing.clone()).map_err(|e| Error::io("cannot start a thread", e))?;
    let server = Server { session: Arc::new(session), closing };
    match server.serve(lines).await {
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

/// Who the sender of a request over HTTP has proved to be, where that is not the checkout's user.
#[derive(Debug, Clone)]
struct Caller(User);

/// The server as rmcp sees it, whatever brings the messages.
#[derive(Clone)]
struct Server {
    session: Arc<Service>,
    /// Cancelled when the client has gone.
    closing: CancellationToken,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new("ocx", env!("CARGO_PKG_VERSION"))
                    .with_title("OCX: tools for a Fossil checkout"),
            )
            .with_instructions(match self.session.binding() {
                _ if !self.session.is_in_checkout() => NO_CHECKOUT.to_owned(),
                Binding::Local => INSTRUCTIONS.to_owned(),
                Binding::Remote => format!("{INSTRUCTIONS}{REMOTE}"),
            })
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools =
            self.session.catalogue().declarations().map(|t| listed(t, self.session.binding())).collect();
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(LIST_TTL_MS))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(reason) = context.meta.get(rescue::REFUSAL) {
            return Ok(result(refused(self.session.catalogue(), &request.name, reason)).into());
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

/// Methods that reach [`ServerHandler::on_custom_request`] only with parameters that do not fit; requests that carry
/// their own metadata have no `initialize`.
const KNOWN_METHODS: [&str; 4] = ["initialize", "server/discover", "tools/list", "tools/call"];

impl Server {
    /// The session as the one who calls.
    fn session_for(&self, context: &RequestContext<RoleServer>) -> Arc<Service> {
        let caller = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
        match caller {
            Some(Caller(login)) => Arc::new(self.session.acting_as(login.clone())),
            None => Arc::clone(&self.session),
        }
    }

    /// Runs the call so that nothing else waits for it: what only looks at the checkout on this thread, from which the
    /// other tasks are taken first, and anything else on a thread of its own.
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let looks = self
            .session
            .catalogue()
            .find(&request.name)
            .is_some_and(|t| t.declaration().hints == Hints::LOOKS);
        if looks && context.meta.get_progress_token().is_none() {
            let (session, watch) = (self.session_for(&context), CallControl::default());
            let _bound = bound(context.ct.clone(), watch.handle());
            let input = request.arguments.map_or(Value::Null, Value::Object);
            return tokio::task::block_in_place(|| {
                result(tool::call(&session, &request.name, input, &watch))
            });
        }
        self.call_beside(request, context).await
    }

    /// Runs the call on a thread of its own, and tells the client that it goes on.
    async fn call_beside(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let name = request.name.into_owned();
        let watch = Arc::new(CallControl::default());
        // Over HTTP the call is dropped when its connection is.
        let _gone = Gone(watch.handle().clone());
        let _bound = bound(self.closing.clone(), watch.handle());
        let mut job = tokio::task::spawn_blocking({
            let (session, watch, name) = (self.session_for(&context), Arc::clone(&watch), name.clone());
            let input = request.arguments.map_or(Value::Null, Value::Object);
            move || result(tool::call(&session, &name, input, &watch))
        });
        let mut progress = context.meta.get_progress_token().map(|token| Progress::new(token, &context.peer));
        let answer = loop {
            tokio::select! {
                done = &mut job => break done,
                () = context.ct.cancelled() => {
                    watch.cancel();
                    break job.await;
                }
                () = tokio::time::sleep(PROGRESS_EVERY), if progress.is_some() => {
                    if let Some(progress) = &mut progress {
                        progress.tell(watch.last_line()).await;
                    }
                }
            }
        };
        answer.unwrap_or_else(|e| {
            let error = Error::new(Kind::Internal, "the tool's thread broke").caused_by(e);
            result(Answer::refused(&name, false, Vec::new(), error.into()))
        })
    }
}

/// Cancels a call that nobody waits for any more.
struct Gone(Cancel);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Has a token of the protocol's cancel a call, until what is returned is dropped.
fn bound(token: CancellationToken, cancel: &Cancel) -> impl Drop + use<> {
    let cancel = cancel.clone();
    let waiting = tokio::spawn(async move {
        token.cancelled().await;
        cancel.cancel();
    });
    Waiting(waiting.abort_handle())
}

struct Waiting(tokio::task::AbortHandle);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Progress of one call, told to the client that asked for it.
struct Progress<'a> {
    token: ProgressToken,
    peer: &'a Peer<RoleServer>,
    started: std::time::Instant,
}

impl<'a> Progress<'a> {
    fn new(token: ProgressToken, peer: &'a Peer<RoleServer>) -> Self {
        Self { token, peer, started: std::time::Instant::now() }
    }

    /// Seconds only grow, as the protocol wants of progress. A client that can't be told is no failure of the call.
    async fn tell(&mut self, line: Option<String>) {
        let seconds = self.started.elapsed().as_secs_f64().floor();
        let message = line.unwrap_or_else(|| format!("still running after {seconds} s"));
        let told = ProgressNotificationParam::new(self.token.clone(), seconds).with_message(message);
        let _ = self.peer.notify_progress(told).await;
    }
}

fn listed(tool: &Declaration, binding: Binding) -> Tool {
    let hints = ToolAnnotations::with_title(tool.title)
        .read_only(tool.hints.read_only)
        .destructive(tool.hints.destructive)
        .idempotent(tool.hints.idempotent)
        .open_world(tool.hints.open_world);
    let mut listed = Tool::new(tool.name, binding.description(tool), tool::schema::input_schema(tool))
        .with_raw_output_schema(Arc::new(tool::schema::output_schema(tool)))
        .with_annotations(hints);
    listed.title = Some(tool.title.to_owned());
    listed
}

/// The same JSON as text and as structured content: some clients show a model the one, some the other.
fn result(answer: Answer) -> CallToolResult {
    if answer.ok() {
        CallToolResult::structured(answer.into_json())
    } else {
        CallToolResult::structured_error(answer.into_json())
    }
}

/// The refusal of a call whose arguments could not be read.
fn refused(catalogue: Catalogue, name: &str, reason: &Value) -> Answer {
    let why = reason["why"].as_str().unwrap_or("the arguments cannot be read");
    let error =
        Error::new(Kind::Invalid, why).with_hint("Send `arguments` as a JSON object of well-formed strings.");
    let tool = catalogue.find(name).map(tool::Tool::declaration);
    let next = tool.zip(reason.get("meant")).and_then(|(tool, meant)| tool::repair::named(tool, meant));
    Answer::refused(name, false, Vec::new(), Refusal::from(error).or_next(next))
}

fn cut(text: &str) -> String {
    text.chars().take(100).collect()
}
