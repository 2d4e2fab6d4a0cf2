//! The one answer that every tool gives on every way in, and the one place where an error becomes a refusal.
//!
//! An answer is JSON in a fixed order, `ok` first. Its result is a type until the answer is rendered. The command line
//! decides what a person sees of it.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::result::{AnyResult, Readable, ToolResult};
use crate::error::{Error, Kind};

/// The longest `stopped` or `next_step`, in bytes. The words of a server can be longer.
const LINE_BYTES_MAX: usize = 1_500;

/// The largest input, in bytes of JSON, that a refusal repeats in a call that helps.
const CALL_BYTES_MAX: usize = 8_000;

/// One operation that a tool performed, or in a dry run would perform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Operation {
    /// What it is, as one word: `write_file`.
    pub op: &'static str,
    /// Whether it changes anything.
    pub changes: bool,
}

impl Operation {
    /// An operation that only looks.
    #[must_use]
    pub const fn reads(op: &'static str) -> Self {
        Self { op, changes: false }
    }

    /// An operation that changes something.
    #[must_use]
    pub const fn changes(op: &'static str) -> Self {
        Self { op, changes: true }
    }
}

/// A whole call that a caller can make as it stands: a tool of this connection and its input.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NextCall {
    /// The tool's name.
    pub tool: &'static str,
    /// Its input, valid for that tool.
    #[schemars(with = "Map<String, Value>")]
    pub arguments: Value,
}

impl NextCall {
    /// A call of `tool` with `arguments`.
    #[must_use]
    pub const fn new(tool: &'static str, arguments: Value) -> Self {
        Self { tool, arguments }
    }
}

/// Why a tool did not do what was asked: the error, what was reached before it, and the call that helps.
#[derive(Debug)]
pub struct Refusal(Box<Stopped>);

#[derive(Debug)]
struct Stopped {
    error: Error,
    reached: Option<Box<dyn AnyResult>>,
    next_call: Option<NextCall>,
}

impl Refusal {
    /// Adds the whole call that helps.
    #[must_use]
    pub fn next(self, tool: &'static str, arguments: Value) -> Self {
        self.or_next(Some(NextCall::new(tool, arguments)))
    }

    /// Adds the call that helps, if there is one and it is short enough to repeat.
    #[must_use]
    pub fn or_next(mut self, call: Option<NextCall>) -> Self {
        let short = |call: &NextCall| call.arguments.to_string().len() <= CALL_BYTES_MAX;
        if let Some(call) = call.filter(short) {
            self.0.next_call = Some(call);
        }
        self
    }

    /// Adds what was reached before the refusal. It becomes the answer's `result`.
    #[must_use]
    pub fn reached(mut self, result: impl ToolResult) -> Self {
        self.0.reached = Some(Box::new(result));
        self
    }

    /// Leaves out the call that helps unless it is `good`.
    #[must_use]
    pub(super) fn keep_next(mut self, good: impl FnOnce(&NextCall) -> bool) -> Self {
        self.0.next_call = self.0.next_call.take().filter(good);
        self
    }

    /// Says in other words what to do. `reworded` gets the words; if it leaves nothing, a general step takes their
    /// place.
    #[must_use]
    pub(super) fn reworded(mut self, reworded: impl FnOnce(&str) -> String) -> Self {
        let error = self.0.error;
        let words = reworded(error.hint().unwrap_or_else(|| usual_next_step(error.kind())));
        let words = if words.is_empty() { NOTHING_HERE.to_owned() } else { words };
        self.0.error = error.with_hint(words);
        self
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.error.kind()
    }

    /// The call that helps, if there is one.
    #[must_use]
    pub fn next_call(&self) -> Option<&NextCall> {
        self.0.next_call.as_ref()
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(Box::new(Stopped { error, reached: None, next_call: None }))
    }
}

/// What a tool answers.
///
/// ```
/// use ocx::error::{Error, Kind};
/// use ocx::tool::{Answer, Operation};
/// let error = Error::new(Kind::NotFound, "no file `x`").with_hint("Give another path.");
/// let answer = Answer::refused("ocx_read", false, vec![Operation::reads("read_file")], error.into());
/// assert!(answer.to_string().starts_with(r#"{"ok":false,"tool":"ocx_read","dry_run":false,"log":[{"op":"read_file""#));
/// ```
#[derive(Debug, Serialize)]
pub struct Answer {
    ok: bool,
    tool: String,
    dry_run: bool,
    log: Vec<Operation>,
    #[serde(serialize_with = "rendered")]
    result: Option<Box<dyn AnyResult>>,
    stopped: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

/// Writes a result as JSON, here and nowhere before.
#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn rendered<S: Serializer>(result: &Option<Box<dyn AnyResult>>, serializer: S) -> Result<S::Ok, S::Error> {
    result.as_ref().map(|result| result.to_json()).serialize(serializer)
}

impl Answer {
    /// The answer of a tool that did what was asked.
    pub(crate) fn done(tool: &str, dry_run: bool, log: Vec<Operation>, result: Box<dyn AnyResult>) -> Self {
        Self {
            ok: true,
            tool: tool.to_owned(),
            dry_run,
            log,
            result: Some(result),
            stopped: None,
            code: None,
            next_step: None,
            next_call: None,
        }
    }

