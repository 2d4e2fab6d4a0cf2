//! The place where a command reads and writes, what it says there, and its exit codes.

use std::io::{Read, Write};
use std::path::PathBuf;

use super::{paste, show};
use crate::error::{Error, Kind, Result};
use crate::tool::Answer;

/// The command did what was asked.
pub const DONE: u8 = 0;
/// The command was refused.
pub const REFUSED: u8 = 1;
/// The command line is not valid.
pub const USAGE: u8 = 2;

/// The streams that a command reads and writes, and what it must know about them.
pub struct Terminal<'a> {
    /// Standard input. Only commands that say so read it.
    pub input: &'a mut dyn Read,
    /// The stream for answers.
    pub out: &'a mut dyn Write,
    /// The stream for remarks and refusals.
    pub err: &'a mut dyn Write,
    /// Whether `out` is a terminal. A terminal must not get control characters.
    pub out_is_terminal: bool,
    /// Whether standard error is a terminal. On a terminal, a bar shows the progress of long work.
    pub err_is_terminal: bool,
    /// The name of a new repository's first user, if the command line gives none.
    pub login: Option<String>,
    /// The password for the server, if neither its URL nor the repository holds one.
    pub password: Option<String>,
    /// The folder that keeps what is known of tests. If there is none, it lies beside the repository.
    pub state: Option<PathBuf>,
    /// Fossil's file of the settings that the user has for all repositories.
    pub global_settings: Option<PathBuf>,
}

impl<'a> Terminal<'a> {
    /// A terminal on these streams, none of which a person watches. Nothing is known of a user.
    pub fn on(input: &'a mut dyn Read, out: &'a mut dyn Write, err: &'a mut dyn Write) -> Self {
        Self {
            input,
            out,
            err,
            out_is_terminal: false,
            err_is_terminal: false,
            login: None,
            password: None,
            state: None,
            global_settings: None,
        }
    }

    /// Writes what a command did, and returns the exit code. A refusal is an answer in JSON if JSON is wanted. `names`
    /// are those of the command.
    pub fn say(&mut self, names: &[&str], json: bool, done: Result<String>) -> u8 {
        let (written, code) = match done {
            Ok(words) => (writeln!(self.out, "{words}"), DONE),
            Err(e) if json => (writeln!(self.out, "{}", in_json(&names.join(" "), e)), REFUSED),
            Err(e) => (complain(&e, self.err), REFUSED),
        };
        // A caller that does not read what is written learns of the failure from the exit code.
        written.map_or(REFUSED, |()| code)
    }

    /// Writes in one line why the command line is refused, and returns the exit code.
    pub fn refuse(&mut self, words: &str) -> u8 {
        let _ = writeln!(self.err, "ocx: {words}");
        USAGE
    }

    /// Writes a tool's answer in words for people. `start` is the beginning of a command line that acts in the same
    /// place.
    ///
    /// # Errors
    /// The errors of writing.
    pub fn show(&mut self, answer: &Answer, start: &[String]) -> std::io::Result<()> {
        let call = answer.next_call().and_then(|call| paste::command_line(start, call));
        let call = call.map(|call| format!("next_call:\n{call}"));
        // What was written but not sent says so in its result.
        let failed = answer.kind() == Some(Kind::LoginFailed)
            || answer.result()["push"]["outcome"] == Kind::LoginFailed.code();
        let login = failed.then(|| command_for(Kind::LoginFailed)).flatten().map(str::to_owned);
        let more: Vec<String> = login.into_iter().chain(call).collect();
        let shown = show::readable(answer, &more, self.out_is_terminal);
        self.out.write_all(shown.out.as_bytes())?;
        self.err.write_all(shown.err.as_bytes())
    }

    /// Writes help on `out`, and what is wrong with a command line on `err`. Help is not a failure. Returns the exit
    /// code.
    pub fn show_usage(&mut self, usage: &clap::Error) -> u8 {
        let text = usage.render();
        if usage.use_stderr() {
            let _ = write!(self.err, "{text}");
            USAGE
        } else {
            let _ = write!(self.out, "{text}");
            DONE
        }
    }
}

/// Writes on `err` what went wrong and what to do about it.
///
/// # Errors
/// The errors of writing.
pub fn complain(error: &Error, err: &mut dyn Write) -> std::io::Result<()> {
    writeln!(err, "ocx: {error}")?;
    for line in error.hint().into_iter().chain(command_for(error.kind())) {
        writeln!(err, "{line}")?;
    }
    Ok(())
}

/// The answer of a command that is no tool, as a tool would give it.
fn in_json(command: &str, error: Error) -> Answer {
    let more = command_for(error.kind());
    let hint = error.hint().into_iter().chain(more).collect::<Vec<_>>().join(" ");
    let error = if hint.is_empty() { error } else { error.with_hint(hint) };
    Answer::refused(command, false, Vec::new(), error.into())
}

/// The command that helps with every failure of this kind. It stands here because the library's hints name no command.
fn command_for(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Corrupt => Some("`ocx fossil test-integrity -R REPO` says what of a repository is damaged."),
        Kind::LoginFailed => Some(
            "The password is that of the URL, else OCX_PASSWORD, or one kept by `ocx clone --save-password`.",
        ),
        _ => None,
    }
}
