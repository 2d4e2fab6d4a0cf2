//! Which plain Fossil the tests compare with, and that it is said.

use std::ffi::OsString;
use std::fs;

use crate::support::Fossil;
use crate::support::reference::{choose, program, told};

#[test]
fn the_reference_is_the_named_program_else_the_installed_one_else_our_own() {
    let dir = tempfile::tempdir().unwrap();
    let (empty, full) = (dir.path().join("empty"), dir.path().join("full"));
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&full).unwrap();
    fs::write(full.join("fossil"), "").unwrap();
    let path = |folders: &[&std::path::PathBuf]| Some(std::env::join_paths(folders).unwrap());
    let named = |name: &str| Some(OsString::from(name));
    assert_eq!(choose(None, path(&[&empty, &full])), Some(full.join("fossil")));
    assert_eq!(choose(None, path(&[&empty])), None);
    assert_eq!(choose(None, None), None);
    assert_eq!(choose(named("/opt/fossil"), path(&[&full])), Some("/opt/fossil".into()));
    assert_eq!(choose(named("ocx"), path(&[&full])), None);
    assert_eq!(choose(named(""), path(&[&full])), Some(full.join("fossil")));
}

/// The line stands once on standard error, where no test harness keeps it back.
#[test]
fn it_is_said_what_is_compared_with_what() {
    let line = told(program());
    let version = Fossil::Reference.program().arg("version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let release = version.strip_prefix("This is fossil version ").unwrap().split(' ').next().unwrap();
    match program() {
        Some(program) => {
            assert_eq!(line, format!("comparing with fossil {release} at {}", program.display()));
        }
        None => assert_eq!(line, format!("comparing with ocx fossil ({release})")),
    }
}
