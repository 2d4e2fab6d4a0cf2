//! Who may speak to the server over HTTP, judged by the head of a request alone, before its body is read.
//!
//! A page in a browser on this machine can reach a loopback address too. It can't choose the `Host` it is sent with
//! (a name that was rebound to this address), nor leave out its `Origin`, and it has no token.

use std::net::{IpAddr, SocketAddr};

use super::tokens::Tokens;
use crate::error::{Error, Kind, Result};
use crate::name::User;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use hyper::http::uri::{Authority, Uri};

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

/// The names that the server answers to, and the tokens of which a caller needs one.
pub struct Gate {
    names: Vec<String>,
    tokens: Option<Tokens>,
}

impl Gate {
    /// The gate of a server at `address` that is also called `names`, with tokens as [`Tokens::parse`] reads them.
    ///
    /// # Errors
    /// `Denied`, when an address that others can reach has no token; `Invalid` for tokens that cannot be used.
    pub fn new(address: SocketAddr, names: &[String], tokens: Option<&str>) -> Result<Self> {
        let tokens = tokens.map(Tokens::parse).transpose()?;
        if tokens.is_none() && !address.ip().is_loopback() {
            let what = format!("`{address}` can be reached by others and needs a token");
            return Err(Error::new(Kind::Denied, what)
                .with_hint("Give one with --token-file FILE or in OCX_TOKEN, or listen on 127.0.0.1."));
        }
        Ok(Self { names: names.iter().map(|name| name.to_ascii_lowercase()).collect(), tokens })
    }

    /// Judges the head of a request, and gives the login that its token stands for: none for the checkout's user. No
    /// other header, such as what a proxy says of the user, and no cookie counts.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn admit(&self, uri: &Uri, headers: &HeaderMap) -> std::result::Result<Option<User>, Refusal> {
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
        let Some(tokens) = &self.tokens else { return Ok(None) };
        let token = bearer(headers).and_then(|given| tokens.find(given)).ok_or(Refusal::Token)?;
        Ok(token.login().cloned())
    }

    /// An address cannot be rebound, so that any will do; a name must be one of ours.
    fn is_own(&self, authority: &Authority) -> bool {
        let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
        host == "localhost" || host.parse::<IpAddr>().is_ok() || self.names.contains(&host)
    }
}

/// The bearer token of a request that has one and no other proof.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none())?.as_bytes();
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn gate(token: Option<&str>) -> Gate {
        Gate::new("127.0.0.1:80".parse().unwrap(), &["Box.Example".into()], token).unwrap()
    }

    fn admit(gate: &Gate, headers: &[(&'static str, &str)]) -> std::result::Result<Option<User>, Refusal> {
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
            assert_eq!(admit(&gate, &[("host", host)]), Ok(None), "{host}");
        }
        for host in
            ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", ""]
        {
            assert_eq!(admit(&gate, &[("host", host)]), Err(Refusal::Host), "{host}");
        }
        assert_eq!(admit(&gate, &[]), Err(Refusal::Host));
        let from = |origin| admit(&gate, &[("host", "localhost"), ("origin", origin)]);
        assert_eq!(from("http://localhost:3000"), Ok(None));
        assert_eq!(from("https://box.example"), Ok(None));
        for origin in ["http://evil.example", "null", "", "http://localhost.evil.example", "file://"] {
            assert_eq!(from(origin), Err(Refusal::Origin), "{origin}");
        }
    }

    #[test]
    fn a_token_is_wanted_whole_and_as_a_bearer() {
        let gate = gate(Some(TOKEN));
        let with = |value: &str| admit(&gate, &[("host", "localhost"), ("authorization", value)]);
        assert_eq!(with(&format!("Bearer {TOKEN}")), Ok(None));
        assert_eq!(with(&format!("bearer {TOKEN}")), Ok(None));
        for value in
            ["Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0", TOKEN, "Basic 0123456789abcdef"]
        {
            assert_eq!(with(value), Err(Refusal::Token), "{value}");
        }
        assert_eq!(admit(&gate, &[("host", "localhost")]), Err(Refusal::Token));
        let bearer = format!("Bearer {TOKEN}");
        let twice = [
            ("host", "localhost"),
            ("authorization", &bearer[..]),
            ("authorization", "Bearer another-token"),
        ];
        assert_eq!(admit(&gate, &twice), Err(Refusal::Token));
    }

    #[test]
    fn a02_only_the_token_says_who_calls() {
        let gate = gate(Some(&format!("ann {TOKEN}")));
        let bearer = format!("Bearer {TOKEN}");
        let claims = [
            ("host", "localhost"),
            ("x-forwarded-user", "admin"),
            ("remote-user", "admin"),
            ("cookie", "fossil-1=admin"),
        ];
        assert_eq!(admit(&gate, &claims), Err(Refusal::Token));
        let proved = [&claims[..], &[("authorization", &bearer[..])]].concat();
        assert_eq!(admit(&gate, &proved), Ok(Some(User::parse("ann").unwrap())));
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
