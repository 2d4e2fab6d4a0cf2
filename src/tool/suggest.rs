//! The name that was probably meant: for unknown tools, fields, tests and paths.

use super::declare::Field;

/// Returns the candidate nearest to `given`, or nothing if none is near.
///
/// ```
/// assert_eq!(ocx::tool::suggest::nearest("file_path", ["path", "old"]), Some("path"));
/// assert_eq!(ocx::tool::suggest::nearest("ocx_reed", ["ocx_read", "ocx_edit"]), Some("ocx_read"));
/// assert_eq!(ocx::tool::suggest::nearest("zebra", ["path", "old"]), None);
/// ```
#[must_use]
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = plain(given);
    candidates
        .into_iter()
        .filter_map(|c| Some((distance_within(&given, &plain(c))?, c)))
        .min_by_key(|&(d, _)| d)
        .map(|(_, c)| c)
}

/// The field that `given` probably names, by its own name or by what other programs call it.
pub(super) fn field<'a>(given: &str, fields: impl Iterator<Item = &'a Field>) -> Option<&'a Field> {
    let fields: Vec<&Field> = fields.collect();
    let named = |name: &str| fields.iter().copied().find(|f| f.name == name);
    let elsewhere = || called(given, &FIELDS_ELSEWHERE).find_map(named);
    named(given).or_else(elsewhere).or_else(|| named(nearest(given, fields.iter().map(|f| f.name))?))
}

/// The tool that `given` probably names, by its own name or by what other programs call it.
pub(super) fn tool<'a>(given: &str, tools: &[&'a str]) -> Option<&'a str> {
    let bare = |name: &'a str| name.trim_start_matches("ocx_");
    let named = |name: &str| tools.iter().copied().find(|tool| bare(tool) == name);
    let own = given.rsplit([':', '/', '.']).next().unwrap_or(given).to_lowercase();
    let own =
        ["mcp__ocx__", "ocx_", "ocx-"].iter().fold(&own[..], |own, prefix| own.trim_start_matches(prefix));
    let elsewhere = || called(own, &TOOLS_ELSEWHERE).find_map(named);
    named(own).or_else(elsewhere).or_else(|| named(nearest(own, tools.iter().copied().map(bare))?))
}

/// What other programs call a field, after the name that it has here.
const FIELDS_ELSEWHERE: [(&str, &[&str]); 13] = [
    ("path", &["file", "filename", "target", "uri", "folder", "directory", "dir"]),
    ("text", &["query", "pattern", "search", "string", "regex", "content", "message", "body"]),
    ("old", &["search", "find", "before", "original"]),
    ("new", &["replace", "replacement", "with", "after", "content", "contents", "text", "insert"]),
    ("from", &["line", "offset", "start", "startline", "linenumber"]),
    ("checkin", &["commit", "hash", "revision", "version", "sha", "rev", "ref"]),
    ("name", &["test", "file", "filename", "path"]),
    ("page", &["name", "title", "path"]),
    ("title", &["message", "comment", "summary", "subject"]),
    ("note", &["comment", "message", "reason", "text"]),
    ("to", &["post", "replyto", "thread", "parent", "hash"]),
    ("verdict", &["result", "status", "outcome"]),
    ("content", &["data", "bytes", "base64"]),
];

/// What other programs call a tool, after the name that it has here.
const TOOLS_ELSEWHERE: [(&str, &[&str]); 6] = [
    ("context", &["ls", "listfiles", "listdirectory", "gitstatus", "tree"]),
    ("find", &["grep", "ripgrep", "rg", "search", "searchfiles", "searchtext"]),
    ("read", &["cat", "view", "openfile", "getfile", "showfile"]),
    ("edit", &["write", "writefile", "createfile", "strreplace", "replace", "applypatch", "patch"]),
    ("test", &["pytest", "runcheck", "check"]),
    ("save", &["commit", "gitcommit", "push", "gitpush", "checkin", "submit"]),
];

/// The names here of what is called `given` elsewhere.
fn called(given: &str, table: &'static [(&str, &[&str])]) -> impl Iterator<Item = &'static str> {
    let given = plain(given);
    table.iter().filter(move |(_, names)| names.contains(&given.as_str())).map(|(here, _)| *here)
}

/// Case and the ways of joining words don't count.
fn plain(name: &str) -> String {
    name.chars()
        .take(200)
        .filter(|c| !matches!(c, '_' | '-' | '.' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns how far apart two names are, or nothing if they are not near. A word within the other counts as near.
fn distance_within(given: &str, candidate: &str) -> Option<usize> {
    let allowed = 1 + candidate.chars().count() / 4;
    let distance = strsim::levenshtein(given, candidate);
    if distance <= allowed {
        return Some(distance);
    }
    let holds = |long: &str, short: &str| short.len() >= 3 && long.contains(short);
    (holds(given, candidate) || holds(candidate, given)).then_some(allowed + distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_wins_over_the_first() {
        assert_eq!(nearest("tesst", ["text", "test"]), Some("test"));
    }
}
