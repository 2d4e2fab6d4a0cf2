//! Where Fossil's sources come from: `$OCX_FOSSIL_SRC`, else `vendor/fossil/`, else `vendor/fetch`.
//! The build uses only a tree that is the pinned check-in.

use super::disk::write_if_changed;
use super::failure::{Failure, Result};
use super::fetch::{WAYS, fetch, keep};
use super::plan::Plan;
use super::source::Source;
use super::unpack::unpack;
use super::verify::cards;
use std::fmt::Write;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};

const STAGE: &str = "source";

/// Finds or fetches the sources and checks them.
pub fn obtain(plan: &Plan) -> Result<Source> {
    let vendored = plan.root.join("vendor/fossil");
    if let Some(given) = &plan.given_source {
        println!("cargo:rerun-if-changed={}", given.display());
        from_given(plan, given)
    } else if fs::read_dir(&vendored).is_ok_and(|mut entries| entries.next().is_some()) {
        from_folder(plan, &vendored)
    } else {
        from_fetch(plan)
    }
}

fn from_given(plan: &Plan, given: &Path) -> Result<Source> {
    if given.is_dir() {
        return from_folder(plan, given);
    }
    if given.is_file() {
        return from_archive(plan, given);
    }
    let what = format!("OCX_FOSSIL_SRC={}: no such folder or archive", given.display());
    let advice =
        "Set it to the full path of a folder or a .tar.gz or .tar.xz of Fossil's sources, or unset it.";
    Err(Failure::new(STAGE, what, advice))
}

fn from_folder(plan: &Plan, folder: &Path) -> Result<Source> {
    checked_once(plan, folder.display().to_string(), folder.to_owned(), || Ok(()))
}

fn from_archive(plan: &Plan, archive: &Path) -> Result<Source> {
    let folder = plan.out.join("fossil");
    checked_once(plan, archive.display().to_string(), folder.clone(), || {
        let _ = fs::remove_dir_all(&folder);
        unpack(archive, &folder).map_err(|e| {
            let what = format!("cannot unpack {}: {e}", archive.display());
            Failure::new(STAGE, what, "Delete the archive, or take a whole .tar.gz or .tar.xz.")
        })
    })
}

/// Tries each way until one brings an archive of the pinned check-in.
fn from_fetch(plan: &Plan) -> Result<Source> {
    let folder = plan.out.join("archive");
    if let Some(fetched) = fs::read_dir(&folder).ok().and_then(|mut files| files.next()?.ok())
        && let Ok(source) = from_archive(plan, &fetched.path())
    {
        return Ok(source);
    }
    let mut reasons = String::new();
    for way in WAYS {
        let _ = fs::remove_dir_all(&folder);
        let source = fetch(plan, way, &folder).and_then(|archive| {
            let source = from_archive(plan, &archive).map_err(|e| format!("{way}: {}", e.what()))?;
            keep(&plan.pin, way, &archive);
            Ok(source)
        });
        match source {
            Ok(source) => return Ok(source),
            Err(reason) => {
                let _ = write!(reasons, "\n           {reason}");
            }
        }
    }
    let what = format!("no source archive of Fossil {} to be had{reasons}", plan.pin.release);
    let advice = format!(
        "Set OCX_FOSSIL_SRC to a folder or archive of Fossil's check-in {}, or unpack it into vendor/fossil/.",
        plan.pin.checkin
    );
    Err(Failure::new(STAGE, what, advice))
}

/// Prepares and checks a tree. Skips this if an earlier build did it and no file has changed its size or time since.
fn checked_once(
    plan: &Plan,
    origin: String,
    folder: PathBuf,
    prepare: impl FnOnce() -> Result<()>,
) -> Result<Source> {
    let memory = plan.out.join("verified");
    let old = fs::read_to_string(&memory).unwrap_or_default();
    if let Some((state, missing)) = old.split_once("\n\n")
        && state == state_of(plan, &origin, &folder)
    {
        let missing = missing.lines().map(str::to_owned).collect();
        return Ok(Source { origin, folder, missing });
    }
    prepare()?;
    let source = Source::check(origin, folder, &plan.pin)?;
    let missing = source.missing.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    let state = state_of(plan, &source.origin, &source.folder);
    write_if_changed(STAGE, &memory, format!("{state}\n\n{missing}").as_bytes())?;
    Ok(source)
}

/// Where the tree is from, what it must be, and each file's size and time.
fn state_of(plan: &Plan, origin: &str, folder: &Path) -> String {
    let manifest = fs::read_to_string(folder.join("manifest")).unwrap_or_default();
    let mut state = format!("{origin}\n{}", plan.pin.checkin);
    let files = cards(&manifest).into_iter().map(|card| folder.join(card.name));
    for file in iter::once(PathBuf::from(origin)).chain(iter::once(folder.join("manifest"))).chain(files) {
        let seen = fs::metadata(&file).ok().and_then(|meta| Some((meta.len(), meta.modified().ok()?)));
        let _ = write!(state, "\n{} {seen:?}", file.display());
    }
    state
}
