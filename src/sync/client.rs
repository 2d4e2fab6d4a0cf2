//! One HTTP request of Fossil's sync protocol, with a limit on everything.
//!
//! Cards go out and come back as they are. Their meaning is the caller's business. So is the login card, which is
//! signed over the body. It travels as the body's first line, which every server understands; only servers since
//! 2.27 know the cookie that Fossil 2.28 prefers. Nothing is taken from the environment: no proxy, no `.netrc`.

mod failure;

use std::fmt;
use std::io::Read;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ureq::http::Response;
use ureq::{Agent, Body};

use self::failure::Failure;
use super::connection::{Connection, Limits};
use super::remote::Remote;
use super::url::Url;
use crate::cancel::{Cancel, OnCancel};
use crate::error::{Error, Kind, Result};
use crate::format::packed;
use crate::name::Password;

/// How many redirects are followed in one exchange.
const MAX_REDIRECTS: usize = 5;

const COMPRESSED: &str = "application/x-fossil";

/// Exchanges with one server, over a line that is kept open between them. Threads may share it.
///
/// ```no_run
/// use ocx::{cancel::Cancel, sync::client::Exchange};
/// use ocx::sync::remote::Remote;
/// let exchange = Exchange::new(&Remote::parse("http://127.0.0.1:8080/")?, &Cancel::new());
/// let reply = exchange.exchange(None, b"pragma client-version 22800\n")?;
/// assert!(reply.starts_with(b"pragma server-version"));
/// # Ok::<(), ocx::error::Error>(())
/// ```
pub struct Exchange {
    agent: Agent,
    connection: Connection,
    url: Url,
    password: Option<Password>,
    cancel: Cancel,
    /// Shuts the agent down at a cancel.
    at_cancel: OnCancel,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("url", &self.url)
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.at_cancel.take_back() {
            self.connection.give_back(&self.url, self.agent.clone());
        }
    }
}

impl Exchange {
    /// Prepares exchanges with a server. Sends nothing yet. `cancel` ends them.
    #[must_use]
    pub fn new(remote: &Remote, cancel: &Cancel) -> Self {
        let connection = remote.connection().clone();
        let agent = connection.take(remote.place());
        let ended = agent.clone();
        let at_cancel = cancel.on_cancel(move || ended.shutdown());
        Self {
            agent,
            connection,
            url: remote.place().clone(),
            password: remote.password().cloned(),
            cancel: cancel.clone(),
            at_cancel,
        }
    }

    /// Sends the cards in `body`. Returns the cards that the server answers. Both are uncompressed.
    /// `login_card` is one line without its end, or nothing for an anonymous exchange.
    ///
    /// # Errors
    /// - [`Kind::Unreachable`]: no connection, or it broke before the whole reply was here; the server may
    ///   have acted all the same.
    /// - [`Kind::Untrusted`]: the server does not prove by TLS that it is the one of the URL; nothing was sent.
    /// - [`Kind::TimedOut`]: a limit of time ran out; the server may have acted all the same.
    /// - [`Kind::LoginFailed`]: the web server before Fossil demands another login (HTTP 401, 403, 407).
    ///   Fossil itself answers a wrong login by an `error` card, which is a reply.
    /// - [`Kind::Refused`]: another HTTP status, a redirect elsewhere, or a reply that is not Fossil's.
    /// - [`Kind::TooLarge`]: a request or reply over a limit. [`Kind::Busy`]: HTTP 429 or 503.
    /// - [`Kind::Cancelled`]: after [`Cancel::cancel`].
    pub fn exchange(&self, login_card: Option<&[u8]>, body: &[u8]) -> Result<Vec<u8>> {
        self.sent(login_card, body).map_err(|failure| {
            // A cancel may break the exchange with any error.
            let failure = if self.cancel.is_cancelled() { Failure::Cancelled } else { failure };
            failure.into_error(&self.url, self.connection.limits(), self.password.as_ref())
        })
    }

