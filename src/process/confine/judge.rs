//! Whether the sandbox stands, judged by what the process can do and not by what was said of it.

use std::{fs::OpenOptions, fs::metadata, os::unix::fs::MetadataExt, path::Path};

use nix::sched::{CloneFlags, unshare};
use rustix::{io::Errno, process::getpid};

use super::namespace::{Outside, namespace};

/// Says what of the outside can still be reached, or nothing.
pub(crate) fn judge(outside: &Outside, shows_home: bool, nested: bool) -> Result<(), String> {
    if getpid().as_raw_pid() != 1 {
        return Err("the process namespace is not a new one".into());
    }
    for (kind, theirs) in &outside.namespaces {
        if namespace(kind).is_none_or(|own| own == *theirs) {
            return Err(format!("the namespace `{kind}` is that of the machine"));
        }
    }
    for folder in ["/", "/usr", "/etc"] {
        refuses_writing(Path::new(folder))?;
    }
    if let Some((home, device, inode)) = &outside.home
        && !shows_home
        && metadata(home).is_ok_and(|seen| (seen.dev(), seen.ino()) == (*device, *inode))
    {
        return Err(format!("the home `{}` can be seen", home.display()));
    }
    if !nested && unshare(CloneFlags::CLONE_NEWUSER).is_ok() {
        return Err("user namespaces can be made".into());
    }
    Ok(())
}

fn refuses_writing(folder: &Path) -> Result<(), String> {
    let file = folder.join(".ocx-must-not-be-written");
    match OpenOptions::new().write(true).create_new(true).open(&file) {
        Err(e) if e.raw_os_error() == Some(Errno::ROFS.raw_os_error()) => Ok(()),
        Err(e) => Err(format!("`{}` is not read-only: {e}", folder.display())),
        Ok(_) => {
            let _gone = std::fs::remove_file(&file);
            Err(format!("`{}` can be written", folder.display()))
        }
    }
}
