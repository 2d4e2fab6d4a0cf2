//! The tests that a tree declares in `ocx-tests.json`: which there are, not whether they pass.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Kind, Result};
use crate::name::Span;

/// Where a tree declares its tests, from its root.
pub const FILE: &str = "ocx-tests.json";

const DEFAULT_LIMIT: Span = Span::minutes(10);
const MAX_LIMIT: Span = Span::minutes(6 * 60);
const MAX_BYTES: usize = 256 * 1024;
const MAX_TESTS: usize = 100;
const MAX_NAME: usize = 60;
const MAX_COMMAND: usize = 32 * 1024;

/// One declared test: a name, a shell command and a time limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// What the test is called; unique in its file.
    pub name: String,
    /// The command, as a shell reads it.
    pub command: String,
    /// How long it may run.
    pub limit: Span,
}

/// The declared tests of a tree, in the order of the file.
///
/// ```
/// use ocx::testing::Declared;
/// let declared = Declared::parse(br#"{"tests":[{"name":"unit","command":"cargo test","timeout":"5m"}]}"#)?;
/// assert_eq!(declared.tests()[0].command, "cargo test");
/// assert!(Declared::parse(b"{}")?.tests().is_empty());
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declared {
    tests: Vec<Test>,
}

impl Declared {
    /// Reads the content of `ocx-tests.json`. A tree without the file has `Declared::default()`.
    ///
    /// # Errors
    /// `Invalid` or `TooLarge`, naming the test and the field that is wrong.
    pub fn parse(content: &[u8]) -> Result<Self> {
        if content.len() > MAX_BYTES {
            let what = format!("`{FILE}` has {} bytes, more than {MAX_BYTES}", content.len());
            return Err(
                Error::new(Kind::TooLarge, what).with_hint("Move long commands into scripts in the tree.")
            );
        }
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let json = |e: serde_json::Error| wrong(&e.to_string()).caused_by(e);
        objects(&serde_json::from_slice(content).map_err(json)?)?;
        let file: File = serde_json::from_slice(content).map_err(json)?;
        if file.tests.len() > MAX_TESTS {
            return Err(wrong(&format!("{} tests, more than {MAX_TESTS}", file.tests.len())));
        }
        let tests = file.tests.into_iter().enumerate().map(check).collect::<Result<Vec<_>>>()?;
        let mut seen = BTreeSet::new();
        match tests.iter().find(|test| !seen.insert(&test.name)) {
            Some(twice) => Err(wrong(&format!("two tests are named `{}`", twice.name))),
            None => Ok(Self { tests }),
        }
    }

    /// The tests, in the order of the file.
    #[must_use]
    pub fn tests(&self) -> &[Test] {
        &self.tests
    }

