//! Reads the lists that Fossil's own `src/main.mk` holds, so that a new release brings its own.

use super::disk::read;
use super::failure::{Failure, Result};
use super::source::Source;

/// The lists of `src/main.mk` that the build uses.
pub struct Makefile {
    /// Names of C files to translate, as `add` for `src/add.c`.
    pub modules: Vec<String>,
    /// Files that are built into the binary: style sheets, scripts, skins.
    pub extra_files: Vec<String>,
    /// Flags for SQLite's shell.
    pub shell_options: Vec<String>,
}

impl Makefile {
    /// Reads the lists.
    pub fn read(source: &Source) -> Result<Self> {
        let text = read("generate", &source.file("src/main.mk")?)?;
        let modules = list(&text, "SRC")?;
        Ok(Self {
            modules: modules.iter().filter_map(|file| module(file)).collect(),
            extra_files: list(&text, "EXTRA_FILES")?,
            shell_options: list(&text, "SHELL_OPTIONS")?,
        })
    }
}

fn module(file: &str) -> Option<String> {
    Some(file.strip_prefix("src/")?.strip_suffix(".c")?.to_owned())
}

/// The words of the definition `NAME = a \ b \ c`.
fn list(text: &str, name: &str) -> Result<Vec<String>> {
    let start = format!("{name} =");
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&start));
    let mut words = Vec::new();
    for line in &mut lines {
        let line = line.strip_prefix(&start).unwrap_or(line);
        let body = line.trim_end().strip_suffix('\\');
        words.extend(body.unwrap_or(line).split_whitespace().map(|word| word.replace("$(SRCDIR)", "src")));
        if body.is_none() {
            break;
        }
    }
    if words.is_empty() {
        let advice =
            "Mend the reading in src/engine/build/makefile.rs: this release lists its files another way.";
        return Err(Failure::new("generate", format!("src/main.mk defines no {name}"), advice));
    }
    Ok(words)
}
