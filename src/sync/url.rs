//! An `http` or `https` URL without credentials, and where its server may redirect to.

use std::fmt;

use crate::error::{Error, Kind, Result};
use crate::name::shown;

/// A server's address and a path there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    secure: bool,
    host: String,
    port: Option<u16>,
    path: String,
}

impl Url {
    pub(super) fn new(scheme: &str, host: &str, path: &str) -> Result<Self> {
        let secure = match &*scheme.to_ascii_lowercase() {
            "http" => false,
            "https" => true,
            _ => {
                return Err(Error::new(
                    Kind::Unsupported,
                    "the URL begins neither with `http://` nor `https://`",
                )
                .with_hint("Give the URL of a Fossil server."));
            }
        };
        let (host, port) = split_port(host).ok_or_else(|| wrong("its host or port"))?;
        if !path.bytes().all(|b| b.is_ascii_graphic() && !b"\"#<>?\\^`{|}".contains(&b)) {
            return Err(wrong("a character in its path"));
        }
        Ok(Self { secure, host, port, path: path.to_owned() })
    }

    /// What stands before the path, for messages.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn is_https(&self) -> bool {
        self.secure
    }

    /// The URL to ask for. It always has a path.
    pub(crate) fn request_target(&self) -> String {
        if self.path.is_empty() { format!("{self}/") } else { self.to_string() }
    }

    /// Where a redirect leads, if it may be followed: on the same server, or from `http` to `https` on
    /// the same host. A login sent anywhere else would be given away.
    pub(crate) fn redirected(&self, location: &str) -> Result<Self> {
        let refused = |why: &str| {
            let target: String = location.chars().take(200).collect();
            let target = shown(target.as_bytes());
            Error::new(Kind::Refused, format!("`{}` redirects to `{target}`: {why}", self.host))
                .with_hint("If that is the right place, give its URL as the remote.")
        };
        // Fossil's own page for syncs; a client asks for the repository itself.
        let location = location.trim_end_matches("/xfer");
        if let Some(path) = location.strip_prefix('/').filter(|path| !path.starts_with('/')) {
            let target = Self { path: format!("/{path}"), ..self.clone() };
            return Self::new(target.scheme(), &target.host_and_port(), &target.path)
                .map_err(|_| refused("not a plain path"));
        }
        let Some((scheme, rest)) = location.split_once("://") else { return Err(refused("not a URL")) };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(refused("it holds a login"));
        }
        let target = Self::new(scheme, authority, path).map_err(|e| match e.kind() {
            Kind::Unsupported => refused("another scheme"),
            _ => refused("not a plain URL"),
        })?;
        if target.host != self.host {
            return Err(refused("another host"));
        }
        if self.secure && !target.secure {
            return Err(refused("from https to http"));
        }
        if self.secure == target.secure && self.effective_port() != target.effective_port() {
            return Err(refused("another port"));
        }
        Ok(target)
    }

    /// The URL with a login before the host, as Fossil keeps it. Fossil looks for the port after the first colon that
    /// follows a login, so it writes those of an address as `%3A`.
    pub(super) fn kept(&self, login: &str) -> String {
        let host = match self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => address.replace(':', "%3A"),
            None => self.host.clone(),
        };
        let port = self.port.map_or_else(String::new, |port| format!(":{port}"));
        format!("{}://{login}{host}{port}{}", self.scheme(), self.path)
    }

    fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    fn host_and_port(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }

    fn effective_port(&self) -> u16 {
        self.port.unwrap_or(if self.secure { 443 } else { 80 })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme(), self.host_and_port(), self.path)
    }
}

fn split_port(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    // As Fossil writes an address.
    let decoded = host.replace("%3A", ":").replace("%3a", ":");
    let host = if decoded == host { decoded } else { format!("[{decoded}]") };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    let is_name = !host.is_empty() && !host.starts_with('-') && host.bytes().all(plain);
    let is_address = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok());
    let port = match port {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|port| *port != 0)?)
        }
        Some(_) => return None,
        None => None,
    };
    (is_name || is_address).then(|| (host.to_ascii_lowercase(), port))
}

fn wrong(what: &str) -> Error {
    Error::new(Kind::Invalid, format!("the URL cannot be used: {what} is wrong"))
        .with_hint("Give a URL such as `https://HOST/PATH`.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(host: &str) -> Url {
        Url::new("http", host, "/repo").unwrap()
    }

    #[test]
    fn redirects_on_the_same_server_or_to_its_https_are_followed() {
        let from = url("h.example");
        let to = |location: &str| from.redirected(location).unwrap().to_string();
        assert_eq!(to("/other"), "http://h.example/other");
        assert_eq!(to("http://H.example:80/other/xfer"), "http://h.example:80/other");
        assert_eq!(to("https://h.example/repo"), "https://h.example/repo");
        assert_eq!(to("https://h.example:8443/repo"), "https://h.example:8443/repo");
        assert_eq!(from.request_target(), "http://h.example/repo");
        assert_eq!(Url::new("http", "h", "").unwrap().request_target(), "http://h/");
    }

    #[test]
    fn s05_redirects_elsewhere_are_refused_naming_the_target() {
        let from = url("h.example");
        for location in [
            "file:///tmp/x",
            "ssh://-oProxyCommand=x",
            "http://other.example/repo",
            "//other.example/repo",
            "http://h.example:81/repo",
            "http://u:p@h.example/repo",
            "http://h.example@other.example/repo",
            "https://h.example.other/",
            "other",
            "",
            "/a?b",
            "/a b",
        ] {
            let error = from.redirected(location).unwrap_err();
            assert_eq!(error.kind(), Kind::Refused, "{location}");
            assert!(error.to_string().contains(location), "{error}");
        }
        let secure = Url::new("https", "h", "/").unwrap();
        assert!(secure.redirected("http://h/").unwrap_err().to_string().contains("https to http"));
    }
}
