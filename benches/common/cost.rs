//! The costs of a process other than time: its memory, and how often it waits for the disk.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Result;

/// The peak of a command's resident memory, in bytes. The memory is read while the command runs, so the peak of a very
/// short command may be missed. Processes that the command starts are not counted.
pub fn peak_memory(mut command: Command) -> Result<u64> {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: u64 = line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
        peak = peak.max(kib * 1024);
        match child.try_wait()? {
            None => std::thread::sleep(Duration::from_micros(100)),
            Some(ended) if ended.success() => return Ok(peak),
            Some(ended) => return Err(format!("a measured command failed: {ended}").into()),
        }
    }
}

/// How often a command and the processes that it starts wait for the disk (`fsync` and similar calls). Returns nothing
/// if there is no `strace`.
pub fn syncs(command: &Command, folder: &Path) -> Result<Option<usize>> {
    let log = folder.join("strace.log");
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range,syncfs,sync", "-o"]).arg(&log);
    traced.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        traced.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => traced.env(name, value),
            None => traced.env_remove(name),
        };
    }
    traced.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match traced.status() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Ok(ended) if ended.success() => {}
        other => return Err(format!("strace failed: {other:?}").into()),
    }
    // If another thread interrupts a call, the log has two lines for the call.
    let text = fs::read_to_string(&log)?;
    Ok(Some(text.lines().filter(|line| line.contains("sync") && !line.contains("resumed>")).count()))
}

/// A number of bytes in a form for people.
pub fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
}
