//! The tokens with which callers over HTTP prove who they are, and the login of each token.
//!
//! Only digests are kept. No error repeats a line of the file, because the line may hold a token in the wrong place.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, HeaderMap, WWW_AUTHENTICATE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha3::{Digest, Sha3_256};
use subtle::ConstantTimeEq;

use super::connections::Connection;
use crate::error::{Error, Kind, Result};
use crate::name::User;

/// The length of the shortest token, in bytes.
const TOKEN_BYTES_MIN: usize = 16;

/// All tokens that the server accepts.
pub struct Tokens(Vec<Token>);

struct Token {
    digest: [u8; 32],
    caller: Caller,
}

/// Who sends a request: the login that its token proves, or no login for the server's own user. The listener puts it
/// into the extensions of every request. A handler takes it as `Extension<Caller>`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The login.
    pub login: Option<User>,
}

impl Tokens {
    /// Reads the tokens. Each line is `LOGIN TOKEN` or a token alone. A token alone stands for the server's own user.
    /// Blank lines are skipped.
    ///
    /// # Errors
    /// `Invalid`, naming the line, if:
    /// - the line has another form;
    /// - nobody can have its login;
    /// - its token is too short, holds characters that a header can't hold, or is already on another line;
    /// - there is no token at all.
    pub fn parse(text: &str) -> Result<Self> {
        let mut tokens: Vec<Token> = Vec::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let token = Token::parse(line).map_err(|why| refused(number, why))?;
            if tokens.iter().any(|other| other.digest.ct_eq(&token.digest).into()) {
                return Err(refused(number, "it repeats the token of another line"));
            }
            tokens.push(token);
        }
        if tokens.is_empty() {
            return Err(refused(1, "there is no token"));
        }
        Ok(Self(tokens))
    }

    /// Who sends a request with these headers. Only the token counts. Cookies do not count. Other headers do not count
    /// either, for example a header in which a proxy names the user.
    fn caller(&self, headers: &HeaderMap) -> Option<&Caller> {
        self.find(bearer(headers)?)
    }

    /// The owner of this token, if it is one of these. The search takes the same time for every token.
    fn find(&self, given: &[u8]) -> Option<&Caller> {
        let given = digest(given);
        self.0.iter().fold(
            None,
            |found, token| {
                if token.digest.ct_eq(&given).into() { Some(&token.caller) } else { found }
            },
        )
    }
}

impl Token {
    fn parse(line: &str) -> Result<Self, &'static str> {
        let mut words = line.split_ascii_whitespace();
        let (first, second) = (words.next().unwrap_or_default(), words.next());
        if words.next().is_some() {
            return Err("it must be LOGIN TOKEN, or a token alone");
        }
        let (login, token) = second.map_or((None, first), |second| (Some(first), second));
        let login = login.map(User::parse).transpose().map_err(|_| "its login is no user name")?;
        if login.as_ref().is_some_and(User::is_group) {
            return Err("nobody can be that login: it is one of Fossil's groups");
        }
        if token.len() < TOKEN_BYTES_MIN || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("its token is not 16 or more printable ASCII characters");
        }
        Ok(Self { digest: digest(token.as_bytes()), caller: Caller { login } })
    }
}

fn refused(number: usize, why: &str) -> Error {
    Error::new(Kind::Invalid, format!("line {number} of the tokens: {why}")).with_hint(
        "Make a token with `openssl rand -hex 32`, and put it alone in the file, or one a line behind its login.",
    )
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha3_256::digest(token).into()
}

/// The bearer token of a request. Returns nothing if the request has a second `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none())?.as_bytes();
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

