//! How servers are reached: limits, trust, a proxy, and the lines that stay open between calls.
//!
//! The system's trusted certificates are those that OpenSSL's programs would use. Only their place is taken from the
//! environment (`SSL_CERT_FILE`, `SSL_CERT_DIR`), and nothing else.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};
use ureq::{Agent, Proxy};

use super::url::Url;
use crate::error::{Error, Kind, Result};

/// The name of this client. Servers take clients for robots by names with `http`, `bot` or the like.
const USER_AGENT: &str = concat!("Fossil/2.28 (ocx ", env!("CARGO_PKG_VERSION"), ")");

/// The most bytes that the head of a reply may have.
const MAX_HEAD: usize = 64 << 10;

/// How long a line without use is kept. Servers and what stands before them mostly close after a minute or more.
const IDLE_MAX: Duration = Duration::from_secs(50);

/// How many lines without use are kept.
const IDLE_COUNT: usize = 8;

/// What an exchange, and a sync of several exchanges, may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long connecting may take. 10 s by default.
    pub connect: Duration,
    /// How long the whole exchange may take, redirects included. 120 s by default.
    pub whole: Duration,
    /// How long the server may send nothing, or take nothing. 60 s by default.
    pub stall: Duration,
    /// How many bytes the reply may have, as sent and also expanded. 256 MiB by default.
    pub reply_bytes: usize,
    /// How long all exchanges of one pull, push or clone may take together. An hour by default.
    pub sync: Duration,
    /// How many bytes one pull or clone may bring, as compressed. 16 GiB by default.
    pub sync_bytes: u64,
    /// How many artifacts one pull or clone may bring or name. 4 million by default.
    pub sync_artifacts: usize,
}

impl Limits {
    /// The usual ones.
    pub const USUAL: Self = Self {
        connect: Duration::from_secs(10),
        whole: Duration::from_mins(2),
        stall: Duration::from_mins(1),
        reply_bytes: 256 << 20,
        sync: Duration::from_hours(1),
        sync_bytes: 16 << 30,
        sync_artifacts: 4_000_000,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::USUAL
    }
}

/// What a [`Connection`] is made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// What each exchange may cost.
    pub limits: Limits,
    /// A file of certificates in PEM whose issuers are trusted besides those that the system trusts.
    pub ca_file: Option<PathBuf>,
    /// The URL of an HTTP proxy that is asked to `CONNECT`, such as `http://USER:PASSWORD@HOST:PORT`.
    pub proxy: Option<String>,
    /// Only `https` servers are reached through the proxy.
    pub proxy_https_only: bool,
    /// Hosts that are reached without the proxy, with all names below them. `*` is every host.
    pub no_proxy: Vec<String>,
}

/// A way to servers, with the lines that it keeps open between calls. Clones share the lines. Several threads may
/// use it at once.
///
/// ```
/// use std::time::Duration;
/// use ocx::sync::{Connection, Limits, Reach, Remote};
/// let limits = Limits { whole: Duration::from_secs(20), ..Limits::default() };
/// let connection = Connection::new(&Reach { limits, ..Reach::default() })?;
/// let remote = Remote::parse("https://example.org/project")?.over(connection);
/// assert_eq!(remote.connection().limits().whole, Duration::from_secs(20));
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

struct Shared {
    reach: Reach,
    roots: RootCerts,
    proxy: Option<Proxy>,
    /// One agent serves one call at a time, so that the cancel of a call ends no other. Each uses the proxy or not.
    idle: Mutex<Vec<(bool, Agent)>>,
}

/// The way that the whole process shares.
static SHARED: OnceLock<Connection> = OnceLock::new();

impl Connection {
    /// Prepares a way to servers. Sends nothing yet.
    ///
    /// # Errors
    /// [`Kind::NotFound`] and others of reading the CA file; [`Kind::Invalid`] when it holds no certificate, or
    /// the proxy's URL makes no sense.
    pub fn new(reach: &Reach) -> Result<Self> {
        let roots = match &reach.ca_file {
            Some(file) => roots_with(file)?,
            None => RootCerts::PlatformVerifier,
        };
        let proxy = reach.proxy.as_deref().map(|url| proxy(url, &reach.no_proxy)).transpose()?;
        Ok(Self::of(reach.clone(), roots, proxy))
    }

