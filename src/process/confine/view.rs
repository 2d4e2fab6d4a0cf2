//! The files that a sandboxed command sees: a new root on a tmpfs, put together from parts of the machine.

use std::{
    ffi::CString,
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
};

use nix::sched::{CloneFlags, unshare};
use rustix::{
    io::Errno,
    mount::{MountFlags, mount},
    process::{getuid, pivot_root},
    system::sethostname,
};

use super::point::{Access, Points, at, detach_from_machine, option};
use super::{etc, loopback};
use crate::process::sandbox::{Mount, MountKind, Sandbox};

/// Where the machine's root is while the view is made.
const OLD: &str = "/.old";
/// A folder that every machine has. The new root is made over it, which nobody else sees.
const BASE: &str = "/tmp";
/// A second `/proc`, read-only, with nothing over it.
const WHOLE_PROC: &str = "/.proc";
const SYSTEM: [&str; 6] = ["usr", "bin", "sbin", "opt", "nix", "gnu"];
/// Where NixOS and Guix keep what leads to their programs.
const RUN_LINKS: [&str; 2] = ["run/current-system", "run/opengl-driver"];
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// What is known once the view is entered.
pub(crate) struct Entered {
    /// The name of the command's user.
    pub user: Option<String>,
    /// Whether the kernel refuses user namespaces inside.
    pub forbidden: bool,
}

/// Moves the calling process, the first one inside, into the view of `sandbox`.
pub(crate) fn enter(sandbox: &Sandbox, home: Option<&Path>) -> Result<Entered, String> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|e| format!("no mounts can be made: {}", e.desc()))?;
    detach_from_machine().map_err(|e| format!("no mounts can be made: {e}"))?;
    let mounts = sandbox.mounts.iter().map(resolved).collect::<Result<Vec<_>, _>>()?;
    let resolver = fs::canonicalize("/etc/resolv.conf").ok();
    sethostname(etc::HOST.as_bytes()).map_err(|e| format!("cannot name the machine: {e}"))?;
    if !sandbox.network {
        loopback::up(etc::ADDRESS).map_err(|e| format!("no loopback can be had: {e}"))?;
    }
    let old = Path::new(OLD);
    turn_root()?;
    let mut points = Points::begin()?;
    show_system(&mut points, old)?;
    show_kernel(&mut points, old, sandbox)?;
    show_devices(&mut points, old, sandbox.shm_bytes)?;
    for place in ["/tmp", "/var/tmp"] {
        points.tmpfs(Path::new(place), &format!("mode=1777,size={}", sandbox.tmp_bytes))?;
    }
    points.tmpfs(Path::new("/run"), "mode=0755,size=16m")?;
    for name in RUN_LINKS {
        if let Ok(target) = fs::read_link(old.join(name)) {
            at("make", Path::new(name), symlink(target, Path::new("/").join(name)))?;
        }
    }
    etc::show(&mut points, old, sandbox.network)?;
    if sandbox.network {
        show_resolver(&mut points, old, resolver.as_deref())?;
    }
    show_home(&mut points, sandbox, home)?;
    for mount in &mounts {
        make(&mut points, mount)?;
    }
    let forbidden = !sandbox.nested && fs::write("/proc/sys/user/max_user_namespaces", "0").is_ok();
    let user = etc::user();
    points.close(old)?;
    Ok(Entered { user, forbidden })
}

/// The mount with the machine's paths made plain, as seen once the root is turned.
fn resolved(mount: &Mount) -> Result<Mount, String> {
    let plain = |path: &PathBuf| {
        if !path.is_absolute() {
            return Err(format!("`{}`, which is to be mounted, is not an absolute path", path.display()));
        }
        let path = at("mount", path, fs::canonicalize(path))?;
        Ok(Path::new(OLD).join(path.strip_prefix("/").unwrap_or(&path)))
    };
    let what = match &mount.what {
        MountKind::ReadOnly(path) => MountKind::ReadOnly(plain(path)?),
        MountKind::Writable(path) => MountKind::Writable(plain(path)?),
        MountKind::Layered { lower, upper, work } => {
            MountKind::Layered { lower: plain(lower)?, upper: plain(upper)?, work: plain(work)? }
        }
        MountKind::Hidden => MountKind::Hidden,
    };
    Ok(Mount { at: mount.at.clone(), what })
}

/// Makes an empty tmpfs the root. The machine's is seen at [`OLD`] from here on.
fn turn_root() -> Result<(), String> {
    let base = Path::new(BASE);
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    at("mount", base, mount("tmpfs", base, "tmpfs", flags, c"mode=0755,size=16m"))?;
    let old = base.join(Path::new(OLD).strip_prefix("/").unwrap_or(base));
    at("make", &old, fs::create_dir(&old))?;
    at("turn to", base, pivot_root(base, &old))?;
    at("enter", base, std::env::set_current_dir("/"))
}

