//! Trees and edits that are the same in every run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Result;

/// The number of files in one folder of a tree.
const PER_FOLDER: usize = 40;
const WORDS: [&str; 16] = [
    "artifact", "branch", "check-in", "delta", "event", "file", "graph", "hash", "index", "leaf", "manifest",
    "parent", "return", "table", "value", "while",
];

/// Numbers that look random but are the same in every run (a linear congruential generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }
}

/// The path of the file with this number in a tree.
pub fn path(number: usize) -> PathBuf {
    let folder = number / PER_FOLDER;
    PathBuf::from(format!("part{}/group{folder}/file{number}.txt", folder / 10))
}

/// A text of 0.5 to 8 kB, in lines.
fn text(number: usize) -> String {
    let mut numbers = Numbers(number as u64 + 1);
    let lines = 10 + numbers.below(150);
    let mut text = format!("file {number}\n");
    for line in 0..lines {
        text += &line.to_string();
        for _ in 0..3 + numbers.below(6) {
            text.push(' ');
            text += WORDS[numbers.below(WORDS.len())];
        }
        text.push('\n');
    }
    text
}

/// A text of 1 to 70 kB in lines, as a source file of a real project has: many are short, few are long.
fn source(number: usize) -> String {
    let mut numbers = Numbers(number as u64 + 77);
    let lines = 20 + numbers.below(40) * numbers.below(40);
    (0..lines).fold(String::new(), |text, _| text + &line(&mut numbers))
}

/// One line of words.
fn line(numbers: &mut Numbers) -> String {
    let words = (0..2 + numbers.below(9))
        .fold(String::new(), |line, _| line + WORDS[numbers.below(WORDS.len())] + " ");
    format!("{:width$}{words}{};\n", "", numbers.below(1_000_000), width = 2 * numbers.below(6))
}

/// A message of some words.
pub fn message(round: usize) -> String {
    let mut numbers = Numbers(round as u64 + 5);
    let words: Vec<_> = (0..5 + numbers.below(30)).map(|_| WORDS[numbers.below(WORDS.len())]).collect();
    format!("Change {round}: {}", words.join(" "))
}

/// Writes the tree with which a history begins.
pub fn write_sources(root: &Path, files: usize) -> Result<()> {
    for number in 0..files {
        let path = root.join(path(number));
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(&path, source(number))?;
    }
    Ok(())
}

/// Changes some files as a check-in of a real project does: some lines are replaced, more are added, and now and then
/// a file gets another name. Some files are changed far more often than others. Returns the paths that changed, with
/// those that are gone.
pub fn develop(root: &Path, paths: &mut [PathBuf], round: usize) -> Result<Vec<PathBuf>> {
    let mut numbers = Numbers(round as u64 + 1_000_003);
    let mut changed = Vec::new();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(paths.len()) * numbers.below(paths.len()) / paths.len();
        let text = fs::read_to_string(root.join(&paths[at]))?;
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        for _ in 0..=numbers.below(3) {
            let start = numbers.below(lines.len() + 1);
            let end = (start + numbers.below(5)).min(lines.len());
            let new: Vec<_> = (0..=numbers.below(7)).map(|_| line(&mut numbers)).collect();
            lines.splice(start..end, new);
        }
        fs::write(root.join(&paths[at]), lines.concat())?;
        changed.push(paths[at].clone());
    }
    if round % 25 == 24 {
        let at = numbers.below(paths.len());
        let renamed = paths[at].with_extension(format!("{round}.txt"));
        fs::rename(root.join(&paths[at]), root.join(&renamed))?;
        changed.extend([std::mem::replace(&mut paths[at], renamed.clone()), renamed]);
    }
    changed.sort();
    changed.dedup();
    Ok(changed)
}

/// Writes a tree of text files under `root`. The files look as if they were written an hour ago.
pub fn write_tree(root: &Path, files: usize) -> Result<()> {
    for number in 0..files {
        let path = root.join(path(number));
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(&path, text(number))?;
        File::options().write(true).open(&path)?.set_modified(an_hour_ago())?;
    }
    Ok(())
}

/// Changes one line of one of `paths`. The round decides which path.
pub fn edit(root: &Path, paths: &[PathBuf], round: usize) -> Result<()> {
    let path = root.join(edited(paths, round));
    let mut text = fs::read(&path)?;
    let middle = text.len() / 2;
    let at = text[middle..].iter().position(|&b| b == b'\n').map_or(text.len(), |end| middle + end + 1);
    text.splice(at..at, format!("changed in round {round}\n").into_bytes());
    fs::write(path, text)?;
    Ok(())
}

/// The path that [`edit`] changes in a round.
pub fn edited(paths: &[PathBuf], round: usize) -> &PathBuf {
    &paths[(round * 7919 + 13) % paths.len()]
}

/// All regular files under `root`, sorted, as paths relative to `root`. The files that Fossil and git keep there are
/// left out.
pub fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(&folder)? {
            let item = item?;
            let name = item.file_name();
            if name == ".git" || name.as_encoded_bytes().starts_with(b".fslckout") {
                continue;
            }
            let kind = item.file_type()?;
            if kind.is_dir() {
                folders.push(item.path());
            } else if kind.is_file() {
                found.push(item.path().strip_prefix(root)?.to_owned());
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Copies the regular files under `from` to `to`.
pub fn copy_tree(from: &Path, to: &Path) -> Result<usize> {
    let files = files(from)?;
    for file in &files {
        let target = to.join(file);
        fs::create_dir_all(target.parent().unwrap_or(to))?;
        fs::copy(from.join(file), &target)?;
        File::options().write(true).open(&target)?.set_modified(an_hour_ago())?;
    }
    Ok(files.len())
}

fn an_hour_ago() -> SystemTime {
    SystemTime::now() - Duration::from_hours(1)
}
