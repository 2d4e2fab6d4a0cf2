//! Where Fossil's sources come from: `$OCX_FOSSIL_SRC`, else `vendor/fossil/`, else `vendor/fetch`.
//! Whatever the way, only a tree that is the pinned check-in is used.

use super::failure::{Failure, Result};
use super::plan::{Plan, write_if_changed};
use super::unpack::unpack;
use super::verify::{Fault, Pin, cards, verify};
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const STAGE: &str = "source";

/// A verified source tree.
pub struct Source {
    folder: PathBuf,
    missing: BTreeSet<String>,
}

impl Source {
    /// Finds or fetches the sources and checks them.
    pub fn obtain(plan: &Plan) -> Result<Self> {
        if let Some(given) = &plan.given_source {
            println!("cargo:rerun-if-changed={}", given.display());
            return Self::given(plan, given);
        }
        let vendored = plan.root.join("vendor/fossil");
        if vendored.join("manifest").exists() {
            return Self::checked(plan, vendored);
        }
        Self::fetched(plan)
    }

    /// The path of the file `name`, which must be there: what is used of Fossil goes through here.
    pub fn file(&self, name: &str) -> Result<PathBuf> {
        // main.mk names some files as `src/../extsrc/x`; the manifest has no such names.
        let plain = name.strip_prefix("src/../").unwrap_or(name);
        let path = self.folder.join(plain);
        if self.missing.contains(plain) || !path.is_file() {
            let what = format!("{} lacks the file {plain}", self.folder.display());
            return Err(Failure::new(STAGE, what, "Take a complete source archive of the release."));
        }
        Ok(path)
    }

    fn given(plan: &Plan, given: &Path) -> Result<Self> {
        let advice = "Set OCX_FOSSIL_SRC to a folder or a .tar.gz or .tar.xz archive of Fossil's sources, or unset it.";
        if given.is_dir() {
            return Self::checked(plan, given.to_owned());
        }
        if !given.is_file() {
            let what = format!("OCX_FOSSIL_SRC={}: no such folder or archive", given.display());
            return Err(Failure::new(STAGE, what, advice));
        }
        Self::unpacked(plan, given)
    }

    fn fetched(plan: &Plan) -> Result<Self> {
        let unpacked = plan.out.join("fossil");
        if Stamp::of(plan, &unpacked).holds(&unpacked) {
            return Self::checked(plan, unpacked);
        }
        let mut reasons = Vec::new();
        for way in ["cache", "debian", "upstream"] {
            match fetch(plan, way) {
                Ok(archive) => match Self::unpacked(plan, &archive) {
                    Ok(source) => {
                        if way != "cache" {
                            keep(&plan.pin, &archive);
                        }
                        return Ok(source);
                    }
                    Err(e) => reasons.push(format!("{way}: {e}")),
                },
                Err(reason) => reasons.push(reason),
            }
        }
        let what =
            format!("no source archive of Fossil {} to be had\n{}", plan.pin.release, reasons.join("\n"));
        let advice = format!(
            "Set OCX_FOSSIL_SRC to a folder or archive of check-in {} of Fossil, or unpack it into vendor/fossil/.",
            plan.pin.checkin
        );
        Err(Failure::new(STAGE, what, advice))
    }

    fn unpacked(plan: &Plan, archive: &Path) -> Result<Self> {
        let folder = plan.out.join("fossil");
        if Stamp::of(plan, &folder).holds(&folder) {
            return Self::checked(plan, folder);
        }
        let _ = fs::remove_dir_all(&folder);
        unpack(archive, &folder).map_err(|e| {
            let what = format!("cannot unpack {}: {e}", archive.display());
            Failure::new(STAGE, what, "Delete the archive, or take a whole .tar.gz or .tar.xz.")
        })?;
        Self::checked(plan, folder)
    }

    /// Checks `folder`, unless it was checked before and no file has another size or time since.
    fn checked(plan: &Plan, folder: PathBuf) -> Result<Self> {
        let stamp = Stamp::of(plan, &folder);
        if let Some(missing) = stamp.recall(&folder) {
            return Ok(Self { folder, missing });
        }
        let verified = verify(&folder, &plan.pin).map_err(|fault| explain(&fault, &folder, &plan.pin))?;
        stamp.remember(&folder, &verified.missing)?;
        Ok(Self { folder, missing: verified.missing })
    }
}

