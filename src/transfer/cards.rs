//! What each card of each kind of artifact may say, by who sends it: one table.
//!
//! Fossil's linking code looks at the form of a card and trusts its value. What it does with each value, and what stands
//! against that (the table here, `tags.rs`, `verdict.rs`, or C in `engine/c`):
//!
//! | Fossil's function (2.28) | what it trusts | what stands against it |
//! |---|---|---|
//! | `manifest_parse` | sizes on cards K, R, W and Z | `wrap_manifest.c`; such a text is never linked in |
//! | `manifest_parse`, dates | whatever SQLite's `julianday` reads, `now` too, another day at each rebuild | `Date` |
//! | `uuid_to_rid` | looks a hash up in lowercase and stores it as it stands: a second look-up ends the transaction | `Hash` |
//! | `uuid_to_rid` | makes an empty row for each hash that is not here | limits on cards M, P, Q and T |
//! | `manifest_reparent_checkin` | that the value is a list of hashes; that no circle arises; that there is a card P | `tags.rs`; `wrap_manifest.c` |
//! | `manifest_crosslink_end` | obeys every tag `parent` of the repository again, at each pull | `wrap_manifest.c` does it once |
//! | `manifest_add_checkin_linkages`, `add_mlink` | reads each parent's and each cherrypick's manifest: cost by their number | limits on P and Q |
//! | `add_mlink` | that the parent is a check-in | the kinds of parents in `verdict.rs` |
//! | `fetch_baseline` | one step only, so chains of B are no loop; a baseline that is no manifest leaves the check-in unlinked | `rules::all_linked` |
//! | `manifest_add_fwt_plink` | that a page follows a page: a page that follows a check-in takes its tags and makes it no leaf | the kinds of parents in `verdict.rs` |
//! | `tag_insert`, `tag_propagate` | values of `date` and `private`; copies a value to all descendants; ends in circles too | `tags.rs` |
//! | `leaf_check`, ancestor walks | that there is no circle | `wrap_manifest.c` |
//! | technotes, `backlink_wiki_refresh`, `ticket_rebuild_entry` | that only their own artifacts carry `event-`, `wiki-`, `tkt-` | `tags.rs` |
//! | `ticket_insert` | field names: taken only if the table has that column, quoted; `tkt_...` never | limit on J |
//! | ticket changes | asserts that it runs between `manifest_crosslink_begin` and `_end` | `ocx_link_waiting` |
//! | attachments | that each is linked in once: twice ends the transaction | `ocx_link_waiting`; `link` takes what is new |
//! | forum posts | hashes, so no post can answer itself; copies a title to every post of its thread | limit on H; kinds of G, I and P |
//! | `backlink_extract` | scans all of a text | limits on C and values of tags; V10 for W |
//! | clusters | a row for each member; naming itself is impossible, as its hash is not known before | limit on M |
//! | `after_dephantomize` | a stack as deep as the chain; contents are what they are called | `wrap_content.c` |
//!
//! A fault refuses the whole set of an agent or a person. From a server, where it would end a clone of an honest
//! history, the artifact is stored and not linked in, as Fossil does with what it cannot parse.

use super::tags;
use crate::format::artifact::ArtifactKind::{
    self, Attachment, CheckIn, Cluster, Control, Event, Forum, Ticket, Wiki,
};
use crate::format::artifact::{Cards, TagAction, is_fixed};

/// Bytes of a comment.
const COMMENT_MAX: usize = 4 << 20;
/// Bytes of a name or title, which Fossil copies into other rows.
const NAME_MAX: usize = 16 << 10;
/// Cards that each cost a look at a whole tree, or a row.
const MANY: usize = 1000;
/// Members of a cluster; Fossil's own have about 800.
const MEMBERS_MAX: usize = 100_000;
/// Tags of one artifact that go on to all descendants.
const PROPAGATING_MAX: usize = 200;

/// What is asked of a card, whoever sends it, beyond what the grammar asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nothing.
    Nothing,
    /// A date that means the same everywhere and always.
    Date,
    /// Hashes in lowercase, on so many cards at most.
    Hashes(usize),
    /// So many cards at most.
    Count(usize),
    /// So many bytes at most.
    Text(usize),
    /// Tags as `tags.rs` has them, so many at most.
    Tags(usize),
}

