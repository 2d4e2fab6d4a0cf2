//! What can go wrong in an exchange, and the words for it.

use ureq::Timeout;

use crate::error::{Error, Kind};
use crate::name::{Password, shown};
use crate::sync::connection::Limits;
use crate::sync::url::Url;

/// Why an exchange gave no reply.
#[derive(Debug)]
pub(super) enum Failure {
    /// The HTTP client's own error.
    Http(ureq::Error),
    /// A status that is neither success nor redirect.
    Status { status: u16, words: String },
    /// A success whose body is no sync reply.
    NotFossil { content_type: String, words: String },
    /// A sync reply that cannot be expanded.
    Damaged(Error),
    /// A reply over the limit.
    TooLarge,
    /// A circle of redirects, most likely.
    TooManyRedirects,
    /// A cancel while it was under way.
    Cancelled,
    /// An error that says all already.
    Other(Error),
}

impl From<ureq::Error> for Failure {
    fn from(e: ureq::Error) -> Self {
        Self::Http(e)
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Other(e)
    }
}

impl Failure {
    /// Words the failure. Names the server and never the password, even if the server repeats it.
    pub(super) fn into_error(self, url: &Url, limits: &Limits, password: Option<&Password>) -> Error {
        let wiped = |text: String| password.map_or_else(|| text.clone(), |p| p.wiped_from(&text));
        let (kind, what, hint) = match self {
            Self::Other(e) => {
                let error = Error::new(e.kind(), wiped(e.to_string()));
                return match e.hint() {
                    Some(hint) => error.with_hint(hint),
                    None => error,
                };
            }
            Self::Http(e) => http(&e, url, limits),
            Self::Status { status, words } => refused(status, &words, url),
            Self::NotFossil { content_type, words } => (
                Kind::Refused,
                format!(
                    "`{url}` answers with {}, not as a Fossil server{}",
                    named(&content_type),
                    quoted(&words)
                ),
                "Check the URL: it must be that of a repository on a Fossil server.",
            ),
            Self::Damaged(e) if e.kind() == Kind::TooLarge => too_large(url, limits),
            Self::Damaged(e) => (Kind::Refused, format!("`{url}` sent a reply that is damaged: {e}"), AGAIN),
            Self::TooLarge => too_large(url, limits),
            Self::TooManyRedirects => {
                (Kind::Refused, format!("`{url}` redirects without end"), "Check the URL and the server.")
            }
            Self::Cancelled => (Kind::Cancelled, format!("the exchange with `{url}` was cancelled"), LATER),
        };
        Error::new(kind, wiped(what)).with_hint(hint)
    }
}

const LATER: &str = "Do it again when it suits; what the server stored by then it keeps.";

const AGAIN: &str = "Try again; if it stays so, look at the server.";

