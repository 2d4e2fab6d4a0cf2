//! `/etc` inside: the machine's, without what not everyone may read, and with names of the sandbox's own.

use std::{
    fs,
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access as Asked, access},
    process::{getgid, getuid},
};

use super::point::{Access, Points, at, stage};

/// The name of the machine inside.
pub(super) const HOST: &str = "ocx-sandbox";
/// The address that its name stands for.
pub(super) const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);
const OTHERS_READ: u32 = 0o004;
const OTHERS_ENTER: u32 = 0o005;

/// Sets up `/etc`. `old` is the machine's root.
pub(super) fn show(points: &mut Points, old: &Path, network: bool) -> Result<(), String> {
    let etc = Path::new("/etc");
    points.bind(&old.join("etc"), etc, Access::ReadOnly)?;
    let mut secret = Vec::new();
    find_secret(etc, &mut secret);
    for path in secret {
        points.hide(&path)?;
    }
    let of_machine =
        if network { fs::read_to_string("/etc/hosts").unwrap_or_default() } else { String::new() };
    let hosts = format!("127.0.0.1 localhost\n::1 localhost ip6-localhost\n{ADDRESS} {HOST}\n{of_machine}");
    replace(points, "hosts", &hosts)?;
    replace(points, "hostname", &format!("{HOST}\n"))?;
    name_user(points)
}

/// Everything below `folder` that this process can read and not everyone may.
fn find_secret(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(about) = entry.metadata() else { continue };
        if about.is_symlink() {
            continue;
        }
        let path = entry.path();
        let needed = if about.is_dir() { OTHERS_ENTER } else { OTHERS_READ };
        if about.permissions().mode() & needed != needed {
            if access(&path, Asked::READ_OK).is_ok() || access(&path, Asked::EXEC_OK).is_ok() {
                found.push(path);
            }
        } else if about.is_dir() {
            find_secret(&path, found);
        }
    }
}

fn replace(points: &mut Points, name: &str, content: &str) -> Result<(), String> {
    let staged = stage(name, content.as_bytes())?;
    points.bind(&staged, &Path::new("/etc").join(name), Access::ReadOnly)
}

/// Gives the user and the group a name if they have none, as when they come from a directory service.
fn name_user(points: &mut Points) -> Result<(), String> {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    let lists = [
        ("passwd", uid, format!("ocx:x:{uid}:{gid}:ocx:/:/bin/sh\n")),
        ("group", gid, format!("ocx:x:{gid}:\n")),
    ];
    for (name, id, line) in lists {
        let path = Path::new("/etc").join(name);
        let text = if path.exists() { at("read", &path, fs::read_to_string(&path))? } else { String::new() };
        if name_of(&text, id).is_none() {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            replace(points, name, &format!("{text}{end}{line}"))?;
        }
    }
    Ok(())
}

/// The name of a user or group in a list such as `/etc/passwd`.
fn name_of(list: &str, id: u32) -> Option<&str> {
    let row = |line| {
        let fields: Vec<&str> = str::split(line, ':').collect();
        (fields.get(2)?.parse() == Ok(id)).then_some(fields[0])
    };
    list.lines().find_map(row)
}

/// The name of the user that the command runs as.
pub(super) fn user() -> Option<String> {
    let list = fs::read_to_string("/etc/passwd").ok()?;
    name_of(&list, getuid().as_raw()).map(str::to_owned)
}
