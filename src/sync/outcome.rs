//! What a sync did.

use std::fmt;

use super::unversioned::UnversionedChanges;
use crate::name::Hash;

/// What a push or pull did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The server holds these now.
    Sent {
        /// Check-ins that it did not hold before.
        check_ins: usize,
        /// All artifacts sent.
        artifacts: usize,
    },
    /// The server held everything already.
    NothingToSend,
    /// These are here now.
    Received {
        /// All artifacts received.
        artifacts: usize,
    },
    /// The server had nothing new.
    NothingToReceive,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent { check_ins, artifacts } => {
                write!(f, "sent {check_ins} check-ins, {artifacts} artifacts")
            }
            Self::NothingToSend => f.write_str("nothing to send"),
            Self::Received { artifacts } => write!(f, "received {artifacts} artifacts"),
            Self::NothingToReceive => f.write_str("nothing to receive"),
        }
    }
}

/// What a sync did, for each thing that it was to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Synced {
    /// What was sent, where that was asked for.
    pub sent: Option<Outcome>,
    /// What was received, likewise.
    pub received: Option<Outcome>,
    /// What became of unversioned files, likewise.
    pub unversioned: Option<UnversionedChanges>,
    /// Artifacts that what was received names, and that are neither here nor given by the server: they are private or
    /// shunned there, or lost.
    pub gaps: Vec<Hash>,
    /// Why some of what was received is kept as mere content: Fossil's code would trust it wrongly. One line each.
    pub not_linked: Vec<String>,
}

impl fmt::Display for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moved = self.unversioned.as_ref().is_some_and(|files| !files.is_empty());
        // Where files went over, "nothing to send" would not be true.
        let is_told = |outcome: &&Outcome| {
            !moved || !matches!(outcome, Outcome::NothingToSend | Outcome::NothingToReceive)
        };
        let parts = [&self.sent, &self.received].into_iter().flatten().filter(is_told);
        let parts = parts.map(ToString::to_string);
        let parts: Vec<_> = parts.chain(self.unversioned.iter().map(ToString::to_string)).collect();
        f.write_str(&parts.join("; "))?;
        let more = |rest: usize| if rest == 0 { String::new() } else { format!(" and {rest} more") };
        if let [one, rest @ ..] = self.gaps.as_slice() {
            let more = more(rest.len());
            write!(f, "; the server does not give `{}`{more}, which some check-in names", one.short())?;
        }
        if let [one, rest @ ..] = self.not_linked.as_slice() {
            write!(f, "; kept as mere content{}: {one}", more(rest.len()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_to_send_is_not_said_where_a_file_was_sent() {
        let said = |sent: &[&str]| {
            let sent = sent.iter().map(|&name| name.into()).collect();
            let unversioned = Some(UnversionedChanges { sent, ..UnversionedChanges::default() });
            Synced { sent: Some(Outcome::NothingToSend), unversioned, ..Synced::default() }.to_string()
        };
        assert_eq!(said(&["a"]), "unversioned files: sent 1, received 0");
        assert_eq!(said(&[]), "nothing to send; unversioned files are the same");
    }
}
