//! The trust root: one check-in hash says what each of Fossil's files must be.
//!
//! A source tree carries its own `manifest`, the text of the check-in artifact. Its SHA3-256 must be
//! the pinned hash, and each file must have the hash that its F card gives.

use sha1::Sha1;
use sha3::{Digest, Sha3_256};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

/// The pinned release, as `vendor/PIN` holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The release's number, as `2.28`.
    pub release: String,
    /// The check-in's hash: SHA3-256, 64 hexadecimal digits.
    pub checkin: String,
}

impl Pin {
    /// Parses lines of the form `name=value`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let field = |name: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            found.map(str::to_owned).ok_or_else(|| format!("vendor/PIN has no line `{name}=`"))
        };
        let pin = Self { release: field("release")?, checkin: field("checkin")? };
        let hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if pin.checkin.len() == 64 && pin.checkin.bytes().all(hex) {
            Ok(pin)
        } else {
            Err(format!("vendor/PIN: `{}` is not a SHA3-256 hash", pin.checkin))
        }
    }
}

/// One F card: a file of the check-in and its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// The file's name in the tree, with `/` between folders.
    pub name: String,
    hash: String,
}

/// What is wrong with a source tree.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no `manifest` at the tree's top, or it cannot be read.
    NoManifest(String),
    /// The manifest's hash is not the pinned one.
    WrongCheckin(String),
    /// The named file's content is not the check-in's.
    Altered(String),
    /// The named file cannot be read.
    Unreadable(String, String),
}

/// Checks the tree in `folder` against `pin`. Returns the names of files that the tree lacks.
pub fn verify(folder: &Path, pin: &Pin) -> Result<BTreeSet<String>, Fault> {
    let manifest = fs::read(folder.join("manifest")).map_err(|e| Fault::NoManifest(e.to_string()))?;
    let hash = hex(&Sha3_256::digest(&manifest));
    if hash != pin.checkin {
        return Err(Fault::WrongCheckin(hash));
    }
    let mut missing = BTreeSet::new();
    for card in cards(&String::from_utf8_lossy(&manifest)) {
        match fs::read(folder.join(&card.name)) {
            Ok(content) if card.fits(&content) => {}
            Ok(_) => return Err(Fault::Altered(card.name)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                missing.insert(card.name);
            }
            Err(e) => return Err(Fault::Unreadable(card.name, e.to_string())),
        }
    }
    Ok(missing)
}

impl Card {
    fn fits(&self, content: &[u8]) -> bool {
        match self.hash.len() {
            40 => hex(&Sha1::digest(content)) == self.hash,
            _ => hex(&Sha3_256::digest(content)) == self.hash,
        }
    }
}

/// The F cards of a manifest's text.
pub fn cards(manifest: &str) -> Vec<Card> {
    let card = |line: &str| {
        let mut words = line.strip_prefix("F ")?.split(' ');
        Some(Card { name: plain(words.next()?), hash: words.next()?.to_owned() })
    };
    manifest.lines().filter_map(card).collect()
}

/// Undoes the escapes of an artifact's words: `\s` is a space, `\\` a backslash.
fn plain(word: &str) -> String {
    let pieces = word.split("\\\\").map(|piece| piece.replace("\\s", " "));
    pieces.collect::<Vec<_>>().join("\\")
}

/// A hash in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
