//! What the engine thread keeps between calls: warm sessions, one per repository.
//!
//! A session is taken from the desk for its call. While that waits for a server, other calls run: one on the same
//! repository opens a session of its own.

use std::cell::RefCell;
use std::ffi::CString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::change::Change;
use super::failure::error_of;
use super::session::{Ended, Session, c_path};
use crate::error::{Error, Result};

/// Bytes that the C code of one session may hold.
const SESSION_MEMORY: usize = 4 << 30;
/// Repositories that stay open between calls.
const WARM_SESSIONS: usize = 4;
/// Fossil leaks a little in each call, so a warm session is made anew after this many calls ...
const SESSION_CALLS: u32 = 1000;
/// ... or when it holds this many bytes more than when it was opened.
const SESSION_GROWTH: usize = 16 << 20;

/// The engine thread's own state.
pub(super) struct Desk {
    /// Borrowed for a moment only, and never during a call.
    warm: RefCell<Vec<Warm>>,
    own_directory: bool,
}

/// An open repository and how to tell that it is still the one that was opened.
struct Warm {
    path: PathBuf,
    file: (u64, u64),
    session: Session,
    memory_at_open: usize,
    calls: u32,
}

impl Desk {
    pub fn new(own_directory: bool) -> Self {
        Self { warm: RefCell::default(), own_directory }
    }

    /// Whether this thread has a working directory of its own, which Fossil's commands change.
    pub fn has_own_directory(&self) -> bool {
        self.own_directory
    }

    /// Runs `f` in a session of its own.
    pub fn once(what: &str, f: impl FnOnce(&mut Session) -> Ended) -> Result<Ended> {
        let mut session = Session::new(SESSION_MEMORY)?;
        let ended = f(&mut session);
        if failed(&ended) { Err(error_of(what, &ended)) } else { Ok(ended) }
    }

    /// Runs `f` in the warm session of the repository at `path`; after a failure, or a result other
    /// than zero, the session is dropped, and with it every state that the call may have left.
    pub fn warm(&self, path: &Path, what: &str, f: impl FnOnce(&mut Session) -> Ended) -> Result<Ended> {
        let mut warm = self.take(path)?;
        let ended = f(&mut warm.session);
        if ended.left {
            return Err(error_of(what, &ended));
        }
        if ended.code == 0 {
            warm.calls += 1;
            self.keep(warm);
        }
        Ok(ended)
    }

    /// Runs `f` in a change of the repository at `path`, which is committed when `f` succeeds. In any other
    /// case, a panic too, the session is dropped, which rolls the change back.
    pub fn change<T>(
        &self,
        path: &Path,
        user: &CString,
        f: impl FnOnce(&mut Change<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut warm = self.take(path)?;
        let mut change = Change::begin(&mut warm.session, user)?;
        let value = f(&mut change)?;
        change.commit()?;
        warm.calls += 1;
        self.keep(warm);
        Ok(value)
    }

    /// Closes the session of `path`, for an operation that needs the file to itself.
    pub fn close(&self, path: &Path) {
        let closed: Vec<Warm> = {
            let mut warm = self.warm.borrow_mut();
            let (closed, kept) = std::mem::take(&mut *warm).into_iter().partition(|w| w.path == path);
            *warm = kept;
            closed
        };
        drop(closed);
    }

    /// Closes all sessions.
    pub fn close_all(&self) {
        drop(self.warm.take());
    }

    fn take(&self, path: &Path) -> Result<Warm> {
        let file = file_of(path)?;
        if let Some(mut warm) = self.find(path) {
            let worn = warm.calls >= SESSION_CALLS
                || warm.session.memory() > warm.memory_at_open + SESSION_GROWTH
                || warm.file != file;
            if !worn {
                let stale = warm.session.is_stale();
                if !stale.left && stale.code == 0 {
                    return Ok(warm);
                }
            }
        }
        open(path, file)
    }

    fn find(&self, path: &Path) -> Option<Warm> {
        let mut warm = self.warm.borrow_mut();
        let at = warm.iter().position(|w| w.path == path)?;
        Some(warm.swap_remove(at))
    }

    fn keep(&self, one: Warm) {
        // Another was opened while this one waited for a server.
        let other = self.find(&one.path);
        let mut warm = self.warm.borrow_mut();
        let oldest = (warm.len() >= WARM_SESSIONS).then(|| warm.remove(0));
        warm.push(one);
        drop(warm);
        drop((other, oldest));
    }
}

fn open(path: &Path, file: (u64, u64)) -> Result<Warm> {
    let mut session = Session::new(SESSION_MEMORY)?;
    let ended = session.open_repository(&c_path(path)?);
    if ended.left {
        return Err(error_of(&format!("cannot open repository `{}`", path.display()), &ended));
    }
    session.is_stale();
    let memory_at_open = session.memory();
    Ok(Warm { path: path.to_owned(), file, session, memory_at_open, calls: 0 })
}

fn file_of(path: &Path) -> Result<(u64, u64)> {
    let meta = std::fs::metadata(path).map_err(|e| {
        Error::io(format!("cannot open repository `{}`", path.display()), e)
            .with_hint("Check the path, or make one with `ocx init`.")
    })?;
    Ok((meta.dev(), meta.ino()))
}

fn failed(ended: &Ended) -> bool {
    ended.panicked || ended.code != 0
}
