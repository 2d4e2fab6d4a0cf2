//! The names that a server answers to. The gate judges only the head of a request, before the body is read.
//!
//! A page in a browser on this machine can reach a loopback address too. The page can't choose the `Host` of its
//! requests (a name that was rebound to this address). It can't leave out its `Origin` either.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{HOST, HeaderMap, ORIGIN};
use axum::http::uri::{Authority, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// The names that a server answers to, besides its addresses.
#[derive(Debug)]
pub struct Gate {
    names: Vec<String>,
    hint: String,
    /// The port that the server listens on.
    port: Option<u16>,
}

/// What is foreign in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreign {
    /// The `Host` is not a name of this server.
    Host,
    /// A page of another origin sent the request.
    Origin,
}

/// Where a request or a page belongs: a host in lower case, and its port.
#[derive(Debug, PartialEq, Eq)]
struct Site {
    host: String,
    port: u16,
}

impl Gate {
    /// The gate of a server that is also called `names`. A caller that uses another name gets `hint`, which says how to
    /// add a name.
    #[must_use]
    pub fn new(names: &[String], hint: &str) -> Self {
        let names = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { names, hint: hint.to_owned(), port: None }
    }

    /// The same before a server that listens on `address`.
    pub(super) fn before(self, address: SocketAddr) -> Self {
        Self { port: Some(address.port()), ..self }
    }

    fn judge(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Foreign> {
        let mut hosts = headers.get_all(HOST).iter();
        let named = hosts.next().map(|value| value.to_str().ok()?.parse().ok());
        // Two that differ would be read differently by a proxy and by us.
        if hosts.next().is_some() || named == Some(None) {
            return Err(Foreign::Host);
        }
        let named: Option<Authority> = named.flatten();
        let mut all = named.iter().chain(uri.authority()).map(|at| Site::of(at, HTTP).ok_or(Foreign::Host));
        let host = all.next().ok_or(Foreign::Host)??;
        if !self.is_own(&host) || all.any(|other| other.as_ref() != Ok(&host)) {
            return Err(Foreign::Host);
        }
        for origin in headers.get_all(ORIGIN) {
            let site = origin.to_str().ok().and_then(|text| Site::of_origin(&text.parse().ok()?));
            if !site.is_some_and(|site| self.is_own_page(&site, &host)) {
                return Err(Foreign::Origin);
            }
        }
        Ok(())
    }

    /// Accepts every address, because an address cannot be rebound. A name must be one of ours.
    fn is_own(&self, site: &Site) -> bool {
        site.is_local_name() || site.address().is_some() || self.names.contains(&site.host)
    }

    /// Whether a page is one of this server, which was called as `host`: another port is another server.
    fn is_own_page(&self, page: &Site, host: &Site) -> bool {
        let loops = page.is_local_name() || page.address().is_some_and(|address| address.is_loopback());
        page == host || (loops && Some(page.port) == self.port) || self.names.contains(&page.host)
    }
}

/// The port of a URL that names none.
const HTTP: u16 = 80;
const HTTPS: u16 = 443;

impl Site {
    /// The host and port. Nothing if there is a user before the host, or the port is no number.
    fn of(authority: &Authority, usual_port: u16) -> Option<Self> {
        let port = match authority.as_str().strip_prefix(authority.host())? {
            "" => usual_port,
            port => port.strip_prefix(':')?.parse().ok()?,
        };
        Some(Self { host: authority.host().trim_matches(['[', ']']).to_ascii_lowercase(), port })
    }

    fn of_origin(origin: &Uri) -> Option<Self> {
        let usual_port = match origin.scheme_str()? {
            "http" => HTTP,
            "https" => HTTPS,
            _ => return None,
        };
        Self::of(origin.authority()?, usual_port)
    }

    fn is_local_name(&self) -> bool {
        self.host == "localhost"
    }

    fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

/// The layer that refuses foreign requests.
pub(super) async fn admit(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let words = match gate.judge(request.uri(), request.headers()) {
        Ok(()) => return next.run(request).await,
        Err(Foreign::Host) => format!("this server is not called by that Host; {}\n", gate.hint),
        Err(Foreign::Origin) => "pages of that Origin may not call this server\n".to_owned(),
    };
    (StatusCode::FORBIDDEN, words).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge_at(uri: &str, headers: &[(&'static str, &str)]) -> Result<(), Foreign> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let gate = Gate::new(&["Box.Example".into()], "").before("127.0.0.1:8765".parse().unwrap());
        gate.judge(&uri.parse().unwrap(), &map)
    }

    fn judge(headers: &[(&'static str, &str)]) -> Result<(), Foreign> {
        judge_at("/mcp", headers)
    }

    #[test]
    fn m11_a_foreign_host_is_refused() {
        for host in ["127.0.0.1:8080", "localhost", "[::1]:9", "box.example:80", "BOX.example"] {
            assert_eq!(judge(&[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "evil@127.0.0.1",
            "evil:pass@127.0.0.1:80",
            "127.0.0.1:abc",
            "127.0.0.1:",
            "127.0.0.1:99999",
        ] {
            assert_eq!(judge(&[("host", host)]), Err(Foreign::Host), "{host}");
        }
        assert_eq!(judge(&[]), Err(Foreign::Host));
        for hosts in [["127.0.0.1", "evil.example"], ["127.0.0.1", "127.0.0.1"]] {
            assert_eq!(judge(&hosts.map(|host| ("host", host))), Err(Foreign::Host), "{hosts:?}");
        }
    }

    #[test]
    fn m11_a_whole_url_names_the_same_host() {
        let at = |uri| judge_at(uri, &[("host", "127.0.0.1:8765")]);
        assert_eq!(at("http://127.0.0.1:8765/mcp"), Ok(()));
        for uri in ["http://evil.example/mcp", "http://127.0.0.1/mcp", "http://a@127.0.0.1:8765/mcp"] {
            assert_eq!(at(uri), Err(Foreign::Host), "{uri}");
        }
        assert_eq!(judge_at("http://evil.example/mcp", &[]), Err(Foreign::Host));
    }

    #[test]
    fn m11_a_page_of_another_origin_is_refused() {
        let from = |host, origin| judge(&[("host", host), ("origin", origin)]);
        for origin in ["http://localhost:8765", "http://127.0.0.1:8765", "http://[::1]:8765"] {
            assert_eq!(from("127.0.0.1:8765", origin), Ok(()), "{origin}");
        }
        // A forwarded port: the page and the call name the same place.
        assert_eq!(from("localhost:9000", "http://localhost:9000"), Ok(()));
        for origin in ["https://box.example", "http://box.example:3000"] {
            assert_eq!(from("localhost", origin), Ok(()), "{origin}");
        }
        for origin in [
            "http://evil.example",
            "null",
            "",
            "http://localhost.evil.example",
            "file://",
            "http://localhost",
            "http://localhost:1",
            "http://127.0.0.1:3000",
            "http://192.0.2.1:8765",
            "http://a@127.0.0.1:8765",
            "ws://127.0.0.1:8765",
        ] {
            assert_eq!(from("127.0.0.1:8765", origin), Err(Foreign::Origin), "{origin}");
        }
    }
}
