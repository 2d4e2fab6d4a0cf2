//! The commands that a repository wants run around its check-ins. OCX runs none: whoever may change a repository's
//! settings would else run commands as whoever saves.

use std::fmt;

use serde_json::Value;

/// What Fossil calls a hook that is switched off.
const DISABLED: &str = "disabled";

/// A command that Fossil would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// When: `before-commit` or `after-receive`.
    pub when: String,
    /// The command line.
    pub command: String,
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hook `{}`", self.when, self.command)
    }
}

/// The hooks that the setting `hooks` names. One that cannot be read is a hook all the same: Fossil might read it.
pub(super) fn of(value: &str) -> Vec<Hook> {
    if value.trim().is_empty() {
        return Vec::new();
    }
    let unread = || Hook { when: "unreadable".to_owned(), command: value.to_owned() };
    let Ok(Value::Array(all)) = serde_json::from_str(value) else { return vec![unread()] };
    let hooks = all.iter().map(|hook| match (&hook["type"], &hook["cmd"]) {
        (Value::String(when), Value::String(command)) => {
            Hook { when: when.clone(), command: command.clone() }
        }
        _ => Hook { when: "unreadable".to_owned(), command: hook.to_string() },
    });
    hooks.filter(|hook| hook.when != DISABLED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hook_is_named_but_those_that_are_switched_off() {
        let named = |value: &str| of(value).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(named(""), [""; 0]);
        assert_eq!(named("[]"), [""; 0]);
        let two = r#"[{"type":"before-commit","cmd":"./check %A","seq":1},{"type":"disabled","cmd":"x"}]"#;
        assert_eq!(named(two), ["before-commit hook `./check %A`"]);
        assert_eq!(named("{oops"), ["unreadable hook `{oops`"]);
        assert_eq!(named(r#"[{"type":1}]"#), [r#"unreadable hook `{"type":1}`"#]);
    }
}
