//! The names that a server answers to. The gate judges only the head of a request, before the body is read.
//!
//! A page in a browser on this machine can reach a loopback address too. The page can't choose the `Host` of its
//! requests (a name that was rebound to this address). It can't leave out its `Origin` either.

use std::net::IpAddr;
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
}

/// What is foreign in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreign {
    /// The `Host` is not a name of this server.
    Host,
    /// A page of another origin sent the request.
    Origin,
}

impl Gate {
    /// The gate of a server that is also called `names`. A caller that uses another name gets `hint`, which says how to
    /// add a name.
    #[must_use]
    pub fn new(names: &[String], hint: &str) -> Self {
        Self { names: names.iter().map(|name| name.to_ascii_lowercase()).collect(), hint: hint.to_owned() }
    }

    fn judge(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Foreign> {
        let host = headers.get(HOST).map_or_else(
            || uri.authority().cloned(),
            |value| value.to_str().ok().and_then(|text| text.parse().ok()),
        );
        if !host.is_some_and(|host| self.is_own(&host)) {
            return Err(Foreign::Host);
        }
        for origin in headers.get_all(ORIGIN) {
            let origin = origin.to_str().ok().and_then(|text| text.parse::<Uri>().ok());
            if !origin.and_then(|o| o.authority().cloned()).is_some_and(|o| self.is_own(&o)) {
                return Err(Foreign::Origin);
            }
        }
        Ok(())
    }

    /// Accepts every address, because an address cannot be rebound. A name must be one of ours.
    fn is_own(&self, authority: &Authority) -> bool {
        let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
        host == "localhost" || host.parse::<IpAddr>().is_ok() || self.names.contains(&host)
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

    fn judge(headers: &[(&'static str, &str)]) -> Result<(), Foreign> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Gate::new(&["Box.Example".into()], "").judge(&"/mcp".parse().unwrap(), &map)
    }

    #[test]
    fn m11_a_foreign_host_or_origin_is_refused() {
        for host in ["127.0.0.1:8080", "localhost", "[::1]:9", "box.example:80", "BOX.example"] {
            assert_eq!(judge(&[("host", host)]), Ok(()), "{host}");
        }
        for host in
            ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", ""]
        {
            assert_eq!(judge(&[("host", host)]), Err(Foreign::Host), "{host}");
        }
        assert_eq!(judge(&[]), Err(Foreign::Host));
        let from = |origin| judge(&[("host", "localhost"), ("origin", origin)]);
        assert_eq!(from("http://localhost:3000"), Ok(()));
        assert_eq!(from("https://box.example"), Ok(()));
        for origin in ["http://evil.example", "null", "", "http://localhost.evil.example", "file://"] {
            assert_eq!(from(origin), Err(Foreign::Origin), "{origin}");
        }
    }
}
