//! Where calls act, seen from who makes them, and the words that say so. The tools are the same everywhere. The binding
//! decides what their list says of them; the caller's report decides what an answer says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::declare::{Declaration, Declarations};

/// Where the calls of a service act, seen from who makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Binding {
    /// In a checkout among the caller's own files.
    #[default]
    Local,
    /// In a checkout away from the caller's files, which no call reaches.
    Remote,
}

/// What a caller says of a clone of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Situation {
    Clone,
    Setup,
    /// Unavailable, or nobody looked. The work is done in the remote checkout.
    Unknown,
}

/// What is said of a tool on a remote endpoint, in each situation.
struct Sentences {
    tool: &'static str,
    clone: &'static str,
    setup: &'static str,
    unknown: &'static str,
}

/// The tools whose words change with the place. The rest say the same everywhere.
const REMOTE: [Sentences; 4] = [
    Sentences {
        tool: "ocx_context",
        clone: "Describe this endpoint's checkout, its branch, unsaved files and tests. This remote call does not inspect \
                your own clone: check it there before preparing its changes.",
        setup: "Describe this endpoint's checkout. You can prepare a checkout of your own first, from the read URL and the \
                starting revision given here; this call does not create that clone.",
        unknown: "Start here: the remote run's objective, working branch, unsaved files and declared tests. Find and read \
                  its files, edit them, run its tests, then save in this same checkout.",
    },
    Sentences {
        tool: "ocx_sync",
        clone: "Publish committed work from your clone: make a standalone bundle of its non-trunk branch, give `branch` \
                and `bundle`; `have` asks for descendants to import back. Verify the landing.",
        setup: "Once you have a clone, opened the stated revision and committed on your working branch, publish its \
                standalone bundle here. Not cloned yet: follow the bootstrap steps first.",
        unknown: "Import a bundle already committed in another clone. For changes made through this run's editing tools \
                  use ocx_save after its tests pass; no local clone or bundle is needed.",
    },
    Sentences { tool: "ocx_save", clone: SAVE, setup: SAVE, unknown: SAVE },
    Sentences { tool: "ocx_commit_and_sync", clone: COMMIT, setup: COMMIT, unknown: COMMIT },
];

const SAVE: &str = "Commit and push this remote run's checkout after its recorded tests pass. Files on your computer are \
                    outside this call.";

const COMMIT: &str = "Acts only where your own files are, so this remote endpoint refuses it: save the checkout here with \
                      ocx_save, or prepare a bundle in your clone by ocx_commit_and_sync_guide.";

/// What the tools of a connection that matter most do, by name, in the order of the list.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub(super) struct Guidance(#[schemars(with = "BTreeMap<String, String>")] Vec<(&'static str, String)>);

impl Serialize for Guidance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, words)| (name, words)))
    }
}

/// The tools of which an answer says what they do in the caller's situation.
const GUIDED: [&str; 3] = ["ocx_context", "ocx_sync", "ocx_save"];

impl Binding {
    /// The summary of a tool where the caller's situation is not known, as in the list of tools. It has at most 200
    /// characters.
    #[must_use]
    pub fn summary(self, tool: &Declaration) -> &'static str {
        self.summary_in(tool, Situation::Unknown)
    }

    /// The summary with the line that says what the call needs.
    #[must_use]
    pub fn description(self, tool: &Declaration) -> String {
        format!("{}\nNeeds: {}.", self.summary(tool), tool.needs.words())
    }

    /// What the tools of this connection that matter most do in a situation.
    pub(super) fn guidance(self, all: &Declarations, situation: Situation) -> Guidance {
        let tools = GUIDED.iter().filter_map(|name| all.find(name));
        Guidance(tools.map(|tool| (tool.name, all.said(self.summary_in(tool, situation)))).collect())
    }

    /// Where the work is done, in one word.
    pub(super) fn location(self, has_checkout: bool) -> &'static str {
        match self {
            Self::Local if has_checkout => "local_checkout",
            Self::Remote if has_checkout => "remote_run",
            Self::Local => "local_repository",
            Self::Remote => "remote_repository",
        }
    }

    fn summary_in(self, tool: &Declaration, situation: Situation) -> &'static str {
        let sentences = REMOTE.iter().find(|s| self == Self::Remote && s.tool == tool.name);
        sentences.map_or(tool.summary, |s| match situation {
            Situation::Clone => s.clone,
            Situation::Setup => s.setup,
            Situation::Unknown => s.unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_is_at_most_200_characters() {
        for s in REMOTE {
            for text in [s.clone, s.setup, s.unknown] {
                assert!(text.chars().count() <= 200, "{} characters: {text}", text.chars().count());
            }
        }
    }
}
