//! Turns the outcome of a call into C into the one error.
//!
//! Fossil says only in words what went wrong. The kind is read from these words here and nowhere else, and the
//! message keeps them.

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::session::CallOutcome;
use crate::error::{Error, Kind};

/// Words of Fossil or SQLite with their kind and hint. The first row that fits counts.
const WORDS: &[(&str, Kind, Option<&str>)] = &[
    ("database is locked", Kind::Busy, Some("Another process is writing to it; call again in a moment.")),
    ("disk is full", Kind::DiskFull, Some("Free some disk space and call again; nothing was changed.")),
    ("disk I/O error", Kind::Io, Some("Check the disk and its free space; nothing was changed.")),
    (
        "unable to open database file",
        Kind::Io,
        Some("Check that the file's folder can be written to; nothing was changed."),
    ),
    ("interrupted", Kind::Cancelled, Some("The program ends; nothing was changed.")),
    ("malformed", Kind::Corrupt, Some("Restore the file from a clone, or rebuild a copy of it.")),
    ("file is not a database", Kind::Foreign, Some("Name a Fossil repository file.")),
    ("not a valid bundle", Kind::Foreign, Some("Name a Fossil bundle.")),
    ("not a valid repository", Kind::Foreign, Some("Name a Fossil repository file.")),
    ("repository does not exist", Kind::NotFound, Some("Check the path, or make a repository there first.")),
    ("permission denied", Kind::Denied, Some(Error::ON_DISK)),
    ("readonly database", Kind::Denied, Some(Error::ON_DISK)),
    ("no such user", Kind::NotFound, Some("Name a login of this repository.")),
    ("unknown command", Kind::Invalid, None),
    ("unrecognized command-line option", Kind::Invalid, None),
    ("Usage:", Kind::Invalid, None),
    ("already exists", Kind::Exists, Some("Name a path that does not exist yet.")),
    ("is not empty", Kind::Exists, Some("Name an empty folder.")),
    ("already an open tree", Kind::Exists, Some("Name a folder outside of every checkout.")),
    ("nothing has changed", Kind::Unchanged, None),
    ("Would fork", Kind::WouldFork, Some("Update the checkout first.")),
    ("closed leaf", Kind::Closed, Some("Choose an open branch.")),
    ("no such check-in", Kind::NotFound, None),
    ("not found", Kind::NotFound, None),
    ("cannot resolve", Kind::NotFound, None),
    ("delta loop", Kind::Corrupt, Some("Restore the file from a clone.")),
    ("specify the repository", Kind::NotFound, Some("Name a repository file, or call from a checkout.")),
    ("claims to expand", Kind::TooLarge, None),
    (
        "does not arrive as the server says",
        Kind::Refused,
        Some("Ask who runs the server; nothing of this reply was stored."),
    ),
    ("a password is needed", Kind::LoginFailed, Some("Give the login and its password.")),
];

/// What Fossil says of a file that it cannot read as a repository, whatever the cause.
const NOT_VALID: &str = "not a valid repository: ";

/// Returns the error for a call that left Fossil's code. `what` says what was attempted.
pub(super) fn error_of(what: &str, outcome: &CallOutcome) -> Error {
    let words = words_of(outcome);
    if outcome.out_of_memory {
        return Error::new(
            Kind::TooLarge,
            format!("{what}: Fossil's code ran out of its memory limit: {words}"),
        )
        .with_hint("Work on smaller content, or give the engine a higher limit.");
    }
    if outcome.panicked {
        return Error::new(Kind::Internal, format!("{what}: Fossil's code stopped itself: {words}"))
            .with_hint("Nothing was changed and other calls go on; please report these words.");
    }
    if let Some(path) = words.split(NOT_VALID).nth(1)
        && let Some((kind, why, hint)) = why_not_valid(path)
    {
        return Error::new(kind, format!("{what}: {words}: {why}")).with_hint(hint);
    }
    let row = WORDS.iter().find(|(part, ..)| words.contains(part));
    let (kind, hint) = row.map_or((Kind::Internal, None), |&(_, kind, hint)| (kind, hint));
    let e = Error::new(kind, format!("{what}: {words}"));
    match hint {
        Some(hint) => e.with_hint(hint),
        None => e,
    }
}

/// Finds out whether the file is a repository that is only locked or damaged, and what SQLite says of it.
fn why_not_valid(path: &str) -> Option<(Kind, String, &'static str)> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    let checked = db.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    let (kind, why) = match checked {
        Err(e) if matches!(e.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) => {
            std::fs::File::open(path).ok()?;
            return Some((Kind::Denied, "it can be read but not written".to_owned(), Error::ON_DISK));
        }
        Ok(ok) if ok == "ok" => {
            let is_repository = db.prepare("SELECT rid, rcvid, size, uuid, content FROM blob").is_ok();
            is_repository.then(|| (Kind::Busy, "database is locked".to_owned()))?
        }
        Ok(damage) => (Kind::Corrupt, format!("malformed: {damage}")),
        Err(e) => {
            let e = Error::from(e);
            (e.kind(), e.to_string())
        }
    };
    let word = match kind {
        Kind::Busy => "locked",
        Kind::Corrupt => "malformed",
        _ => return None,
    };
    let hint = WORDS.iter().find(|(part, ..)| part.contains(word)).and_then(|row| row.2)?;
    Some((kind, why, hint))
}

/// Returns what Fossil said, on one line.
fn words_of(outcome: &CallOutcome) -> String {
    let said = if outcome.err.trim().is_empty() { &outcome.out } else { &outcome.err };
    let lines = said.split(['\n', '\r']).map(str::trim).filter(|l| !l.is_empty() && !offers_option(l));
    let line = without_sql(&lines.collect::<Vec<_>>().join("; "));
    if line.is_empty() { format!("it gave no words, exit code {}", outcome.code) } else { line }
}

/// Whether a line offers an option of Fossil's own command, which callers here cannot give.
fn offers_option(line: &str) -> bool {
    line.contains(" (--")
}

/// The words without the SQL that Fossil appends in braces to the words of SQLite.
fn without_sql(words: &str) -> String {
    let start = words.find("Database error: ").and_then(|at| Some(at + words[at..].find(": {")?));
    match (start, words.rfind('}')) {
        (Some(start), Some(end)) if start < end => [&words[..start], &words[end + 1..]].concat(),
        _ => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_sql_nor_options_of_fossils_commands_are_passed_on() {
        for (words, left) in [
            ("Database error: database is locked: {BEGIN IMMEDIATE}", "Database error: database is locked"),
            ("cannot: Database error: no: {SELECT '}'; x}; more", "cannot: Database error: no; more"),
            ("no such file: {x}", "no such file: {x}"),
        ] {
            assert_eq!(without_sql(words), left);
        }
        assert!(offers_option("use the -f (--force) option to override"));
        assert!(!offers_option("directory x is not empty"));
    }
}
