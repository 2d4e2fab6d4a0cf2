//! The one judge: what is done with each structural artifact, by who sends it.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension};

use super::agent::Agent;
use super::findings::{Findings, Structural};
use crate::error::{Error, Kind, Result};
use crate::format::artifact::ArtifactKind;
use crate::name::Hash;

/// Where a set of artifacts comes from.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// An agent, whose check-ins are its own and on its own branch.
    Agent(Agent<'a>),
    /// Someone whose bundle is taken in.
    Person,
    /// A server that is pulled or cloned from.
    Server,
}

impl Origin<'_> {
    pub fn is_server(self) -> bool {
        matches!(self, Self::Server)
    }
}

/// What is done with an artifact.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is stored, and Fossil's code links it in.
    Linked,
    /// It is stored as mere content, with the reason. A rebuild by plain Fossil would link it in.
    NotLinked(String),
    /// The whole set is refused.
    Refused(Error),
}

/// Judges an artifact by its own cards. What an agent may send is also asked in `agent.rs`, of its parents and branch.
pub(crate) fn judge(artifact: &Structural, origin: Origin<'_>) -> Verdict {
    if let Origin::Agent(agent) = origin
        && let Err(e) = agent.check_kind(artifact)
    {
        return Verdict::Refused(e);
    }
    artifact.fault.as_ref().map_or(Verdict::Linked, |fault| found(artifact, fault, origin))
}

/// Judges the artifacts of a set that are not held. Returns the rows that must not be linked in, with the reasons.
pub(crate) fn judged(
    db: &Connection,
    findings: &Findings,
    origin: Origin<'_>,
    is_held: impl Fn(usize) -> bool,
) -> Result<HashMap<usize, String>> {
    let kinds: HashMap<Hash, ArtifactKind> =
        findings.structural.iter().filter_map(|artifact| Some((artifact.hash, artifact.kind?))).collect();
    let mut not_linked = HashMap::new();
    for artifact in findings.structural.iter().filter(|artifact| !is_held(artifact.row)) {
        let verdict = match judge(artifact, origin) {
            Verdict::Linked => match other_kind(db, artifact, &kinds)? {
                Some(fault) => found(artifact, &fault, origin),
                None => Verdict::Linked,
            },
            verdict => verdict,
        };
        match verdict {
            Verdict::Linked => {}
            Verdict::NotLinked(why) => drop(not_linked.insert(artifact.row, why)),
            Verdict::Refused(e) => return Err(e),
        }
    }
    Ok(not_linked)
}

/// Refuses an artifact of one's own, check-in or record, that would be refused as a person's from elsewhere.
pub(crate) fn judge_own(content: &[u8], hash: &Hash) -> Result<()> {
    match Structural::of(0, *hash, content).map(|(artifact, _)| judge(&artifact, Origin::Person)) {
        Some(Verdict::Refused(e)) => Err(e),
        _ => Ok(()),
    }
}

/// What a fault leads to.
fn found(artifact: &Structural, fault: &str, origin: Origin<'_>) -> Verdict {
    let what = format!("the artifact `{}` {fault}", artifact.hash);
    match origin {
        Origin::Server => Verdict::NotLinked(what),
        Origin::Agent(_) | Origin::Person => Verdict::Refused(
            Error::new(Kind::Invalid, what)
                .with_hint("Leave that artifact out, or have it made anew without what is named."),
        ),
    }
}

/// Says which artifact a check-in, page, technote or post follows that is of another kind, in the set or here. A page
/// that follows a check-in would take over its tags, and the check-in would be no leaf.
fn other_kind(
    db: &Connection,
    artifact: &Structural,
    kinds: &HashMap<Hash, ArtifactKind>,
) -> Result<Option<String>> {
    let own = artifact.kind;
    let mut seen = HashSet::new();
    for hash in artifact.follows.iter().filter(|hash| seen.insert(**hash)) {
        let is_other = match kinds.get(hash) {
            Some(kind) => Some(*kind) != own,
            None => kind_here(db, hash)?.is_some_and(|letter| Some(&*letter) != own.and_then(letter_of)),
        };
        if is_other {
            return Ok(Some(format!("follows `{hash}`, which is of another kind")));
        }
    }
    Ok(None)
}

fn kind_here(db: &Connection, hash: &Hash) -> Result<Option<String>> {
    let sql = "SELECT type FROM blob CROSS JOIN event ON objid=rid WHERE uuid=?1";
    Ok(db.prepare_cached(sql)?.query_row([hash.as_str()], |row| row.get(0)).optional()?)
}

/// What Fossil's table `event` calls a kind.
fn letter_of(kind: ArtifactKind) -> Option<&'static str> {
    match kind {
        ArtifactKind::CheckIn => Some("ci"),
        ArtifactKind::Wiki => Some("w"),
        ArtifactKind::Event => Some("e"),
        ArtifactKind::Forum => Some("f"),
        ArtifactKind::Cluster | ArtifactKind::Control | ArtifactKind::Ticket | ArtifactKind::Attachment => {
            None
        }
    }
}

#[cfg(test)]
mod tests;
