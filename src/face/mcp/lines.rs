//! A transport over a pair of byte streams, in bounded memory. Each line is one JSON-RPC message.
//!
//! A line that is not a message gets a JSON-RPC error, and the session continues. Reading and writing each have their
//! own thread. So a client that stops reading blocks only itself.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{GetExtensions, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::flight::{Flights, Key};
use super::repair::{self, Judged, MESSAGE_BYTES_MAX};
use super::weight::{self, Scale, Weighed};
use crate::cancel::Cancel;

/// How many messages can wait in each direction. If more come, their sender has to wait.
const QUEUE: usize = 64;

/// An answer whose text has more bytes than this is written out on a thread of its own.
const LONG_BYTES: usize = 256 << 10;

/// The longest time that running calls may continue after the input has ended.
const GRACE: Duration = Duration::from_secs(1);

/// The same when the session must stop.
const LAST_ANSWERS: Duration = Duration::from_millis(300);

/// The longest time for writing the last answers when the session ends.
const FLUSH: Duration = Duration::from_secs(2);

/// A message, and its bytes.
type Incoming = (RxJsonRpcMessage<RoleServer>, Weighed);

/// The transport.
pub struct Lines {
    incoming: mpsc::Receiver<Incoming>,
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
    written: Option<oneshot::Receiver<()>>,
    flights: Flights,
    closing: Cancel,
    stopping: Arc<Notify>,
    /// True when answers are no longer waited for.
    gone: watch::Sender<bool>,
    opened: bool,
}

impl Lines {
    /// Starts to read `input` and to write `output`. Cancels `closing` soon after the input ends, and at once when the
    /// session must stop, which ends it as the end of the input does.
    ///
    /// # Errors
    /// The operating system's error, if it gives no thread.
    pub fn start(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        closing: Cancel,
        stopping: Arc<Notify>,
    ) -> std::io::Result<Self> {
        let (to_session, incoming) = mpsc::channel(QUEUE);
        let (outgoing, to_client) = mpsc::channel(QUEUE);
        let (done, written) = oneshot::channel();
        let replies = outgoing.downgrade();
        thread::Builder::new()
            .name("mcp-read".into())
            .spawn(move || read_all(input, &to_session, &replies))?;
        thread::Builder::new().name("mcp-write".into()).spawn(move || {
            write_all(output, to_client);
            let _ = done.send(());
        })?;
        Ok(Self {
            incoming,
            outgoing: Some(outgoing),
            written: Some(written),
            flights: Flights::default(),
            closing,
            stopping,
            gone: watch::Sender::new(false),
            opened: false,
        })
    }

    /// Whether this message is let through. Before a session is open, only requests are let through. Any other message
    /// would end the session.
    fn admits(&mut self, message: &RxJsonRpcMessage<RoleServer>) -> bool {
        let request = matches!(message, RxJsonRpcMessage::<RoleServer>::Request(_));
        self.opened |= request && repair::opens(message);
        request || self.opened
    }

    /// Lets a message into the session. A request keeps its id until it has ended.
    fn enter(
        &self,
        mut message: RxJsonRpcMessage<RoleServer>,
        weighed: Weighed,
    ) -> Result<RxJsonRpcMessage<RoleServer>, Vec<u8>> {
        if let RxJsonRpcMessage::<RoleServer>::Request(request) = &mut message {
            let key = Key { client: String::new(), id: request.id.clone() };
            let entered = self.flights.enter(key, weighed);
            let flight = entered.ok_or_else(|| repair::not_taken(&request.id))?;
            request.request.extensions_mut().insert(flight);
        }
        Ok(message)
    }
}

impl Transport<RoleServer> for Lines {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (outgoing, mut gone) = (self.outgoing.clone(), self.gone.subscribe());
        async move {
            let closed = || std::io::Error::from(ErrorKind::BrokenPipe);
            let line = if is_long(&item) {
                tokio::task::spawn_blocking(move || serde_json::to_vec(&item)).await??
            } else {
                serde_json::to_vec(&item)?
            };
            let outgoing = outgoing.ok_or_else(closed)?;
            tokio::select! {
                biased;
                sent = outgoing.send(line) => sent.map_err(|_| closed()),
                _ = gone.wait_for(|gone| *gone) => Err(closed()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let next = tokio::select! {
                biased;
                () = self.stopping.notified() => {
                    self.closing.cancel();
                    let gone = self.gone.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(LAST_ANSWERS).await;
                        gone.send_replace(true);
                    });
                    return None;
                }
                next = next(&mut self.incoming, self.outgoing.as_ref()) => next,
            };
            let Some((message, weighed)) = next else { break };
            if !self.admits(&message) {
                continue;
            }
            match self.enter(message, weighed) {
                Ok(message) => return Some(message),
                // A client that does not read its answers gets none.
                Err(reply) => drop(self.outgoing.as_ref().map(|outgoing| outgoing.try_send(reply))),
            }
        }
        let closing = self.closing.clone();
        tokio::spawn(async move {
            tokio::time::sleep(GRACE).await;
            closing.cancel();
        });
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.closing.cancel();
        self.outgoing = None;
        if let Some(written) = self.written.take() {
            let mut gone = self.gone.subscribe();
            tokio::select! {
                _ = tokio::time::timeout(FLUSH, written) => {}
                _ = gone.wait_for(|gone| *gone) => {}
            }
        }
        Ok(())
    }
}

