//! Makes the C files that are compiled: Fossil's sources through its own generators, and our own
//! `mod_*.c` with them, so that they see Fossil's declarations and can be commands.
//!
//! Everything lands in one folder, which is the only one of Fossil's on the include path. So only
//! verified files are ever compiled, and `sqlite3.h` is the one of the SQLite that is linked.

use super::disk::{read, write_if_changed};
use super::failure::{Result, run};
use super::makefile::Makefile;
use super::plan::Plan;
use super::source::Source;
use super::tools::Tools;
use std::fs;
use std::path::{Path, PathBuf};

const STAGE: &str = "generate";
/// The folder of our own C files, and the prefix of those that replace functions in a file of Fossil's.
const OWN: &str = "src/engine/c";
const WRAP: &str = "wrap_";
const ADVICE: &str = "Look at the message above; where a file of src/engine/c is named, mend it there.";

/// Files of Fossil that are used as they are.
const AS_THEY_ARE: &[&str] = &[
    "src/config.h",
    "src/cygsup.h",
    "src/json_detail.h",
    "src/th.h",
    "src/th.c",
    "src/th_lang.c",
    "extsrc/cson_amalgamation.c",
    "extsrc/cson_amalgamation.h",
    "extsrc/linenoise.h",
    "extsrc/pikchr.c",
    "extsrc/qrf.h",
    "extsrc/shell.c",
];

/// The generated C files.
pub struct Generated {
    /// The folder that holds them and their headers.
    pub folder: PathBuf,
    /// Names of C files of Fossil's, without `.c`: `add_`, `th`, ...
    pub files: Vec<String>,
    /// Flags for SQLite's shell, as `src/main.mk` has them.
    pub shell_options: Vec<String>,
}

impl Generated {
    /// Runs the generators; a file whose content stays the same is not written.
    pub fn make(plan: &Plan, source: &Source, tools: &Tools) -> Result<Self> {
        let makefile = Makefile::read(source)?;
        let this = Run { plan, source, tools, folder: plan.out.join("fossil-c") };
        let mut modules = this.translate(&makefile)?;
        this.copy()?;
        this.index(&modules)?;
        this.builtin(&makefile)?;
        this.version()?;
        this.headers(&modules)?;
        for module in &mut modules {
            module.push('_');
        }
        let as_they_are =
            AS_THEY_ARE.iter().filter_map(|name| Path::new(name).file_name()?.to_str()?.strip_suffix(".c"));
        modules.extend(as_they_are.map(str::to_owned));
        Ok(Self { folder: this.folder, files: modules, shell_options: makefile.shell_options })
    }
}

struct Run<'a> {
    plan: &'a Plan,
    source: &'a Source,
    tools: &'a Tools,
    folder: PathBuf,
}

impl Run<'_> {
    /// Turns each `x.c` into `x_.c`. Returns the names of all modules.
    fn translate(&self, makefile: &Makefile) -> Result<Vec<String>> {
        let mut modules = Vec::new();
        for name in &makefile.modules {
            let file = format!("src/{name}.c");
            self.translate_one(name, &self.source.file(&file)?)?;
            modules.push(name.clone());
        }
        for path in own_modules(self.plan) {
            let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            self.translate_one(&name, &path)?;
            modules.push(name);
        }
        Ok(modules)
    }

    fn translate_one(&self, name: &str, from: &Path) -> Result<()> {
        let out = run(STAGE, name, self.tools.command("translate").arg(from), ADVICE)?;
        write_if_changed(STAGE, &self.folder.join(format!("{name}_.c")), &out.stdout)
    }

    fn copy(&self) -> Result<()> {
        for file in AS_THEY_ARE {
            let from = self.source.file(file)?;
            let name = from.file_name().unwrap_or_default();
            write_if_changed(STAGE, &self.folder.join(name), read(STAGE, &from)?.as_bytes())?;
        }
        Ok(())
    }

    /// `page_index.h`: the table of commands, pages and settings.
    fn index(&self, modules: &[String]) -> Result<()> {
        let files = modules.iter().map(|name| format!("{name}_.c"));
        let mut command = self.tools.command("mkindex");
        let out = run(STAGE, "page_index.h", command.current_dir(&self.folder).args(files), ADVICE)?;
        write_if_changed(STAGE, &self.folder.join("page_index.h"), &out.stdout)
    }

    /// `builtin_data.h`: files served from the binary. The names in it are relative to `src/`.
    fn builtin(&self, makefile: &Makefile) -> Result<()> {
        let mut command = self.tools.command("mkbuiltin");
        let top = self.source.file("src/main.mk")?;
        let top = top.parent().and_then(Path::parent).unwrap_or(&self.folder);
        command.current_dir(top).args(["--prefix", "src/"]);
        for file in &makefile.extra_files {
            self.source.file(file)?;
            command.arg(file);
        }
        let out = run(STAGE, "builtin_data.h", &mut command, ADVICE)?;
        write_if_changed(STAGE, &self.folder.join("builtin_data.h"), &out.stdout)
    }

    /// `VERSION.h`. The hash comes from the pin: `manifest.uuid` is no part of the check-in.
    fn version(&self) -> Result<()> {
        let uuid = self.folder.join("manifest.uuid");
        write_if_changed(STAGE, &uuid, format!("{}\n", self.plan.pin.checkin).as_bytes())?;
        let mut command = self.tools.command("mkversion");
        command.arg(uuid).arg(self.source.file("manifest")?).arg(self.source.file("VERSION")?);
        let out = run(STAGE, "VERSION.h", &mut command, ADVICE)?;
        write_if_changed(STAGE, &self.folder.join("VERSION.h"), &out.stdout)
    }

    /// `x.h` for each `x_.c`. makeheaders itself does not write a header that stays the same.
    fn headers(&self, modules: &[String]) -> Result<()> {
        let mut command = self.tools.command("makeheaders");
        command.current_dir(&self.folder).args(modules.iter().map(|name| format!("{name}_.c:{name}.h")));
        command
            .arg("pikchr.c:pikchr.h")
            .arg(self.plan.sqlite_include.join("sqlite3.h"))
            .args(["th.h", "VERSION.h"]);
        run(STAGE, "makeheaders", &mut command, ADVICE)?;
        Ok(())
    }
}

/// Our C files that are modules of Fossil, in order.
fn own_modules(plan: &Plan) -> Vec<PathBuf> {
    own_files(plan, "mod_")
}

/// Our C files that are compiled as they are, in order.
pub fn own_plain(plan: &Plan) -> Vec<PathBuf> {
    let special = |path: &Path| starts_with(path, "mod_") || starts_with(path, WRAP);
    own_files(plan, "").into_iter().filter(|path| !special(path)).collect()
}

/// The C file to compile for `name`: ours where a `wrap_x.c` includes the generated `x_.c` and
/// replaces some of its functions, else the generated one.
pub fn compiled_file(plan: &Plan, generated: &Generated, name: &str) -> PathBuf {
    let wrap = format!("{WRAP}{}.c", name.trim_end_matches('_'));
    let wrap = plan.root.join(OWN).join(wrap);
    if wrap.is_file() { wrap } else { generated.folder.join(format!("{name}.c")) }
}

fn own_files(plan: &Plan, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(plan.root.join(OWN)).into_iter().flatten().flatten();
    let wanted = |path: &Path| path.extension().is_some_and(|e| e == "c") && starts_with(path, prefix);
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(|path| wanted(path)).collect();
    files.sort();
    files
}

fn starts_with(path: &Path, prefix: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
}