/// The layer that lets callers with a token through, and tells handlers who the caller is. If the server has no tokens,
/// the layer lets everybody through.
pub(super) async fn prove(
    State(tokens): State<Option<Arc<Tokens>>>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = match &tokens {
        None => Some(Caller::default()),
        Some(tokens) => tokens.caller(request.headers()).cloned(),
    };
    let Some(caller) = caller else {
        let words = "send a token of this server as `Authorization: Bearer TOKEN`\n";
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer realm=\"ocx\"")], words)
            .into_response();
    };
    if let Some(connection) = request.extensions().get::<Arc<Connection>>() {
        connection.prove();
    }
    // The header is no longer needed, and no log may ever show it.
    request.headers_mut().remove(AUTHORIZATION);
    request.extensions_mut().insert(caller);
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0123456789abcdef";
    const B: &str = "fedcba9876543210";

    #[test]
    fn each_token_stands_for_its_login_and_a_bare_one_for_the_servers_own_user() {
        let tokens = Tokens::parse(&format!("\n{A}\r\n  jos\u{e9}\t{B}  \n\n")).unwrap();
        assert_eq!(tokens.find(A.as_bytes()).unwrap(), &Caller::default());
        assert_eq!(tokens.find(B.as_bytes()).unwrap().login.as_ref().unwrap().as_str(), "jos\u{e9}");
        for other in [&b""[..], b"0123456789abcde", b"0123456789abcdef0", b"0123456789ABCDEF", b"\xff"] {
            assert!(tokens.find(other).is_none());
        }
    }

    #[test]
    fn a_bad_line_is_named_by_its_number_and_never_repeated() {
        for (text, line) in [
            (String::new(), 1),
            (" \n".to_owned(), 1),
            ("hush".to_owned(), 1),
            (format!("ann {A}\nann hush"), 2),
            (format!("ann {A} hush"), 1),
            (format!("{A}hush\"secret ann"), 1),
            (format!("ann {A}\u{e9}hush"), 1),
            (format!("ann {A}\n\nbob {A}"), 3),
            (format!("-R {A}"), 1),
        ] {
            let e = Tokens::parse(&text).map(drop).unwrap_err();
            assert_eq!(e.kind(), Kind::Invalid);
            let words = e.to_string();
            assert!(words.contains(&format!("line {line} ")) && !words.contains("hush"), "{text:?}: {words}");
            assert!(!words.contains(A), "{words}");
        }
    }

    #[test]
    fn a04_no_token_stands_for_a_group() {
        for group in ["nobody", "anonymous", "Reader", "DEVELOPER"] {
            assert!(Tokens::parse(&format!("{group} {A}")).is_err(), "{group}");
        }
    }
    fn caller(text: &str, headers: &[(&'static str, &str)]) -> Option<Caller> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Tokens::parse(text).unwrap().caller(&map).cloned()
    }

    #[test]
    fn a_token_is_wanted_whole_and_as_a_bearer() {
        let with = |value: &str| caller(A, &[("authorization", value)]);
        assert_eq!(with(&format!("Bearer {A}")), Some(Caller::default()));
        assert_eq!(with(&format!("bearer {A}")), Some(Caller::default()));
        for value in
            ["Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0", A, "Basic 0123456789abcdef"]
        {
            assert_eq!(with(value), None, "{value}");
        }
        assert_eq!(caller(A, &[]), None);
        let bearer = format!("Bearer {A}");
        let twice = [("authorization", &bearer[..]), ("authorization", "Bearer another-token")];
        assert_eq!(caller(A, &twice), None);
    }

    #[test]
    fn a02_only_the_token_says_who_calls() {
        let text = format!("ann {A}");
        let bearer = format!("Bearer {A}");
        let claims = [("x-forwarded-user", "admin"), ("remote-user", "admin"), ("cookie", "fossil-1=admin")];
        assert_eq!(caller(&text, &claims), None);
        let proved = [&claims[..], &[("authorization", &bearer[..])]].concat();
        assert_eq!(caller(&text, &proved), Some(Caller { login: Some(User::parse("ann").unwrap()) }));
    }

    #[test]
    fn a_weak_token_is_refused() {
        for text in ["short", "sixteen and spaces"] {
            assert_eq!(Tokens::parse(text).map(drop).unwrap_err().kind(), Kind::Invalid, "{text}");
        }
    }
}
