//! Made by bindgen from `src/engine/c/ocx.h`; see `src/engine/build/bindings.rs`.
#![allow(unsafe_code, missing_docs, clippy::pedantic, reason = "declarations made from C")]
#![allow(dead_code, non_camel_case_types, non_snake_case, non_upper_case_globals, reason = "C names")]

unsafe extern "C" {
    pub fn ocx_sqlite_version() -> ::core::ffi::c_int;
}
