//! The tests that a tree declares in `ocx-tests.json`: which there are, not whether they pass.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::declaration::{RunsIn, Test, Variable};
use crate::error::{Error, Kind, Result};
use crate::name::{Span, TreePath};
use crate::process::Environment;

/// Where a tree declares its tests, from its root.
pub const FILE: &str = "ocx-tests.json";

const MAX_LIMIT: Span = Span::minutes(6 * 60);
const MAX_BYTES: usize = 256 * 1024;
const MAX_TESTS: usize = 100;
const MAX_NAME: usize = 60;
const MAX_COMMAND: usize = 32 * 1024;
const MAX_LIST: usize = 50;

/// What may stand beside the list of tests, for all of them. A test that has the field too is not concerned.
const SHARED: [&str; 7] = ["with", "env", "fetch", "network", "fresh", "nested", "place"];

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
        let file = read(serde_json::from_slice(content).map_err(json)?)?;
        let tests: Vec<Line> =
            file.into_iter().map(|test| serde_json::from_value(test).map_err(json)).collect::<Result<_>>()?;
        if tests.len() > MAX_TESTS {
            return Err(wrong(&format!("{} tests, more than {MAX_TESTS}", tests.len())));
        }
        let tests = tests.into_iter().enumerate().map(check).collect::<Result<Vec<_>>>()?;
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
struct Line {
    name: String,
    command: String,
    timeout: Option<String>,
    #[serde(default)]
    with: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    fetch: Option<String>,
    #[serde(default)]
    network: bool,
    #[serde(default)]
    fresh: bool,
    #[serde(default)]
    nested: bool,
    #[serde(default)]
    place: RunsIn,
}

/// Returns the tests of the file, each with the fields that the file declares for all. Refuses lists where objects
/// belong: the derived readers would take their items for fields.
fn read(file: Value) -> Result<Vec<Value>> {
    let Value::Object(mut file) = file else { return Err(wrong("not an object with a list of objects")) };
    let tests = match file.remove("tests") {
        None => Vec::new(),
        Some(Value::Array(tests)) => tests,
        Some(other) => return Err(wrong(&format!("`tests` is {}, not a list", kind(&other)))),
    };
    if let Some(unknown) = file.keys().find(|key| !SHARED.contains(&key.as_str())) {
        let known = SHARED.map(|name| format!("`{name}`")).join(", ");
        return Err(wrong(&format!("unknown field `{unknown}`, expected `tests` or one of {known}")));
    }
    let with_shared = |test: Value| match test {
        Value::Object(own) => {
            let mut all: Map<String, Value> = file.clone();
            all.extend(own);
            Ok(Value::Object(all))
        }
        _ => Err(wrong("not an object with a list of objects")),
    };
    tests.into_iter().map(with_shared).collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn check((index, line): (usize, Line)) -> Result<Test> {
    let name = line.name;
    if name.trim() != name || name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        let what = format!("test {} has the name `{}`", index + 1, name.escape_debug());
        return Err(wrong(&what)
            .with_hint(format!("A name has 1 to {MAX_NAME} bytes, one line, without spaces around it.")));
    }
    check_command(&name, "command", &line.command)?;
    if let Some(fetch) = &line.fetch {
        check_command(&name, "fetch command", fetch)?;
    }
    let mut test = Test::new(name, line.command);
    if let Some(timeout) = &line.timeout {
        test.limit = limit(&test.name, timeout)?;
    }
    if line.with.len() > MAX_LIST || line.env.len() > MAX_LIST {
        return Err(wrong(&format!("test `{}` names more than {MAX_LIST} paths or variables", test.name)));
    }
    test.with = line.with.iter().map(|path| brought(&test.name, path)).collect::<Result<_>>()?;
    test.env = line.env.iter().map(|text| variable(&test.name, text)).collect::<Result<_>>()?;
    let Line { fetch, network, fresh, nested, place, .. } = line;
    Ok(Test { fetch, network, fresh, nested, place, ..test })
}

fn check_command(test: &str, noun: &str, command: &str) -> Result<()> {
    if command.trim().is_empty() {
        return Err(wrong(&format!("test `{test}` has an empty {noun}")));
    }
    if command.len() > MAX_COMMAND || command.contains('\0') {
        return Err(wrong(&format!(
            "the {noun} of test `{test}` is over {MAX_COMMAND} bytes or holds a NUL"
        )));
    }
    Ok(())
}

fn limit(test: &str, timeout: &str) -> Result<Span> {
    let limit: Span = timeout.parse().map_err(|e: Error| {
        let hint = e.hint().unwrap_or_default().to_owned();
        wrong(&format!("the timeout of test `{test}`: {e}")).with_hint(hint)
    })?;
    if limit > MAX_LIMIT || limit.duration().is_zero() {
        let what = format!("the timeout of test `{test}` is {limit}");
        return Err(wrong(&what).with_hint(format!("It is more than nothing and at most {MAX_LIMIT}.")));
    }
    Ok(limit)
}

/// A path of `with`: below the root of the checkout, and not Fossil's own.
fn brought(test: &str, path: &str) -> Result<TreePath> {
    TreePath::parse(path.strip_suffix('/').unwrap_or(path)).map_err(|e| {
        wrong(&format!("`with` of test `{test}`: {e}"))
            .with_hint("Give paths from the root of the checkout, such as `node_modules`.")
    })
}

/// A variable of `env`: `NAME` to hand on, or `NAME=value`.
fn variable(test: &str, given: &str) -> Result<Variable> {
    let (name, value) = match given.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (given, None),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let well_formed =
        !name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit());
    if !well_formed || value.as_ref().is_some_and(|value| value.contains('\0')) {
        return Err(wrong(&format!("`env` of test `{test}` has `{}`", given.escape_debug()))
            .with_hint("Give `NAME` for a variable to hand on, or `NAME=value`."));
    }
    Environment::may_declare(name, value.is_some()).map_err(|why| {
        wrong(&format!("`env` of test `{test}` names `{name}`, which {why}"))
            .with_hint("A test gets no secrets and none of OCX's own variables. Leave it out.")
    })?;
    Ok(Variable { name: name.to_owned(), value })
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
