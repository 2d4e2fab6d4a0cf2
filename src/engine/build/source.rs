//! A source tree of Fossil that is known to be the pinned check-in.

use super::failure::{Failure, Result};
use super::verify::{Fault, Pin, verify};
use std::collections::BTreeSet;
use std::path::PathBuf;

const STAGE: &str = "source";

/// A verified source tree.
#[derive(Debug)]
pub struct Source {
    /// What the user knows it by: the folder, or the archive that it was unpacked from.
    pub origin: String,
    /// The tree's top.
    pub folder: PathBuf,
    /// Files of the check-in that the tree lacks.
    pub missing: BTreeSet<String>,
}

impl Source {
    /// Checks each file in `folder`; `origin` is what a failure names.
    pub fn check(origin: String, folder: PathBuf, pin: &Pin) -> Result<Self> {
        match verify(&folder, pin) {
            Ok(missing) => Ok(Self { origin, folder, missing }),
            Err(fault) => Err(explain(&fault, &origin, pin)),
        }
    }

    /// Returns the path of the file `name`, which must exist. Every use of a file of Fossil's goes through here.
    pub fn file(&self, name: &str) -> Result<PathBuf> {
        // main.mk names some files as `src/../extsrc/x`; the manifest has no such names.
        let plain = name.strip_prefix("src/../").unwrap_or(name);
        let path = self.folder.join(plain);
        if self.missing.contains(plain) || !path.is_file() {
            let what = format!("{} lacks the file {plain}", self.origin);
            return Err(Failure::new(STAGE, what, "Take a complete source archive of the release."));
        }
        Ok(path)
    }
}

fn explain(fault: &Fault, origin: &str, pin: &Pin) -> Failure {
    let what = match fault {
        Fault::NoManifest(e) => format!("{origin}: no `manifest` at its top ({e})"),
        Fault::WrongCheckin(hash) => {
            format!("{origin} is check-in {hash}, not {} (release {})", pin.checkin, pin.release)
        }
        Fault::Altered(name) => format!("{origin}: {name} differs from what the pinned check-in holds"),
        Fault::Unreadable(name, e) => format!("{origin}: cannot read {name}: {e}"),
    };
    let advice =
        "Take an unchanged source archive of the pinned release; changes of ours belong in src/engine/c/.";
    Failure::new(STAGE, what, advice)
}
