//! The rules that the folders keep: each module uses only the rows above it, `unsafe` stays in its
//! room, files stay readable, and nothing of Fossil's is committed.

mod cases;
mod imports;

use std::fs;
use std::path::{Path, PathBuf};

/// The modules, from the lowest to the highest; `face`'s parts are siblings.
const ROWS: [&str; 22] = [
    "error", "cancel", "name", "engine", "process", "format", "text", "tree", "repo", "transfer", "record",
    "merge", "checkout", "bundle", "sync", "testing", "work", "tool", "http", "server", "node", "face",
];
/// The most lines that a file has without its tests.
const LINES_MAX: usize = 400;
/// The most lines that a function has.
const FUNCTION_LINES_MAX: usize = 70;

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
fn no_two_files_import_each_other_in_a_circle_outside_the_engine() {
    let sources: Vec<_> = sources()
        .into_iter()
        .filter(|(file, _)| !file.starts_with("src/engine/build") && !is_test(file))
        .collect();
    let mut circles = imports::circles(&imports::imports(&sources));
    circles.retain(|circle| !circle.iter().all(|file| file.starts_with("src/engine")));
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn functions_fit_on_a_screen() {
    let mut long = Vec::new();
    for (file, text) in sources() {
        let mut begun: Option<(usize, String, String)> = None;
        for (number, line) in without_tests(&text).lines().enumerate() {
            let indent: String = line.chars().take_while(|c| *c == ' ').collect();
            match &begun {
                None if is_function(line.trim_start()) && !line.ends_with(['}', ';']) => {
                    begun = Some((number, indent, line.trim().to_owned()));
                }
                Some((start, outer, head)) if *outer == indent && ["}", ");", ";"].contains(&line.trim()) => {
                    if number - start >= FUNCTION_LINES_MAX {
                        long.push(format!(
                            "{}:{}: {} lines: {head}",
                            file.display(),
                            start + 1,
                            number - start + 1
                        ));
                    }
                    begun = None;
                }
                _ => {}
            }
        }
    }
    assert!(long.is_empty(), "longer than {FUNCTION_LINES_MAX} lines: {long:#?}");
}

/// Whether a line begins a function.
fn is_function(line: &str) -> bool {
    let words = line.split_whitespace();
    let mut rest = words.skip_while(|word| {
        word.starts_with("pub")
            || word.ends_with(')')
            || ["const", "async", "unsafe", "extern", "\"C\""].contains(word)
    });
    rest.next() == Some("fn")
}

#[test]
fn layers_name_nothing_above_them() {
    let rows: Vec<&str> = ROWS.iter().copied().take_while(|row| *row != "tool").collect();
    let mut named = Vec::new();
    for (file, text) in sources() {
        let Some(row) = row_of(&file).filter(|row| *row < rows.len()) else { continue };
        for (number, line) in without_tests(&text).lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            let above = [
                "ocx_context",
                "ocx_save",
                "ocx_test",
                "ocx_edit",
                "ocx_read",
                "ocx_find",
                "`ocx ",
                "`fossil ",
            ];
            let is_named = |name: &&str| {
                let ends = |(at, _)| !line[at + name.len()..].starts_with(|c: char| c.is_alphanumeric());
                line.match_indices(*name).any(ends) || name.ends_with(' ') && line.contains(*name)
            };
            if !is_comment && line.contains('"') && above.iter().any(is_named) {
                named.push(format!("{} ({}):{}: {}", file.display(), rows[row], number + 1, line.trim()));
            }
        }
    }
    assert!(named.is_empty(), "tools and commands are named by layers below them: {named:#?}");
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
    let found = files_below("src");
    assert!(found.len() > 20, "the sources are not where this test looks");
    found
}

/// Every Rust file of a folder, by its path from the root.
fn files_below(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
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
    found
}

/// Whether a file holds nothing but tests.
fn is_test(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests") || stem == "plain_fossil")
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
