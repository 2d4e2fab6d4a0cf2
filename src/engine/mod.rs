//! The boundary to Fossil's C code. All `unsafe` lives here.
//!
//! Fossil's sources run on one dedicated thread. Each call ends in a [`Result`]: whatever way the
//! C code chooses to end (exit, abort, a failed assert), the next call works. `SAFETY.md` in this
//! folder has the invariants that each `unsafe` block cites.
//!
//! What a call means is the business of the modules below; this one knows sessions, bytes and words.
#![allow(unsafe_code, reason = "this is the one module that may hold it")]

mod bindings;
mod change;
mod desk;
mod failure;
mod session;
mod transport;

use std::cell::{Cell, OnceCell};
use std::ffi::{CString, OsString, c_char};
use std::os::unix::ffi::OsStringExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;

use bindings as c;
pub use change::{Change, change};
use desk::Desk;
// Linked for Fossil's C code: the one SQLite and the one zlib of the binary.
use libsqlite3_sys as _;
use libz_sys as _;
use session::{c_path, c_string};
pub use transport::Transport;

use crate::error::{Error, Kind, Result};

/// Stack of the engine thread, in bytes; a command-line program has eight megabytes.
const STACK_SIZE: usize = 16 << 20;
/// How long a call waits for a lock that another process holds, in milliseconds.
const BUSY_TIMEOUT_MS: i32 = 5000;

thread_local! {
    /// On the engine thread, and on one that carries a sync's round trip for it.
    static OF_THE_ENGINE: Cell<bool> = const { Cell::new(false) };
    /// What the engine thread works on and with; nothing on other threads.
    static WORK: OnceCell<Work> = const { OnceCell::new() };
}

type Job = Box<dyn FnOnce(&Desk) + Send>;

struct Work {
    queue: mpsc::Receiver<Job>,
    desk: Desk,
}

/// The way to the engine thread; nothing where it could not start.
static JOBS: OnceLock<Option<mpsc::Sender<Job>>> = OnceLock::new();

/// What a Fossil command wrote.
#[derive(Debug)]
pub struct Output {
    /// Standard output, with U+FFFD for bytes that are not UTF-8.
    pub out: String,
    /// Standard error, likewise.
    pub err: String,
}

/// One file content that a check-in brings.
#[derive(Debug)]
pub struct Content {
    /// Its artifact hash: 40 or 64 hex digits.
    pub hash: String,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Hash of the content that it replaces, which may be stored as a delta from it.
    pub previous: Option<String>,
}

/// A check-in, ready to be stored.
#[derive(Debug)]
pub struct Artifacts {
    /// Login that it is received from.
    pub user: String,
    /// Hash of the parent check-in.
    pub parent: String,
    /// The branch it will be on.
    pub branch: String,
    /// Whether a second leaf on that branch is wanted.
    pub allow_fork: bool,
    /// Contents that the repository may lack.
    pub contents: Vec<Content>,
    /// The manifest's text.
    pub manifest: Vec<u8>,
    /// The manifest's hash.
    pub manifest_hash: String,
    /// Whether the check-in is private.
    pub private: bool,
}

/// A push, pull or clone.
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own, as it is in the protocol")]
pub struct SyncRequest {
    /// The server, without user and password.
    pub url: String,
    /// Login and password on the server.
    pub login: Option<(String, String)>,
    /// The local login that received artifacts are booked under.
    pub local_user: String,
    /// Send what the server lacks.
    pub push: bool,
    /// Fetch what is lacking here.
    pub pull: bool,
    /// Include private artifacts.
    pub private: bool,
    /// Include unversioned files, both ways.
    pub unversioned: bool,
    /// Carries the round trips.
    pub transport: Box<dyn Transport>,
}

/// Runs a Fossil command in `directory`, in a state of its own, and gives what it wrote.
///
/// `args[0]` is the command's full name. Commands that would ask a question, start a process or
/// read the environment fail; `user` is the login that they act as.
///
/// # Errors
/// Any kind: what Fossil said is in the message. [`Kind::Invalid`] for a NUL in an argument.
pub fn command(directory: &Path, args: &[&str], user: Option<&str>) -> Result<Output> {
    let directory = c_path(directory)?;
    let what = format!("fossil {}", args.first().unwrap_or(&""));
    let args = args.iter().map(|a| c_string("an argument", a.as_bytes())).collect::<Result<Vec<_>>>()?;
    let user = user.map(|u| c_string("the user", u.as_bytes())).transpose()?;
    call(move |desk| {
        if !desk.has_own_directory() {
            return Err(Error::new(
                Kind::Unsupported,
                format!("{what}: this system gives a thread no working directory of its own"),
            )
            .hint("Allow unshare(CLONE_FS) to this process."));
        }
        Desk::once(&what, |s| s.command(&directory, &args, user.as_ref()))
            .map(|e| Output { out: e.out, err: e.err })
    })?
}

