//! The grammar of Fossil's structural artifacts, card by card.
//!
//! It accepts exactly what `manifest_parse` of Fossil's manifest.c accepts, for every kind of artifact,
//! with its oddities (a NUL separates tokens; a wrong Z card counts only where it is the last 35 bytes),
//! because a server decides by that function what is an artifact and what is mere content. It returns
//! borrowed tokens. `Manifest` turns those of a check-in into values.

use std::borrow::Cow;

use super::date;
use super::names::{is_reserved, is_simple_path, is_wiki_name};
use super::tokens::{
    Bytes, Flaw, Outcome, Tokens, decode, has_wrong_checksum, is_hash, is_hex, syntax, without_signature,
};
use crate::error::{Error, Kind};

/// The kinds of artifact, in the order of Fossil's `CFTYPE_` numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArtifactKind {
    CheckIn,
    Cluster,
    Control,
    Wiki,
    Ticket,
    Attachment,
    Event,
    Forum,
}

impl ArtifactKind {
    /// All kinds.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 8] = [
        Self::CheckIn,
        Self::Cluster,
        Self::Control,
        Self::Wiki,
        Self::Ticket,
        Self::Attachment,
        Self::Event,
        Self::Forum,
    ];

    /// The cards that may and those that must be there.
    pub(crate) fn cards(self) -> (&'static str, &'static str) {
        match self {
            Self::CheckIn => ("BCDFNPQRTUZ", "DZ"),
            Self::Cluster => ("MZ", "MZ"),
            Self::Control => ("DTUZ", "DTUZ"),
            Self::Wiki => ("CDLNPUWZ", "DLUWZ"),
            Self::Ticket => ("DJKUZ", "DJKUZ"),
            Self::Attachment => ("ACDNUZ", "ADZ"),
            Self::Event => ("CDENPTUWZ", "DEWZ"),
            Self::Forum => ("DGHINPUWZ", "DUWZ"),
        }
    }
}

/// The cards of which an artifact has one at most.
const ONCE: &[u8] = b"ABCDEGHIKLNRUW";

/// A tag card: the name begins with `+`, `-` or `*`; no target means this very artifact.
#[derive(Debug)]
pub(super) struct TagToken<'a> {
    pub name: Bytes<'a>,
    pub target: Option<&'a [u8]>,
    pub value: Option<Bytes<'a>>,
}

/// A file card; no hash (in a delta manifest) means that the file is gone.
#[derive(Debug)]
pub(super) struct FileToken<'a> {
    pub name: Bytes<'a>,
    pub hash: Option<&'a [u8]>,
    pub perm: Option<&'a [u8]>,
    pub prior: Option<Bytes<'a>>,
}

/// The cards of one artifact.
#[derive(Debug, Default)]
pub(crate) struct Cards<'a> {
    kind: Option<ArtifactKind>,
    pub baseline: Option<&'a [u8]>,
    pub comment: Option<Bytes<'a>>,
    pub date: Option<&'a [u8]>,
    pub(super) files: Vec<FileToken<'a>>,
    pub mimetype: Option<Bytes<'a>>,
    pub parents: Vec<&'a [u8]>,
    pub cherrypicks: Vec<(&'a [u8], Option<&'a [u8]>)>,
    pub repo_checksum: Option<&'a [u8]>,
    pub(super) tags: Vec<TagToken<'a>>,
    pub user: Option<Bytes<'a>>,
    /// L or H: the name of a wiki page, or the title of a thread.
    pub title: Option<Bytes<'a>>,
    /// G: the post that began the thread.
    pub thread: Option<&'a [u8]>,
    /// I: the post that is answered.
    pub reply_to: Option<&'a [u8]>,
    /// W: the text of a wiki page, a technote or a post.
    pub text: Option<&'a [u8]>,
    /// A: the file's name, what it is attached to, its content.
    pub attachment: Option<(Bytes<'a>, Bytes<'a>, Option<&'a [u8]>)>,
    /// E: when a technote's event is, and its name.
    pub event: Option<(&'a [u8], &'a [u8])>,
    /// J: the names of a ticket's fields.
    pub fields: Vec<&'a [u8]>,
    /// K: the ticket.
    pub ticket: Option<&'a [u8]>,
    /// M: the members of a cluster.
    pub members: Vec<&'a [u8]>,
    /// Whether a NUL stands in a card, where it ends a word.
    pub has_nul: bool,
    /// A bit for each type of card.
    seen: u32,
}

