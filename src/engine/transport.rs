//! The round trip of Fossil's sync, from C to a Rust [`Transport`] and back.

use std::any::Any;
use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use super::bindings as c;

/// Carries one request of a sync to the server and brings the reply.
///
/// It runs on a thread of its own while Fossil waits. Other engine calls run meanwhile, but no second sync. The engine
/// refuses a call that the transport itself makes.
pub trait Transport: Send {
    /// Sends `login_card` (may be empty, no line end) and `body` (uncompressed cards). Returns the uncompressed reply,
    /// or `None` to end the sync; the transport then keeps the reason.
    fn exchange(&mut self, login_card: &[u8], body: &[u8]) -> Option<Vec<u8>>;
}

/// A sync in the form that C needs: what it does, as whom and over which transport.
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own, as it is in the protocol")]
pub(super) struct SyncCall {
    pub url: CString,
    pub user: Option<CString>,
    pub password: Option<CString>,
    pub local_user: CString,
    pub push: bool,
    pub pull: bool,
    pub private: bool,
    pub unversioned: bool,
    pub transport: Box<dyn Transport>,
}

/// The context of C's callbacks.
struct Context<'a> {
    transport: &'a mut dyn Transport,
    reply: Vec<u8>,
    panic: Option<Box<dyn Any + Send>>,
}

/// Runs `f` with the C form of `sync`. A panic of the transport is kept meanwhile and goes on afterwards.
pub(super) fn with_c<R>(sync: &mut SyncCall, f: impl FnOnce(&c::OcxSyncCall) -> R) -> R {
    let mut context = Context { transport: sync.transport.as_mut(), reply: Vec::new(), panic: None };
    let optional = |s: &Option<CString>| s.as_ref().map_or(ptr::null(), |s| s.as_ptr());
    let raw = c::OcxSyncCall {
        url: sync.url.as_ptr(),
        user: optional(&sync.user),
        password: optional(&sync.password),
        local_user: sync.local_user.as_ptr(),
        push: c_int::from(sync.push),
        pull: c_int::from(sync.pull),
        is_private: c_int::from(sync.private),
        unversioned: c_int::from(sync.unversioned),
        exchange: Some(exchange),
        release: Some(release),
        context: (&raw mut context).cast(),
    };
    let result = f(&raw);
    if let Some(panic) = context.panic.take() {
        resume_unwind(panic);
    }
    result
}

unsafe extern "C" fn exchange(
    context: *mut c_void,
    login: c::OcxText,
    body: c::OcxText,
    reply: *mut c::OcxText,
) -> c_int {
    // SAFETY: I6 - `context` is the Context of the `with_c` that is running, and C holds no other reference.
    let context = unsafe { &mut *context.cast::<Context>() };
    // SAFETY: I5, I10 - C's texts are valid during the callback: they are on the heap of the parked session.
    let (login, body) = unsafe { (bytes(login), bytes(body)) };
    let transport = &mut *context.transport;
    let got = catch_unwind(AssertUnwindSafe(|| super::thread::meanwhile(|| transport.exchange(login, body))))
        .and_then(|got| got);
    match got {
        Ok(Some(bytes)) => {
            context.reply = bytes;
            let text =
                c::OcxText { data: context.reply.as_ptr().cast::<c_char>(), size: context.reply.len() };
            // SAFETY: I5 - C gives the place for the reply, and takes it before it calls `release`.
            unsafe { *reply = text };
            0
        }
        Ok(None) => 1,
        Err(panic) => {
            context.panic = Some(panic);
            1
        }
    }
}

unsafe extern "C" fn release(context: *mut c_void, _reply: c::OcxText) {
    // SAFETY: I6 - as in `exchange`.
    unsafe { &mut *context.cast::<Context>() }.reply = Vec::new();
}

/// Returns the bytes of a C text.
///
/// # Safety
/// The text is valid for the lifetime that the caller gives the result (I5).
unsafe fn bytes<'a>(t: c::OcxText) -> &'a [u8] {
    if t.data.is_null() {
        return &[];
    }
    // SAFETY: I5 - by this function's contract.
    unsafe { std::slice::from_raw_parts(t.data.cast::<u8>(), t.size) }
}
