//! Mount points and what may be written below them.
//!
//! A mount point that is missing is made only in a tmpfs of the sandbox's own. Below a read-only folder of the machine,
//! that folder is first replaced by such a tmpfs that shows all it held.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{MetadataExt, symlink},
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    io::Errno,
    mount::{
        MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
        mount_remount, unmount,
    },
};

/// The most entries of a folder that is replaced to hold one mount point more.
const ENTRIES_MAX: usize = 4096;
/// Where files and folders lie that are shown elsewhere. It is gone before the command starts.
const STAGE: &str = "/.stage";

/// What the command may do below a mount point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    ReadOnly,
    Writable,
    /// A device can be written, but its own mode and times cannot: they are the machine's.
    Device,
    /// It was mounted as it must be.
    AsMade,
}

/// The mount points made so far.
#[derive(Default)]
pub(super) struct Points {
    made: Vec<(PathBuf, Access)>,
    /// The devices of the tmpfs that belong to the sandbox.
    own: BTreeSet<u64>,
    staged: usize,
}

/// Puts the place into an error.
pub(super) fn at<T>(what: &str, path: &Path, result: Result<T, impl std::fmt::Display>) -> Result<T, String> {
    result.map_err(|e| format!("cannot {what} `{}`: {e}", path.display()))
}

/// Makes a file to be shown elsewhere; returns its path.
pub(super) fn stage(name: &str, content: &[u8]) -> Result<PathBuf, String> {
    let path = Path::new(STAGE).join(name);
    at("write", &path, fs::write(&path, content))?;
    Ok(path)
}

impl Points {
    /// Mounts the place for staged files. The root must be a tmpfs of the sandbox's own.
    pub(super) fn begin() -> Result<Self, String> {
        let mut points = Self::default();
        points.own.insert(device(Path::new("/"))?);
        points.tmpfs(Path::new(STAGE), "mode=0755,size=64m")?;
        at("set up", Path::new(STAGE), fs::create_dir(Path::new(STAGE).join("empty")))?;
        stage("nothing", b"")?;
        Ok(points)
    }

    /// Mounts a new tmpfs, which the command may write.
    pub(super) fn tmpfs(&mut self, place: &Path, options: &str) -> Result<(), String> {
        let point = self.find(place, true)?;
        let options = std::ffi::CString::new(options).map_err(|e| e.to_string())?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        at("mount", &point, mount("tmpfs", &point, "tmpfs", flags, options.as_c_str()))?;
        self.own.insert(device(&point)?);
        self.note(point, Access::Writable);
        Ok(())
    }

    /// Shows `source` at `place`.
    pub(super) fn bind(&mut self, source: &Path, place: &Path, access: Access) -> Result<(), String> {
        let folder = at("read", source, fs::metadata(source))?.is_dir();
        let point = self.find(place, folder)?;
        at("mount", &point, mount_bind_recursive(source, &point))?;
        self.note(point, access);
        Ok(())
    }

    /// Shows something empty at `place`, if something is there.
    pub(super) fn hide(&mut self, place: &Path) -> Result<(), String> {
        match fs::metadata(place) {
            Ok(found) => {
                let empty = if found.is_dir() { "empty" } else { "nothing" };
                self.bind(&Path::new(STAGE).join(empty), place, Access::ReadOnly)
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
            Err(e) => at("hide", place, Err(e)),
        }
    }

    /// Remembers what may be done below a mount point. A later mount at the same place counts.
    pub(super) fn note(&mut self, point: PathBuf, access: Access) {
        self.made.push((point, access));
    }

    /// Returns where `place` really is, following links. What is missing is made.
    pub(super) fn find(&mut self, place: &Path, folder: bool) -> Result<PathBuf, String> {
        let mut here = PathBuf::from("/");
        let mut ahead = place.components().peekable();
        if ahead.next() != Some(Component::RootDir) {
            return Err(format!("the place of a mount, `{}`, is not an absolute path", place.display()));
        }
        while let Some(name) = ahead.next() {
            let Component::Normal(name) = name else {
                return Err(format!("the place of a mount, `{}`, is not a plain path", place.display()));
            };
            let next = here.join(name);
            match fs::symlink_metadata(&next) {
                Ok(found) if found.is_symlink() => here = at("follow", &next, fs::canonicalize(&next))?,
                Ok(_) => here = next,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    self.make(&here, name, folder || ahead.peek().is_some())?;
                    here = next;
                }
                Err(e) => return at("find", &next, Err(e)),
            }
        }
        Ok(here)
    }

    fn make(&mut self, parent: &Path, name: &OsStr, folder: bool) -> Result<(), String> {
        let path = parent.join(name);
        if !self.own.contains(&device(parent)?) {
            if self.access(parent) != Access::ReadOnly {
                let (path, parent) = (path.display(), parent.display());
                return Err(format!(
                    "`{path}` is missing, and it cannot be made in `{parent}`, which is shared"
                ));
            }
            self.replace(parent)?;
        }
        let made = if folder { fs::create_dir(&path) } else { File::create_new(&path).map(drop) };
        at("make", &path, made)
    }

