//! The session pool: one warm session per repository, which the engine thread keeps between calls.
//!
//! A call takes its session out of the pool while it runs.

use std::cell::{Cell, RefCell};
use std::ffi::CString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::failure::error_of;
use super::queue::Started;
use super::session::{self, CallOutcome, Session, c_path};
use super::thread;
use super::transaction::Transaction;
use crate::error::{Error, Result};

/// How long a call waits for a lock that another process holds, in milliseconds.
const BUSY_TIMEOUT_MS: i32 = 5000;
/// Bytes that the C code of one session may hold.
const SESSION_MEMORY: usize = 4 << 30;
/// Repositories that stay open between calls.
const WARM_SESSIONS: usize = 4;
/// Fossil leaks a little in each call. So a warm session is replaced after this many calls ...
const SESSION_CALLS: u32 = 1000;
/// ... or when it holds this many bytes more than when it was opened.
const SESSION_GROWTH: usize = 16 << 20;

thread_local! {
    /// The pool of the engine thread; other threads leave theirs empty.
    static POOL: SessionPool = const {
        SessionPool { warm: RefCell::new(Vec::new()), own_directory: Cell::new(false) }
    };
}

/// Runs `f` on the engine thread and waits for its result; a panic goes on in the caller.
///
/// # Errors
/// `Busy` or `Cancelled` if the limits of the calling thread end the wait before `f` begins.
pub(super) fn call<R: Send + 'static>(f: impl FnOnce(&SessionPool) -> R + Send + 'static) -> Result<R> {
    start(f)?.wait()
}

/// As [`call`], without waiting yet.
pub(super) fn start<R: Send + 'static>(
    f: impl FnOnce(&SessionPool) -> R + Send + 'static,
) -> Result<Started<R>> {
    thread::start(prepare, || POOL.with(f))
}

/// The first act of the engine thread.
fn prepare() -> Result<()> {
    // SAFETY: I3 - this thread alone gets a working directory and umask of its own; no other thread is affected.
    let own_directory = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }.is_ok();
    session::start(BUSY_TIMEOUT_MS)?;
    POOL.with(|pool| pool.own_directory.set(own_directory));
    Ok(())
}

/// The engine thread's own state.
pub(super) struct SessionPool {
    /// Borrowed for a moment only, and never during a call.
    warm: RefCell<Vec<Warm>>,
    own_directory: Cell<bool>,
}

/// An open repository, and what tells whether the file is still the one that was opened.
struct Warm {
    path: PathBuf,
    file: (u64, u64),
    session: Session,
    memory_at_open: usize,
    calls: u32,
}

impl SessionPool {
    /// Whether this thread has a working directory of its own, which Fossil's commands change.
    pub fn has_own_directory(&self) -> bool {
        self.own_directory.get()
    }

    /// Runs `f` in a session of its own.
    pub fn once(what: &str, f: impl FnOnce(&mut Session) -> CallOutcome) -> Result<CallOutcome> {
        let mut session = Session::new(SESSION_MEMORY)?;
        let outcome = f(&mut session);
        if failed(&outcome) { Err(error_of(what, &outcome)) } else { Ok(outcome) }
    }

    /// Runs `f` in the warm session of the repository at `path`. After a failure, or a result other than zero, it drops
    /// the session, and with it every state that the call may have left.
    pub fn warm(
        &self,
        path: &Path,
        what: &str,
        f: impl FnOnce(&mut Session) -> CallOutcome,
    ) -> Result<CallOutcome> {
        let mut warm = self.take(path)?;
        let outcome = f(&mut warm.session);
        if outcome.left {
            return Err(error_of(what, &outcome));
        }
        if outcome.code == 0 {
            warm.calls += 1;
            self.keep(warm);
        }
        Ok(outcome)
    }

    /// Runs `f` in a write transaction of the repository at `path`, and commits it if `f` succeeds. In any other
    /// case, a panic too, the session is dropped, which rolls the transaction back.
    pub fn transaction<T>(
        &self,
        path: &Path,
        user: &CString,
        f: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut warm = self.take(path)?;
        let mut transaction = Transaction::begin(&mut warm.session, user)?;
        let value = f(&mut transaction)?;
        transaction.commit()?;
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
        let mut warm = self.warm.borrow_mut();
        let oldest = (warm.len() >= WARM_SESSIONS).then(|| warm.remove(0));
        warm.push(one);
        drop(warm);
        drop(oldest);
    }
}

fn open(path: &Path, file: (u64, u64)) -> Result<Warm> {
    let mut session = Session::new(SESSION_MEMORY)?;
    let outcome = session.open_repository(&c_path(path)?);
    if outcome.left {
        return Err(error_of(&format!("cannot open repository `{}`", path.display()), &outcome));
    }
    session.is_stale();
    let memory_at_open = session.memory();
    Ok(Warm { path: path.to_owned(), file, session, memory_at_open, calls: 0 })
}

fn file_of(path: &Path) -> Result<(u64, u64)> {
    let meta = std::fs::metadata(path).map_err(|e| {
        Error::io(format!("cannot open repository `{}`", path.display()), e)
            .with_hint("Check the path, or make a repository there first.")
    })?;
    Ok((meta.dev(), meta.ino()))
}

fn failed(outcome: &CallOutcome) -> bool {
    outcome.panicked || outcome.code != 0
}