/// Parses one artifact of any kind.
pub(super) fn parse(content: &[u8]) -> Outcome<Cards<'_>> {
    if content.last() != Some(&b'\n') {
        return syntax("not terminated with a line end");
    }
    let text = without_signature(content);
    if text.len() < 10 || !text[0].is_ascii_uppercase() || text[1] != b' ' {
        return syntax("line 1 not recognized");
    }
    if has_wrong_checksum(text) {
        return syntax("incorrect Z-card checksum");
    }
    let mut line = Tokens::new(text);
    let mut cards = Cards::default();
    let mut previous = 0;
    while let Some(card) = line.next_card() {
        // Technotes once had N after P. Those must stay readable.
        if card < previous && !(card == b'N' && previous == b'P' && cards.event.is_some()) {
            return syntax("cards not in lexicographical order");
        }
        if !card.is_ascii_uppercase() {
            return syntax("bad card type");
        }
        let again = cards.seen & bit(card) != 0;
        require(!again || !ONCE.contains(&card), "more than one card of a type that may occur once")?;
        cards.seen |= bit(card);
        previous = card;
        cards.card(card, &mut line)?;
    }
    require(line.is_at_end(), "extra characters at end of card")?;
    cards.has_nul = line.has_nul();
    cards.finish()?;
    Ok(cards)
}

fn require(holds: bool, why: &'static str) -> Outcome {
    if holds { Ok(()) } else { syntax(why) }
}

fn bit(card: u8) -> u32 {
    1 << (card - b'A')
}

impl<'a> Cards<'a> {
    /// What kind of artifact they make.
    pub(crate) fn kind(&self) -> ArtifactKind {
        self.kind.unwrap_or(ArtifactKind::Control)
    }

    fn card(&mut self, card: u8, line: &mut Tokens<'a>) -> Outcome {
        match card {
            b'A' => self.attachment(line),
            b'B' => {
                self.baseline = Some(line.hash("invalid hash on B-card")?);
                self.is(ArtifactKind::CheckIn)
            }
            b'C' => {
                self.comment = line.next_decoded();
                require(self.comment.is_some(), "missing comment text on C-card")
            }
            b'D' => self.date(line),
            b'E' => self.event(line),
            b'F' => self.file(line),
            b'G' | b'H' | b'I' => self.forum(card, line),
            b'J' => self.field(line),
            b'K' => {
                self.ticket = Some(line.hex(40, "bad K-card")?);
                self.is(ArtifactKind::Ticket)
            }
            b'L' => {
                let title = line.next_decoded().ok_or(Flaw::Syntax("missing title on L-card"))?;
                require(is_wiki_name(&title), "L-card has malformed wiki name")?;
                self.title = Some(title);
                self.is(ArtifactKind::Wiki)
            }
            b'M' => {
                let child = line.hash("invalid hash on M-card")?;
                require(self.members.last().is_none_or(|last| *last < child), "M-card in the wrong order")?;
                self.members.push(child);
                self.is(ArtifactKind::Cluster)
            }
            b'N' => {
                self.mimetype = line.next_decoded();
                require(self.mimetype.is_some(), "missing mimetype on N-card")
            }
            b'P' => self.parents(line),
            b'Q' => self.cherrypick(line),
            b'R' => {
                self.repo_checksum = Some(line.hex(32, "bad R-card")?);
                self.is(ArtifactKind::CheckIn)
            }
            b'T' => self.tag(line),
            b'U' => {
                let login = line.next_decoded().filter(|login| !login.is_empty());
                self.user = login.or(Some(Cow::Borrowed(b"anonymous")));
                Ok(())
            }
            b'W' => {
                self.text = Some(text(line)?);
                Ok(())
            }
            b'Z' => line.hex(32, "bad Z-card").map(drop),
            _ => syntax("unrecognized card"),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "each card's arm ends with it")]
    fn is(&mut self, kind: ArtifactKind) -> Outcome {
        self.kind = Some(kind);
        Ok(())
    }

    fn attachment(&mut self, line: &mut Tokens<'a>) -> Outcome {
        let (name, target, source) = (line.next_decoded(), line.next(), line.next());
        let (Some(name), Some(target)) = (name, target) else { return syntax("bad A-card") };
        let decoded = decode(target);
        require(is_simple_path(&name), "invalid filename on A-card")?;
        require(is_hash(target) || is_wiki_name(&decoded), "invalid target on A-card")?;
        require(source.is_none_or(is_hash), "invalid source on A-card")?;
        self.attachment = Some((name, decoded, source));
        self.is(ArtifactKind::Attachment)
    }

    fn date(&mut self, line: &mut Tokens<'a>) -> Outcome {
        self.date = line.next().filter(|token| date::julian_day(token).is_some());
        require(self.date.is_some(), "cannot parse date on D-card")
    }

    fn event(&mut self, line: &mut Tokens<'a>) -> Outcome {
        let date = line.next().filter(|token| date::julian_day(token).is_some());
        let Some(date) = date else { return syntax("malformed date on E-card") };
        self.event = Some((date, line.hash("malformed hash on E-card")?));
        self.is(ArtifactKind::Event)
    }

    fn file(&mut self, line: &mut Tokens<'a>) -> Outcome {
        let name = line.next_decoded().ok_or(Flaw::Syntax("missing filename on F-card"))?;
        require(is_simple_path(&name), "F-card filename is not a simple path")?;
        let hash = line.next_sized();
        require(hash.map_or(self.baseline.is_some(), is_hash), "missing or invalid hash on F-card")?;
        let (perm, prior) = (line.next(), line.next_decoded());
        let simple = prior.as_deref().is_none_or(is_simple_path);
        require(simple, "F-card old filename is not a simple path")?;
        require(self.files.last().is_none_or(|last| last.name < name), "incorrect F-card sort order")?;
        if is_reserved(&name) {
            return Ok(());
        }
        self.files.push(FileToken { name, hash, perm, prior });
        self.is(ArtifactKind::CheckIn)
    }

