//! Whether commands can be sandboxed here, found out by sandboxing one.

use std::{
    collections::BTreeSet,
    fmt, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use nix::errno::Errno;
use parking_lot::Mutex;

use super::command::Command;
use super::exit::Exit;
use super::sandbox::Sandbox;
use super::supervisor::Supervisor;
use crate::error::Kind;

/// The programs that have sandboxed a command.
static PROVEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
const LIMIT: Duration = Duration::from_secs(5);
/// Says in which namespaces it runs, and writes the witness: outside if it can, else in a folder of its own.
const SCRIPT: &str = "readlink /proc/self/ns/*; echo inside > \"$WITNESS\"; true";
/// The namespaces that must be others than this process's.
const KINDS: [&str; 6] = ["user", "mnt", "pid", "ipc", "uts", "net"];

/// Why no command can be sandboxed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSandboxes {
    /// One line: why not, and what to do about it.
    pub why: String,
    /// Whether it may be otherwise in a moment: something of the machine is used up. Such a machine gives sandboxes.
    pub passing: bool,
}

impl NoSandboxes {
    fn lasting(why: String) -> Self {
        Self { why, passing: false }
    }

    fn passing(why: String) -> Self {
        Self { why, passing: true }
    }

    /// What a sandbox that could not be made says of the machine.
    fn judged(why: String) -> Self {
        // The supervisor says what failed in the system's words, or in those of the crate that makes namespaces.
        let used_up = [Errno::EAGAIN, Errno::ENOMEM, Errno::ENOSPC, Errno::EMFILE, Errno::ENFILE];
        let used_up = used_up.iter().any(|errno| {
            let error = io::Error::from(*errno).to_string();
            let words = error.split(" (os error").next().unwrap_or_default();
            why.contains(words) || why.contains(errno.desc())
        });
        if used_up && !forbidden() {
            return Self::passing(why);
        }
        let advised = advice().map(|advice| format!("{why}. {advice}"));
        Self::lasting(advised.unwrap_or(why))
    }
}

impl fmt::Display for NoSandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Supervisor {
    /// Whether commands can be sandboxed here: starts a real one and judges by its effect. A success is remembered for
    /// the process, a failure is tried again.
    ///
    /// # Errors
    /// Why not.
    pub fn sandboxes(&self) -> Result<(), NoSandboxes> {
        if !self.is_sandboxing() {
            return Err(NoSandboxes::lasting("this host runs its commands without one".into()));
        }
        if PROVEN.lock().contains(self.program()) {
            return Ok(());
        }
        self.probe()?;
        PROVEN.lock().insert(self.program().to_owned());
        Ok(())
    }

    fn probe(&self) -> Result<(), NoSandboxes> {
        let failed = |e: io::Error| NoSandboxes::passing(format!("cannot try out a sandbox: {e}"));
        let mut named = tempfile::Builder::new();
        let named = named.prefix("ocx-probe-");
        // The caller's own folder for such files may not be there.
        let mut witness = named.tempfile().or_else(|_| named.tempfile_in("/tmp")).map_err(failed)?;
        witness.write_all(b"outside").map_err(failed)?;
        let path = witness.path();
        let mut command = Command::new(SCRIPT, "/", LIMIT);
        command.environment = command.environment.with("WITNESS", path);
        command.sandbox = Some(Sandbox::default());
        let ran = command.start(self).and_then(super::command::Running::wait);
        let (finished, output) = ran.map_err(|e| NoSandboxes {
            why: format!("cannot try out a sandbox: {e}"),
            passing: !matches!(e.kind(), Kind::NotFound | Kind::Denied),
        })?;
        match finished.exit {
            Exit::Status(0) => {}
            Exit::NoSandbox { why } => return Err(NoSandboxes::judged(why)),
            other => {
                let why = format!("a command in a sandbox did not end well: {other:?}");
                return Err(NoSandboxes::passing(why));
            }
        }
        if fs::read(path).map_err(failed)? != b"outside" {
            return Err(NoSandboxes::lasting("a command in a sandbox wrote a file outside".into()));
        }
        judge(&output.tail(20)).map_err(NoSandboxes::lasting)
    }
}

/// Whether the machine's settings forbid namespaces.
fn forbidden() -> bool {
    let kinds = ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"];
    kinds.iter().any(|kind| setting_is(&format!("user/max_{kind}_namespaces"), "0"))
}

fn setting_is(name: &str, value: &str) -> bool {
    fs::read_to_string(Path::new("/proc/sys").join(name)).is_ok_and(|text| text.trim() == value)
}

/// Judges what the command saw of its namespaces.
fn judge(seen: &[String]) -> Result<(), String> {
    for kind in KINDS {
        let start = format!("{kind}:[");
        let theirs = seen.iter().find(|line| line.starts_with(&start));
        let own = fs::read_link(format!("/proc/self/ns/{kind}")).ok();
        match (theirs, own) {
            (Some(theirs), Some(own)) if Path::new(theirs) != own => {}
            _ => return Err(format!("a command in a sandbox showed no namespace `{kind}` of its own")),
        }
    }
    Ok(())
}

/// What to do about the settings that most often forbid namespaces.
fn advice() -> Option<String> {
    let set = |line: &str| {
        Some(format!("As root, run `sysctl -w {line}`, and put it into /etc/sysctl.d to keep it"))
    };
    if setting_is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        return set("kernel.apparmor_restrict_unprivileged_userns=0");
    }
    if setting_is("kernel/unprivileged_userns_clone", "0") {
        return set("kernel.unprivileged_userns_clone=1");
    }
    for kind in ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"] {
        if setting_is(&format!("user/max_{kind}_namespaces"), "0") {
            return set(&format!("user.max_{kind}_namespaces=10000"));
        }
    }
    let in_container = ["/.dockerenv", "/run/.containerenv"].iter().any(|file| Path::new(file).exists());
    let options = "`--security-opt seccomp=unconfined --security-opt systempaths=unconfined`";
    in_container.then(|| format!("Start the container with {options}"))
}
