//! Fossil's own code generators, compiled for the machine that builds.

use super::disk::write_if_changed;
use super::failure::{Result, run};
use super::plan::Plan;
use super::source::Source;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, time::SystemTime};

const STAGE: &str = "host tools";

/// The generators, ready to run.
pub struct Tools {
    folder: PathBuf,
}

impl Tools {
    /// Compiles each generator that is not newer than its source.
    pub fn compile(plan: &Plan, source: &Source) -> Result<Self> {
        let folder = plan.out.join("tools");
        write_if_changed(STAGE, &folder.join("compiler"), plan.host_cc.version.as_bytes())?;
        let compiler = modified(&folder.join("compiler"));
        for name in ["translate", "makeheaders", "mkindex", "mkbuiltin", "mkversion"] {
            let file = format!("tools/{name}.c");
            let from = source.file(&file)?;
            let to = folder.join(name);
            if modified(&to) > modified(&from).max(compiler) {
                continue;
            }
            let mut command = plan.host_cc.command();
            command.arg("-w").arg("-o").arg(&to).arg(&from);
            run(STAGE, &file, &mut command, "Check that the host compiler can build and link a C program.")?;
        }
        Ok(Self { folder })
    }

    /// A command that starts the generator `name`.
    pub fn command(&self, name: &str) -> Command {
        Command::new(self.folder.join(name))
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|meta| meta.modified()).ok()
}