    /// Makes this the way that the whole process shares, [`Connection::default`]. Returns false if another was in use
    /// before, which stays. This is for a program's start. A library leaves it to its host.
    #[must_use]
    pub fn share(&self) -> bool {
        SHARED.get_or_init(|| self.clone()) == self
    }

    /// What it was made from.
    #[must_use]
    pub fn reach(&self) -> &Reach {
        &self.0.reach
    }

    /// What each exchange may cost.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.reach.limits
    }

    /// The same way with other limits, and lines of its own.
    #[must_use]
    pub fn within(&self, limits: Limits) -> Self {
        let reach = Reach { limits, ..self.reach().clone() };
        Self::of(reach, self.0.roots.clone(), self.0.proxy.clone())
    }

    fn of(reach: Reach, roots: RootCerts, proxy: Option<Proxy>) -> Self {
        Self(Arc::new(Shared { reach, roots, proxy, idle: Mutex::default() }))
    }

    /// Takes an agent for one call, with the open lines of an earlier call if there are any.
    pub(super) fn take(&self, url: &Url) -> Agent {
        let by_proxy = self.by_proxy(url);
        let mut idle = self.0.idle.lock();
        match idle.iter().rposition(|(kind, _)| *kind == by_proxy) {
            Some(at) => idle.remove(at).1,
            None => self.agent(by_proxy),
        }
    }

    /// Keeps the lines of a call to that URL which was not cancelled.
    pub(super) fn give_back(&self, url: &Url, agent: Agent) {
        let mut idle = self.0.idle.lock();
        if idle.len() < IDLE_COUNT {
            idle.push((self.by_proxy(url), agent));
        }
    }

    fn by_proxy(&self, url: &Url) -> bool {
        self.0.proxy.is_some() && (url.is_https() || !self.0.reach.proxy_https_only)
    }

    fn agent(&self, by_proxy: bool) -> Agent {
        let limits = self.limits();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(self.0.proxy.clone().filter(|_| by_proxy))
            .user_agent(USER_AGENT)
            .max_response_header_size(MAX_HEAD)
            .max_idle_age(IDLE_MAX)
            .timeout_resolve(Some(limits.connect))
            .timeout_connect(Some(limits.connect))
            .timeout_per_read(Some(limits.stall))
            .timeout_per_write(Some(limits.stall))
            .tls_config(TlsConfig::builder().root_certs(self.0.roots.clone()).build());
        config.build().new_agent()
    }
}

impl Default for Connection {
    /// The one that the whole process shares, with the usual limits.
    fn default() -> Self {
        SHARED.get_or_init(|| Self::of(Reach::default(), RootCerts::PlatformVerifier, None)).clone()
    }
}

impl PartialEq for Connection {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Connection {}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("limits", self.limits()).finish_non_exhaustive()
    }
}

fn roots_with(ca_file: &Path) -> Result<RootCerts> {
    let what = || format!("cannot use the CA file `{}`", ca_file.display());
    let pem = std::fs::read(ca_file).map_err(|e| Error::io(what(), e))?;
    let invalid = || {
        Error::new(Kind::Invalid, format!("{}: it holds no certificate in PEM", what()))
            .with_hint("Give a file with one or more `BEGIN CERTIFICATE` parts.")
    };
    let mut roots: Vec<Certificate<'static>> = Vec::new();
    for item in ureq::tls::parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|_| invalid())? {
            roots.push(certificate);
        }
    }
    if roots.is_empty() {
        return Err(invalid());
    }
    // The certificates that were given are used even if the system has none of its own.
    let system = rustls_native_certs::load_native_certs().certs;
    roots.extend(system.iter().map(|der| Certificate::from_der(der).to_owned()));
    Ok(RootCerts::new_with_certs(&roots))
}

