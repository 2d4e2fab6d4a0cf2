//! The namespaces that the watcher leaves before it starts the first process inside.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use rustix::{
    process::{DumpableBehavior, getgid, getuid, set_dumpable_behavior},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
    },
};
use serde::{Deserialize, Serialize};

use crate::process::sandbox::Sandbox;

/// The kinds of namespaces, as `/proc/self/ns` names them.
const KINDS: [&str; 7] = ["user", "mnt", "pid", "ipc", "uts", "cgroup", "net"];

/// What the first process inside needs to know of the outside to judge that it is not there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outside {
    /// The identity of each namespace that must be another one.
    pub namespaces: BTreeMap<String, String>,
    /// The home of the caller, with its device and inode.
    pub home: Option<(PathBuf, u64, u64)>,
}

impl Outside {
    fn look(sandbox: &Sandbox, home: Option<&Path>) -> Self {
        let kinds = KINDS.into_iter().filter(|kind| *kind != "net" || !sandbox.network);
        let namespaces = kinds.filter_map(|kind| Some((kind.to_owned(), namespace(kind)?))).collect();
        // Some users of the system have a folder of programs for a home. There is nothing to hide in it.
        let system = ["/usr", "/bin", "/sbin", "/lib", "/etc", "/nix", "/gnu", "/dev", "/proc", "/sys"];
        let is_own =
            |home: &&Path| home.starts_with("/usr/local") || !system.iter().any(|s| home.starts_with(s));
        let of = |home: &Path| {
            let found = fs::metadata(home).ok().filter(fs::Metadata::is_dir)?;
            Some((home.into(), found.dev(), found.ino()))
        };
        Self { namespaces, home: home.filter(is_own).and_then(of) }
    }
}

/// The identity of one namespace of the calling process.
pub(super) fn namespace(kind: &str) -> Option<String> {
    let link = fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// Gives the calling process, which has one thread, namespaces of its own. Its children are in a process namespace that
/// the first of them begins. Mounts are left to that one.
pub(crate) fn separate(sandbox: &Sandbox, home: Option<&Path>) -> Result<Outside, String> {
    let mut outside = Outside::look(sandbox, home);
    let mut flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    flags.set(CloneFlags::CLONE_NEWNET, !sandbox.network);
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    let mut separated = unshare(flags);
    if separated == Err(Errno::EPERM) {
        // A sandbox around this one refuses namespaces of control groups, and hides those of the machine by its own.
        separated = unshare(flags - CloneFlags::CLONE_NEWCGROUP);
        outside.namespaces.remove("cgroup");
    }
    separated.map_err(|e| format!("no namespaces can be made: {}", e.desc()))?;
    // A process that is not dumpable may not write these files of its own unless it is root.
    let dumpable = |how| set_dumpable_behavior(how).map_err(|e| format!("prctl: {e}"));
    dumpable(DumpableBehavior::Dumpable)?;
    let written = map_ids(uid, gid);
    dumpable(DumpableBehavior::NotDumpable)?;
    written?;
    keep_capabilities().map_err(|e| format!("capabilities cannot be handed on: {e}"))?;
    Ok(outside)
}

fn map_ids(uid: u32, gid: u32) -> Result<(), String> {
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(|e| format!("cannot write `{file}`: {e}"))
    };
    write("setgroups", "deny".into())?;
    write("uid_map", format!("{uid} {uid} 1"))?;
    write("gid_map", format!("{gid} {gid} 1"))
}

/// Lets the capabilities in the new user namespace survive the start of the next program, also for an ordinary user.
fn keep_capabilities() -> rustix::io::Result<()> {
    let held = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: held.permitted, ..held })?;
    for bit in (0..64).map(|n| 1 << n).filter(|bit| held.permitted.bits() & bit != 0) {
        configure_capability_in_ambient_set(CapabilitySet::from_bits_retain(bit), true)?;
    }
    Ok(())
}
