//! A session of Fossil's C code: the thin safe layer over the bindings.
//!
//! Not for callers outside the engine: a session stays on the engine thread.

use std::ffi::{CString, c_char, c_int};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::{self, NonNull};

use super::bindings as c;
use crate::error::{Error, Kind, Result};

/// How a call into C ended, and what it wrote.
#[derive(Debug, Default)]
pub(super) struct CallOutcome {
    /// Fossil called exit, abort or failed an assert.
    pub left: bool,
    /// Exit code, or the operation's result.
    pub code: i32,
    pub panicked: bool,
    pub out_of_memory: bool,
    pub out: String,
    pub err: String,
}

/// One state of Fossil's code. Everything it holds goes when it is dropped.
pub(super) struct Session {
    raw: NonNull<c::OcxSession>,
    /// Bound to the engine thread: neither `Send` nor `Sync`.
    thread: PhantomData<*const ()>,
}

/// Takes the snapshot of Fossil's data. Called once, on the engine thread, before any session is made.
pub(super) fn start(busy_timeout_ms: i32) -> Result<usize> {
    // SAFETY: I3 - called by the engine thread as its first act.
    let size = unsafe { c::ocx_start() };
    if size == 0 {
        return Err(Error::new(Kind::Unsupported, "this build has no isolated copy of Fossil's data")
            .with_hint("Build with GNU binutils, as README.md says."));
    }
    // SAFETY: I3 - on the engine thread.
    unsafe { c::ocx_set_busy_timeout_ms(busy_timeout_ms) };
    Ok(size)
}

impl Session {
    /// Makes a pristine session that may hold `max_memory` bytes.
    pub fn new(max_memory: usize) -> Result<Self> {
        // SAFETY: I3 - `start` ran on this thread before any session is made.
        let raw = NonNull::new(unsafe { c::ocx_session_new(max_memory) })
            .ok_or_else(|| Error::new(Kind::Internal, "no memory for a session of Fossil's code"))?;
        Ok(Self { raw, thread: PhantomData })
    }

    /// Bytes of memory that Fossil's code holds.
    pub fn memory(&self) -> usize {
        // SAFETY: I4 - `raw` lives until drop.
        unsafe { c::ocx_session_memory(self.raw.as_ptr()) }
    }

    fn call(&mut self, f: impl FnOnce(*mut c::OcxSession, *mut c::OcxOutcome)) -> CallOutcome {
        let mut outcome = c::OcxOutcome::default();
        f(self.raw.as_ptr(), &raw mut outcome);
        // SAFETY: I5 - the texts of an outcome are valid until the next call, and are copied here.
        let (out, err) = unsafe { (text(outcome.out), text(outcome.err)) };
        CallOutcome {
            left: outcome.left != 0,
            code: outcome.code,
            panicked: outcome.panicked != 0,
            out_of_memory: outcome.out_of_memory != 0,
            out,
            err,
        }
    }