/// Stores a check-in in the repository at `path`, in one transaction.
///
/// # Errors
/// [`Kind::WouldFork`], [`Kind::Closed`], [`Kind::NotFound`] (parent or user), [`Kind::Invalid`] (the
/// parent is younger, or the manifest is none), [`Kind::Busy`], [`Kind::DiskFull`], [`Kind::Corrupt`].
pub fn check_in(path: &Path, artifacts: Artifacts) -> Result<()> {
    let path = path.to_owned();
    call(move |desk| check_in_at(desk, &path, &artifacts))?
}

/// Pushes or pulls between the repository at `path` and a server. What happened is told by the
/// transport, which saw every card; this gives only whether Fossil's code ran to its end.
///
/// # Errors
/// What Fossil's code met on this side ([`Kind::Busy`], [`Kind::DiskFull`], ...).
pub fn sync(path: &Path, request: SyncRequest) -> Result<bool> {
    let path = path.to_owned();
    let mut sync = sync_of(request)?;
    call(move |desk| desk.warm(&path, "cannot sync", |s| s.sync(&mut sync)).map(|e| e.code == 0))?
}

/// Remembers a server in the repository at `path`, as Fossil does: the password is obscured, not encrypted.
///
/// # Errors
/// As for [`check_in`].
pub fn set_remote(path: &Path, url: Option<&str>, password: Option<&str>) -> Result<()> {
    let path = path.to_owned();
    let url = url.map(|u| c_string("the URL", u.as_bytes())).transpose()?;
    let password = password.map(|p| c_string("the password", p.as_bytes())).transpose()?;
    call(move |desk| {
        desk.warm(&path, "cannot remember the remote", |s| s.set_remote(url.as_ref(), password.as_ref()))
            .map(drop)
    })?
}

/// The remembered URL and password of the repository at `path`; empty where there is none.
///
/// # Errors
/// As for [`check_in`].
pub fn remote(path: &Path) -> Result<(String, String)> {
    let path = path.to_owned();
    let out = call(move |desk| {
        desk.warm(&path, "cannot read the remote", session::Session::remote).map(|e| e.out)
    })??;
    Ok(out.split_once('\n').map_or((out.clone(), String::new()), |(u, p)| (u.to_owned(), p.to_owned())))
}

/// Fetches a clone of a server's repository into a new file at `path`, for [`finish_clone`]. What came as a delta
/// was not compared with its hash, and nothing is derived yet.
///
/// # Errors
/// As for [`sync`]; the transport knows why a server refused.
pub fn clone(path: &Path, request: SyncRequest) -> Result<()> {
    let c_path = c_path(path)?;
    let mut sync = sync_of(request)?;
    call(move |_| Desk::once("cannot clone", |s| s.clone_to(&mut sync, &c_path)).map(drop))?
}

/// Derives what the clone at `path` lacks, with `user` as its administrator.
///
/// # Errors
/// As for [`check_in`].
pub fn finish_clone(path: &Path, user: &str) -> Result<()> {
    let (path, user) = (c_path(path)?, c_string("the user", user.as_bytes())?);
    call(move |_| Desk::once("cannot finish the clone", |s| s.finish_clone(&path, &user)).map(drop))?
}

/// Turns the copy of a repository at `path` into a clone with `user` as its administrator.
///
/// # Errors
/// As for [`check_in`].
pub fn adopt_copy(path: &Path, user: &str) -> Result<()> {
    let (path, user) = (c_path(path)?, c_string("the user", user.as_bytes())?);
    call(move |_| Desk::once("cannot make the copy a clone", |s| s.adopt_copy(&path, &user)).map(drop))?
}

/// Closes what the engine keeps open of the repository at `path`.
///
/// # Errors
/// [`Kind::Unsupported`] when the engine cannot run at all.
pub fn close(path: &Path) -> Result<()> {
    let path = path.to_owned();
    call(move |desk| desk.close(&path))
}

