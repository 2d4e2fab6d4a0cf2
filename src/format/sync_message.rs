//! A message of Fossil's sync protocol: its cards, read one by one, and what a whole reply says.
//!
//! What a server sends is never believed: a card's sizes are checked against the message, and its words are values of
//! known types.

use std::collections::BTreeSet;

use crate::error::{Error, Kind, Result};
use crate::name::Hash;

/// One card of a server's reply, with the content that follows some of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Card<'a> {
    /// An artifact.
    File(FileCard<'a>),
    /// The server holds this artifact, which may be private.
    Have { hash: Hash, private: bool },
    /// The server asks for this artifact.
    Want(Hash),
    /// The next `file` card brings a private artifact.
    NextIsPrivate,
    /// The number of the artifact that a clone goes on with; 0 at the end.
    CloneGoesOn(u64),
    /// The code of the server's project.
    Project(&'a str),
    /// A text to send back with the next request.
    Cookie(&'a str),
    /// An unversioned file, with its content unless that was left out.
    Unversioned(UnversionedEntry, Option<&'a [u8]>),
    /// The server has this unversioned file.
    HaveUnversioned(UnversionedEntry),
    /// A value of the server's configuration.
    Config(&'a [u8]),
    /// Something for people.
    Message(String),
    /// The server's refusal.
    Error(String),
    /// Who holds the lock of the check-in that was to be locked.
    LockedBy(String),
    /// The server takes no unversioned files from this login.
    UnversionedPullOnly,
    /// A web page.
    Page,
    /// Anything else: a comment, a pragma, what a later version may add.
    Other,
}

/// The artifact of a `file` or `cfile` card.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileCard<'a> {
    pub hash: Hash,
    /// What `data` is a delta from. Nothing if it is the content.
    pub basis: Option<Hash>,
    /// Whether `data` is in Fossil's compressed form.
    pub is_packed: bool,
    pub data: &'a [u8],
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

impl UnversionedEntry {
    fn of(name: &str, mtime: &str, hash: &str) -> Option<Self> {
        let hash = if hash == "-" { None } else { Some(Hash::parse(hash).ok()?) };
        Some(Self { name: name.to_owned(), mtime: mtime.parse().ok().filter(|mtime| *mtime >= 0)?, hash })
    }
}

/// The cards of an uncompressed message.
///
/// ```ignore
/// for card in Cards::of(b"push 1 2\nigot 3\n") { /* ... */ }
/// ```
pub(crate) struct Cards<'a>(&'a [u8]);

impl<'a> Cards<'a> {
    pub fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// The content that follows a card.
    fn content(&mut self, size: &str) -> Option<&'a [u8]> {
        let (content, rest) = self.0.split_at_checked(size.parse().ok()?)?;
        self.0 = rest;
        Some(content)
    }

    fn card(&mut self, line: &'a str) -> Option<Card<'a>> {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).take(7).collect();
        let hash = |word: &str| Hash::parse(word).ok();
        let mut file = |name: &str, basis: Option<&str>, is_packed: bool, size: &str| {
            let basis = match basis {
                Some(basis) => Some(hash(basis)?),
                None => None,
            };
            Some(Card::File(FileCard { hash: hash(name)?, basis, is_packed, data: self.content(size)? }))
        };
        match *words.as_slice() {
            ["file", name, size] => file(name, None, false, size),
            ["file", name, basis, size] => file(name, Some(basis), false, size),
            ["cfile", name, _, size] => file(name, None, true, size),
            ["cfile", name, basis, _, size] => file(name, Some(basis), true, size),
            ["uvfile", name, mtime, hash, size, flags] => {
                let entry = UnversionedEntry::of(name, mtime, hash)?;
                let is_empty = flags.parse::<u32>().ok()? & 5 != 0;
                let content = if is_empty { None } else { Some(self.content(size)?) };
                Some(Card::Unversioned(entry, content))
            }
            ["uvigot", name, mtime, hash, _] => {
                Some(Card::HaveUnversioned(UnversionedEntry::of(name, mtime, hash)?))
            }
            // Of another form than those above.
            ["file" | "cfile" | "uvfile" | "uvigot", ..] => None,
            ["config", _, size] => Some(Card::Config(self.content(size)?)),
            ["igot", name] => Some(Card::Have { hash: hash(name)?, private: false }),
            ["igot", name, private] => Some(Card::Have { hash: hash(name)?, private: private == "1" }),
            ["gimme", name] => Some(Card::Want(hash(name)?)),
            ["clone_seqno", number] => Some(Card::CloneGoesOn(number.parse().ok()?)),
            ["private"] => Some(Card::NextIsPrivate),
            ["push", _, project] => Some(Card::Project(hash(project).map(|_| project)?)),
            ["cookie", text] => Some(Card::Cookie(text)),
            _ => Some(said(&words)),
        }
    }
}

/// The cards whose content is for people, and all others.
fn said<'a>(words: &[&str]) -> Card<'a> {
    match *words {
        ["message", text] => Card::Message(decoded(text)),
        ["error", ref text @ ..] => Card::Error(text.first().copied().map(decoded).unwrap_or_default()),
        ["pragma", "ci-lock-fail", holder, ..] => Card::LockedBy(decoded(holder)),
        ["pragma", "uv-pull-only", ..] => Card::UnversionedPullOnly,
        [word, ..] if word.starts_with('<') => Card::Page,
        _ => Card::Other,
    }
}

impl<'a> Iterator for Cards<'a> {
    type Item = Result<Card<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.0).unwrap_or(self.0.len());
        let (line, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        // A card that is no text can only be one that is passed over.
        let card = self.card(std::str::from_utf8(line).unwrap_or_default());
        if card.is_none() {
            // What follows might be the content of that card, and is not read as cards.
            self.0 = &[];
        }
        Some(card.ok_or_else(|| malformed(line)))
    }
}

fn malformed(line: &[u8]) -> Error {
    let shown: String = String::from_utf8_lossy(line).escape_debug().take(80).collect();
    Error::new(
        Kind::Refused,
        format!("the card `{shown}` of the reply is malformed, or its content is cut short"),
    )
    .with_hint("Try again; if it stays so, ask who runs the server.")
}

/// What the cards of a reply say together, but for the contents that they bring.
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
    error: Option<String>,
    lock_holder: Option<String>,
    is_page: bool,
}