/// What is asked of an agent's card besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfAgent {
    /// Nothing.
    Nothing,
    /// Contents that are in the set or here, for everyone.
    Contents,
    /// Fossil's own form, a day ahead of the clock at most.
    Near,
    /// One check-in or more, each in the set or here, public, and not younger.
    Parents,
    /// The agent's own row of tags, on the check-in itself.
    Tags,
    /// The agent's login.
    Login,
    /// There is none: such an artifact is refused.
    Refused,
}

/// A card of a kind of artifact, and what is asked of it.
pub(super) type Row = (ArtifactKind, u8, Asked, OfAgent);

/// Bytes and numbers of any size.
const ALL: usize = usize::MAX;

#[rustfmt::skip]
pub(super) const ROWS: [Row; 54] = [
    (CheckIn,    b'B', Asked::Hashes(1),           OfAgent::Contents),
    (CheckIn,    b'C', Asked::Text(COMMENT_MAX),   OfAgent::Nothing),
    (CheckIn,    b'D', Asked::Date,                OfAgent::Near),
    (CheckIn,    b'F', Asked::Hashes(ALL),         OfAgent::Contents),
    (CheckIn,    b'N', Asked::Text(NAME_MAX),      OfAgent::Nothing),
    (CheckIn,    b'P', Asked::Hashes(MANY),        OfAgent::Parents),
    (CheckIn,    b'Q', Asked::Hashes(MANY),        OfAgent::Nothing),
    (CheckIn,    b'R', Asked::Nothing,             OfAgent::Nothing),
    (CheckIn,    b'T', Asked::Tags(MANY),          OfAgent::Tags),
    (CheckIn,    b'U', Asked::Text(NAME_MAX),      OfAgent::Login),
    (CheckIn,    b'Z', Asked::Nothing,             OfAgent::Nothing),
    (Cluster,    b'M', Asked::Hashes(MEMBERS_MAX), OfAgent::Refused),
    (Cluster,    b'Z', Asked::Nothing,             OfAgent::Refused),
    (Control,    b'D', Asked::Date,                OfAgent::Refused),
    (Control,    b'T', Asked::Tags(MANY),          OfAgent::Refused),
    (Control,    b'U', Asked::Text(NAME_MAX),      OfAgent::Refused),
    (Control,    b'Z', Asked::Nothing,             OfAgent::Refused),
    (Wiki,       b'C', Asked::Text(COMMENT_MAX),   OfAgent::Refused),
    (Wiki,       b'D', Asked::Date,                OfAgent::Refused),
    (Wiki,       b'L', Asked::Text(NAME_MAX),      OfAgent::Refused),
    (Wiki,       b'N', Asked::Text(NAME_MAX),      OfAgent::Refused),
    (Wiki,       b'P', Asked::Hashes(MANY),        OfAgent::Refused),
    (Wiki,       b'U', Asked::Text(NAME_MAX),      OfAgent::Refused),
    (Wiki,       b'W', Asked::Text(ALL),           OfAgent::Refused),
    (Wiki,       b'Z', Asked::Nothing,             OfAgent::Refused),
    (Ticket,     b'D', Asked::Date,                OfAgent::Refused),
    (Ticket,     b'J', Asked::Count(MANY),         OfAgent::Refused),
    (Ticket,     b'K', Asked::Hashes(1),           OfAgent::Refused),
    (Ticket,     b'U', Asked::Text(NAME_MAX),      OfAgent::Refused),
    (Ticket,     b'Z', Asked::Nothing,             OfAgent::Refused),
    (Attachment, b'A', Asked::Hashes(2),           OfAgent::Refused),
    (Attachment, b'C', Asked::Text(COMMENT_MAX),   OfAgent::Refused),
    (Attachment, b'D', Asked::Date,                OfAgent::Refused),
    (Attachment, b'N', Asked::Text(NAME_MAX),      OfAgent::Refused),
    (Attachment, b'U', Asked::Text(NAME_MAX),      OfAgent::Refused),
    (Attachment, b'Z', Asked::Nothing,             OfAgent::Refused),
    (Event,      b'C', Asked::Text(COMMENT_MAX),   OfAgent::Refused),
    (Event,      b'D', Asked::Date,                OfAgent::Refused),
    (Event,      b'E', Asked::Date,                OfAgent::Refused),
    (Event,      b'N', Asked::Text(NAME_MAX),      OfAgent::Refused),
    (Event,      b'P', Asked::Hashes(MANY),        OfAgent::Refused),
    (Event,      b'T', Asked::Tags(MANY),          OfAgent::Refused),
    (Event,      b'U', Asked::Text(NAME_MAX),      OfAgent::Refused),
    (Event,      b'W', Asked::Text(ALL),           OfAgent::Refused),
    (Event,      b'Z', Asked::Nothing,             OfAgent::Refused),
    (Forum,      b'D', Asked::Date,                OfAgent::Refused),
    (Forum,      b'G', Asked::Hashes(1),           OfAgent::Refused),
    (Forum,      b'H', Asked::Text(NAME_MAX),      OfAgent::Refused),
    (Forum,      b'I', Asked::Hashes(1),           OfAgent::Refused),
    (Forum,      b'N', Asked::Text(NAME_MAX),      OfAgent::Refused),
    (Forum,      b'P', Asked::Hashes(1),           OfAgent::Refused),
    (Forum,      b'U', Asked::Text(NAME_MAX),      OfAgent::Refused),
    (Forum,      b'W', Asked::Text(ALL),           OfAgent::Refused),
    (Forum,      b'Z', Asked::Nothing,             OfAgent::Refused),
];

