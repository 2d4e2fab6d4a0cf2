//! The programs that OCX is compared with: plain Fossil, Fossil's code in `ocx fossil`, and git.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Result;

/// The user who does everything.
pub const USER: &str = "ann";
/// The `ocx` program that was built with the benchmark.
pub const OCX: &str = env!("CARGO_BIN_EXE_ocx");

/// A program, with the arguments that come before all others.
#[derive(Clone, Copy)]
pub struct Program {
    /// The program's name in tables.
    pub name: &'static str,
    file: &'static str,
    before: &'static [&'static str],
}

/// Plain Fossil, as installed.
pub const FOSSIL: Program = Program { name: "fossil", file: "fossil", before: &[] };
/// Fossil 2.28 inside the binary of OCX, run as a process of its own.
pub const OCX_FOSSIL: Program = Program { name: "ocx fossil", file: OCX, before: &["fossil"] };
/// Git, set to wait for the disk as a durable store does.
pub const GIT: Program = Program {
    name: "git",
    file: "git",
    before: &[
        "-c",
        "core.fsync=all",
        "-c",
        "core.fsyncMethod=fsync",
        "-c",
        "gc.auto=0",
        "-c",
        "maintenance.auto=false",
    ],
};

impl Program {
    /// The version that the program prints. Returns nothing if the program is not installed.
    pub fn version(&self) -> Option<String> {
        let mut command = Command::new(self.file);
        command
            .args(self.before.iter().filter(|word| **word == "fossil"))
            .arg("version")
            .stdin(Stdio::null());
        let text = String::from_utf8(command.output().ok()?.stdout).ok()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.iter().position(|w| *w == "version")?;
        Some(format!("{} {}", self.name, words.get(at + 1)?))
    }

    /// A command that is not yet started. `home` is its user's folder. It gets nothing from the user's environment.
    pub fn command<S: AsRef<OsStr>>(
        &self,
        home: &Path,
        folder: &Path,
        args: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(self.file);
        command.args(self.before).args(args).current_dir(folder).stdin(Stdio::null());
        command.env("HOME", home).env("FOSSIL_HOME", home).env("USER", USER);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), USER).env(format!("GIT_{role}_EMAIL"), "ann@localhost");
        }
        command
    }

    /// Runs a command that must succeed, and returns what it wrote.
    pub fn run<S: AsRef<OsStr>>(
        &self,
        home: &Path,
        folder: &Path,
        args: impl IntoIterator<Item = S>,
    ) -> Result<String> {
        let mut command = self.command(home, folder, args);
        let out = command.output()?;
        if out.status.success() {
            return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
        }
        Err(format!(
            "{command:?}: {}{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        )
        .into())
    }
}
