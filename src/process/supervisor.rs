//! The supervisor: two small processes between OCX and a command, so that no process of it is left.
//!
//! ```text
//! ocx ──── watch ──── hold ──── shell ──── whatever the command starts
//!    control     lifeline
//! ```
//! `watch` and `hold` are this program again. Each has one thread and is a subreaper: a process that forks twice, or
//! leaves its group or its session, still becomes a child of `hold` when its parent ends, and of `watch` when `hold`
//! ends. So
//! - the shell ends: `hold` ends the rest and reports;
//! - time runs out, or the caller cancels: `watch` sends TERM to all, then KILL;
//! - `hold` is killed (it is the shell's `$PPID`): `watch` ends the rest and reports the command lost;
//! - `watch` is killed: `hold` sees its lifeline close and ends the rest;
//! - OCX is killed: `watch` sees its control pipe close and ends the rest.
//!
//! A command may stop both. The kernel wakes them when their parent ends, and then they end the rest.
//!
//! Without a sandbox, a command that kills both within the same moment, or every process of its user (`kill -9 -1`),
//! gets away with what it started. OCX then sweeps up what still carries the command's mark in its environment. That
//! is no wall: such a command runs as its user and may read and write what that user may.
//!
//! With a sandbox (`sandbox.rs`), `hold` is the first process of a process namespace. The kernel ends it with its
//! parent, also if it is stopped, and with it every process inside; and no process inside sees one outside.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getpid, set_child_subreaper, set_dumpable_behavior, setrlimit, setsid,
};

use super::hold::{hold, inside};
use super::order::ARGUMENT;
use super::watch::{HOLD, INSIDE, watch};

const WATCH: &str = "watch";

/// The program that can supervise commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    program: PathBuf,
    sandboxing: bool,
}

impl Supervisor {
    /// The first argument with which the program's `main` hands over to [`Supervisor::main`].
    pub const ARGUMENT: &str = ARGUMENT;

    /// The running program. It must hand over to [`Supervisor::main`].
    #[must_use]
    pub fn this_program() -> Self {
        // The link keeps naming this program when its file is replaced by a newer one.
        Self::at("/proc/self/exe")
    }

    /// The `ocx` program at `path`, for a host that is another program.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into(), sandboxing: true }
    }

    /// The same without sandboxes: commands run on the machine as it is. For a host that is confined itself.
    #[must_use]
    pub fn without_sandboxes(self) -> Self {
        Self { sandboxing: false, ..self }
    }

    /// Whether it makes sandboxes, if they can be had.
    pub(super) fn is_sandboxing(&self) -> bool {
        self.sandboxing
    }

    /// The program's path.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs the program as a supervisor; `arguments` are those after [`ARGUMENT`](Self::ARGUMENT). It reads its order
    /// from standard input and is of no use to people.
    pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
        let part = arguments.into_iter().next();
        let run = match part.as_deref().and_then(|part| part.to_str()) {
            Some(WATCH) => watch,
            Some(HOLD) => hold,
            Some(INSIDE) => inside,
            _ => return ExitCode::from(2),
        };
        match settle().and_then(|()| run()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        }
    }

    pub(super) fn command(&self) -> Command {
        // The command's folder is no place to look for the program. A bare name is looked up in `PATH`.
        let is_bare = self.program.components().count() < 2;
        let program = if is_bare { None } else { std::path::absolute(&self.program).ok() };
        let mut command = Command::new(program.as_ref().unwrap_or(&self.program));
        command.arg(Self::ARGUMENT).arg(WATCH);
        command
    }
}

/// Keeps other processes of the same user from reading this process's memory and variables and from tracing it; for a
/// program that holds passwords while it runs commands. It cannot keep out root: where OCX runs as root, only a
/// sandbox hides it from a command.
pub fn hide_from_debuggers() {
    // It fails for no process.
    let _set = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Gives the process a session without a terminal, and makes it the parent of orphans. No descriptor gets through to
/// the command, it leaves no core file, and it cannot write into this process's pipes through `/proc`.
fn settle() -> io::Result<()> {
    close_fds::set_fds_cloexec(3, &[]);
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}