    /// Replaces a folder by one in the stage that shows the same.
    fn replace(&mut self, folder: &Path) -> Result<(), String> {
        self.staged += 1;
        let own = Path::new(STAGE).join(self.staged.to_string());
        at("make", &own, fs::create_dir(&own))?;
        for (n, entry) in at("list", folder, fs::read_dir(folder))?.enumerate() {
            let entry = at("list", folder, entry)?;
            let (from, to) = (entry.path(), own.join(entry.file_name()));
            let kind = at("read", &from, entry.file_type())?;
            if n == ENTRIES_MAX {
                return Err(format!(
                    "`{}` has too many entries to add a mount point to it",
                    folder.display()
                ));
            }
            if kind.is_symlink() {
                at("copy", &from, fs::read_link(&from).and_then(|link| symlink(link, &to)))?;
                continue;
            }
            at(
                "make",
                &to,
                if kind.is_dir() { fs::create_dir(&to) } else { File::create_new(&to).map(drop) },
            )?;
            at("mount", &from, mount_bind_recursive(&from, &to))?;
        }
        at("mount", folder, mount_bind_recursive(&own, folder))?;
        self.note(folder.to_owned(), Access::ReadOnly);
        Ok(())
    }

    /// What may be done at `path`: what the nearest mount point above says.
    fn access(&self, path: &Path) -> Access {
        let above = self.made.iter().filter(|(point, _)| path.starts_with(point));
        above
            .max_by_key(|(point, _)| point.components().count())
            .map_or(Access::ReadOnly, |(_, access)| *access)
    }

    /// Takes the stage and the machine's root away, and makes every mount read-only that must be. No mount point can be
    /// made after this.
    pub(super) fn close(self, old: &Path) -> Result<(), String> {
        for place in [Path::new(STAGE), old] {
            at("unmount", place, unmount(place, UnmountFlags::DETACH))?;
            at("remove", place, fs::remove_dir(place))?;
        }
        let table = at("read", Path::new("mountinfo"), fs::read_to_string("/proc/self/mountinfo"))?;
        for (point, options) in table.lines().filter_map(entry) {
            let access = self.access(&point);
            let more = match access {
                Access::AsMade => continue,
                Access::Writable => MountFlags::NODEV,
                Access::ReadOnly => MountFlags::NODEV | MountFlags::RDONLY,
                Access::Device => MountFlags::RDONLY,
            };
            let flags = MountFlags::BIND | MountFlags::NOSUID | kept(options) | more;
            match mount_remount(&point, flags, "") {
                // Another mount stands over it, or the folders above are closed: nobody gets there.
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::ACCESS) => {}
                Err(e) => return at("lock", &point, Err(e)),
            }
        }
        Ok(())
    }
}

/// Keeps mounts made here from the machine, and the machine's from here.
pub(super) fn detach_from_machine() -> rustix::io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
}

fn device(path: &Path) -> Result<u64, String> {
    at("read", path, fs::metadata(path)).map(|found| found.dev())
}

/// Mount point and options of one line of `mountinfo`.
fn entry(line: &str) -> Option<(PathBuf, &str)> {
    let mut fields = line.split(' ');
    let point = fields.nth(4)?;
    Some((unescaped(point), fields.next()?))
}

/// Undoes the octal numbers that stand for white space and backslashes.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        let number = more.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if first == b'\\' => {
                bytes.push(byte);
                rest = &more[3..];
            }
            _ => {
                bytes.push(first);
                rest = more;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// The flags that the machine's mount has. They may not be taken off.
fn kept(options: &str) -> MountFlags {
    let flag = |option| match option {
        "ro" => MountFlags::RDONLY,
        "noexec" => MountFlags::NOEXEC,
        _ => MountFlags::empty(),
    };
    options.split(',').map(flag).collect()
}

/// A path as an option of an overlay, where some characters have a meaning.
pub(super) fn option(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.flat_map(|byte| if b"\\,:".contains(byte) { vec![b'\\', *byte] } else { vec![*byte] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_read_with_its_blanks() {
        let line = r"36 35 98:0 /mnt /a\040b\134c ro,noexec,relatime master:1 - ext4 /dev/root rw";
        let (point, options) = entry(line).unwrap();
        assert_eq!(point, Path::new(r"/a b\c"));
        assert_eq!(kept(options), MountFlags::RDONLY | MountFlags::NOEXEC);
    }

    #[test]
    fn the_nearest_and_latest_mount_point_says_what_may_be_done() {
        let mut points = Points::default();
        for (point, access) in
            [("/a", Access::ReadOnly), ("/a/b", Access::Writable), ("/a/b", Access::ReadOnly)]
        {
            points.note(point.into(), access);
        }
        points.note("/a/b/c".into(), Access::Writable);
        assert_eq!(points.access(Path::new("/a/b/d")), Access::ReadOnly);
        assert_eq!(points.access(Path::new("/a/b/c/d")), Access::Writable);
    }
}
