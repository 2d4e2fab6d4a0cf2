//! The plain Fossil that tests compare with.
//!
//! `OCX_TEST_FOSSIL` names a program, or is `ocx` for this project's own. Without it, the installed `fossil` is the
//! reference. If none is installed, this project's own is the reference. The unit tests of `src/` use this file too.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The reference, if it is not this project's own program. The first call says on standard error which program it is.
pub fn program() -> Option<&'static Path> {
    static CHOSEN: OnceLock<Option<PathBuf>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let chosen = choose(std::env::var_os("OCX_TEST_FOSSIL"), std::env::var_os("PATH"));
        // This does not use `eprintln!`, because the test harness hides its output.
        let _ = writeln!(std::io::stderr(), "{}", told(chosen.as_deref()));
        chosen
    });
    chosen.as_deref()
}

/// The program of that name, or the first `fossil` in the folders of `path`. Returns nothing for this project's own.
pub fn choose(named: Option<OsString>, path: Option<OsString>) -> Option<PathBuf> {
    match named.filter(|name| !name.is_empty()) {
        Some(name) if name == "ocx" => None,
        Some(name) => Some(PathBuf::from(name)),
        None => std::env::split_paths(&path?).map(|dir| dir.join("fossil")).find(|file| file.is_file()),
    }
}

/// One line that says which program tests compare with.
pub fn told(program: Option<&Path>) -> String {
    let Some(program) = program else {
        let pin = include_str!("../../vendor/PIN");
        let release = pin.lines().find_map(|line| line.strip_prefix("release=")).unwrap_or("?");
        return format!("comparing with ocx fossil ({release})");
    };
    let said = Command::new(program).arg("version").output();
    let said = said.unwrap_or_else(|e| panic!("OCX_TEST_FOSSIL: `{}` does not run: {e}", program.display()));
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let release = said.split_whitespace().skip_while(|word| *word != "version").nth(1).unwrap_or("?");
    format!("comparing with fossil {release} at {}", program.display())
}
