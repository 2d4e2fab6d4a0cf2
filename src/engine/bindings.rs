//! Made by bindgen from `src/engine/c/ocx.h`; see `src/engine/build/bindings.rs`.
#![allow(unsafe_code, missing_docs, dead_code, reason = "declarations made from C")]
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals, reason = "C names")]
#![allow(clippy::all, clippy::pedantic, clippy::restriction, reason = "not written by hand")]

pub const OCX_STORED: u32 = 0;
pub const OCX_NO_USER: u32 = 1;
pub const OCX_NO_PARENT: u32 = 2;
pub const OCX_WOULD_FORK: u32 = 3;
pub const OCX_BRANCH_CLOSED: u32 = 4;
pub const OCX_PARENT_YOUNGER: u32 = 5;
pub const OCX_NOT_ACCEPTED: u32 = 6;
#[repr(C)]
#[derive(Debug)]
pub struct OcxSession {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct sqlite3 {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct OcxText {
    pub data: *const ::core::ffi::c_char,
    pub size: usize,
}
impl Default for OcxText {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct OcxOutcome {
    pub left: ::core::ffi::c_int,
    pub code: ::core::ffi::c_int,
    pub panicked: ::core::ffi::c_int,
    pub out_of_memory: ::core::ffi::c_int,
    pub out: OcxText,
    pub err: OcxText,
}
impl Default for OcxOutcome {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
unsafe extern "C" {
    pub fn ocx_start() -> usize;
}
unsafe extern "C" {
    pub fn ocx_session_new(max_memory: usize) -> *mut OcxSession;
}
unsafe extern "C" {
    pub fn ocx_session_free(arg1: *mut OcxSession);
}
unsafe extern "C" {
    pub fn ocx_session_memory(arg1: *const OcxSession) -> usize;
}
unsafe extern "C" {
    pub fn ocx_set_busy_timeout_ms(arg1: ::core::ffi::c_int);
}
unsafe extern "C" {
    pub fn ocx_interrupt(yes: ::core::ffi::c_int);
}
unsafe extern "C" {
    pub fn ocx_command(
        arg1: *mut OcxSession,
        directory: *const ::core::ffi::c_char,
        argc: ::core::ffi::c_int,
        argv: *const *const ::core::ffi::c_char,
        user: *const ::core::ffi::c_char,
        arg2: *mut OcxOutcome,
    );
}
unsafe extern "C" {
    pub fn ocx_open_repository(
        arg1: *mut OcxSession,
        path: *const ::core::ffi::c_char,
        arg2: *mut OcxOutcome,
    );
}
unsafe extern "C" {
    pub fn ocx_is_stale(arg1: *mut OcxSession, arg2: *mut OcxOutcome);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct OcxContent {
    pub hash: *const ::core::ffi::c_char,
    pub content: OcxText,
    pub previous: *const ::core::ffi::c_char,
}
impl Default for OcxContent {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct OcxCheckIn {
    pub user: *const ::core::ffi::c_char,
    pub parent: *const ::core::ffi::c_char,
    pub branch: *const ::core::ffi::c_char,
    pub allow_fork: ::core::ffi::c_int,
    pub contents: *const OcxContent,
    pub content_count: usize,
    pub manifest: OcxText,
    pub manifest_hash: *const ::core::ffi::c_char,
    pub is_private: ::core::ffi::c_int,
    pub note: *const ::core::ffi::c_char,
}
impl Default for OcxCheckIn {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
unsafe extern "C" {
    pub fn ocx_check_in_begin(arg1: *mut OcxSession, arg2: *mut OcxOutcome);
}
unsafe extern "C" {
    pub fn ocx_check_in(arg1: *mut OcxSession, arg2: *const OcxCheckIn, arg3: *mut OcxOutcome);
}
unsafe extern "C" {
    pub fn ocx_transaction_begin(
        arg1: *mut OcxSession,
        user: *const ::core::ffi::c_char,
        db: *mut *mut sqlite3,
        arg2: *mut OcxOutcome,
    );
}
unsafe extern "C" {
    pub fn ocx_transaction_unprotect(yes: ::core::ffi::c_int);
}
unsafe extern "C" {
    pub fn ocx_transaction_receipt(
        arg1: *mut OcxSession,
        rcvid: *mut ::core::ffi::c_int,
        arg2: *mut OcxOutcome,
    );
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct OcxArtifact {
    pub hash: *const ::core::ffi::c_char,
    pub text: OcxText,
    pub previous: *const ::core::ffi::c_char,
}
impl Default for OcxArtifact {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
unsafe extern "C" {
    pub fn ocx_transaction_put(
        arg1: *mut OcxSession,
        arg2: *const OcxArtifact,
        rid: *mut ::core::ffi::c_int,
        arg3: *mut OcxOutcome,
    );
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct OcxStored {
    pub rid: ::core::ffi::c_int,
    pub text: OcxText,
}
impl Default for OcxStored {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
unsafe extern "C" {
    pub fn ocx_transaction_link_begin(arg1: *mut OcxSession, arg2: *mut OcxOutcome);
}
unsafe extern "C" {
    pub fn ocx_transaction_link(
        arg1: *mut OcxSession,
        stored: *const OcxStored,
        count: usize,
        arg2: *mut OcxOutcome,
    );
}
unsafe extern "C" {
    pub fn ocx_transaction_link_end(arg1: *mut OcxSession, arg2: *mut OcxOutcome);
}
unsafe extern "C" {
    pub fn ocx_transaction_filled(
        arg1: *mut OcxSession,
        rids: *const ::core::ffi::c_int,
        count: usize,
        arg2: *mut OcxOutcome,
    );
}
unsafe extern "C" {
    pub fn ocx_transaction_end(arg1: *mut OcxSession, arg2: *mut OcxOutcome);
}
unsafe extern "C" {
    pub fn ocx_set_remote(
        arg1: *mut OcxSession,
        url: *const ::core::ffi::c_char,
        password: *const ::core::ffi::c_char,
        arg2: *mut OcxOutcome,
    );
}
unsafe extern "C" {
    pub fn ocx_remote(arg1: *mut OcxSession, arg2: *mut OcxOutcome);
}
unsafe extern "C" {
    pub fn ocx_new_clone(
        arg1: *mut OcxSession,
        path: *const ::core::ffi::c_char,
        local_user: *const ::core::ffi::c_char,
        project: *const ::core::ffi::c_char,
        arg2: *mut OcxOutcome,
    );
}
unsafe extern "C" {
    pub fn ocx_adopt_copy(
        arg1: *mut OcxSession,
        path: *const ::core::ffi::c_char,
        local_user: *const ::core::ffi::c_char,
        arg2: *mut OcxOutcome,
    );
}
unsafe extern "C" {
    pub fn ocx_plain_main(
        argc: ::core::ffi::c_int,
        argv: *mut *mut ::core::ffi::c_char,
    ) -> ::core::ffi::c_int;
}