    /// The answer of a tool that did not: the one translation of an error into a refusal.
    #[must_use]
    pub fn refused(tool: &str, dry_run: bool, log: Vec<Operation>, stop: Refusal) -> Self {
        let Stopped { error, reached, next_call } = *stop.0;
        let kind = error.kind();
        let next_step = error.hint().unwrap_or_else(|| usual_next_step(kind));
        Self {
            ok: false,
            tool: tool.to_owned(),
            dry_run,
            log,
            result: reached,
            stopped: Some(one_line(&error.to_string())),
            code: Some(kind.code()),
            next_step: Some(one_line(next_step)),
            next_call,
        }
    }

    /// Whether what was asked was done.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.ok
    }

    /// Whether the call was a dry run, which changes nothing.
    #[must_use]
    pub fn dry_run(&self) -> bool {
        self.dry_run
    }

    /// What was wrong and what to do instead. Nothing if the tool did what was asked.
    #[must_use]
    pub fn refusal(&self) -> Option<(&str, &str)> {
        Some((self.stopped.as_deref()?, self.next_step.as_deref()?))
    }

    /// The call that helps, if there is one.
    #[must_use]
    pub fn next_call(&self) -> Option<&NextCall> {
        self.next_call.as_ref()
    }

    /// What kind of refusal it is. Nothing if the tool did what was asked.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| Some(kind.code()) == self.code)
    }

    /// The result as text for a person. Nothing if a person reads it as an outline of its fields.
    #[must_use]
    pub fn readable(&self) -> Option<Readable> {
        self.result.as_ref()?.readable()
    }

    /// The result as JSON. Null if there is none.
    #[must_use]
    pub fn result(&self) -> Value {
        self.result.as_ref().map_or(Value::Null, |result| result.to_json())
    }

    /// The answer as JSON.
    ///
    /// # Panics
    /// Never: a result is made of JSON's own types.
    #[must_use]
    pub fn into_json(self) -> Value {
        serde_json::to_value(&self).expect("an answer is made of JSON's own types")
    }
}

impl std::fmt::Display for Answer {
    /// The answer's bytes, the same on every way in.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| std::fmt::Error)?)
    }
}

/// The next step if no other one can be made where the call was made.
const NOTHING_HERE: &str = "Correct the call, or go on with something else.";

/// The next step for an error that has no hint of its own.
fn usual_next_step(kind: Kind) -> &'static str {
    match kind {
        Kind::NotFound => "Check the name; ocx_find looks through the files of the checkout.",
        Kind::Ambiguous => "Give more of the name, so that it fits one thing only.",
        Kind::Exists => "Choose another name, or use what is there.",
        Kind::Invalid => "Correct the named value and call again.",
        Kind::TooLarge => "Stay under the stated limit.",
        Kind::Denied => {
            "Ask whoever runs this repository for the capability, or choose a place within the checkout."
        }
        Kind::Busy => "Wait a few seconds and make the same call again.",
        Kind::Changed => "Read it again, then repeat the call with what it holds now.",
        Kind::Unchanged => "There is nothing to do; go on with the next task.",
        Kind::WouldFork => "Update the checkout to the newest check-in of the branch, test again, then save.",
        Kind::Closed => "Work on another branch; a closed branch takes no more check-ins.",
        Kind::Untested => "Call ocx_test, then save.",
        Kind::NotPushed => "Save again with the same four lines; only the push is repeated.",
        Kind::Unreachable | Kind::TimedOut => "Try again when the server answers.",
        Kind::Untrusted => "Have the server's certificate looked at; nothing was sent to it.",
        Kind::LoginFailed => "Have the login of the remote corrected; nothing that is saved is lost.",
        Kind::Refused => "Do what the server's words ask for, then call again.",
        Kind::Foreign => "Name a Fossil repository of this project.",
        Kind::Corrupt => "Have the repository checked with `ocx fossil test-integrity`; nothing was changed.",
        Kind::DiskFull => "Have space made on the disk, then call again.",
        Kind::Cancelled => "Call again when it is wanted after all.",
        Kind::Unsupported => "Use a platform or a build that has what is missing.",
        Kind::Unavailable => "Ask whoever runs the project's server where it does run.",
        Kind::Io => "Look at the operating system's words, then call again.",
        _ => "Nothing you sent caused this; call again, and report it if it comes back.",
    }
}

/// The text as one line. Control characters are escaped, and a text that is too long is cut between characters.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        if line.len() > LINE_BYTES_MAX {
            line.push_str("... (cut)");
            break;
        }
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_stands_in_the_stated_order_with_its_code_and_next_call() {
        let stop = Refusal::from(Error::new(Kind::Untested, "test `unit` has not passed"))
            .next("ocx_test", json!({}));
        let text = Answer::refused("ocx_save", false, Vec::new(), stop).to_string();
        assert_eq!(
            text,
            r#"{"ok":false,"tool":"ocx_save","dry_run":false,"log":[],"result":null,"stopped":"test `unit` has not passed","code":"untested","next_step":"Call ocx_test, then save.","next_call":{"tool":"ocx_test","arguments":{}}}"#
        );
    }

    #[test]
    fn a_hint_is_the_next_step() {
        let stop = Error::new(Kind::Invalid, "no `x`").with_hint("Give x.").into();
        assert_eq!(Answer::refused("t", true, Vec::new(), stop).into_json()["next_step"], "Give x.");
    }

    #[test]
    fn stopped_is_one_line_whatever_the_error_says() {
        let stop = Error::new(Kind::Refused, "server said:\nno\u{1b}[31m").into();
        let json = Answer::refused("t", false, Vec::new(), stop).into_json();
        assert_eq!(json["stopped"], "server said:\\nno\\u{1b}[31m");
    }
}
