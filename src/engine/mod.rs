//! The boundary to Fossil's C.

use libz_sys as _;

#[rustfmt::skip]
mod bindings;

/// The number of the SQLite that Fossil's code is linked with.
#[must_use]
#[allow(unsafe_code, reason = "the boundary to C")]
pub fn sqlite_version() -> i32 {
    // SAFETY: reads a constant.
    unsafe { bindings::ocx_sqlite_version() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn fossil_links_with_one_sqlite() {
        assert_eq!(super::sqlite_version(), rusqlite::version_number());
    }
}
