//! What the first process inside gives up before it starts the command, for itself and all that it starts.

use rustix::{
    io::Errno,
    thread::{
        CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
        set_capabilities, set_no_new_privs,
    },
};

use super::filter;

/// Drops every capability from every set, and sets the filter of system calls.
pub(crate) fn lock() -> Result<(), String> {
    drop_capabilities().map_err(|e| format!("capabilities cannot be dropped: {e}"))?;
    set_no_new_privs(true).map_err(|e| format!("new privileges cannot be given up: {e}"))?;
    filter::set()
}

fn drop_capabilities() -> rustix::io::Result<()> {
    clear_ambient_capability_set()?;
    for bit in (0..64).map(|n| 1 << n) {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(bit)) {
            // The kernel has no more.
            Err(Errno::INVAL) => break,
            other => other?,
        }
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}
