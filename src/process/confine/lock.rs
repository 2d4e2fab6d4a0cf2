//! What the first process inside gives up before it starts the command, for itself and all that it starts.

use rustix::{
    io::Errno,
    process::getuid,
    thread::{
        CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
        set_capabilities, set_no_new_privs,
    },
};

use super::filter::{self, Namespaces};

/// Drops every capability from every set, and sets the filter of system calls; it refuses user namespaces if the kernel
/// does not already (`forbidden`). Root may map its own id in a `nested`
/// user namespace only with `CAP_SETFCAP`, so that one stays then. It adds nothing: root can also give its files the
/// set-user-id bit.
pub(crate) fn lock(nested: bool, forbidden: bool) -> Result<(), String> {
    let kept = if nested && getuid().is_root() { CapabilitySet::SETFCAP } else { CapabilitySet::empty() };
    drop_capabilities(kept).map_err(|e| format!("capabilities cannot be dropped: {e}"))?;
    set_no_new_privs(true).map_err(|e| format!("new privileges cannot be given up: {e}"))?;
    filter::set(match (nested, forbidden) {
        (true, _) => Namespaces::Nested,
        (false, true) => Namespaces::Any,
        (false, false) => Namespaces::None,
    })
}

fn drop_capabilities(kept: CapabilitySet) -> rustix::io::Result<()> {
    clear_ambient_capability_set()?;
    for bit in (0..64).map(|n| CapabilitySet::from_bits_retain(1 << n)).filter(|bit| *bit != kept) {
        match remove_capability_from_bounding_set(bit) {
            // The kernel has no more.
            Err(Errno::INVAL) => break,
            other => other?,
        }
    }
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })
}