/// Closes every repository that the engine keeps open, if it has run at all: their write-ahead logs are then
/// folded in. For the end of a process; a later call opens what it needs again.
pub fn close_all() {
    if JOBS.get().is_some() {
        // Without an engine thread there is nothing open.
        let _ = call(Desk::close_all);
    }
}

/// Makes this process plain Fossil and gives its exit code.
///
/// Only for `main`, before any thread is started: Fossil's code then forks, reads the environment
/// and ends the process as it likes.
#[must_use]
pub fn plain(args: Vec<OsString>) -> i32 {
    let args: Result<Vec<CString>, _> = args.into_iter().map(|a| CString::new(a.into_vec())).collect();
    match args {
        Ok(args) => session::plain_main(&args),
        Err(_) => 2,
    }
}

/// Runs `f` on the engine thread and waits for its result; a panic goes on in the caller.
///
/// One call runs at a time; while a sync waits for its server, others do. A call made by a transport might wait
/// for itself, and is refused.
fn call<R: Send + 'static>(f: impl FnOnce(&Desk) -> R + Send + 'static) -> Result<R> {
    if OF_THE_ENGINE.get() {
        return Err(Error::new(Kind::Invalid, "a transport calls the engine while its own call runs")
            .hint("Call the engine after the sync has ended."));
    }
    let (reply, result) = mpsc::sync_channel(1);
    let job: Job = Box::new(move |desk| {
        let done = catch_unwind(AssertUnwindSafe(|| f(desk)));
        // The caller waits below, so the channel is open.
        let _ = reply.send(done);
    });
    jobs()?.send(job).map_err(|_| ended())?;
    match result.recv().map_err(|_| ended())? {
        Ok(value) => Ok(value),
        Err(panic) => resume_unwind(panic),
    }
}

fn ended() -> Error {
    Error::new(Kind::Internal, "the engine thread has ended").hint("Start the process again.")
}

/// The way to the engine thread, which the first call starts.
fn jobs() -> Result<&'static mpsc::Sender<Job>> {
    JOBS.get_or_init(start_thread).as_ref().ok_or_else(|| {
        Error::new(Kind::Unsupported, "the engine thread cannot start")
            .hint("Check the limits on threads and memory.")
    })
}

fn start_thread() -> Option<mpsc::Sender<Job>> {
    let (jobs, queue) = mpsc::channel::<Job>();
    let (ready, started) = mpsc::sync_channel(1);
    thread::Builder::new()
        .name("ocx-engine".to_owned())
        .stack_size(STACK_SIZE)
        .spawn(move || {
            OF_THE_ENGINE.set(true);
            // SAFETY: I3 - this thread alone gets a working directory and umask of its own; no other thread is affected.
            let own_directory =
                unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }.is_ok();
            let is_up = session::start(BUSY_TIMEOUT_MS).is_ok();
            let _ = ready.send(is_up);
            WORK.with(|work| {
                let work = work.get_or_init(|| Work { queue, desk: Desk::new(own_directory) });
                serve_until(&AtomicBool::new(false), Some(work));
            });
        })
        .ok()?;
    started.recv().ok()?.then_some(jobs)
}

/// Runs `wait` on a thread of its own, and meanwhile, on this engine thread, the calls that come (I10).
///
/// They run above the frames of the call that waits, each to its end: so the wait lasts until the one at work has
/// ended. A second sync among them would hold up the others.
fn meanwhile<R: Send>(mut wait: impl FnMut() -> R + Send) -> thread::Result<R> {
    static WAITS: AtomicBool = AtomicBool::new(false);
    let jobs = JOBS.get().and_then(Option::as_ref);
    let mut result = None;
    if let (Some(jobs), false) = (jobs, WAITS.swap(true, Ordering::SeqCst)) {
        result = thread::scope(|scope| {
            let ended = Arc::new(AtomicBool::new(false));
            let has_ended = Arc::clone(&ended);
            let wait = &mut wait;
            let waiting = thread::Builder::new().name("ocx-wait".to_owned()).spawn_scoped(scope, move || {
                OF_THE_ENGINE.set(true);
                let result = catch_unwind(AssertUnwindSafe(wait));
                has_ended.store(true, Ordering::SeqCst);
                // Wakes the engine thread; its queue lives as long as it does.
                let _ = jobs.send(Box::new(|_| ()));
                result
            });
            let waiting = waiting.ok()?;
            WORK.with(|work| serve_until(&ended, work.get()));
            Some(waiting.join().and_then(|result| result))
        });
        WAITS.store(false, Ordering::SeqCst);
    }
    result.unwrap_or_else(|| catch_unwind(AssertUnwindSafe(wait)))
}

