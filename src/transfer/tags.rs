//! Which tags an artifact may carry, by who sends it: two tables, and the check of a card against them.

use crate::error::{Error, Kind, Result};
use crate::format::artifact::{TagAction, TagCard, is_fixed};
use crate::name::{Branch, Hash};

/// How much of a value is shown.
const SHOWN_MAX: usize = 80;

/// The most bytes of a value that goes on to all descendants, each of which gets a copy.
const PROPAGATED_MAX: usize = 4096;

/// The tags that an agent's check-in may carry, all of them.
const AGENTS: [(Name, TagAction, Value); 3] = [
    (Name::Is("branch"), TagAction::Propagate, Value::OwnBranch),
    (Name::OwnSymbol, TagAction::Propagate, Value::None),
    (Name::SymbolOfParent, TagAction::Cancel, Value::None),
];

/// The tags whose value or target Fossil's linking code (2.28) trusts without a look, and what is asked of anyone's.
/// The first row that fits a name and action counts. Every value that propagates is short.
///
/// | tag | what `tag_insert` and `manifest_crosslink` do | asked |
/// |---|---|---|
/// | `bgcolor` | keep the value in `event` | nothing more |
/// | `branch` | name it in a control artifact's comment, escaped; no value is an empty one | nothing more |
/// | `closed`, `hidden`, `note` | keep the value | nothing more |
/// | `comment` | keep the value; look for links if there is one | nothing more |
/// | `date` | set the time to what SQLite reads; what it cannot read, and each cancel, leaves no time | a fixed date, no cancel |
/// | `parent` | `+`: measure the value and split it into hashes, into a list that is too short for others | hashes |
/// | `private` | hide the target from every sync, even on a cancel | it is never taken |
/// | `sym-...` | keep the value | nothing more |
/// | `user` | keep the value in `event`; no value is none | nothing more |
/// | `cluster`, `event-...`, `tkt-...`, `wiki-...` | are set for each cluster, technote, ticket and page; one more hides the newest | none |
const ANYONES: [(Matching, TagAction, Value); 20] = [
    (Matching::Name("date"), TagAction::Add, Value::Date),
    (Matching::Name("date"), TagAction::Propagate, Value::Date),
    (Matching::Name("date"), TagAction::Cancel, Value::Refused),
    (Matching::Name("parent"), TagAction::Add, Value::Hashes),
    (Matching::Name("parent"), TagAction::Propagate, Value::Hashes),
    (Matching::Name("private"), TagAction::Add, Value::Refused),
    (Matching::Name("private"), TagAction::Propagate, Value::Refused),
    (Matching::Name("private"), TagAction::Cancel, Value::Refused),
    (Matching::Name("cluster"), TagAction::Add, Value::Refused),
    (Matching::Name("cluster"), TagAction::Propagate, Value::Refused),
    (Matching::Prefix("event-"), TagAction::Add, Value::Refused),
    (Matching::Prefix("event-"), TagAction::Propagate, Value::Refused),
    (Matching::Prefix("event-"), TagAction::Cancel, Value::Refused),
    (Matching::Prefix("tkt-"), TagAction::Add, Value::Refused),
    (Matching::Prefix("tkt-"), TagAction::Propagate, Value::Refused),
    (Matching::Prefix("tkt-"), TagAction::Cancel, Value::Refused),
    (Matching::Prefix("wiki-"), TagAction::Add, Value::Refused),
    (Matching::Prefix("wiki-"), TagAction::Propagate, Value::Refused),
    (Matching::Prefix("wiki-"), TagAction::Cancel, Value::Refused),
    (Matching::Any, TagAction::Propagate, Value::Short),
];

