//! A message of Fossil's sync protocol, as far as its cards tell what happened.
//!
//! Fossil's own code acts on them. This code only reads along.

use std::collections::BTreeSet;

use crate::error::{Error, Kind};
use crate::name::Hash;

/// What a server's reply says.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// Artifacts that it brings.
    pub files: BTreeSet<Hash>,
    /// Artifacts that it asks for.
    pub wanted: Vec<Hash>,
    /// Public artifacts that it says to hold.
    pub listed: BTreeSet<Hash>,
    /// The server takes nothing from this login.
    pub pull_only: bool,
    /// The server takes no unversioned files from this login.
    pub unversioned_pull_only: bool,
    /// The unversioned files that it says to have.
    pub unversioned: Vec<UnversionedEntry>,
    /// Names of the unversioned files that it brings.
    pub brought_unversioned: Vec<String>,
    error: Option<String>,
    lock_holder: Option<String>,
    is_html: bool,
}

/// An unversioned file as a server names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnversionedEntry {
    pub name: String,
    /// Seconds since 1970.
    pub mtime: i64,
    /// Of its content. Nothing if the file was deleted.
    pub hash: Option<Hash>,
}

impl Reply {
    /// Reads an uncompressed reply. Passes over what makes no sense.
    pub fn read(bytes: &[u8]) -> Self {
        let mut reply = Self::default();
        for card in Cards(bytes) {
            let mut words = card.words();
            match words.next().unwrap_or_default() {
                "file" | "cfile" => reply.files.extend(words.next().and_then(|w| Hash::parse(w).ok())),
                "igot" => reply.listed.extend(public(words)),
                "gimme" => reply.wanted.extend(words.next().and_then(|w| Hash::parse(w).ok())),
                "uvfile" => reply.brought_unversioned.extend(words.next().map(str::to_owned)),
                "uvigot" => reply.unversioned.extend(UnversionedEntry::of(&card)),
                "error" => reply.error = Some(words.next().map(decoded).unwrap_or_default()),
                "message" => {
                    reply.pull_only |= words.next().map(decoded).is_some_and(|m| m.starts_with("pull only"));
                }
                "pragma" => reply.pragma(words),
                word => reply.is_html |= word.starts_with('<'),
            }
        }
        reply
    }

    fn pragma<'a>(&mut self, mut words: impl Iterator<Item = &'a str>) {
        match words.next() {
            Some("ci-lock-fail") => self.lock_holder = words.next().map(decoded),
            Some("uv-pull-only") => self.unversioned_pull_only = true,
            _ => {}
        }
    }

    /// The failure that the reply reports.
    pub fn error(&self) -> Option<Error> {
        if let Some(words) = &self.error {
            return Some(error_of(words));
        }
        if let Some(holder) = &self.lock_holder {
            return Some(
                Error::new(Kind::Busy, format!("the check-in is locked on the server by `{holder}`"))
                    .with_hint("Pull, and try again when they are done."),
            );
        }
        self.is_html.then(|| {
            Error::new(Kind::Refused, "the server answers with a web page, not with Fossil's sync protocol")
                .with_hint("Check the URL: it is that of a Fossil repository.")
        })
    }
}

/// The artifact of an `igot` card. Returns nothing if the card says more of it, such as that it is private.
fn public<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Hash> {
    let hash = Hash::parse(words.next()?).ok()?;
    words.next().is_none().then_some(hash)
}

/// The error for the words of a server's `error` card.
fn error_of(words: &str) -> Error {
    let has = |part: &str| words.contains(part);
    let (kind, hint) = if has("login failed") {
        (Kind::LoginFailed, "Check the login and the password for this server.")
    } else if has("not authorized") {
        (Kind::Denied, "Ask for the capability on the server.")
    } else if has("wrong project") {
        (Kind::Foreign, "Check the URL: that repository belongs to another project.")
    } else if has("database is locked") {
        (Kind::Busy, "The server is busy; try again in a moment.")
    } else {
        (Kind::Refused, "See what the server says.")
    };
    Error::new(kind, format!("the server says: {words}")).with_hint(hint)
}

impl UnversionedEntry {
    fn of(card: &Card<'_>) -> Option<Self> {
        let mut words = card.words().skip(1);
        let (name, mtime, hash) = (words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?);
        let hash = if hash == "-" { None } else { Some(Hash::parse(hash).ok()?) };
        Some(Self { name, mtime, hash })
    }
}

/// What a request brings to the server.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub files: Vec<Hash>,
    /// Names of unversioned files.
    pub unversioned: Vec<String>,
}

