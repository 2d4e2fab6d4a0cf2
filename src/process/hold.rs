//! The inner process of a supervisor: it starts the shell and ends what the shell leaves. In a sandbox it is the first
//! process inside, and makes the view.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::{fd::AsFd, unix::process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use nix::sys::{
    signal::SigSet,
    signalfd::{SfdFlags, SignalFd},
};
use rustix::process::{Pid, Signal, WaitStatus, set_parent_process_death_signal};

use super::confine::{Entered, enter, judge, lock};
use super::descendants::{end_all, reap};
use super::exit::Exit;
use super::order::{Order, Report, STANDS, is_input_ready, ready};
use super::sandbox::{Mount, MountKind, Sandbox};

const TICK: Duration = Duration::from_secs(1);

/// Runs the command on the machine as it is.
pub(super) fn hold() -> io::Result<()> {
    // A stopped process must go on to end what it holds.
    set_parent_process_death_signal(Some(Signal::CONT))?;
    run(Order::read(io::stdin().as_fd())?, false)
}

/// Runs the command in its sandbox. If that cannot be had, nothing of the command runs.
pub(super) fn inside() -> io::Result<()> {
    // With the first process of its namespace, every other one of it ends.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut order = Order::read(io::stdin().as_fd())?;
    let stands = match order.sandbox.take() {
        Some(sandbox) => confine(&mut order, &sandbox),
        None => Err("the order names no sandbox".into()),
    };
    if let Err(why) = stands {
        return Report { exit: Exit::NoSandbox { why }, left_behind: Vec::new(), sandboxed: false }.write();
    }
    let mut out = io::stdout().lock();
    out.write_all(STANDS)?;
    out.flush()?;
    drop(out);
    run(order, true)
}

fn confine(order: &mut Order, sandbox: &Sandbox) -> Result<(), String> {
    let outside = order.outside.take().ok_or("nothing is known of the outside")?;
    let Entered { user, forbidden } = enter(sandbox, order.home.as_deref())?;
    lock(sandbox.nested, forbidden)?;
    let shows = |mount: &Mount, home: &Path| mount.what != MountKind::Hidden && home.starts_with(&mount.at);
    let shows_home = order.home.as_deref().is_some_and(|home| sandbox.mounts.iter().any(|m| shows(m, home)));
    judge(&outside, shows_home, sandbox.nested)?;
    let folder = &order.folder;
    std::env::set_current_dir(folder)
        .map_err(|e| format!("the folder `{}` cannot be used inside: {e}", folder.display()))?;
    for name in ["USER", "LOGNAME"] {
        let is_set = order.environment.iter().any(|(known, _)| OsString::from(known.clone()) == name);
        if let Some(user) = user.clone().filter(|_| !is_set) {
            order.environment.push((OsString::from(name).into(), OsString::from(user).into()));
        }
    }
    Ok(())
}

fn run(order: Order, sandboxed: bool) -> io::Result<()> {
    if is_input_ready() {
        // The lifeline has closed: `watch` has ended.
        return Ok(());
    }
    let environment: Vec<_> = order.environment.into_iter().map(|(n, v)| (n.into(), v.into())).collect();
    let ended = ended_children()?;
    let exit = match start_shell(&order.command, &environment) {
        Ok(shell) => await_shell(Pid::from_child(&shell), &ended),
        Err(e) => Some(Exit::Lost { why: format!("no shell could be started: {e}") }),
    };
    let left_behind = end_all(exit.is_some(), None);
    match exit {
        Some(exit) => Report { exit, left_behind, sandboxed }.write(),
        None => Ok(()),
    }
}

/// Returns how the shell ended, or nothing if the lifeline closed before it did. Reaps at once whatever else ends.
fn await_shell(shell: Pid, ended: &SignalFd) -> Option<Exit> {
    let lifeline = io::stdin();
    let mut exit = None;
    loop {
        while let Ok(Some(_)) = ended.read_signal() {}
        reap(|pid, status| {
            if pid == shell {
                exit = Some(exit_of(status));
            }
        });
        if exit.is_some() {
            return exit;
        }
        if ready([lifeline.as_fd(), ended.as_fd()], TICK)[0] {
            return None;
        }
    }
}

/// What can be read when a child has ended. The shell starts with no signal blocked all the same.
fn ended_children() -> io::Result<SignalFd> {
    let mut ended = SigSet::empty();
    ended.add(nix::sys::signal::SIGCHLD);
    ended.thread_block()?;
    Ok(SignalFd::with_flags(&ended, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}

fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Status(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Lost { why: "the shell ended in an unknown way".into() },
    }
}

/// Starts bash if it is there, because then a failure inside a pipe fails the command; plain `sh` cannot do that
/// everywhere.
fn start_shell(text: &str, environment: &[(OsString, OsString)]) -> io::Result<Child> {
    let bash = start("bash", &["-o", "pipefail", "-c", text], environment);
    match bash {
        Err(e) if e.kind() == io::ErrorKind::NotFound => start("/bin/sh", &["-c", text], environment),
        other => other,
    }
}

fn start(shell: &str, arguments: &[&str], environment: &[(OsString, OsString)]) -> io::Result<Child> {
    let output = || io::stderr().as_fd().try_clone_to_owned().map(Stdio::from);
    Command::new(shell)
        .args(arguments)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(output()?)
        .stderr(output()?)
        .process_group(0)
        .spawn()
}
