//! Who may speak to the server over HTTP, judged by the head of a request alone, before its body is read.
//!
//! A page in a browser on this machine can reach a loopback address too. It can't choose the `Host` it is sent with
//! (a name that was rebound to this address), nor leave out its `Origin`, and it has no token.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use hyper::http::uri::{Authority, Uri};
use sha3::{Digest, Sha3_256};

use crate::error::{Error, Kind, Result};

/// The least length of a token, in bytes.
const TOKEN_BYTES_MIN: usize = 16;

/// Why a request is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its `Host` is not a name of this server.
    Host,
    /// A page of another origin sent it.
    Origin,
    /// It has no token, or another one.
    Token,
}

/// The names that the server answers to, and the token that a caller needs.
pub struct Gate {
    names: Vec<String>,
    token: Option<[u8; 32]>,
}

impl Gate {
    /// The gate of a server at `address` that is also called `names`.
    ///
    /// # Errors
    /// `Denied`, when an address that others can reach has no token; `Invalid`, when the token is too short or holds
    /// what a header can't.
    pub fn new(address: SocketAddr, names: &[String], token: Option<&str>) -> Result<Self> {
        let Some(token) = token else {
            return if address.ip().is_loopback() {
                Ok(Self { names: lowercase(names), token: None })
            } else {
                Err(Error::new(
                    Kind::Denied,
                    format!("`{address}` can be reached by others and needs a token"),
                )
                .hint("Give one with --token-file FILE or in OCX_TOKEN, or listen on 127.0.0.1."))
            };
        };
        if token.len() < TOKEN_BYTES_MIN || !token.bytes().all(|b| b.is_ascii_graphic()) {
            let what = format!(
                "a token must be at least {TOKEN_BYTES_MIN} printable ASCII characters without spaces"
            );
            return Err(Error::new(Kind::Invalid, what)
                .hint("Make one with `openssl rand -hex 32` and put it alone in the file."));
        }
        Ok(Self { names: lowercase(names), token: Some(digest(token.as_bytes())) })
    }

    /// Judges the head of a request.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn admit(&self, uri: &Uri, headers: &HeaderMap) -> std::result::Result<(), Refusal> {
        let host = headers.get(HOST).map_or_else(
            || uri.authority().cloned(),
            |value| value.to_str().ok().and_then(|text| text.parse().ok()),
        );
        if !host.is_some_and(|host| self.is_own(&host)) {
            return Err(Refusal::Host);
        }
        for origin in headers.get_all(ORIGIN) {
            let origin = origin.to_str().ok().and_then(|text| text.parse::<Uri>().ok());
            if !origin.and_then(|o| o.authority().cloned()).is_some_and(|o| self.is_own(&o)) {
                return Err(Refusal::Origin);
            }
        }
        match self.token {
            Some(token) if !bearer(headers).is_some_and(|given| same(&digest(given), &token)) => {
                Err(Refusal::Token)
            }
            _ => Ok(()),
        }
    }

    /// An address cannot be rebound, so that any will do; a name must be one of ours.
    fn is_own(&self, authority: &Authority) -> bool {
        let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
        host == "localhost" || host.parse::<IpAddr>().is_ok() || self.names.contains(&host)
    }
}

fn lowercase(names: &[String]) -> Vec<String> {
    names.iter().map(|name| name.to_ascii_lowercase()).collect()
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha3_256::digest(token).into()
}

/// Compares in the same time whatever differs.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn gate(token: Option<&str>) -> Gate {
        Gate::new("127.0.0.1:80".parse().unwrap(), &["Box.Example".into()], token).unwrap()
    }

    fn admit(gate: &Gate, headers: &[(&'static str, &str)]) -> std::result::Result<(), Refusal> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        gate.admit(&"/mcp".parse().unwrap(), &map)
    }

    #[test]
    fn m11_a_foreign_host_or_origin_is_refused() {
        let gate = gate(None);
        for host in ["127.0.0.1:8080", "localhost", "[::1]:9", "box.example:80", "BOX.example"] {
            assert_eq!(admit(&gate, &[("host", host)]), Ok(()), "{host}");
        }
        for host in
            ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", ""]
        {
            assert_eq!(admit(&gate, &[("host", host)]), Err(Refusal::Host), "{host}");
        }
        assert_eq!(admit(&gate, &[]), Err(Refusal::Host));
        let from = |origin| admit(&gate, &[("host", "localhost"), ("origin", origin)]);
        assert_eq!(from("http://localhost:3000"), Ok(()));
        assert_eq!(from("https://box.example"), Ok(()));
        for origin in ["http://evil.example", "null", "", "http://localhost.evil.example", "file://"] {
            assert_eq!(from(origin), Err(Refusal::Origin), "{origin}");
        }
    }

    #[test]
    fn a_token_is_wanted_whole_and_as_a_bearer() {
        let gate = gate(Some(TOKEN));
        let with = |value: &str| admit(&gate, &[("host", "localhost"), ("authorization", value)]);
        assert_eq!(with(&format!("Bearer {TOKEN}")), Ok(()));
        assert_eq!(with(&format!("bearer {TOKEN}")), Ok(()));
        for value in
            ["Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0", TOKEN, "Basic 0123456789abcdef"]
        {
            assert_eq!(with(value), Err(Refusal::Token), "{value}");
        }
        assert_eq!(admit(&gate, &[("host", "localhost")]), Err(Refusal::Token));
    }

    #[test]
    fn an_address_that_others_reach_needs_a_token_and_a_good_one() {
        let open: SocketAddr = "0.0.0.0:0".parse().unwrap();
        let refused = |address, token| Gate::new(address, &[], token).map(drop).unwrap_err().kind();
        assert_eq!(refused(open, None), Kind::Denied);
        assert_eq!(refused(open, Some("short")), Kind::Invalid);
        assert_eq!(refused("127.0.0.1:0".parse().unwrap(), Some("sixteen and spaces")), Kind::Invalid);
        assert!(Gate::new(open, &[], Some(TOKEN)).is_ok());
    }
}