impl Reply {
    /// Reads an uncompressed reply.
    ///
    /// # Errors
    /// [`Kind::Refused`] for a malformed card.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let mut reply = Self::default();
        for card in Cards::of(bytes) {
            reply.note(&card?);
        }
        Ok(reply)
    }

    /// Takes note of one card.
    pub fn note(&mut self, card: &Card<'_>) {
        match card {
            Card::File(file) => {
                self.files.insert(file.hash);
            }
            Card::Have { hash, private: false } => {
                self.listed.insert(*hash);
            }
            Card::Want(hash) => self.wanted.push(*hash),
            Card::HaveUnversioned(entry) => self.unversioned.push(entry.clone()),
            Card::Message(text) => self.pull_only |= text.starts_with("pull only"),
            Card::Error(words) => self.error = Some(words.clone()),
            Card::LockedBy(holder) => self.lock_holder = Some(holder.clone()),
            Card::UnversionedPullOnly => self.unversioned_pull_only = true,
            Card::Page => self.is_page = true,
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
        self.is_page.then(|| {
            Error::new(Kind::Refused, "the server answers with a web page, not with Fossil's sync protocol")
                .with_hint("Check the URL: it is that of a Fossil repository.")
        })
    }
}

/// The value of a setting in the content of a `config` card, which is as SQL quotes it.
pub(crate) fn setting(content: &[u8], name: &str) -> Option<String> {
    let text = std::str::from_utf8(content).ok()?.trim_end();
    let (_, rest) = text.split_once(&format!(" '{name}' value '"))?;
    Some(rest.strip_suffix('\'')?.replace("''", "'"))
}