/// Which names a row for anyone is about.
enum Matching {
    Name(&'static str),
    Prefix(&'static str),
    Any,
}

impl Matching {
    fn is(&self, name: &str) -> bool {
        match self {
            Self::Name(this) => name == *this,
            Self::Prefix(start) => name.starts_with(start),
            Self::Any => true,
        }
    }
}

/// Which names a row is about.
enum Name {
    Is(&'static str),
    /// The symbol of the agent's branch.
    OwnSymbol,
    /// Another symbol that propagates from the primary parent.
    SymbolOfParent,
}

/// What a value must be.
#[derive(Clone, Copy)]
enum Value {
    None,
    OwnBranch,
    Date,
    Hashes,
    /// Any that is not long.
    Short,
    /// There is none that is taken.
    Refused,
}

/// Why a tag must not be linked in, whoever sends it.
pub(super) fn fault(tag: &TagCard) -> Option<String> {
    let row = ANYONES.iter().find(|(name, action, _)| name.is(&tag.name) && *action == tag.action);
    let (_, _, value) = row.filter(|(_, _, value)| !value.fits(tag.value.as_deref(), None))?;
    Some(format!("has the card `{}`; {}", shown(tag), value.asked()))
}

/// Refuses a tag that an agent's check-in on `branch` may not carry. `symbols` propagate from its primary parent.
pub(super) fn check_agents(
    check_in: &Hash,
    tag: &TagCard,
    branch: &Branch,
    symbols: &[String],
) -> Result<()> {
    let fits = |(name, action, value): &(Name, TagAction, Value)| {
        name.is(&tag.name, branch, symbols)
            && *action == tag.action
            && value.fits(tag.value.as_deref(), Some(branch))
    };
    if tag.target.is_none() && AGENTS.iter().any(fits) {
        return Ok(());
    }
    let cancels = symbols.iter().filter(|name| !Name::OwnSymbol.is(name, branch, &[]));
    let cancels =
        cancels.fold(String::new(), |text, name| text + &format!(", `T -{} *`", name.escape_debug()));
    let what = format!(
        "the check-in `{check_in}` has the card `{}`; allowed are `T *branch * {branch}`, `T *sym-{branch} *`{cancels} \
         and no other tag",
        shown(tag)
    );
    Err(Error::new(Kind::Denied, what)
        .with_hint("Make the check-in anew without that tag, and send that one."))
}

impl Name {
    fn is(&self, name: &str, branch: &Branch, symbols: &[String]) -> bool {
        let own = |name: &str| name.strip_prefix("sym-") == Some(branch.as_str());
        match self {
            Self::Is(this) => name == *this,
            Self::OwnSymbol => own(name),
            Self::SymbolOfParent => !own(name) && symbols.iter().any(|symbol| symbol == name),
        }
    }
}

impl Value {
    fn fits(self, value: Option<&str>, branch: Option<&Branch>) -> bool {
        let value = value.filter(|value| !value.is_empty());
        match self {
            Self::None => value.is_none(),
            Self::OwnBranch => value.is_some() && value == branch.map(Branch::as_str),
            Self::Date => value.is_some_and(|date| is_fixed(date.as_bytes())),
            Self::Hashes => value.is_some_and(|list| list.split(' ').all(|word| Hash::parse(word).is_ok())),
            Self::Short => value.is_none_or(|text| text.len() <= PROPAGATED_MAX),
            Self::Refused => false,
        }
    }

    /// What is said where a value of anyone does not fit.
    fn asked(self) -> &'static str {
        match self {
            Self::None | Self::OwnBranch | Self::Refused => "that tag is taken from nobody",
            Self::Date => "its value must be a date such as `2026-11-30T10:23:45`",
            Self::Short => "a value that propagates has 4,096 bytes at most",
            Self::Hashes => "its value must be full hashes of parents, divided by one space each",
        }
    }
}

/// The card as text, of a length and of characters that fit into a line.
fn shown(tag: &TagCard) -> String {
    let target = tag.target.as_ref().map_or("*", Hash::as_str);
    let text =
        format!("T {}{} {target} {}", tag.action.sigil(), tag.name, tag.value.as_deref().unwrap_or_default());
    let text: String = text.trim_end().chars().take(SHOWN_MAX).collect();
    text.escape_debug().to_string()
}

#[cfg(test)]
mod tests;