/// The next message, once there is room for an answer. So a client that reads no answers is not read either.
async fn next(
    incoming: &mut mpsc::Receiver<Incoming>,
    outgoing: Option<&mpsc::Sender<Vec<u8>>>,
) -> Option<Incoming> {
    if let Some(outgoing) = outgoing {
        drop(outgoing.reserve().await);
    }
    incoming.recv().await
}

/// Whether writing out this message takes so long that it would delay other messages on the same worker.
fn is_long(message: &TxJsonRpcMessage<RoleServer>) -> bool {
    let TxJsonRpcMessage::<RoleServer>::Response(response) = message else { return false };
    let ServerResult::CallToolResult(result) = &response.result else { return false };
    result.content.iter().filter_map(|c| c.as_text()).any(|c| c.text.len() > LONG_BYTES)
}

fn read_all(input: impl Read, to_session: &mpsc::Sender<Incoming>, replies: &mpsc::WeakSender<Vec<u8>>) {
    let reply = |line: Vec<u8>| replies.upgrade().is_some_and(|r| r.blocking_send(line).is_ok());
    let (mut framer, scale) = (Framer::new(input), Scale::new());
    while let Some(frame) = framer.next() {
        let mut weighed = Weighed::default();
        let refused = |reply| Judged::Reply { reply, under_id: false };
        let judged = match frame {
            Frame::Line(line) => match scale.add(line.len()) {
                Some(bytes) => {
                    weighed = bytes;
                    repair::judge(line)
                }
                None => refused(repair::too_many_bytes(weight::id(line))),
            },
            Frame::TooLong(bytes) => refused(repair::over_the_limit(&format!("a line of {bytes} bytes"))),
        };
        let alive = match judged {
            Judged::Message(message) => to_session.blocking_send((*message, weighed)).is_ok(),
            Judged::Reply { reply: line, .. } => reply(line),
            Judged::Nothing => true,
        };
        if !alive {
            return;
        }
    }
}

fn write_all(mut output: impl Write, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut line) = lines.blocking_recv() {
        line.push(b'\n');
        if output.write_all(&line).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

/// What is between two line ends: a line, or only the length of a line that is too long.
enum Frame<'a> {
    Line(&'a [u8]),
    TooLong(usize),
}

/// Cuts a stream into lines of bounded length.
struct Framer<R> {
    input: R,
    buffer: Vec<u8>,
    /// The start of the unread part.
    start: usize,
    /// The end of the part that was already searched and holds no line end.
    scanned: usize,
    /// The number of bytes that were dropped from a line over the limit.
    dropped: usize,
    ended: bool,
}

const CHUNK: usize = 64 << 10;

impl<R: Read> Framer<R> {
    fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), start: 0, scanned: 0, dropped: 0, ended: false }
    }

    /// The next line. The last line needs no line end.
    fn next(&mut self) -> Option<Frame<'_>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
                let end = self.scanned + at;
                return Some(self.cut(end, end + 1));
            }
            self.scanned = self.buffer.len();
            if self.ended {
                let end = self.buffer.len();
                return (end > self.start || self.dropped > 0).then(|| self.cut(end, end));
            }
            self.fill();
        }
    }

    fn cut(&mut self, end: usize, next: usize) -> Frame<'_> {
        let start = std::mem::replace(&mut self.start, next);
        self.scanned = next;
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            Frame::TooLong(dropped + end - start)
        } else {
            Frame::Line(&self.buffer[start..end])
        }
    }

    fn fill(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.buffer.len() > MESSAGE_BYTES_MAX || self.dropped > 0 {
            self.dropped += self.buffer.len();
            self.buffer = Vec::new();
        }
        let held = self.buffer.len();
        self.buffer.resize(held + CHUNK, 0);
        let read = loop {
            match self.input.read(&mut self.buffer[held..]) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                other => break other.unwrap_or(0),
            }
        };
        self.buffer.truncate(held + read);
        self.scanned = held;
        self.ended = read == 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bytes: &[u8]) -> Vec<String> {
        let mut framer = Framer::new(bytes);
        let mut all = Vec::new();
        while let Some(frame) = framer.next() {
            all.push(match frame {
                Frame::Line(line) => String::from_utf8_lossy(line).into_owned(),
                Frame::TooLong(bytes) => format!("{bytes} bytes"),
            });
        }
        all
    }

    #[test]
    fn lines_are_cut_at_line_ends_and_the_last_needs_none() {
        assert_eq!(frames(b"a\n\nbc\nd"), ["a", "", "bc", "d"]);
        assert_eq!(frames(b"a\n"), ["a"]);
        assert!(frames(b"").is_empty());
    }

    #[test]
    fn m06_an_endless_line_is_dropped_and_counted_and_the_next_is_read() {
        let mut bytes = vec![b'x'; MESSAGE_BYTES_MAX * 2];
        bytes.extend_from_slice(b"\nnext\n");
        assert_eq!(frames(&bytes), [format!("{} bytes", MESSAGE_BYTES_MAX * 2), "next".into()]);
    }
}
