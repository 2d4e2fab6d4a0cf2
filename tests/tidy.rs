//! The rules that the folders keep: each module uses only the rows above it, `unsafe` stays in its
//! room, files stay readable, and nothing of Fossil's is committed.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules, from the lowest to the highest; `face`'s parts are siblings.
const ROWS: [&str; 21] = [
    "error", "cancel", "name", "engine", "process", "format", "text", "tree", "repo", "transfer", "record",
    "checkout", "bundle", "sync", "testing", "work", "tool", "http", "server", "node", "face",
];
/// The most lines that a file has without its tests.
const LINES_MAX: usize = 400;

#[test]
fn each_module_uses_only_the_rows_above_it() {
    let mut breaches = Vec::new();
    for (file, text) in sources() {
        let Some(own) = row_of(&file) else { continue };
        for used in used_modules(without_tests(&text)) {
            let row = ROWS.iter().position(|row| *row == used);
            if row.is_some_and(|row| row > own) {
                breaches.push(format!("{} uses crate::{used}, which stands below it", file.display()));
            }
        }
    }
    assert!(breaches.is_empty(), "{breaches:#?}");
}

#[test]
fn faces_do_not_know_each_other() {
    let faces = ["mcp", "cli", "web", "demo"];
    for (file, text) in sources() {
        let Some(own) = faces.iter().find(|face| {
            file.starts_with(format!("src/face/{face}")) || file.ends_with(format!("face/{face}.rs"))
        }) else {
            continue;
        };
        for other in faces.iter().filter(|face| *face != own) {
            assert!(!text.contains(&format!("face::{other}")), "{} uses face::{other}", file.display());
        }
    }
}

#[test]
fn unsafe_stays_in_the_engine() {
    for (file, text) in sources() {
        if !file.starts_with("src/engine") {
            let found =
                text.lines().find(|line| line.contains("unsafe {") || line.contains("allow(unsafe_code"));
            assert!(found.is_none(), "{}: {found:?}", file.display());
        }
    }
}

#[test]
fn every_unsafe_block_cites_an_invariant() {
    let safety = fs::read_to_string(root().join("src/engine/SAFETY.md")).unwrap();
    for (file, text) in sources().into_iter().filter(|(file, _)| file.starts_with("src/engine")) {
        if file.ends_with("bindings.rs") {
            continue;
        }
        for line in text.lines().filter(|line| line.trim_start().starts_with("// SAFETY:")) {
            let cited: Vec<_> = line
                .split(|c: char| !c.is_alphanumeric())
                .filter(|w| w.len() > 1 && w.starts_with('I') && w[1..].chars().all(|c| c.is_ascii_digit()))
                .collect();
            assert!(!cited.is_empty(), "{}: no invariant is cited: {line}", file.display());
            for number in cited {
                assert!(
                    safety.contains(&format!("**{number}.")),
                    "{}: SAFETY.md has no {number}",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn files_stay_readable() {
    let mut long = Vec::new();
    for (file, text) in sources() {
        let lines = without_tests(&text).lines().count();
        if lines > LINES_MAX && !file.ends_with("tests.rs") && !file.ends_with("bindings.rs") {
            long.push(format!("{}: {lines} lines", file.display()));
        }
    }
    assert!(long.is_empty(), "longer than {LINES_MAX} lines without tests: {long:#?}");
}

#[test]
fn nothing_is_left_to_do() {
    for (file, text) in sources() {
        for word in [concat!("to", "do!("), concat!("un", "implemented!("), "FIXME", "XXX:"] {
            assert!(!text.contains(word), "{} holds {word}", file.display());
        }
    }
}

#[test]
fn no_source_of_fossil_is_tracked() {
    let out = std::process::Command::new("git").args(["ls-files"]).current_dir(root()).output();
    let Ok(out) = out else { return };
    let tracked = String::from_utf8_lossy(&out.stdout);
    let allowed = ["vendor/PIN", "vendor/README.md", "vendor/fetch"];
    for file in tracked.lines().filter(|file| file.starts_with("vendor/")) {
        assert!(allowed.contains(&file), "{file} is tracked");
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file of `src`, by its path from the root.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("the entry is there").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push((
                    path.strip_prefix(root()).expect("it is below the root").to_owned(),
                    fs::read_to_string(&path).expect("it is text"),
                ));
            }
        }
    }
    assert!(found.len() > 20, "the sources are not where this test looks");
    found
}

/// Which row a file belongs to; nothing for `lib.rs`, `main.rs` and the build's own modules.
fn row_of(file: &Path) -> Option<usize> {
    let below = file.strip_prefix("src").ok()?;
    if below.starts_with("engine/build") {
        return None;
    }
    let first = below.components().next()?.as_os_str().to_string_lossy().into_owned();
    ROWS.iter().position(|row| first.strip_suffix(".rs").unwrap_or(&first) == *row)
}

/// The modules that `use crate::...` lines and paths name.
fn used_modules(text: &str) -> Vec<String> {
    let mut used = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for (at, _) in line.match_indices("crate::") {
            let rest = &line[at + "crate::".len()..];
            match rest.strip_prefix('{') {
                Some(list) => used.extend(list.split([',', '}']).map(first_word)),
                None => used.push(first_word(rest)),
            }
        }
    }
    used
}

fn first_word(text: &str) -> String {
    text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// A file's text up to its tests.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text)
}
