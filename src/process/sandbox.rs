//! What a sandboxed command sees: a view of its own of the machine, made of namespaces.
//!
//! No other program is needed. Bubblewrap 0.8 has no overlay, makes mount points on the host and must be installed; here
//! the supervisor makes the namespaces itself. So no word of another program is read to know whether a sandbox stands
//! (case N50), and no mount point is made outside a tmpfs of the sandbox's own (case N23).
//!
//! The base view, before the mounts of a [`Sandbox`]:
//!
//! | place | what is there |
//! |---|---|
//! | `/usr /bin /sbin /lib* /opt /nix /gnu` | the machine's, read-only |
//! | `/etc` | the machine's, read-only; what not everyone may read is hidden; `hosts` and `hostname` are its own |
//! | `/proc` | its own processes; what could change the machine is read-only |
//! | `/dev` | `null zero full random urandom tty`, own terminals, own `/dev/shm` |
//! | `/sys/devices/system` | the machine's, read-only |
//! | `/tmp /var/tmp`, the home | empty, its own, bounded |
//! | everything else | is not there |
//!
//! The command has no capability, no way to get one, and the user id that OCX has. With a network of its own it reaches
//! nothing but itself. With `network` it reaches what the machine reaches, also servers on the machine's loopback and
//! its abstract sockets.
//!
//! As root OCX makes a weaker sandbox: the command owns what root owns. In `/etc` that is hidden, but below `/opt` and
//! `/usr/local` it reads what only root may read, and a file that it makes in a writable mount can have the set-user-id
//! bit. An ordinary user's command has none of that, so a server should not run as root.
//!
//! Memory, processor time and the number of processes have no limit here.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;

/// How a command is confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// The command's `HOME`: an empty folder of its own, unless a mount stands there or above.
    pub home: PathBuf,
    /// What else is to be seen, made in this order on top of the base view.
    pub mounts: Vec<Mount>,
    /// Whether the command has the machine's network. Without it, it has a loopback of its own.
    pub network: bool,
    /// Whether the command may make user namespaces of its own, as tests of sandboxes and browsers do; OCX in such a
    /// sandbox can sandbox in turn. Where OCX runs as root, a new `/proc` that it mounts must be read-only.
    pub nested: bool,
    /// The size of `/tmp`, and of `/var/tmp`.
    pub tmp_bytes: u64,
    /// The size of the home, if it is the sandbox's own.
    pub home_bytes: u64,
    /// The size of `/dev/shm`.
    pub shm_bytes: u64,
}

impl Sandbox {
    /// Whether the base view shows the machine's `path`.
    #[must_use]
    pub fn shows(path: &Path) -> bool {
        let system = ["/usr", "/bin", "/sbin", "/opt", "/nix", "/gnu", "/etc"];
        let library = path.iter().nth(1).is_some_and(|name| name.as_encoded_bytes().starts_with(b"lib"));
        library || system.iter().any(|folder| path.starts_with(folder))
    }
}

impl Default for Sandbox {
    /// The base view, with neither network nor namespaces of the command's own.
    fn default() -> Self {
        Self {
            home: PathBuf::from("/home/ocx"),
            mounts: Vec::new(),
            network: false,
            nested: false,
            tmp_bytes: 2048 * MIB,
            home_bytes: 2048 * MIB,
            shm_bytes: 1024 * MIB,
        }
    }
}

/// One thing more in the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is seen: an absolute path inside. What is missing of it is made, but never below a writable mount,
    /// because that would make it on the machine.
    pub at: PathBuf,
    /// What is seen there.
    pub what: MountKind,
}

/// What a mount shows. The paths are the machine's, absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MountKind {
    /// A folder or file that the command can only read.
    ReadOnly(PathBuf),
    /// A folder or file that the command can change.
    Writable(PathBuf),
    /// A folder that the command can change without changing it: what it writes goes to another folder.
    Layered {
        /// What is seen at first. It stays as it is.
        lower: PathBuf,
        /// Where changes go. It must be on a file system that keeps `user.` attributes.
        upper: PathBuf,
        /// An empty folder on the same file system as `upper`.
        work: PathBuf,
    },
    /// An empty read-only folder or file in place of what is there. Where nothing is there, nothing is done.
    Hidden,
}
