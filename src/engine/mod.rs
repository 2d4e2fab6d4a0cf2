//! The boundary to Fossil's C code. All `unsafe` lives here.
//!
//! Fossil's sources run on one thread, one call at a time. Each call ends in a [`Result`]: whatever way the C code
//! chooses to end (exit, abort, a failed assert), the next call works. `SAFETY.md` in this folder has the invariants
//! that each `unsafe` block cites.
//!
//! Other calls wait in a bounded queue. A call that cannot begin in time fails with [`Kind::Busy`], one that is
//! cancelled before it begins with [`Kind::Cancelled`]: in both cases nothing was done. [`with_timeout`] and
//! [`with_cancel`] set these limits for all calls in a scope. A call that has begun runs to its end, or until
//! [`interrupt`].
//!
//! The modules above say what a call means; this one knows sessions, bytes and words.
#![allow(unsafe_code, reason = "this is the one module that may hold it")]

mod bindings;
mod check_in;
mod failure;
mod pool;
mod queue;
mod session;
mod thread;
mod transaction;
mod wait;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

pub use check_in::{Artifacts, Content, check_in, check_in_while};
// Linked for Fossil's C code: the one SQLite and the one zlib of the binary.
use libsqlite3_sys as _;
use libz_sys as _;
use pool::{SessionPool, call};
use session::{c_path, c_string};
pub use transaction::Transaction;
pub(crate) use wait::Stop;
pub use wait::{with_cancel, with_timeout};

use crate::error::{Error, Kind, Result};

/// What a Fossil command wrote.
#[derive(Debug)]
pub struct Output {
    /// Standard output, with U+FFFD for bytes that are not UTF-8.
    pub out: String,
    /// Standard error, likewise.
    pub err: String,
}

/// Runs a Fossil command in `directory`, in a state of its own, as the login `user`. Returns what it wrote.
///
/// `args[0]` is the command's full name. A command fails if it would ask a question, start a process or read the
/// environment.
///
/// # Errors
/// Any kind: what Fossil said is in the message. [`Kind::Invalid`] for a NUL in an argument.
pub fn command(directory: &Path, args: &[&str], user: Option<&str>) -> Result<Output> {
    let directory = c_path(directory)?;
    let args = args.iter().map(|a| c_string("an argument", a.as_bytes())).collect::<Result<Vec<_>>>()?;
    let user = user.map(|u| c_string("the user", u.as_bytes())).transpose()?;
    call(move |pool| {
        if !pool.has_own_directory() {
            return Err(Error::new(
                Kind::Unsupported,
                "this system gives a thread no working directory of its own",
            )
            .with_hint("Allow unshare(CLONE_FS) to this process."));
        }
        SessionPool::once("Fossil's command failed", |s| s.command(&directory, &args, user.as_ref()))
            .map(|e| Output { out: e.out, err: e.err })
    })?
}

/// Remembers a server in the repository at `path` as Fossil does: it obscures the password and does not encrypt it.
///
/// # Errors
/// As for [`check_in`].
pub fn set_remote(path: &Path, url: Option<&str>, password: Option<&str>) -> Result<()> {
    let path = path.to_owned();
    let url = url.map(|u| c_string("the URL", u.as_bytes())).transpose()?;
    let password = password.map(|p| c_string("the password", p.as_bytes())).transpose()?;
    call(move |pool| {
        pool.warm(&path, "cannot remember the remote", |s| s.set_remote(url.as_ref(), password.as_ref()))
            .map(drop)
    })?
}

/// Returns the remembered URL and password of the repository at `path`; both are empty if there is none.
///
/// # Errors
/// As for [`check_in`].
pub fn remote(path: &Path) -> Result<(String, String)> {
    let path = path.to_owned();
    let out = call(move |pool| {
        pool.warm(&path, "cannot read the remote", session::Session::remote).map(|e| e.out)
    })??;
    Ok(out.split_once('\n').map_or((out.clone(), String::new()), |(u, p)| (u.to_owned(), p.to_owned())))
}

/// Makes a repository file at `path` for a clone: of the project with that code, without artifacts, with `user` as its
/// administrator.
///
/// # Errors
/// As for [`check_in`].
pub fn new_clone(path: &Path, user: &str, project: &str) -> Result<()> {
    let (path, user) = (c_path(path)?, c_string("the user", user.as_bytes())?);
    let project = c_string("the project", project.as_bytes())?;
    call(move |_| {
        SessionPool::once("cannot make the clone", |s| s.new_clone(&path, &user, &project)).map(drop)
    })?
}

/// Turns the copy of a repository at `path` into a clone with `user` as its administrator.
///
/// # Errors
/// As for [`check_in`].
pub fn adopt_copy(path: &Path, user: &str) -> Result<()> {
    let (path, user) = (c_path(path)?, c_string("the user", user.as_bytes())?);
    call(move |_| {
        SessionPool::once("cannot make the copy a clone", |s| s.adopt_copy(&path, &user)).map(drop)
    })?
}

/// Runs `f` on the engine thread in one write transaction of the repository at `path`, acting as the login `user`.
/// Commits it if `f` succeeds; an error or a panic rolls all of it back.
///
/// # Errors
/// Those of `f`; [`Kind::NotFound`] (repository or user), [`Kind::Busy`], [`Kind::DiskFull`], [`Kind::Corrupt`].
pub fn transaction<T: Send + 'static>(
    path: &Path,
    user: &str,
    f: impl FnOnce(&mut Transaction<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let path = path.to_owned();
    let user = c_string("the user", user.as_bytes())?;
    call(move |pool| pool.transaction(&path, &user, f))?
}

/// Closes what the engine keeps open of the repository at `path`. No cancel stops it.
///
/// # Errors
/// [`Kind::Busy`] when no turn comes in time; [`Kind::Unsupported`] when the engine cannot run at all.
pub fn close(path: &Path) -> Result<()> {
    let path = path.to_owned();
    wait::without_cancel(|| call(move |pool| pool.close(&path)))
}

/// Closes every repository that the engine keeps open, which folds their write-ahead logs in. Does nothing if the
/// engine never ran. For the end of a process; a later call opens what it needs again, after an
/// [`interrupt`] too.
pub fn close_all() {
    if thread::has_started() {
        // Without an engine thread there is nothing open.
        let _ = wait::without_cancel(|| {
            call(|pool| {
                session::interrupt(false);
                pool.close_all();
            })
        });
    }
}

/// Ends the call that runs, and those that wait, as soon as they can: they fail with [`Kind::Cancelled`], and what
/// they had not committed is rolled back. For a process that must end; [`close_all`] comes next.
pub fn interrupt() {
    if thread::has_started() {
        session::interrupt(true);
    }
}

/// Makes this process plain Fossil and returns its exit code.
///
/// Only for `main`, before it starts any thread: Fossil's code then forks, reads the environment and ends the process
/// as it likes.
#[must_use]
pub fn plain(args: Vec<OsString>) -> i32 {
    let args: Result<Vec<CString>, _> = args.into_iter().map(|a| CString::new(a.into_vec())).collect();
    match args {
        Ok(args) => session::plain_main(&args),
        Err(_) => 2,
    }
}