/// Runs the calls that come until the flag is set and a last one, which may do nothing, has come.
fn serve_until(ended: &AtomicBool, work: Option<&Work>) {
    let Some(work) = work else { return };
    while !ended.load(Ordering::SeqCst) {
        let Ok(job) = work.queue.recv() else { return };
        job(&work.desk);
    }
}

fn sync_of(request: SyncRequest) -> Result<transport::Sync> {
    let (user, password) = match request.login {
        Some((user, password)) => (
            Some(c_string("the user", user.as_bytes())?),
            Some(c_string("the password", password.as_bytes())?),
        ),
        None => (None, None),
    };
    Ok(transport::Sync {
        url: c_string("the URL", request.url.as_bytes())?,
        user,
        password,
        local_user: c_string("the user", request.local_user.as_bytes())?,
        push: request.push,
        pull: request.pull,
        private: request.private,
        unversioned: request.unversioned,
        transport: request.transport,
    })
}

fn check_in_at(desk: &Desk, path: &Path, artifacts: &Artifacts) -> Result<()> {
    let text = |b: &[u8]| c::OcxText { data: b.as_ptr().cast::<c_char>(), size: b.len() };
    let string = |what, s: &str| c_string(what, s.as_bytes());
    let names = artifacts
        .contents
        .iter()
        .map(|a| {
            Ok((string("a hash", &a.hash)?, a.previous.as_deref().map(|p| string("a hash", p)).transpose()?))
        })
        .collect::<Result<Vec<_>>>()?;
    let contents: Vec<c::OcxContent> = artifacts
        .contents
        .iter()
        .zip(&names)
        .map(|(content, (hash, previous))| c::OcxContent {
            hash: hash.as_ptr(),
            content: text(&content.bytes),
            previous: previous.as_ref().map_or(std::ptr::null(), |p| p.as_ptr()),
        })
        .collect();
    let (user, parent) = (string("the user", &artifacts.user)?, string("the parent", &artifacts.parent)?);
    let (branch, hash) =
        (string("the branch", &artifacts.branch)?, string("a hash", &artifacts.manifest_hash)?);
    let raw = c::OcxCheckIn {
        user: user.as_ptr(),
        parent: parent.as_ptr(),
        branch: branch.as_ptr(),
        allow_fork: i32::from(artifacts.allow_fork),
        contents: contents.as_ptr(),
        content_count: contents.len(),
        manifest: text(&artifacts.manifest),
        manifest_hash: hash.as_ptr(),
        is_private: i32::from(artifacts.private),
    };
    let ended = desk.warm(path, "cannot store the check-in", |s| s.check_in(&raw))?;
    refusal(ended.code.unsigned_abs(), artifacts)
}

/// The refusals of `ocx_check_in`, in words.
fn refusal(code: u32, a: &Artifacts) -> Result<()> {
    let (kind, what, hint) = match code {
        c::OCX_STORED => return Ok(()),
        c::OCX_NO_USER => (
            Kind::NotFound,
            format!("no user `{}` in the repository", a.user),
            "Name a login of this repository.",
        ),
        c::OCX_NO_PARENT => (
            Kind::NotFound,
            format!("the parent `{}` is not a check-in of this repository", a.parent),
            "Pull first.",
        ),
        c::OCX_WOULD_FORK => (
            Kind::WouldFork,
            format!("a check-in after `{:.10}` would be a second leaf of branch `{}`", a.parent, a.branch),
            "Update the checkout to the tip of the branch and try again.",
        ),
        c::OCX_BRANCH_CLOSED => {
            (Kind::Closed, format!("branch `{}` is closed", a.branch), "Continue on another branch.")
        }
        c::OCX_PARENT_YOUNGER => (
            Kind::Invalid,
            format!("the parent `{:.10}` is not older than the new check-in", a.parent),
            "Set the clock right, or wait until it has passed the parent's time.",
        ),
        _ => (
            Kind::Invalid,
            "Fossil's parser does not take the manifest as a check-in".to_owned(),
            "Check the comment, the branch and the file names.",
        ),
    };
    Err(Error::new(kind, what).hint(hint))
}
