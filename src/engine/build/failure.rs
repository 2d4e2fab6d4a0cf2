//! Why a build stops: the stage, the file or command, what went wrong, and what to do about it.

use std::fmt;
use std::process::Command;

/// A failed stage of the build.
#[derive(Debug)]
pub struct Failure {
    stage: &'static str,
    what: String,
    command: Option<String>,
    advice: String,
}

/// A result of a build stage.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Makes a failure of `stage`; `what` names the file, `advice` says what to do.
    pub fn new(stage: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { stage, what: what.into(), command: None, advice: advice.into() }
    }

    /// What went wrong, without the stage and the advice.
    pub fn what(&self) -> &str {
        &self.what
    }

    fn ran(mut self, command: &Command) -> Self {
        self.command = Some(shown(command));
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "building Fossil's sources failed at stage `{}`", self.stage)?;
        writeln!(f, "  what:    {}", self.what)?;
        if let Some(command) = &self.command {
            writeln!(f, "  command: {command}")?;
        }
        write!(f, "  do:      {}", self.advice)
    }
}

/// What a command that succeeded wrote.
pub struct Output {
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// Runs `command` for `stage`; `file` is what it works on, `advice` what to do when it fails.
pub fn run(stage: &'static str, file: &str, command: &mut Command, advice: &str) -> Result<Output> {
    let out = command.output().map_err(|e| {
        let program = command.get_program().to_string_lossy();
        Failure::new(stage, format!("{file}: cannot start `{program}`: {e}"), advice).ran(command)
    })?;
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    if out.status.success() {
        return Ok(Output { stdout: out.stdout, stderr });
    }
    let what = format!("{file}: {}\n{}", out.status, indented(&stderr));
    Err(Failure::new(stage, what, advice).ran(command))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("           {line}")).collect::<Vec<_>>().join("\n")
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
