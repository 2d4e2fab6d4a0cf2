//! The tokens that callers over HTTP prove themselves with, and the login that each stands for.
//!
//! Only digests are kept. No error repeats a line of the file: it may hold a token in the wrong place.

use sha3::{Digest, Sha3_256};

use crate::error::{Error, Kind, Result};
use crate::name::User;

/// The least length of a token, in bytes.
const TOKEN_BYTES_MIN: usize = 16;

/// Every token that is taken.
pub struct Tokens(Vec<Token>);

/// One of them.
pub struct Token {
    digest: [u8; 32],
    login: Option<User>,
}

impl Tokens {
    /// Reads lines of `LOGIN TOKEN`, or of a token alone, which stands for the checkout's user. Blank lines are none.
    ///
    /// # Errors
    /// `Invalid`, naming the line: of another form, a login that nobody can have, a token that is too short, holds what
    /// a header can't, or stands there twice; or no line at all.
    pub fn parse(text: &str) -> Result<Self> {
        let mut tokens: Vec<Token> = Vec::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let token = Token::parse(line).map_err(|why| refused(number, why))?;
            if tokens.iter().any(|other| same(&other.digest, &token.digest)) {
                return Err(refused(number, "it repeats the token of another line"));
            }
            tokens.push(token);
        }
        if tokens.is_empty() {
            return Err(refused(1, "there is no token"));
        }
        Ok(Self(tokens))
    }

    /// The token that was given, where it is one of these. It takes the same time whichever it is.
    pub fn find(&self, given: &[u8]) -> Option<&Token> {
        let given = digest(given);
        self.0.iter().fold(None, |found, token| if same(&token.digest, &given) { Some(token) } else { found })
    }
}

impl Token {
    /// Whose it is, where it is not the checkout's user's.
    pub fn login(&self) -> Option<&User> {
        self.login.as_ref()
    }

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
        Ok(Self { digest: digest(token.as_bytes()), login })
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

/// Compares in the same time whatever differs.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0123456789abcdef";
    const B: &str = "fedcba9876543210";

    #[test]
    fn each_token_stands_for_its_login_and_a_bare_one_for_the_checkouts_user() {
        let tokens = Tokens::parse(&format!("\n{A}\r\n  jos\u{e9}\t{B}  \n\n")).unwrap();
        assert_eq!(tokens.find(A.as_bytes()).unwrap().login(), None);
        assert_eq!(tokens.find(B.as_bytes()).unwrap().login().unwrap().as_str(), "jos\u{e9}");
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
}