/// What a cluster names; nothing for another artifact.
pub(crate) fn cluster_members(content: &[u8]) -> Vec<Hash> {
    let mut members = Vec::new();
    for line in content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match line.split_at_checked(2) {
            Some((b"M ", hash)) => {
                match std::str::from_utf8(hash).ok().and_then(|hash| Hash::parse(hash).ok()) {
                    Some(hash) => members.push(hash),
                    None => return Vec::new(),
                }
            }
            Some((b"Z ", _)) => {}
            _ => return Vec::new(),
        }
    }
    members
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

    fn read(text: &str) -> Reply {
        Reply::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn content_is_not_read_as_cards() {
        let hash = Hash::of(b"error login\\sfailed");
        let body = format!("file {hash} 19\nerror login\\sfailed\nmessage hello\n");
        let reply = read(&body);
        assert!(reply.error().is_none());
        assert!(reply.files.contains(&hash));
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
            let reply = read(&format!("# c\n{card}\n"));
            assert_eq!(reply.error().map(|e| e.kind()), Some(kind), "{card}");
        }
        assert!(read("message pull\\sonly\\s-\\snot\\sauthorized\\sto\\spush\n").pull_only);
    }

    #[test]
    fn unversioned_files_and_what_is_wanted_are_told() {
        let hash = Hash::of(b"x");
        let text = format!("pragma uv-pull-only\nuvigot a.bin 17 {hash} 1\nuvigot b 18 - 0\ngimme {hash}\n");
        let reply = read(&text);
        let private = Hash::of(b"private");
        let listed = read(&format!("igot {hash}\nigot {private} 1\n")).listed;
        assert_eq!(listed.into_iter().collect::<Vec<_>>(), [hash]);
        let named = |name: &str, mtime, hash| UnversionedEntry { name: name.into(), mtime, hash };
        assert_eq!(reply.unversioned, [named("a.bin", 17, Some(hash)), named("b", 18, None)]);
        assert_eq!(reply.wanted, [hash]);
        assert!(reply.unversioned_pull_only);
        let text = format!("uvfile a.bin 17 {hash} 6 0\nfile x\nuvfile b 18 - 0 1\nuvfile c 1 {hash} 9 4\n");
        let cards: Vec<_> = Cards::of(text.as_bytes()).map(Result::unwrap).collect();
        let expected = [
            Card::Unversioned(named("a.bin", 17, Some(hash)), Some(b"file x")),
            // The line end after the content.
            Card::Other,
            Card::Unversioned(named("b", 18, None), None),
            Card::Unversioned(named("c", 1, Some(hash)), None),
        ];
        assert_eq!(cards, expected);
    }

    #[test]
    fn a_card_that_lies_about_its_size_ends_the_message_in_an_error() {
        let hash = Hash::of(b"x");
        for card in [
            format!("file {hash} 99999999999999999999"),
            format!("file {hash} -1"),
            format!("file {hash} 6"),
            "file".to_owned(),
            "file x 1".to_owned(),
            "cfile a b c d e f".to_owned(),
            format!("uvfile a 1 {hash} 5 x"),
            format!("uvfile a -1 {hash} 1 0"),
            "config /project 100".to_owned(),
            "igot x".to_owned(),
            "gimme x".to_owned(),
            "clone_seqno x".to_owned(),
            "push x y".to_owned(),
        ] {
            let text = format!("{card}\nabc\n");
            let read: Vec<_> = Cards::of(text.as_bytes()).collect();
            let [Err(e)] = read.as_slice() else { panic!("{card}: {read:?}") };
            assert_eq!(e.kind(), Kind::Refused, "{card}");
        }
    }

    #[test]
    fn what_is_not_known_is_passed_over() {
        for text in
            ["\u{0}\u{1}\n\n\n", "pragma x\n", "# x", "later card with words and more words and more\n"]
        {
            assert!(Cards::of(text.as_bytes()).all(|card| matches!(card, Ok(Card::Other))), "{text:?}");
        }
    }

    #[test]
    fn the_members_of_a_cluster_are_told_and_nothing_of_another_text() {
        let (one, two) = (Hash::of(b"1"), Hash::of(b"2"));
        let cluster = format!("M {one}\nM {two}\nZ {}\n", "0".repeat(32));
        assert_eq!(cluster_members(cluster.as_bytes()), [one, two]);
        for text in ["M x\n", "M \n", "hello", &format!("M {one}\nhello\n")] {
            assert_eq!(cluster_members(text.as_bytes()), [], "{text}");
        }
    }
}