    /// Runs a Fossil command in `directory`.
    pub fn command(&mut self, directory: &CString, args: &[CString], user: Option<&CString>) -> CallOutcome {
        let pointers: Vec<*const c_char> = args.iter().map(|a| a.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(0);
        let user = user.map_or(ptr::null(), |u| u.as_ptr());
        // SAFETY: I2, I5 - the strings outlive the call, and no Rust frame lies between C's setjmp and longjmp.
        self.call(|s, o| unsafe { c::ocx_command(s, directory.as_ptr(), count, pointers.as_ptr(), user, o) })
    }

    /// Opens a repository and keeps it open in this session.
    pub fn open_repository(&mut self, path: &CString) -> CallOutcome {
        // SAFETY: I2, I5 - as in `command`.
        self.call(|s, o| unsafe { c::ocx_open_repository(s, path.as_ptr(), o) })
    }

    /// Whether another connection has written since the last call on this session.
    pub fn is_stale(&mut self) -> CallOutcome {
        // SAFETY: I2 - as in `command`.
        self.call(|s, o| unsafe { c::ocx_is_stale(s, o) })
    }

    /// Begins the write transaction of a check-in, which must follow.
    pub fn check_in_begin(&mut self) -> CallOutcome {
        // SAFETY: I2 - as in `command`.
        self.call(|s, o| unsafe { c::ocx_check_in_begin(s, o) })
    }

    /// Stores a check-in in the transaction that was begun for it, and ends that transaction.
    pub fn check_in(&mut self, p: &c::OcxCheckIn) -> CallOutcome {
        // SAFETY: I2, I5 - the caller built `p` from memory that outlives the call.
        self.call(|s, o| unsafe { c::ocx_check_in(s, p, o) })
    }

    /// Begins a write transaction of the open repository. Returns its handle, which stays this session's.
    pub fn transaction_begin(&mut self, user: &CString) -> (CallOutcome, *mut rusqlite::ffi::sqlite3) {
        let mut db: *mut c::sqlite3 = ptr::null_mut();
        // SAFETY: I2, I5 - as in `command`; `db` outlives the call.
        let outcome = self.call(|s, o| unsafe { c::ocx_transaction_begin(s, user.as_ptr(), &raw mut db, o) });
        (outcome, db.cast())
    }

    /// Returns the number under which this transaction receives artifacts.
    pub fn transaction_receipt(&mut self) -> (CallOutcome, c_int) {
        let mut number = 0;
        // SAFETY: I2, I5 - as in `command`; `number` outlives the call.
        let outcome = self.call(|s, o| unsafe { c::ocx_transaction_receipt(s, &raw mut number, o) });
        (outcome, number)
    }

    /// Stores a control artifact in a transaction. Returns its row number.
    pub fn transaction_put(
        &mut self,
        artifact: &[u8],
        hash: &CString,
        previous: Option<&CString>,
    ) -> (CallOutcome, c_int) {
        let mut number = 0;
        let raw = c::OcxArtifact {
            hash: hash.as_ptr(),
            text: c::OcxText { data: artifact.as_ptr().cast(), size: artifact.len() },
            previous: previous.map_or(ptr::null(), |p| p.as_ptr()),
        };
        // SAFETY: I2, I5 - as in `command`; `raw` and what it names outlive the call.
        let outcome =
            self.call(|s, o| unsafe { c::ocx_transaction_put(s, &raw const raw, &raw mut number, o) });
        (outcome, number)
    }

    /// Begins to link artifacts in, in a transaction.
    pub fn transaction_link_begin(&mut self) -> CallOutcome {
        // SAFETY: I2 - as in `command`.
        self.call(|s, o| unsafe { c::ocx_transaction_link_begin(s, o) })
    }

    /// Links stored artifacts into the derived tables.
    pub fn transaction_link(&mut self, artifacts: &[(c_int, &[u8])]) -> CallOutcome {
        let text = |text: &[u8]| c::OcxText { data: text.as_ptr().cast(), size: text.len() };
        let stored: Vec<_> =
            artifacts.iter().map(|&(rid, expanded)| c::OcxStored { rid, text: text(expanded) }).collect();
        // SAFETY: I2, I5 - as in `command`; `stored` and what it names outlive the call.
        self.call(|s, o| unsafe { c::ocx_transaction_link(s, stored.as_ptr(), stored.len(), o) })
    }

    /// Ends what was begun.
    pub fn transaction_link_end(&mut self) -> CallOutcome {
        // SAFETY: I2 - as in `command`.
        self.call(|s, o| unsafe { c::ocx_transaction_link_end(s, o) })
    }

    /// Links in what waited for artifacts that had no content.
    pub fn transaction_filled(&mut self, numbers: &[c_int]) -> CallOutcome {
        // SAFETY: I2, I5 - as in `command`.
        self.call(|s, o| unsafe { c::ocx_transaction_filled(s, numbers.as_ptr(), numbers.len(), o) })
    }

    /// Commits a transaction.
    pub fn transaction_end(&mut self) -> CallOutcome {
        // SAFETY: I2 - as in `command`.
        self.call(|s, o| unsafe { c::ocx_transaction_end(s, o) })
    }

    /// Remembers a server, or none.
    pub fn set_remote(&mut self, url: Option<&CString>, password: Option<&CString>) -> CallOutcome {
        let optional = |s: Option<&CString>| s.map_or(ptr::null(), |s| s.as_ptr());
        let (url, password) = (optional(url), optional(password));
        // SAFETY: I2, I5 - as in `command`.
        self.call(|s, o| unsafe { c::ocx_set_remote(s, url, password, o) })
    }

    /// Writes the remembered server's URL and, on the next line, its password.
    pub fn remote(&mut self) -> CallOutcome {
        // SAFETY: I2 - as in `command`.
        self.call(|s, o| unsafe { c::ocx_remote(s, o) })
    }

    /// Makes a repository file for a clone.
    pub fn new_clone(&mut self, path: &CString, user: &CString, project: &CString) -> CallOutcome {
        // SAFETY: I2, I5 - as in `command`.
        self.call(|s, o| unsafe { c::ocx_new_clone(s, path.as_ptr(), user.as_ptr(), project.as_ptr(), o) })
    }

    /// Makes a copied repository file a clone of its own.
    pub fn adopt_copy(&mut self, path: &CString, user: &CString) -> CallOutcome {
        // SAFETY: I2, I5 - as in `command`.
        self.call(|s, o| unsafe { c::ocx_adopt_copy(s, path.as_ptr(), user.as_ptr(), o) })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: I3, I4 - made by `new` on this thread, freed once.
        unsafe { c::ocx_session_free(self.raw.as_ptr()) }
    }
}

/// Ends the calls that run, and those that begin, as soon as they can; or no longer.
pub(super) fn interrupt(yes: bool) {
    // SAFETY: I10 - from any thread: one atomic is written.
    unsafe { c::ocx_interrupt(c_int::from(yes)) }
}

/// Lets statements on the lent handle write to `user` and `config`, or not.
pub(super) fn unprotect(yes: bool) {
    // SAFETY: I3 - a transaction exists on the engine thread only.
    unsafe { c::ocx_transaction_unprotect(c_int::from(yes)) }
}

/// Copies a text of C.
///
/// # Safety
/// `t` is as C gave it and no call was made since (I5).
unsafe fn text(t: c::OcxText) -> String {
    if t.data.is_null() || t.size == 0 {
        return String::new();
    }
    // SAFETY: I5 - by this function's contract.
    let bytes = unsafe { std::slice::from_raw_parts(t.data.cast::<u8>(), t.size) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns `s` as a C string. Refuses a NUL, which would cut it short.
pub(super) fn c_string(what: &str, s: &[u8]) -> Result<CString> {
    CString::new(s).map_err(|_| Error::new(Kind::Invalid, format!("{what} holds a NUL byte")))
}

/// Returns the path as a C string.
pub(super) fn c_path(path: &Path) -> Result<CString> {
    c_string("the path", path.as_os_str().as_encoded_bytes())
}

/// Makes this process plain Fossil. Returns its exit code, unless Fossil ends the process itself.
pub(super) fn plain_main(args: &[CString]) -> i32 {
    let mut pointers: Vec<*mut c_char> = args.iter().map(|a| a.as_ptr().cast_mut()).collect();
    let count = c_int::try_from(pointers.len()).unwrap_or(0);
    pointers.push(ptr::null_mut());
    // SAFETY: I7 - main calls this before it starts any thread, and makes no other use of Fossil's code.
    unsafe { c::ocx_plain_main(count, pointers.as_mut_ptr()) }
}
