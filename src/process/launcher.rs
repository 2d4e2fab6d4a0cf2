//! The thread that starts all supervisors.
//!
//! The kernel ends a supervisor when the *thread* that started it ends, not the process. So that thread must last.

use std::{
    io,
    process::{Child, Command},
    sync::mpsc::{Sender, channel},
    thread::Builder,
};

use parking_lot::Mutex;

/// A command to start, and where its child goes.
type Wanted = (Command, Sender<io::Result<Child>>);

static LAUNCHER: Mutex<Option<Sender<Wanted>>> = Mutex::new(None);

/// Starts `command` on a thread that lasts as long as this process.
pub(super) fn launch(command: Command) -> io::Result<Child> {
    let (answer, answered) = channel();
    launcher()?.send((command, answer)).map_err(io::Error::other)?;
    answered.recv().map_err(io::Error::other)?
}

fn launcher() -> io::Result<Sender<Wanted>> {
    let mut known = LAUNCHER.lock();
    if let Some(launcher) = &*known {
        return Ok(launcher.clone());
    }
    let (launcher, wanted) = channel::<Wanted>();
    Builder::new().name("ocx-launcher".into()).spawn(move || {
        for (mut command, answer) in wanted {
            // Nobody waits any more if this fails; then the child's pipes close, and it ends.
            let _told = answer.send(command.spawn());
        }
    })?;
    Ok(known.insert(launcher).clone())
}