/// Programs and libraries. A link stays a link.
fn show_system(points: &mut Points, old: &Path) -> Result<(), String> {
    let listed = at("list", old, fs::read_dir(old))?.flatten().map(|entry| entry.file_name());
    let names = listed
        .filter(|name| name.to_str().is_some_and(|name| SYSTEM.contains(&name) || name.starts_with("lib")));
    for name in names {
        let (from, to) = (old.join(&name), Path::new("/").join(&name));
        if from.is_symlink() {
            at("copy", &from, fs::read_link(&from).and_then(|link| symlink(link, &to)))?;
        } else if from.is_dir() {
            points.bind(&from, &to, Access::ReadOnly)?;
        }
    }
    Ok(())
}

fn show_kernel(points: &mut Points, old: &Path, sandbox: &Sandbox) -> Result<(), String> {
    let proc = points.find(Path::new("/proc"), true)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let made = match mount("proc", &proc, "proc", flags, None) {
        // In a sandbox of root, only the whole may be had, and only to read.
        Err(Errno::PERM) => mount("proc", &proc, "proc", flags | MountFlags::RDONLY, None),
        made => made,
    };
    at("mount a new", &proc, made)?;
    points.note(proc.clone(), Access::AsMade);
    // An ordinary user may change nothing there anyway.
    if !sandbox.nested || getuid().is_root() {
        lock_machine(points, &proc)?;
    }
    if sandbox.nested && getuid().is_root() {
        // The kernel lets a nested sandbox have a new one only where the whole of one can be seen.
        let whole = points.find(Path::new(WHOLE_PROC), true)?;
        at("mount a new", &whole, mount("proc", &whole, "proc", flags | MountFlags::RDONLY, None))?;
        points.note(whole, Access::AsMade);
    }
    let devices = Path::new("/sys/devices/system");
    let of_machine = old.join("sys/devices/system");
    if of_machine.is_dir() { points.bind(&of_machine, devices, Access::ReadOnly) } else { Ok(()) }
}

/// Makes everything in `/proc` that is not about a process read-only: settings of the machine, and what drivers offer.
fn lock_machine(points: &mut Points, proc: &Path) -> Result<(), String> {
    for entry in at("list", proc, fs::read_dir(proc))?.flatten() {
        let is_process = entry.file_name().as_encoded_bytes()[0].is_ascii_digit();
        let Ok(about) = entry.metadata() else { continue };
        let writable = about.is_dir() || about.mode() & 0o222 != 0;
        if !is_process && !about.is_symlink() && writable {
            points.bind(&entry.path(), &entry.path(), Access::ReadOnly)?;
        }
    }
    Ok(())
}

fn show_devices(points: &mut Points, old: &Path, shm_bytes: u64) -> Result<(), String> {
    let dev = Path::new("/dev");
    for name in DEVICES {
        points.bind(&old.join("dev").join(name), &dev.join(name), Access::Device)?;
    }
    for (name, target) in LINKS {
        at("make", &dev.join(name), symlink(target, dev.join(name)))?;
    }
    let terminals = points.find(&dev.join("pts"), true)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=0620";
    at("mount", &terminals, mount("devpts", &terminals, "devpts", flags, options))?;
    points.note(terminals, Access::AsMade);
    points.tmpfs(&dev.join("shm"), &format!("mode=1777,size={shm_bytes}"))
}

/// The list of name servers often lies in `/run`, which is empty inside.
fn show_resolver(points: &mut Points, old: &Path, resolver: Option<&Path>) -> Result<(), String> {
    let Some(resolver) = resolver.filter(|path| !path.starts_with("/etc") && !path.starts_with("/usr"))
    else {
        return Ok(());
    };
    let of_machine = old.join(resolver.strip_prefix("/").unwrap_or(resolver));
    points.bind(&of_machine, resolver, Access::ReadOnly)
}

/// Hides the caller's home where the base view would show it, and makes that of the sandbox.
fn show_home(points: &mut Points, sandbox: &Sandbox, of_caller: Option<&Path>) -> Result<(), String> {
    if let Some(home) = of_caller.filter(|home| home.starts_with("/opt") || home.starts_with("/usr/local")) {
        points.hide(home)?;
    }
    if sandbox.mounts.iter().any(|mount| sandbox.home.starts_with(&mount.at)) {
        return Ok(());
    }
    points.tmpfs(&sandbox.home, &format!("mode=0700,size={}", sandbox.home_bytes))
}

fn make(points: &mut Points, wanted: &Mount) -> Result<(), String> {
    match &wanted.what {
        MountKind::ReadOnly(source) => points.bind(source, &wanted.at, Access::ReadOnly),
        MountKind::Writable(source) => points.bind(source, &wanted.at, Access::Writable),
        MountKind::Hidden => points.hide(&wanted.at),
        MountKind::Layered { lower, upper, work } => {
            let point = points.find(&wanted.at, true)?;
            let mut options = b"userxattr".to_vec();
            for (name, path) in [("lowerdir", lower), ("upperdir", upper), ("workdir", work)] {
                options.extend([b",", name.as_bytes(), b"=", &option(path)].concat());
            }
            let options = at("mount", &point, CString::new(options))?;
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            at("mount layers at", &point, mount("overlay", &point, "overlay", flags, options.as_c_str()))?;
            points.note(point, Access::Writable);
            Ok(())
        }
    }
}