    /// The exchange itself has a thread of its own. Nothing can break off the search for a host's address and the
    /// connection to it, and a cancel does not wait for them.
    fn sent(&self, login_card: Option<&[u8]>, body: &[u8]) -> Result<Vec<u8>, Failure> {
        let post = Post {
            agent: self.agent.clone(),
            url: self.url.clone(),
            limits: *self.connection.limits(),
            body: packed_request(login_card, body)?,
        };
        let (ended, end) = mpsc::channel();
        let cancelled = ended.clone();
        let _at_cancel = self.cancel.on_cancel(move || {
            // It fails if nobody waits any more.
            let _ = cancelled.send(Err(Failure::Cancelled));
        });
        let started = thread::Builder::new().name("ocx-http".to_owned()).spawn(move || {
            let _ = ended.send(post.follow());
        });
        match started {
            Ok(_) => end.recv().unwrap_or_else(|_| {
                Err(Error::new(Kind::Internal, "the thread of an exchange has broken").into())
            }),
            Err(e) => Err(Error::io("cannot start a thread for an exchange", e).into()),
        }
    }
}

/// An HTTP request on its way.
struct Post {
    agent: Agent,
    url: Url,
    limits: Limits,
    body: Vec<u8>,
}

impl Post {
    fn follow(&self) -> Result<Vec<u8>, Failure> {
        let end = Instant::now() + self.limits.whole;
        let mut url = self.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut response = self.post(&url, end)?;
            match response.status().as_u16() {
                200 => return self.reply(&mut response),
                301 | 302 | 307 | 308 => url = url.redirected(header(&response, "location"))?,
                status => return Err(refusal(status, &mut response)),
            }
        }
        Err(Failure::TooManyRedirects)
    }

    fn post(&self, url: &Url, end: Instant) -> Result<Response<Body>, Failure> {
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let post = self.agent.post(url.request_target()).config().timeout_global(Some(left)).build();
        Ok(post.content_type(COMPRESSED).send(&self.body)?)
    }

    fn reply(&self, response: &mut Response<Body>) -> Result<Vec<u8>, Failure> {
        let content_type = header(response, "content-type").split(';').next().unwrap_or_default().trim();
        let is_plain = match content_type.to_ascii_lowercase().as_str() {
            COMPRESSED => false,
            "application/x-fossil-uncompressed" | "application/x-fossil-debug" => true,
            _ => {
                let content_type = content_type.to_owned();
                return Err(Failure::NotFossil { content_type, words: words(response) });
            }
        };
        let reply = read(response, self.limits.reply_bytes)?;
        if is_plain {
            return Ok(reply);
        }
        packed::unpack(&reply, self.limits.reply_bytes).map_err(Failure::Damaged)
    }
}

fn packed_request(login_card: Option<&[u8]>, body: &[u8]) -> Result<Vec<u8>, Failure> {
    let Some(card) = login_card.filter(|card| !card.is_empty()) else { return Ok(packed::pack(body)?) };
    if card.contains(&b'\n') {
        return Err(Error::new(Kind::Internal, "a login card of more than one line").into());
    }
    Ok(packed::pack(&[card, b"\n", body].concat())?)
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> &'a str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn read(response: &mut Response<Body>, max: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut reader = response.body_mut().as_reader().take(max as u64 + 1);
    reader.read_to_end(&mut bytes).map_err(|e| Failure::Http(e.into()))?;
    if bytes.len() > max { Err(Failure::TooLarge) } else { Ok(bytes) }
}

fn refusal(status: u16, response: &mut Response<Body>) -> Failure {
    Failure::Status { status, words: words(response) }
}

/// The beginning of a reply meant for people, without markup; empty when it cannot be read.
fn words(response: &mut Response<Body>) -> String {
    let mut bytes = Vec::new();
    // What cannot be read of a refusal is not worth another error.
    let _ = response.body_mut().as_reader().take(4096).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let mut plain = String::new();
    let mut in_tag = false;
    for c in text.chars() {
        match c {
            '<' => in_tag = true,
            '>' if in_tag => {
                in_tag = false;
                plain.push(' ');
            }
            c if !in_tag => plain.push(if c.is_control() { ' ' } else { c }),
            _ => {}
        }
    }
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    plain.chars().take(200).collect()
}

#[cfg(test)]
mod tests;
