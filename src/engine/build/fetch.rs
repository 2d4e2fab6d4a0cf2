//! Runs `vendor/fetch`, and keeps what it brought for later builds.

use super::plan::Plan;
use super::verify::Pin;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

/// The ways that `vendor/fetch` knows, in the order to try them.
pub const WAYS: [&str; 3] = ["cache", "debian", "upstream"];

/// Puts an archive into `folder`. The error is one line that says why this way brought nothing.
pub fn fetch(plan: &Plan, way: &str, folder: &Path) -> Result<PathBuf, String> {
    let out = Command::new("sh").arg(plan.root.join("vendor/fetch")).arg(folder).arg(way).output();
    let out = out.map_err(|e| format!("{way}: cannot start `sh vendor/fetch`: {e}"))?;
    if out.status.success() {
        return Ok(PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()));
    }
    let stderr = String::from_utf8_lossy(&out.stderr);
    let reason = stderr.lines().find(|line| line.starts_with(way));
    Err(reason.map_or_else(|| format!("{way}: {}: {}", out.status, stderr.trim()), str::to_owned))
}

/// Keeps a verified archive in the user's cache. This is a convenience: a failed write does not fail the build.
pub fn keep(pin: &Pin, way: &str, archive: &Path) {
    let Some(folder) = cache().filter(|_| way != "cache") else { return };
    let extension = archive.extension().and_then(OsStr::to_str).unwrap_or("gz");
    let name = format!("fossil-{}-{}.tar.{extension}", pin.release, &pin.checkin[..12]);
    let part = folder.join(format!("{name}.{}", process::id()));
    let kept = fs::create_dir_all(&folder)
        .and_then(|()| fs::copy(archive, &part))
        .and_then(|_| fs::rename(&part, folder.join(name)));
    if kept.is_err() {
        let _ = fs::remove_file(part);
    }
}

fn cache() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    Some(base?.join("ocx"))
}
