//! The hash that names an artifact.

use ::sha3::{Digest, Sha3_256};
use sha1::Sha1;

use super::rule::{refused, text_value};
use super::sha3;
use crate::error::Result;

/// Hex digits of a SHA1 and of a SHA3-256 hash.
const LENGTHS: [usize; 2] = [40, 64];

/// A full artifact hash: 40 (SHA1) or 64 (SHA3-256) lowercase hex digits.
///
/// ```
/// use ocx::name::Hash;
/// let hash = Hash::of(b"");
/// assert_eq!(hash.short(), "a7ffc6f8bf");
/// assert_eq!(Hash::parse(hash.as_str())?, hash);
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash {
    /// The digits, filled up with zeros. They come first, so that the derived order is that of the text.
    text: [u8; 64],
    len: u8,
}

impl Hash {
    /// Takes a full hash.
    ///
    /// # Errors
    /// `Invalid` for another length, for uppercase digits, and for anything that is not hex.
    pub fn parse(text: &str) -> Result<Self> {
        let hint = "Give all 40 or 64 digits, in lowercase.";
        if !LENGTHS.contains(&text.len()) {
            let rule = format!("is {} characters long, not 40 or 64", text.len());
            return Err(refused("hash", text, rule, hint));
        }
        // Without an early end, the compiler looks at many digits at once.
        if !text.bytes().fold(true, |is_hex, b| is_hex & matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(refused("hash", text, "is not all lowercase hex digits", hint));
        }
        Ok(Self::from_digits(text.as_bytes()))
    }

    /// Computes the SHA3-256 hash of `content`: the name that Fossil gives it.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self::from_digest(&Sha3_256::digest(content))
    }

    /// Computes the name that new content gets in a repository. `sha1` says whether the hash policy asks for SHA1.
    #[must_use]
    pub(crate) fn name_for(content: &[u8], sha1: bool) -> Self {
        if sha1 { Self::from_digest(&Sha1::digest(content)) } else { Self::of(content) }
    }

    /// Makes a hash from the raw bytes of a hasher: 20 or 32 of them.
    #[must_use]
    pub fn from_digest(digest: &[u8]) -> Self {
        debug_assert!(LENGTHS.contains(&(digest.len() * 2)));
        let mut digits = Vec::with_capacity(64);
        for byte in digest {
            digits.extend([byte >> 4, byte & 15].map(|n| b"0123456789abcdef"[usize::from(n)]));
        }
        Self::from_digits(&digits)
    }

    /// Whether this is the hash of `content`, by the algorithm that its length tells.
    #[must_use]
    pub fn names(&self, content: &[u8]) -> bool {
        *self == if self.is_sha3() { Self::of(content) } else { Self::from_digest(&Sha1::digest(content)) }
    }

    /// Whether each hash [names](Self::names) its content. Many contents at once take a third of the time.
    #[must_use]
    pub(crate) fn name_all(named: &[(Self, &[u8])]) -> Vec<bool> {
        let sha3: Vec<&[u8]> =
            named.iter().filter(|(hash, _)| hash.is_sha3()).map(|(_, content)| *content).collect();
        let mut digests = sha3::digests(&sha3).into_iter();
        let is_named = |(hash, content): &(Self, &[u8])| {
            if hash.is_sha3() {
                digests.next().is_some_and(|digest| *hash == Self::from_digest(&digest))
            } else {
                hash.names(content)
            }
        };
        named.iter().map(is_named).collect()
    }

    /// Whether this is a SHA3-256 hash rather than a SHA1 one.
    #[must_use]
    pub fn is_sha3(&self) -> bool {
        self.len == 64
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only ASCII is ever stored.
        str::from_utf8(&self.text[..usize::from(self.len)]).unwrap_or_default()
    }

    /// The first ten digits, for people.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.as_str()[..10]
    }

    fn from_digits(digits: &[u8]) -> Self {
        let mut text = [0; 64];
        let len = digits.len().min(text.len());
        text[..len].copy_from_slice(&digits[..len]);
        Self { text, len: u8::try_from(len).unwrap_or(0) }
    }
}

text_value!(Hash);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn content_is_named_by_sha3_and_recognised_by_either() {
        let sha1 = Hash::parse("a9993e364706816aba3e25717850c26c9cd0d89d").unwrap();
        assert!(sha1.names(b"abc") && !sha1.names(b"abd") && !sha1.is_sha3());
        let sha3 = Hash::of(b"abc");
        assert_eq!(sha3.as_str(), "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532");
        assert!(sha3.names(b"abc") && !sha3.names(b""));
    }

    #[test]
    fn of_many_contents_each_is_compared_with_its_own_hash() {
        let sha1 = Hash::name_for(b"old", true);
        let named =
            [(Hash::of(b"a"), &b"a"[..]), (sha1, b"old"), (Hash::of(b"b"), b"c"), (Hash::of(b"d"), b"d")];
        assert_eq!(Hash::name_all(&named), [true, true, false, true]);
        let named = [(sha1, &b"new"[..]), (Hash::of(b""), b"")];
        assert_eq!(Hash::name_all(&named), [false, true]);
    }

    #[test]
    fn b16_a_prefix_or_a_name_is_no_hash() {
        let upper = "A9993E364706816ABA3E25717850C26C9CD0D89D";
        for text in ["", "zzzz", "a999", "trunk", upper, &"g".repeat(64), &"é".repeat(20)] {
            assert_eq!(Hash::parse(text).unwrap_err().kind(), Kind::Invalid, "{text}");
        }
    }

    #[test]
    fn hashes_sort_as_their_text() {
        let mut hashes = ["b", "a", "ab"].map(|s| Hash::of(s.as_bytes())).to_vec();
        hashes.push(Hash::parse(&"5".repeat(40)).unwrap());
        let mut texts: Vec<String> = hashes.iter().map(ToString::to_string).collect();
        hashes.sort();
        texts.sort();
        assert_eq!(hashes.iter().map(ToString::to_string).collect::<Vec<_>>(), texts);
    }
}
