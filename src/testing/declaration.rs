//! One declared test: its command, and what it needs beside the files of the tree.

use serde::{Deserialize, Serialize};

use crate::name::{Hash, Span, TreePath};

/// One declared test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// What the test is called; unique in its file.
    pub name: String,
    /// The command, as a shell reads it.
    pub command: String,
    /// How long it may run, and its fetch command too.
    pub limit: Span,
    /// Paths of the working folder that no check-in holds and that the test needs, such as `node_modules`.
    pub with: Vec<TreePath>,
    /// The variables that it needs beside the usual ones.
    pub env: Vec<Variable>,
    /// A command that may use the network and fills what the test needs, such as `npm ci`. It is no evidence.
    pub fetch: Option<String>,
    /// Whether the test may use the network.
    pub network: bool,
    /// Whether each run starts on an empty tree.
    pub fresh: bool,
    /// Whether the test makes namespaces of its own.
    pub nested: bool,
    /// Where it runs.
    pub place: RunsIn,
}

/// A variable that a test needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value; without one, that of the environment that OCX runs in.
    pub value: Option<String>,
}

/// Where a test runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunsIn {
    /// On a copy of exactly what a check-in would hold.
    #[default]
    Tree,
    /// In the working folder, with all that lies there.
    Checkout,
}

impl Test {
    /// A test of this name and command, with nothing else declared, that may run for ten minutes.
    #[must_use]
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            command: command.into(),
            limit: Span::minutes(10),
            with: Vec::new(),
            env: Vec::new(),
            fetch: None,
            network: false,
            fresh: false,
            nested: false,
            place: RunsIn::Tree,
        }
    }

    /// A hash over all that decides what a pass says. The time limit is no part of it.
    #[must_use]
    pub fn digest(&self) -> Hash {
        let env: Vec<_> = self.env.iter().map(|v| (&v.name, &v.value)).collect();
        let with: Vec<_> = self.with.iter().map(TreePath::as_str).collect();
        let flags = (self.network, self.fresh, self.nested, self.place);
        let parts = (&self.name, &self.command, with, env, &self.fetch, flags);
        Hash::of(&serde_json::to_vec(&parts).unwrap_or_default())
    }

    /// The command with what is declared beside it, on one line for people.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut beside = Vec::new();
        beside.extend((!self.with.is_empty()).then(|| format!("with {}", list(&self.with))));
        let names: Vec<_> = self.env.iter().map(|v| v.name.as_str()).collect();
        beside.extend((!names.is_empty()).then(|| format!("env {}", names.join(", "))));
        beside.extend(self.fetch.as_ref().map(|fetch| format!("fetch `{fetch}`")));
        for (on, word) in [(self.network, "network"), (self.fresh, "fresh"), (self.nested, "nested")] {
            beside.extend(on.then(|| word.to_owned()));
        }
        beside.extend((self.place == RunsIn::Checkout).then(|| "place checkout".to_owned()));
        if beside.is_empty() {
            return self.command.clone();
        }
        format!("{} ({})", self.command, beside.join("; "))
    }
}

fn list(paths: &[TreePath]) -> String {
    paths.iter().map(TreePath::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_declaration_but_the_limit_is_in_its_digest() {
        let plain = Test::new("unit", "make");
        let path = TreePath::parse("node_modules").unwrap();
        let variable = |value: Option<&str>| Variable { name: "A".into(), value: value.map(Into::into) };
        let others = [
            Test { name: "other".into(), ..plain.clone() },
            Test { command: "true".into(), ..plain.clone() },
            Test { with: vec![path], ..plain.clone() },
            Test { env: vec![variable(None)], ..plain.clone() },
            Test { env: vec![variable(Some("1"))], ..plain.clone() },
            Test { fetch: Some("npm ci".into()), ..plain.clone() },
            Test { network: true, ..plain.clone() },
            Test { fresh: true, ..plain.clone() },
            Test { nested: true, ..plain.clone() },
            Test { place: RunsIn::Checkout, ..plain.clone() },
        ];
        let mut digests: Vec<_> = others.iter().chain([&plain]).map(Test::digest).collect();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), others.len() + 1);
        assert_eq!(Test { limit: Span::minutes(1), ..plain.clone() }.digest(), plain.digest());
        assert_eq!(plain.shown(), "make");
        assert_eq!(others[5].shown(), "make (fetch `npm ci`)");
    }
}