impl Request {
    /// Reads an uncompressed request.
    pub fn read(body: &[u8]) -> Self {
        let mut sent = Self::default();
        for card in Cards(body) {
            let mut words = card.words();
            match words.next() {
                Some("file" | "cfile") => sent.files.extend(words.next().and_then(|w| Hash::parse(w).ok())),
                Some("uvfile") => sent.unversioned.extend(words.next().map(str::to_owned)),
                _ => {}
            }
        }
        sent
    }
}

/// The cards of a message, without the content that follows some of them.
struct Cards<'a>(&'a [u8]);

/// One card's line.
struct Card<'a>(&'a str);

impl<'a> Card<'a> {
    fn words(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.0.split(' ').filter(|w| !w.is_empty())
    }

    /// How many bytes of content follow the line.
    fn content_size(&self) -> usize {
        let words: Vec<&str> = self.words().collect();
        let size = match words.as_slice() {
            ["file" | "config", _, size] | ["file" | "cfile", _, _, size] | ["cfile", _, _, _, size] => size,
            ["uvfile", _, _, _, size, flags] if flags.parse::<u32>().is_ok_and(|f| f & 5 == 0) => size,
            _ => return 0,
        };
        size.parse().unwrap_or(0)
    }
}

impl<'a> Iterator for Cards<'a> {
    type Item = Card<'a>;

    fn next(&mut self) -> Option<Card<'a>> {
        if self.0.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.0).unwrap_or(self.0.len());
        let (line, rest) = self.0.split_at(end);
        let card = Card(std::str::from_utf8(line).unwrap_or_default());
        let rest = rest.get(1..).unwrap_or_default();
        self.0 = rest.get(card.content_size()..).unwrap_or_default();
        Some(card)
    }
}

/// A word without Fossil's escapes, on one line.
fn decoded(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    let mut chars = word.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('s' | 'n' | 'r' | 't' | 'f' | 'v') => text.push(' '),
                Some(other) => text.push(other),
                None => {}
            },
            (c, _) if c.is_control() => text.push('\u{fffd}'),
            (c, _) => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_not_read_as_cards() {
        let hash = Hash::of(b"error login\\sfailed");
        let body = format!("file {hash} 19\nerror login\\sfailed\nmessage hello\n");
        let reply = Reply::read(body.as_bytes());
        assert!(reply.error().is_none());
        assert!(reply.files.contains(&hash));
        assert_eq!(Request::read(body.as_bytes()).files, [hash]);
    }

    #[test]
    fn each_refusal_of_a_server_has_its_kind() {
        for (card, kind) in [
            ("error login\\sfailed", Kind::LoginFailed),
            ("error not\\sauthorized\\sto\\swrite", Kind::Denied),
            ("error wrong\\sproject", Kind::Foreign),
            ("error Database\\serror:\\sdatabase\\sis\\slocked", Kind::Busy),
            ("error no\\sfive-line\\scomments", Kind::Refused),
            ("pragma ci-lock-fail bob 1700000000", Kind::Busy),
            ("<html><body>", Kind::Refused),
        ] {
            let reply = Reply::read(format!("# c\n{card}\n").as_bytes());
            assert_eq!(reply.error().map(|e| e.kind()), Some(kind), "{card}");
        }
        assert!(Reply::read(b"message pull\\sonly\\s-\\snot\\sauthorized\\sto\\spush\n").pull_only);
    }

    #[test]
    fn unversioned_files_and_what_is_wanted_are_told() {
        let hash = Hash::of(b"x");
        let text = format!(
            "pragma uv-pull-only\nuvigot a.bin 17 {hash} 1\nuvigot b 18 - 0\nuvigot c x\ngimme {hash}\n"
        );
        let reply = Reply::read(text.as_bytes());
        let private = Hash::of(b"private");
        let listed = Reply::read(format!("igot {hash}\nigot {private} 1\nigot x\nigot\n").as_bytes()).listed;
        assert_eq!(listed.into_iter().collect::<Vec<_>>(), [hash]);
        let named = |name: &str, mtime, hash| UnversionedEntry { name: name.into(), mtime, hash };
        assert_eq!(reply.unversioned, [named("a.bin", 17, Some(hash)), named("b", 18, None)]);
        assert_eq!(reply.wanted, [hash]);
        assert!(reply.unversioned_pull_only);
        let body = format!("uvfile a.bin 17 {hash} 6 0\nfile x\nuvfile b 18 - 0 1\nuvfile c 1 {hash} 9 4\n");
        let sent = Request::read(body.as_bytes());
        assert_eq!((sent.files.len(), sent.unversioned), (0, vec!["a.bin".into(), "b".into(), "c".into()]));
    }

    #[test]
    fn lies_about_sizes_are_survived() {
        for body in ["file x 99999999999999999999\n", "file", "cfile a b c d e f\n", "\u{0}\u{1}\n\n\n"] {
            let _ = Reply::read(body.as_bytes());
        }
    }
}
