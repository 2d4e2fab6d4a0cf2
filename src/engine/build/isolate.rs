//! Moves the writable data of Fossil's objects into two sections of their own, `fsl_data` and
//! `fsl_bss`. The linker then marks where they begin and end, and the engine can restore all of
//! Fossil's state from a snapshot. The build fails when an object holds writable data elsewhere.

use super::failure::{Failure, Result, run};
use super::plan::Plan;
use std::path::{Path, PathBuf};
use std::process::Command;

const STAGE: &str = "isolate";
const ADVICE: &str =
    "Name the section in src/engine/build/isolate.rs, or see what makes the compiler use it.";

/// Sections that are written before `main` only, by the dynamic linker.
const READ_ONLY_AFTER_START: &[&str] = &[".data.rel.ro", ".data.rel.ro.local"];

/// The tools that move and list sections.
pub struct Isolation {
    objcopy: PathBuf,
    objdump: PathBuf,
    sanitized: bool,
}

impl Isolation {
    /// Finds the tools.
    pub fn find(plan: &Plan) -> Result<Self> {
        Ok(Self {
            objcopy: plan.cc.binutil("objcopy")?,
            objdump: plan.cc.binutil("objdump")?,
            sanitized: plan.sanitize.is_some(),
        })
    }

    /// Moves the sections of `object` and checks the outcome.
    pub fn apply(&self, object: &Path) -> Result<()> {
        let mut command = Command::new(&self.objcopy);
        for section in self.sections(object)?.iter().filter(|section| section.writable()) {
            let name = &section.name;
            if name == ".bss" || name.starts_with(".bss.") {
                // With contents, so that both are ranges of the same kind for the linker.
                command.arg(format!("--set-section-flags={name}=alloc,load,data,contents"));
                command.arg(format!("--rename-section={name}=fsl_bss,alloc,load,data,contents"));
            } else if name == ".data" || name.starts_with(".data.") {
                command.arg(format!("--rename-section={name}=fsl_data"));
            }
        }
        run(STAGE, &object.display().to_string(), command.arg(object), ADVICE)?;
        self.check(object)
    }

    fn check(&self, object: &Path) -> Result<()> {
        for section in self.sections(object)? {
            let moved = matches!(section.name.as_str(), "fsl_data" | "fsl_bss");
            let fault = if section.has("THREAD_LOCAL") {
                "data for each thread"
            } else if section.writable()
                && !moved
                && !(self.sanitized && section.name.starts_with(".init_array"))
            {
                "writable data"
            } else if moved && !section.has("CONTENTS") {
                "data without contents"
            } else {
                continue;
            };
            let what = format!("{} holds {fault} in section `{}`", object.display(), section.name);
            return Err(Failure::new(STAGE, what, ADVICE));
        }
        Ok(())
    }

    fn sections(&self, object: &Path) -> Result<Vec<Section>> {
        let mut command = Command::new(&self.objdump);
        command.env("LC_ALL", "C").args(["-h", "-w"]).arg(object);
        let out = run(STAGE, &object.display().to_string(), &mut command, ADVICE)?;
        Ok(String::from_utf8_lossy(&out.stdout).lines().filter_map(Section::parse).collect())
    }
}

struct Section {
    name: String,
    empty: bool,
    flags: String,
}

impl Section {
    /// Parses `  1 .data  00000010  VMA LMA OFFSET  2**3  CONTENTS, ALLOC, LOAD, DATA`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        words.next()?.parse::<u32>().ok()?;
        let name = words.next()?.to_owned();
        let empty = u64::from_str_radix(words.next()?, 16).ok()? == 0;
        let flags = words.skip(4).map(|word| word.trim_end_matches(',')).collect::<Vec<_>>().join(" ");
        Some(Self { name, empty, flags })
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.split(' ').any(|word| word == flag)
    }

    fn writable(&self) -> bool {
        let read_only = self.has("READONLY") || READ_ONLY_AFTER_START.contains(&self.name.as_str());
        self.has("ALLOC") && !read_only && !self.empty
    }
}
