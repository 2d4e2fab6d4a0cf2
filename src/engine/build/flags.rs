//! The flags of each C file, as tables.

use super::generate::Generated;
use super::plan::Plan;
use std::path::Path;

/// For each C file, Fossil's and ours.
const ALL: &[&str] = &[
    "-O2",
    "-g1",
    "-fno-strict-aliasing",
    "-fno-common",
    "-fno-lto",
    // One section per object would escape the renaming in isolate.rs.
    "-fno-data-sections",
    "-fno-function-sections",
    "-D_GNU_SOURCE",
    "-D_FILE_OFFSET_BITS=64",
];

/// What Fossil's configure would find, and what we choose.
const FOSSIL: &[&str] = &[
    // Not -w, which silences these too: a function that no header declares would be called with the wrong types.
    "-Wno-all",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion",
    "-DHAVE_STRCHRNUL",
    "-DFOSSIL_HAVE_GETPASS",
    "-DFOSSIL_OMIT_DNS",
    "-DFOSSIL_OMIT_LOAD_AVERAGE",
    "-DFOSSIL_DYNAMIC_BUILD=1",
    "-DFOSSIL_ENABLE_JSON",
];

/// Extra flags for one file, by its name in the generated folder.
const PER_FILE: &[(&str, &[&str])] = &[
    ("main_", &["-Dmain=fossil_cli_main", "-Dfile_fullexename=ocx_fullexename"]),
    ("pikchr", &["-DPIKCHR_TOKEN_LIMIT=10000"]),
];

/// Extra flags for SQLite's shell, after those of `src/main.mk`.
const SHELL: &[&str] = &[];

const OURS: &[&str] = &["-Wextra", "-Wno-unused-parameter"];

/// The flags of the C file `name` of Fossil's.
pub fn fossil(plan: &Plan, generated: &Generated, name: &str) -> Vec<String> {
    let mut flags = words(ALL);
    flags.extend(words(FOSSIL));
    flags.push(format!("-DFOSSIL_CI_PFX=\"{}\"", &plan.pin.checkin[..12]));
    flags.extend(PER_FILE.iter().filter(|(file, _)| *file == name).flat_map(|(_, extra)| words(extra)));
    if name == "shell" {
        let options = generated.shell_options.iter();
        flags.extend(options.map(|flag| flag.replace("$(USE_SYSTEM_SQLITE)", "1")));
        flags.extend(words(SHELL));
    }
    flags.push("-include".to_owned());
    flags.push(plan.root.join("src/engine/c/shim.h").display().to_string());
    flags.extend(common(plan, &generated.folder));
    flags.extend(without_zones(plan));
    flags
}

/// The flags of a C file of ours.
pub fn ours(plan: &Plan, generated: &Generated) -> Vec<String> {
    let mut flags = words(ALL);
    flags.extend(words(OURS));
    flags.extend(common(plan, &generated.folder));
    flags
}

fn common(plan: &Plan, generated: &Path) -> Vec<String> {
    let mut flags = Vec::new();
    let include = [Some(generated), Some(&plan.sqlite_include), plan.zlib_include.as_deref()];
    for folder in include.into_iter().flatten() {
        flags.push(format!("-I{}", folder.display()));
    }
    flags.push(format!("-I{}", plan.root.join("src/engine/c").display()));
    // Keeps the builder's folders out of the binary: __FILE__ and debug information name them.
    flags.push(format!("-ffile-prefix-map={}=fossil", generated.display()));
    flags.push(format!("-ffile-prefix-map={}=ocx", plan.root.display()));
    if let Some(kind) = &plan.sanitize {
        flags.push(format!("-fsanitize={kind}"));
        flags.push("-fno-omit-frame-pointer".to_owned());
    }
    flags
}

/// The snapshot is written over all of Fossil's variables at once, so no forbidden zones may lie
/// between them.
fn without_zones(plan: &Plan) -> Vec<String> {
    let address = plan.sanitize.as_ref().is_some_and(|kind| kind.contains("address"));
    match (address, plan.cc.version.contains("clang")) {
        (false, _) => Vec::new(),
        (true, true) => words(&["-mllvm", "-asan-globals=0"]),
        (true, false) => words(&["--param", "asan-globals=0"]),
    }
}

fn words(flags: &[&str]) -> Vec<String> {
    flags.iter().map(ToString::to_string).collect()
}
