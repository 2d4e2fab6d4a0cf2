//! How many processes the kernel ended because memory ran out: read from counters, never guessed from an exit status.

use std::{fs, path::Path};

/// The count of one counter at one time.
pub(super) struct OutOfMemory {
    before: u64,
}

impl OutOfMemory {
    /// Begins to count.
    pub(super) fn begin() -> Self {
        Self { before: count() }
    }

    /// How many since then, in this process's control group; where that has no counter, on the machine.
    pub(super) fn so_far(&self) -> u64 {
        count().saturating_sub(self.before)
    }
}

fn count() -> u64 {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let machine = || field(Path::new("/proc/vmstat"), "oom_kill").unwrap_or(0);
    groups.lines().find_map(of_group).unwrap_or_else(machine)
}

/// The counter of the control group in a line of `/proc/self/cgroup`: number, controllers, path.
fn of_group(line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
    if controllers.is_empty() {
        return field(&Path::new("/sys/fs/cgroup").join(path).join("memory.events"), "oom_kill");
    }
    let memory = controllers.split(',').any(|name| name == "memory");
    let file = Path::new("/sys/fs/cgroup/memory").join(path).join("memory.oom_control");
    if memory { field(&file, "oom_kill") } else { None }
}

/// The number after `name` in a file of names and numbers.
fn field(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let rows = text.lines().filter_map(|line| line.split_once(' '));
    rows.filter(|(key, _)| *key == name).find_map(|(_, number)| number.trim().parse().ok())
}