/// Why an artifact must not be linked in, whoever sends it; nothing if it may be.
pub(super) fn fault(cards: &Cards<'_>) -> Option<String> {
    if cards.has_nul {
        return Some("has a NUL in a card".to_owned());
    }
    rows_of(cards.kind()).find_map(|(_, card, asked, _)| asked.fault(*card, cards))
}

/// The rows of a kind.
pub(super) fn rows_of(kind: ArtifactKind) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| row.0 == kind)
}

/// Whether an agent may send artifacts of a kind.
pub(super) fn is_agents(kind: ArtifactKind) -> bool {
    rows_of(kind).all(|(_, _, _, of_agent)| *of_agent != OfAgent::Refused)
}

impl Asked {
    fn fault(self, card: u8, cards: &Cards<'_>) -> Option<String> {
        let name = char::from(card);
        match self {
            Self::Nothing => None,
            Self::Date => {
                let loose = cards.date_on(card).filter(|date| !is_fixed(date));
                let said = |date: &[u8]| {
                    format!("has the card `{name} {}`, which is no fixed date", date.escape_ascii())
                };
                loose.map(said).or_else(|| hash_fault(card, cards))
            }
            Self::Hashes(max) => too_many(card, cards.count(card), max).or_else(|| hash_fault(card, cards)),
            Self::Count(max) => too_many(card, cards.count(card), max),
            Self::Text(max) => {
                let size = cards.text(card).map_or(0, <[u8]>::len);
                (size > max).then(|| format!("has a card `{name}` of {size} bytes; {max} are the most"))
            }
            Self::Tags(max) => too_many(card, cards.count(card), max)
                .or_else(|| hash_fault(card, cards))
                .or_else(|| tags_fault(cards)),
        }
    }
}

fn too_many(card: u8, count: usize, max: usize) -> Option<String> {
    let name = char::from(card);
    (count > max).then(|| format!("names {count} on cards `{name}`; {max} are the most"))
}

/// Fossil would store such a name as it stands and never find it again.
fn hash_fault(card: u8, cards: &Cards<'_>) -> Option<String> {
    // Without an early end, the compiler looks at many digits at once.
    let has_upper = |hash: &&&[u8]| hash.iter().fold(false, |upper, b| upper | b.is_ascii_uppercase());
    let hash = cards.hashes(card).iter().find(has_upper)?.escape_ascii().to_string();
    Some(format!("has the hash `{hash}` on a card `{}`, which is not in lowercase", char::from(card)))
}

fn tags_fault(cards: &Cards<'_>) -> Option<String> {
    let tags = cards.tag_cards();
    let propagating = tags.iter().filter(|tag| tag.action == TagAction::Propagate).count();
    if propagating > PROPAGATING_MAX {
        return Some(format!("sets {propagating} propagating tags; {PROPAGATING_MAX} are the most"));
    }
    tags.iter().find_map(tags::fault)
}

#[cfg(test)]
mod tests;
