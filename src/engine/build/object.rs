//! One object file: whether it is stale, and how it is made.
//!
//! Beside each object lie the compiler's list of the headers it read and a key over the command and
//! the content of all those files. An object is made again when the key no longer fits.

use super::disk::write_if_changed;
use super::failure::{Result, run};
use super::isolate::Isolation;
use super::plan::Plan;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

const STAGE: &str = "compile";

/// Whose code an object holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Fossil's, or a module of ours among it: its writable data is moved to sections of its own.
    Fossil,
    /// Ours: it keeps its state when Fossil's is restored.
    Ours,
}

/// An object file to be kept up to date.
pub struct Object {
    pub from: PathBuf,
    pub to: PathBuf,
    pub flags: Vec<String>,
    pub kind: Kind,
}

impl Object {
    /// Compiles the object when it is stale.
    pub fn refresh(&self, plan: &Plan, isolation: &Isolation, contents: &Contents) -> Result<()> {
        let depends = self.to.with_extension("d");
        let key = self.to.with_extension("key");
        let command = self.command(plan, &depends);
        if self.to.is_file()
            && fs::read_to_string(&key).is_ok_and(|old| old == contents.key(plan, &command, &depends))
        {
            return Ok(());
        }
        // A build that stops halfway must not leave an old key beside a new object.
        let _ = fs::remove_file(&key);
        self.compile(command, isolation)?;
        write_if_changed(STAGE, &key, contents.key(plan, &self.command(plan, &depends), &depends).as_bytes())
    }

    fn command(&self, plan: &Plan, depends: &Path) -> Command {
        let mut command = plan.cc.command();
        command
            .args(&self.flags)
            .args(["-MMD", "-MF"])
            .arg(depends)
            .arg("-c")
            .arg(&self.from)
            .arg("-o")
            .arg(&self.to);
        command
    }

    fn compile(&self, mut command: Command, isolation: &Isolation) -> Result<()> {
        let file = self.from.display().to_string();
        let advice = match self.kind {
            Kind::Fossil => "Look at src/engine/c/shim.h first: it stands before each file of Fossil's.",
            Kind::Ours => "Mend the file.",
        };
        let out = run(STAGE, &file, &mut command, advice)?;
        if self.kind == Kind::Fossil {
            return isolation.apply(&self.to);
        }
        for line in out.stderr.lines() {
            println!("cargo:warning={line}");
        }
        Ok(())
    }
}

/// Hashes of the files that compilers read; most headers are read for many objects.
#[derive(Default)]
pub struct Contents(Mutex<HashMap<String, u64>>);

impl Contents {
    /// Returns the key: the compiler, the command, and each file that was read with the hash of its content.
    fn key(&self, plan: &Plan, command: &Command, depends: &Path) -> String {
        let mut hasher = DefaultHasher::new();
        plan.cc.version.hash(&mut hasher);
        format!("{command:?}").hash(&mut hasher);
        for file in read_files(depends) {
            file.hash(&mut hasher);
            self.of(file).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }

    fn of(&self, file: String) -> u64 {
        let mut known = self.0.lock();
        *known.entry(file).or_insert_with_key(|file| {
            let mut hasher = DefaultHasher::new();
            fs::read(file).ok().hash(&mut hasher);
            hasher.finish()
        })
    }
}

/// The files of a make rule `x.o: a.c b.h \ c.h`.
fn read_files(depends: &Path) -> Vec<String> {
    let text = fs::read_to_string(depends).unwrap_or_default();
    let files = text.split_once(": ").map_or("", |(_, files)| files);
    let joined = files.replace("\\\n", " ").replace("\\ ", "\0");
    joined.split_whitespace().map(|name| name.replace('\0', " ")).collect()
}