/// The memory of a check: a file in the output folder.
struct Stamp {
    path: PathBuf,
    pin: String,
}

impl Stamp {
    fn of(plan: &Plan, folder: &Path) -> Self {
        let _ = folder;
        Self { path: plan.out.join("verified"), pin: plan.pin.checkin.clone() }
    }

    fn holds(&self, folder: &Path) -> bool {
        self.recall(folder).is_some()
    }

    fn recall(&self, folder: &Path) -> Option<BTreeSet<String>> {
        let text = fs::read_to_string(&self.path).ok()?;
        let (state, missing) = text.split_once("\n\n")?;
        (state == self.state(folder)).then(|| missing.lines().map(str::to_owned).collect())
    }

    fn remember(&self, folder: &Path, missing: &BTreeSet<String>) -> Result<()> {
        let missing = missing.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        write_if_changed(&self.path, format!("{}\n\n{missing}", self.state(folder)).as_bytes())
    }

    /// The folder, the pin, and each file's size and time.
    fn state(&self, folder: &Path) -> String {
        let manifest = fs::read_to_string(folder.join("manifest")).unwrap_or_default();
        let mut state = format!("{}\n{}", folder.display(), self.pin);
        for name in std::iter::once("manifest".to_owned()).chain(cards(&manifest).into_iter().map(|c| c.name))
        {
            let meta = fs::metadata(folder.join(&name)).ok();
            let seen = meta.and_then(|m| Some((m.len(), m.modified().ok()?)));
            state.push_str(&format!("\n{name} {seen:?}"));
        }
        state
    }
}

/// Runs `vendor/fetch` for one way; the error is its own reason.
fn fetch(plan: &Plan, way: &str) -> std::result::Result<PathBuf, String> {
    let dest = plan.out.join("archive");
    let out = Command::new("sh").arg(plan.root.join("vendor/fetch")).arg(&dest).arg(way).output();
    let out = out.map_err(|e| format!("{way}: cannot start `sh vendor/fetch`: {e}"))?;
    if out.status.success() {
        return Ok(PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()));
    }
    let stderr = String::from_utf8_lossy(&out.stderr);
    Err(stderr.lines().next().unwrap_or("vendor/fetch failed without a word").to_owned())
}

/// Keeps a verified archive for later builds. That is a convenience: a cache that cannot be written
/// must not fail the build.
fn keep(pin: &Pin, archive: &Path) {
    let base = env::var_os("XDG_CACHE_HOME").filter(|base| !base.is_empty()).map(PathBuf::from);
    let home = env::var_os("HOME").filter(|home| !home.is_empty());
    let Some(base) = base.or_else(|| Some(PathBuf::from(home?).join(".cache"))) else { return };
    let extension = archive.extension().and_then(OsStr::to_str).unwrap_or("gz");
    let folder = base.join("ocx");
    let name = format!("fossil-{}-{}.tar.{extension}", pin.release, &pin.checkin[..12]);
    let part = folder.join(format!("{name}.{}", std::process::id()));
    let kept = fs::create_dir_all(&folder)
        .and_then(|()| fs::copy(archive, &part))
        .and_then(|_| fs::rename(&part, folder.join(name)));
    if kept.is_err() {
        let _ = fs::remove_file(part);
    }
}

fn explain(fault: &Fault, folder: &Path, pin: &Pin) -> Failure {
    let at = folder.display();
    let advice =
        "Take an unchanged source archive of the pinned release; changes of ours belong in src/engine/c/.";
    let what = match fault {
        Fault::NoManifest(e) => {
            format!("{at}/manifest: {e}; a source archive of Fossil holds one at its top")
        }
        Fault::WrongCheckin(hash) => format!("{at} is check-in {hash}, not the pinned {}", pin.checkin),
        Fault::Altered(name) => format!("{at}/{name} differs from what the pinned check-in holds"),
        Fault::Unreadable(name, e) => format!("cannot read {at}/{name}: {e}"),
    };
    Failure::new(STAGE, what, advice)
}
