//! Which tags an artifact may carry, by who sends it: two tables, and the check of a card against them.
//!
//! What an agent's set may hold:
//!
//! | artifact | card | what it may say |
//! |---|---|---|
//! | check-in | B, F | contents that are in the set or here |
//! | check-in | C, N, Q, R | what Fossil takes |
//! | check-in | D | Fossil's own form, a day ahead of the clock at most, not before a parent |
//! | check-in | P | one check-in or more, each in the set or here, and public |
//! | check-in | T | a row of [`AGENTS`], on the check-in itself |
//! | check-in | U | the agent's login |
//! | file | | one of a check-in of the set |
//! | anything else | | nothing: it is refused |
//!
//! Anyone else's set, a person's bundle or another repository's artifacts, may hold what Fossil takes. But no artifact
//! of any kind may carry a tag that a row of [`TRUSTED`] forbids.

use crate::error::{Error, Kind, Result};
use crate::format::artifact::{TagAction, TagCard, julian_day};
use crate::name::{Branch, Hash};

/// How much of a value is shown.
const SHOWN_MAX: usize = 80;

/// The tags that an agent's check-in may carry, all of them.
const AGENTS: [(Name, TagAction, Value); 3] = [
    (Name::Is("branch"), TagAction::Propagate, Value::OwnBranch),
    (Name::OwnSymbol, TagAction::Propagate, Value::None),
    (Name::SymbolOfParent, TagAction::Cancel, Value::None),
];

/// The tags whose value or target Fossil's linking code (2.28) trusts without a look, and what is asked of them.
///
/// | tag | what `tag_insert` and `manifest_crosslink` do | asked |
/// |---|---|---|
/// | `bgcolor` | keep the value in `event` | nothing |
/// | `branch` | name it in a control artifact's comment, escaped; no value is an empty one | nothing |
/// | `cluster`, `closed`, `hidden`, `note` | keep the value | nothing |
/// | `comment` | keep the value; look for links if there is one | nothing |
/// | `date` | set the time to what SQLite reads; what it cannot read, and each cancel, leaves no time | a fixed date, no cancel |
/// | `parent` | `+`: measure the value and split it into hashes, into a list that is too short for others | hashes |
/// | `private` | hide the target from every sync, even on a cancel | it is never taken |
/// | `sym-...` | keep the value | nothing |
/// | `user` | keep the value in `event`; no value is none | nothing |
/// | `event-...`, `tkt-...`, `wiki-...` | read the target only if it is of that kind | nothing |
const TRUSTED: [(&str, TagAction, Value); 8] = [
    ("date", TagAction::Add, Value::Date),
    ("date", TagAction::Propagate, Value::Date),
    ("date", TagAction::Cancel, Value::Refused),
    ("parent", TagAction::Add, Value::Hashes),
    ("parent", TagAction::Propagate, Value::Hashes),
    ("private", TagAction::Add, Value::Refused),
    ("private", TagAction::Propagate, Value::Refused),
    ("private", TagAction::Cancel, Value::Refused),
];

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
    /// There is none that is taken.
    Refused,
}

/// Refuses a tag that Fossil's code would trust wrongly, whoever sends it.
pub(super) fn check_trusted(artifact: &Hash, tag: &TagCard) -> Result<()> {
    let row = TRUSTED.iter().find(|(name, action, _)| *name == tag.name && *action == tag.action);
    let asked = match row {
        Some((_, _, value)) if !value.fits(tag.value.as_deref(), None) => value.asked(),
        _ => return Ok(()),
    };
    let what = format!("the artifact `{artifact}` has the card `{}`; {asked}", shown(tag));
    Err(Error::new(Kind::Invalid, what)
        .with_hint("Leave that artifact out, or have it made anew without the card."))
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
            // A word such as `now` is another date in each repository.
            Self::Date => value.is_some_and(|date| {
                date.starts_with(|c: char| c.is_ascii_digit()) && julian_day(date.as_bytes()).is_some()
            }),
            Self::Hashes => value.is_some_and(|list| list.split(' ').all(|word| Hash::parse(word).is_ok())),
            Self::Refused => false,
        }
    }

    /// What is said where a value of anyone does not fit.
    fn asked(self) -> &'static str {
        match self {
            Self::None | Self::OwnBranch | Self::Refused => "that tag is taken from nobody",
            Self::Date => "its value must be a date such as `2026-11-30T10:23:45`",
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
