//! Where a command reads and writes, what it says there, and its exit codes.

use std::io::{Read, Write};
use std::path::PathBuf;

use super::show;
use crate::error::{Error, Kind, Result};
use crate::tool::Answer;

/// What was asked was done.
pub const DONE: u8 = 0;
/// It was refused.
pub const REFUSED: u8 = 1;
/// The command line makes no sense.
pub const USAGE: u8 = 2;

/// Where a command reads and writes.
pub struct Terminal<'a> {
    /// Standard input, read only where a command says so.
    pub input: &'a mut dyn Read,
    /// Where answers go.
    pub out: &'a mut dyn Write,
    /// Where remarks and refusals go.
    pub err: &'a mut dyn Write,
    /// Whether `out` is a terminal, which must not be sent control characters.
    pub out_is_terminal: bool,
    /// Whether standard error is a terminal, at which a bar shows how far long work is.
    pub err_is_terminal: bool,
    /// The name that a new repository's first user gets where none is given.
    pub login: Option<String>,
    /// The password for the server, where its URL and the repository hold none.
    pub password: Option<String>,
    /// Fossil's file of the settings that the user has for all repositories.
    pub global_settings: Option<PathBuf>,
}

impl Terminal<'_> {
    /// Says what a command did, and returns the exit code.
    ///
    /// # Errors
    /// Those of writing.
    pub fn say(&mut self, done: Result<String>) -> std::io::Result<u8> {
        match done {
            Ok(words) => writeln!(self.out, "{words}").map(|()| DONE),
            Err(e) => complain(&e, self.err).map(|()| REFUSED),
        }
    }

    /// Says a tool's answer as a person reads it.
    ///
    /// # Errors
    /// Those of writing.
    pub fn show(&mut self, answer: &Answer) -> std::io::Result<()> {
        let shown = show::readable(answer, self.out_is_terminal);
        self.out.write_all(shown.out.as_bytes())?;
        self.err.write_all(shown.err.as_bytes())
    }

    /// Shows help on `out`, which is no failure, and what is wrong with a command line on `err`. Returns the exit code.
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

/// Says on `err` what went wrong and what to do about it.
///
/// # Errors
/// Those of writing.
pub fn complain(error: &Error, err: &mut dyn Write) -> std::io::Result<()> {
    writeln!(err, "ocx: {error}")?;
    for line in error.hint().into_iter().chain(command_for(error.kind())) {
        writeln!(err, "{line}")?;
    }
    Ok(())
}

/// The command that helps with any failure of this kind. The library's hints name no command.
fn command_for(kind: Kind) -> Option<&'static str> {
    (kind == Kind::Corrupt)
        .then_some("`ocx fossil test-integrity -R REPO` says what of a repository is damaged.")
}