    fn forum(&mut self, card: u8, line: &mut Tokens<'a>) -> Outcome {
        match card {
            b'H' => {
                self.title = line.next_decoded();
                require(self.title.is_some(), "missing title on H-card")?;
            }
            b'G' => self.thread = Some(line.hash("invalid hash on G-card")?),
            _ => self.reply_to = Some(line.hash("invalid hash on I-card")?),
        }
        self.is(ArtifactKind::Forum)
    }

    fn field(&mut self, line: &mut Tokens<'a>) -> Outcome {
        let (name, _value) = (line.next(), line.next());
        let name = name.ok_or(Flaw::Syntax("name missing from J-card"))?;
        require(self.fields.last().is_none_or(|last| *last < name), "incorrect J-card sort order")?;
        self.fields.push(name);
        self.is(ArtifactKind::Ticket)
    }

    fn parents(&mut self, line: &mut Tokens<'a>) -> Outcome {
        while let Some(parent) = line.next_sized() {
            require(is_hash(parent), "invalid hash on P-card")?;
            self.parents.push(parent);
        }
        Ok(())
    }

    fn cherrypick(&mut self, line: &mut Tokens<'a>) -> Outcome {
        let target = line.next_sized().ok_or(Flaw::Syntax("missing hash on Q-card"))?;
        let signed = matches!(target, [b'+' | b'-', hash @ ..] if is_hash(hash));
        require(signed, "bad hash on Q-card")?;
        let base = line.next_sized();
        require(base.is_none_or(is_hash), "invalid second hash on Q-card")?;
        self.cherrypicks.push((target, base));
        self.is(ArtifactKind::CheckIn)
    }

    fn tag(&mut self, line: &mut Tokens<'a>) -> Outcome {
        let name = line.next_decoded().ok_or(Flaw::Syntax("missing name on T-card"))?;
        let target = line.next_sized().ok_or(Flaw::Syntax("missing artifact hash on T-card"))?;
        let value = line.next_decoded();
        require(is_hash(target) || target == b"*", "malformed artifact hash on T-card")?;
        let target = (target != b"*").then_some(target);
        let Some((b'-' | b'+' | b'*', word)) = name.split_first() else {
            return syntax("T-card name does not begin with '-', '+', or '*'");
        };
        require(!is_hex(word), "T-card name looks like a hexadecimal hash")?;
        let ordered = self.tags.last().is_none_or(|last| (&last.name, last.target) < (&name, target));
        require(ordered, "T-card in the wrong order")?;
        self.tags.push(TagToken { name, target, value });
        Ok(())
    }

    /// The checks that need all cards.
    fn finish(&mut self) -> Outcome {
        let plain = self.comment.is_none() && self.files.is_empty() && self.parents.is_empty();
        let fallback = if plain { ArtifactKind::Control } else { ArtifactKind::CheckIn };
        let kind = *self.kind.get_or_insert(fallback);
        let (allowed, required) = kind.cards();
        require(self.seen & !mask(allowed) == 0, "a card that this kind may not have")?;
        require(mask(required) & !self.seen == 0, "a card that this kind must have is missing")?;
        let of_itself = self.tags.iter().filter(|tag| tag.target.is_none()).count();
        match kind {
            ArtifactKind::Control => require(of_itself == 0, "self-referential T-card in control artifact"),
            ArtifactKind::Event => {
                let simple = self.tags.iter().all(|tag| tag.target.is_none() && tag.name[0] == b'+');
                require(simple, "a T-card that a technote may not have")
            }
            ArtifactKind::Forum => {
                require(
                    self.seen & mask("HI") != mask("HI"),
                    "cannot have I-card and H-card in a forum post",
                )?;
                require(self.parents.len() <= 1, "too many arguments to P-card")
            }
            _ => Ok(()),
        }
    }
}

fn text<'a>(line: &mut Tokens<'a>) -> Outcome<&'a [u8]> {
    let token = line.next().ok_or(Flaw::Syntax("missing size on W-card"))?;
    require(line.is_at_line_end(), "no content after W-card")?;
    let mut size: u32 = 0;
    for digit in token.iter().take_while(|b| b.is_ascii_digit()) {
        let next = size.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'));
        require(next >= size, "size overflow on W-card")?;
        size = next;
    }
    if size == u32::MAX {
        // Fossil adds one in 32 bits, so its check of the end passes.
        return Err(Flaw::Crash("size overflow on W-card"));
    }
    line.text(size as usize)
}

fn mask(cards: &str) -> u32 {
    cards.bytes().fold(0, |mask, card| mask | bit(card))
}

/// The error for bytes that are no artifact of the kind.
pub(super) fn unlike(kind: &str, why: &str) -> Error {
    Error::new(Kind::Corrupt, format!("no artifact of a {kind}: {why}"))
}
