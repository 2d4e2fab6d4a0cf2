//! What forbids a save, in words.

use std::error;
use std::fmt;

use crate::checkout::{Conflicted, Status};
use crate::error::{Error, Kind, Result};
use crate::testing::evidence::TestEvidence;

/// How many names one refusal lists.
const NAMES_MAX: usize = 10;

/// How many lines of a file one refusal lists.
const LINES_MAX: usize = 20;

/// Declared tests without a pass on the tree to be saved.
#[derive(Debug)]
pub struct Untested(pub Vec<String>);

/// Files in which an unfinished merge left conflict marks.
#[derive(Debug)]
pub struct Unresolved(pub Vec<Conflicted>);

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.0.iter().take(NAMES_MAX).map(|file| {
            if file.lines.is_empty() {
                return format!("`{}` (the other side's file, put beside)", file.path.shown());
            }
            let numbers: Vec<String> = file.lines.iter().take(LINES_MAX).map(ToString::to_string).collect();
            let more = file.lines.len().saturating_sub(LINES_MAX);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!("`{}` (lines {}{more})", file.path.shown(), numbers.join(", "))
        });
        f.write_str(&files.collect::<Vec<_>>().join(", "))?;
        match self.0.len().saturating_sub(NAMES_MAX) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

impl error::Error for Unresolved {}

impl fmt::Display for Untested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl error::Error for Untested {}

pub(super) fn refuse_names(status: &Status) -> Result<()> {
    if status.refused.is_empty() {
        return Ok(());
    }
    let mut names: Vec<String> =
        status.refused.iter().take(NAMES_MAX).map(|(name, why)| format!("`{name}` ({why})")).collect();
    if status.refused.len() > NAMES_MAX {
        names.push(format!("and {} more", status.refused.len() - NAMES_MAX));
    }
    Err(Error::new(Kind::Invalid, format!("a check-in cannot hold {}", names.join(", ")))
        .with_hint("Rename, remove or ignore what is named; nothing was saved."))
}

pub(super) fn refuse_conflicted(files: Vec<Conflicted>) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let left =
        if files.iter().any(|file| file.lines.is_empty()) { "there is" } else { "conflict marks stand in" };
    let unresolved = Unresolved(files);
    Err(Error::new(Kind::Invalid, format!("a merge is not finished: {left} {unresolved}"))
        .with_hint("Make of each marked passage what it shall be, and remove the marks. Take what you want from a file that was put beside, and remove it. Then save again.")
        .caused_by(unresolved))
}

/// Refuses tests that have no pass on the tree.
pub(super) fn refuse_untested(tests: &[TestEvidence]) -> Result<()> {
    let missing: Vec<String> = tests.iter().filter(|t| t.pass.is_none()).map(|t| t.test.clone()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = missing.iter().map(|n| format!("`{n}`")).collect();
    let (tests, verb) = if names.len() == 1 { ("test", "has") } else { ("tests", "have") };
    let what = format!("{tests} {} {verb} not passed on these files as they are", names.join(", "));
    Err(Error::new(Kind::Untested, what)
        .with_hint(
            "Run the tests, mend what fails, and save when every test has passed since the last change.",
        )
        .caused_by(Untested(missing)))
}

/// The refusal where there is nothing to save. What is left out may be what was meant.
pub(super) fn unchanged(status: &Status) -> Error {
    let what = "nothing has changed since the last check-in";
    let Some(first) = status.left_out.first() else {
        return Error::new(Kind::Unchanged, what).with_hint("There is nothing to save; edit a file first.");
    };
    let more = match status.left_out.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Error::new(Kind::Unchanged, format!("{what}; left out is {first}{more}"))
        .with_hint("There is nothing to save; edit a file first, or include what is left out.")
}