/// An error's kind, what failed, and what to do.
type Wording = (Kind, String, &'static str);

fn http(e: &ureq::Error, url: &Url, limits: &Limits) -> Wording {
    use ureq::Error as E;
    let host = url.host();
    match e {
        E::Timeout(Timeout::Connect | Timeout::Resolve) => (
            Kind::Unreachable,
            format!("no connection to `{host}` within {} s", limits.connect.as_secs_f32()),
            "Check the URL and that the server runs.",
        ),
        E::Timeout(Timeout::PerRead | Timeout::PerWrite) => (
            Kind::TimedOut,
            format!("`{host}` was silent for {} s", limits.stall.as_secs_f32()),
            "Ask again what the server holds: it may have acted all the same.",
        ),
        E::Timeout(_) => (
            Kind::TimedOut,
            format!("the exchange with `{host}` took over {} s", limits.whole.as_secs_f32()),
            "Ask again what the server holds: it may have acted all the same.",
        ),
        E::HostNotFound => {
            (Kind::Unreachable, format!("no host `{host}` is known"), "Check the URL's host name.")
        }
        E::Protocol(e) => (
            Kind::Refused,
            format!("`{host}` does not answer in HTTP: {}", shown(e.to_string().as_bytes())),
            "Check the URL's port: another service may listen there.",
        ),
        E::LargeResponseHeader(..) => {
            (Kind::TooLarge, format!("the head of the reply of `{host}` is too large"), AGAIN)
        }
        E::Tls(_) | E::TlsRequired => untrusted(host, &e.to_string()),
        E::Rustls(e) => untrusted(host, &certificate(e)),
        E::Io(e) if rustls_error(e).is_some() => {
            untrusted(host, &rustls_error(e).map_or_else(String::new, certificate))
        }
        E::ConnectProxyFailed(e) => proxy(e, host),
        E::Io(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            (Kind::Unreachable, format!("`{host}` closed the connection before its reply was whole"), AGAIN)
        }
        other => (
            Kind::Unreachable,
            format!("cannot reach `{host}`: {other}"),
            "Check the URL and that the server runs.",
        ),
    }
}

/// Words the proxy's own refusal, which has its status in its text.
fn proxy(e: &str, host: &str) -> Wording {
    let what = format!("the proxy does not lead to `{host}`: {}", shown(e.as_bytes()));
    if e.contains("407") {
        return (Kind::LoginFailed, what, "Give the proxy's login in its URL.");
    }
    (Kind::Unreachable, what, "Check the URL of the proxy, and what it may reach.")
}

fn untrusted(host: &str, why: &str) -> Wording {
    (
        Kind::Untrusted,
        format!("no trusted connection to `{host}`: {}", shown(why.as_bytes())),
        "Check the URL and the server's certificate; where its issuer is one of your own, give its certificate as CA file.",
    )
}

/// The TLS error within an input or output error.
fn rustls_error(e: &std::io::Error) -> Option<&rustls::Error> {
    e.get_ref().and_then(|inner| inner.downcast_ref())
}

/// What is wrong with a certificate, in words.
fn certificate(e: &rustls::Error) -> String {
    use rustls::{CertificateError as C, Error as E};
    match e {
        E::InvalidCertificate(C::UnknownIssuer) => "the issuer of its certificate is not trusted".into(),
        E::InvalidCertificate(C::Expired | C::ExpiredContext { .. }) => "its certificate has expired".into(),
        E::InvalidCertificate(C::NotValidYet | C::NotValidYetContext { .. }) => {
            "its certificate is not valid yet".into()
        }
        E::InvalidCertificate(C::NotValidForName | C::NotValidForNameContext { .. }) => {
            "its certificate is for another name".into()
        }
        other => other.to_string(),
    }
}

fn refused(status: u16, words: &str, url: &Url) -> Wording {
    let words = quoted(words);
    match status {
        401 | 403 | 407 => (
            Kind::LoginFailed,
            format!("`{url}` refuses access with HTTP {status}{words}"),
            "A web server before Fossil asks for a login of its own, which OCX cannot give.",
        ),
        413 => (
            Kind::TooLarge,
            format!("`{url}` takes no request of this size{words}"),
            "Ask the server's operator to raise its limit for request bodies.",
        ),
        429 | 503 => (Kind::Busy, format!("`{url}` is busy: HTTP {status}{words}"), "Try again later."),
        404 => (
            Kind::Refused,
            format!("`{url}` has no repository: HTTP 404{words}"),
            "Check the path of the URL.",
        ),
        _ => (Kind::Refused, format!("`{url}` answers HTTP {status}{words}"), AGAIN),
    }
}

fn too_large(url: &Url, limits: &Limits) -> Wording {
    (
        Kind::TooLarge,
        format!("the reply of `{url}` is over the limit of {} bytes", limits.reply_bytes),
        "Ask who runs the server whether it is right to send so much at once.",
    )
}

fn named(content_type: &str) -> String {
    if content_type.is_empty() { "no type".into() } else { format!("`{}`", shown(content_type.as_bytes())) }
}

fn quoted(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(" (\"{}\")", shown(words.as_bytes())) }
}