    /// The test called `name`.
    ///
    /// # Errors
    /// `NotFound`, with the names that there are.
    pub fn test(&self, name: &str) -> Result<&Test> {
        self.tests.iter().find(|test| test.name == name).ok_or_else(|| {
            let names = self.tests.iter().map(|test| format!("`{}`", test.name)).collect::<Vec<_>>();
            let hint = match names.as_slice() {
                [] => format!("Declare it in `{FILE}`."),
                some => format!("Name one of {}.", some.join(", ")),
            };
            Error::new(Kind::NotFound, format!("no test `{}`", name.escape_debug())).with_hint(hint)
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    tests: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    command: String,
    timeout: Option<String>,
}

/// Refuses lists where objects belong: the derived readers would take their items for fields.
fn objects(file: &Value) -> Result<()> {
    let tests = file.get("tests").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if file.is_object() && tests.iter().all(Value::is_object) {
        Ok(())
    } else {
        Err(wrong("not an object with a list of objects"))
    }
}

fn check((index, line): (usize, Line)) -> Result<Test> {
    let Line { name, command, timeout } = line;
    if name.trim() != name || name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        let what = format!("test {} has the name `{}`", index + 1, name.escape_debug());
        return Err(wrong(&what)
            .with_hint(format!("A name has 1 to {MAX_NAME} bytes, one line, without spaces around it.")));
    }
    if command.trim().is_empty() {
        return Err(wrong(&format!("test `{name}` has an empty command")));
    }
    if command.len() > MAX_COMMAND || command.contains('\0') {
        return Err(wrong(&format!(
            "the command of test `{name}` is over {MAX_COMMAND} bytes or holds a NUL"
        )));
    }
    let limit = timeout.as_deref().map_or(Ok(DEFAULT_LIMIT), str::parse::<Span>).map_err(|e| {
        let hint = e.hint().unwrap_or_default().to_owned();
        wrong(&format!("the timeout of test `{name}`: {e}")).with_hint(hint)
    })?;
    if limit > MAX_LIMIT || limit.duration().is_zero() {
        let what = format!("the timeout of test `{name}` is {limit}");
        return Err(wrong(&what).with_hint(format!("It is more than nothing and at most {MAX_LIMIT}.")));
    }
    Ok(Test { name, command, limit })
}

fn wrong(what: &str) -> Error {
    let shape = r#"{"tests":[{"name":"unit","command":"cargo test","timeout":"10m"}]}"#;
    Error::new(Kind::Invalid, format!("`{FILE}`: {what}"))
        .with_hint(format!("Edit `{FILE}` so that it has the shape {shape}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g04_no_declared_tests_are_told_from_a_broken_file() {
        for none in ["{}", r#"{"tests":[]}"#] {
            assert_eq!(Declared::parse(none.as_bytes()).unwrap(), Declared::default());
        }
        let test = |fields: &str| format!(r#"{{"tests":[{{{fields}}}]}}"#);
        let refused = [
            (String::new(), "EOF"),
            ("tests: unit".into(), "expected"),
            ("[]".into(), "not an object"),
            (r#"{"tests":[["a","x",null]]}"#.into(), "not an object"),
            (r#"{"test":[]}"#.into(), "unknown field `test`"),
            (r#"{"tests":null}"#.into(), "null"),
            (test(r#""name":"a""#), "missing field `command`"),
            (test(r#""name":"a","command":"""#), "`a` has an empty command"),
            (test(r#""name":"a","command":" \n""#), "`a` has an empty command"),
            (test(r#""name":"","command":"x""#), "test 1 has the name"),
            (test(r#""name":"a\nb","command":"x""#), r"`a\nb`"),
            (test(r#""name":"a","command":"x","retries":3"#), "unknown field `retries`"),
            (test(r#""name":"a","command":"x","timeout":600"#), "invalid type"),
            (test(r#""name":"a","command":"x","timeout":"soon""#), "`soon`"),
            (test(r#""name":"a","command":"x","timeout":"7h""#), "`a` is 7h"),
            (test(r#""name":"a","command":"x","timeout":"0s""#), "`a` is 0ms"),
            (r#"{"tests":[{"name":"a","command":"x"},{"name":"a","command":"y"}]}"#.into(), "two tests"),
        ];
        for (content, names) in refused {
            let e = Declared::parse(content.as_bytes()).unwrap_err();
            assert_eq!(e.kind(), Kind::Invalid, "{content}");
            assert!(e.to_string().contains(names), "{content}: {e}");
            assert!(e.hint().is_some());
        }
    }

    #[test]
    fn a_missing_timeout_is_ten_minutes() {
        let declared = Declared::parse(br#"{"tests":[{"name":"a","command":"x"}]}"#).unwrap();
        assert_eq!(declared.tests()[0].limit, "10m".parse().unwrap());
    }

    #[test]
    fn an_unknown_test_is_refused_with_the_names_there_are() {
        let declared = Declared::parse(br#"{"tests":[{"name":"unit","command":"x"}]}"#).unwrap();
        let e = declared.test("lint").unwrap_err();
        assert_eq!(e.kind(), Kind::NotFound);
        assert_eq!(e.hint(), Some("Name one of `unit`."));
    }
}