/// The proxy at a URL. The message does not repeat the URL, which may hold a password.
fn proxy(url: &str, no_proxy: &[String]) -> Result<Proxy> {
    let is_http = url.starts_with("http://") || url.starts_with("https://");
    let built = Proxy::new(url).and_then(|proxy| with_exceptions(&proxy, no_proxy));
    built.ok().filter(|_| is_http).ok_or_else(|| {
        Error::new(Kind::Invalid, "the URL of the proxy cannot be used")
            .with_hint("Give a URL such as `http://HOST:PORT`.")
    })
}

/// The same proxy, but not for these hosts.
fn with_exceptions(proxy: &Proxy, hosts: &[String]) -> std::result::Result<Proxy, ureq::Error> {
    let mut same = Proxy::builder(proxy.protocol()).host(proxy.host()).port(proxy.port());
    if let Some(user) = proxy.username() {
        same = same.username(user);
    }
    if let Some(password) = proxy.password() {
        same = same.password(password);
    }
    for host in hosts {
        let host = host.trim().trim_start_matches('.');
        same = same.no_proxy(host);
        if host != "*" {
            same = same.no_proxy(&format!(".{host}"));
        }
    }
    same.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        {
            let (scheme, host) = text.split_once("://").unwrap();
            Url::new(scheme, host.trim_end_matches('/'), "/").unwrap()
        }
    }

    fn kind(reach: &Reach) -> Kind {
        Connection::new(reach).unwrap_err().kind()
    }

    #[test]
    fn a_ca_file_or_proxy_that_cannot_be_used_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ca.pem");
        let reach = Reach { ca_file: Some(file.clone()), ..Reach::default() };
        assert_eq!(kind(&reach), Kind::NotFound);
        for text in ["", "text\n", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(kind(&reach), Kind::Invalid, "{text:?}");
        }
        for url in ["", "x y", "ftp://h/", "socks5://u:hunter2@h:1"] {
            let e = Connection::new(&Reach { proxy: Some(url.into()), ..Reach::default() }).unwrap_err();
            assert_eq!(e.kind(), Kind::Invalid, "{url}");
            assert!(!e.to_string().contains("hunter2"));
        }
    }

    #[test]
    fn agents_are_kept_up_to_a_number() {
        let connection = Connection::new(&Reach::default()).unwrap();
        let url = url("http://h/");
        let agents: Vec<Agent> = (0..IDLE_COUNT + 3).map(|_| connection.take(&url)).collect();
        for agent in agents {
            connection.give_back(&url, agent);
        }
        assert_eq!(connection.0.idle.lock().len(), IDLE_COUNT);
    }

    #[test]
    fn a_proxy_for_https_alone_keeps_its_lines_apart() {
        let proxy = || Some("http://ann:p%40ss@h:1".to_owned());
        let reach = Reach { proxy: proxy(), proxy_https_only: true, ..Reach::default() };
        let connection = Connection::new(&reach).unwrap();
        let (plain, secure) = (url("http://h/"), url("https://h/"));
        assert!(connection.by_proxy(&secure) && !connection.by_proxy(&plain));
        connection.give_back(&plain, connection.take(&plain));
        assert!(connection.take(&secure).config().proxy().is_some());
        assert!(connection.take(&plain).config().proxy().is_none());
        let all = Connection::new(&Reach { proxy: proxy(), ..Reach::default() }).unwrap();
        assert!(all.by_proxy(&plain));
    }

    #[test]
    fn a_proxy_has_exceptions_with_all_names_below_them() {
        let hosts = ["example.org".to_owned(), ".example.net".to_owned()];
        let proxy = proxy("http://ann:p%40ss@h:1", &hosts).unwrap();
        assert_eq!((proxy.username(), proxy.password()), (Some("ann"), Some("p@ss")));
        for (target, direct) in [
            ("https://example.org/", true),
            ("https://a.example.org/", true),
            ("https://example.net/", true),
            ("https://notexample.org/", false),
            ("https://example.com/", false),
        ] {
            assert_eq!(proxy.is_no_proxy(&target.parse().unwrap()), direct, "{target}");
        }
    }
}
