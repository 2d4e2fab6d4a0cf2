//! Fields that hold lists: paths, the logins that an agent hears, and what wakes it. A refusal names the place of what
//! does not fit, as in `wake[1].branch`.

use serde_json::{Map, Value};

use super::declare::PATH_BYTES_MAX;
use crate::error::Result;
use crate::name::{Branch, TreePath, User};

/// What is wrong with a list of logins.
pub(super) fn logins_misfit(field: &str, given: &[Value], count_max: usize) -> Option<String> {
    count_misfit(field, given.len(), count_max).or_else(|| {
        given.iter().enumerate().find_map(|(at, login)| {
            let name = format!("{field}[{at}]");
            let Value::String(text) = login else { return Some(wants_text(&name, login)) };
            if let Err(e) = User::parse(text) {
                return Some(format!("field `{name}`: {e}"));
            }
            given[..at].contains(login).then(|| format!("field `{name}` repeats `{text}`"))
        })
    })
}

/// What is wrong with a list of paths. A folder may end in a slash.
pub(super) fn paths_misfit(field: &str, given: &[Value], count_max: usize) -> Option<String> {
    count_misfit(field, given.len(), count_max).or_else(|| {
        given.iter().enumerate().find_map(|(at, path)| {
            let name = format!("{field}[{at}]");
            let Value::String(text) = path else { return Some(wants_text(&name, path)) };
            if text.len() > PATH_BYTES_MAX {
                return Some(format!("field `{name}` has more than {PATH_BYTES_MAX} bytes"));
            }
            if let Err(e) = listed_path(text) {
                return Some(format!("field `{name}`: {e}"));
            }
            given[..at].contains(path).then(|| format!("field `{name}` repeats an earlier one"))
        })
    })
}

/// A path as a list has it.
///
/// # Errors
/// Those of [`TreePath::parse`].
pub(super) fn listed_path(text: &str) -> Result<TreePath> {
    TreePath::parse(text.strip_suffix('/').unwrap_or(text))
}

/// What is wrong with a list of events that wake an agent.
pub(super) fn wake_misfit(field: &str, given: &[Value], count_max: usize) -> Option<String> {
    count_misfit(field, given.len(), count_max).or_else(|| {
        given.iter().enumerate().find_map(|(at, event)| {
            let name = format!("{field}[{at}]");
            let Value::Object(parts) = event else {
                return Some(format!("field `{name}` must be an object, not {}", type_of(event)));
            };
            event_misfit(&name, parts).or_else(|| {
                given[..at].contains(event).then(|| format!("field `{name}` repeats an earlier one"))
            })
        })
    })
}

fn event_misfit(name: &str, parts: &Map<String, Value>) -> Option<String> {
    if let Some(other) = parts.keys().find(|part| !["on", "branch"].contains(&part.as_str())) {
        let shown: String = other.chars().take(60).collect();
        return Some(format!("`{name}` has no field `{shown}`; it takes on and branch"));
    }
    let branch = parts.get("branch");
    match parts.get("on").map(Value::as_str) {
        None => Some(format!("field `{name}.on` is missing: post or check-in")),
        Some(Some("post")) => branch.map(|_| format!("field `{name}.branch` goes with check-in only")),
        Some(Some("check-in")) => match branch {
            None => {
                Some(format!("field `{name}.branch` is missing: the branch that the check-in arrives on"))
            }
            Some(Value::String(text)) => {
                Branch::parse(text).err().map(|e| format!("field `{name}.branch`: {e}"))
            }
            Some(other) => Some(wants_text(&format!("{name}.branch"), other)),
        },
        Some(_) => Some(format!("field `{name}.on` must be one of post, check-in")),
    }
}

fn count_misfit(field: &str, count: usize, count_max: usize) -> Option<String> {
    if count == 0 {
        return Some(format!("field `{field}` is an empty list; leave it out instead"));
    }
    (count > count_max).then(|| format!("field `{field}` has {count} entries, over the limit of {count_max}"))
}

fn wants_text(name: &str, value: &Value) -> String {
    format!("field `{name}` must be a string, not {}", type_of(value))
}

/// What a value is, in words.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wake(given: &Value) -> String {
        wake_misfit("wake", given.as_array().expect("a list"), 3).unwrap_or_default()
    }

    #[test]
    fn events_that_fit_are_taken() {
        assert_eq!(wake(&json!([{"on": "post"}, {"on": "check-in", "branch": "trunk"}])), "");
        assert_eq!(wake(&json!([{"branch": "agent/x", "on": "check-in"}])), "");
    }

    #[test]
    fn what_does_not_fit_in_an_event_is_named_by_its_place() {
        for (given, place) in [
            (json!([]), "`wake`"),
            (json!(["post"]), "`wake[0]`"),
            (json!([{}]), "`wake[0].on`"),
            (json!([{"on": 1}]), "`wake[0].on`"),
            (json!([{"on": "checkin"}]), "`wake[0].on`"),
            (json!([{"on": "post", "branch": "trunk"}]), "`wake[0].branch`"),
            (json!([{"on": "post"}, {"on": "check-in"}]), "`wake[1].branch`"),
            (json!([{"on": "post"}, {"on": "check-in", "branch": null}]), "`wake[1].branch`"),
            (json!([{"on": "post"}, {"on": "check-in", "branch": "a b"}]), "`wake[1].branch`"),
            (json!([{"on": "post"}, {"on": "check-in", "branch": "-R"}]), "`wake[1].branch`"),
            (json!([{"on": "post", "when": "now"}]), "`wake[0]`"),
            (json!([{"on": "post"}, {"on": "post"}]), "`wake[1]`"),
            (json!([1, 2, 3, 4]), "limit of 3"),
        ] {
            let words = wake(&given);
            assert!(words.contains(place), "{given}: {words}");
        }
    }

    #[test]
    fn p13_a_path_that_is_none_is_named_by_its_place() {
        let paths = |given: Value| paths_misfit("include", given.as_array().expect("a list"), 3);
        assert_eq!(paths(json!([".env", "target/", "a b/*"])), None);
        for (given, place) in [
            (json!([]), "`include`"),
            (json!(["a", 5]), "`include[1]`"),
            (json!(["../a"]), "`include[0]`"),
            (json!(["/etc/passwd"]), "`include[0]`"),
            (json!([".fslckout"]), "`include[0]`"),
            (json!(["/"]), "`include[0]`"),
            (json!(["a\u{0}"]), "`include[0]`"),
            (json!(["a", "a"]), "`include[1]` repeats"),
            (json!(["a", "b", "c", "d"]), "limit of 3"),
            (json!(["a".repeat(5_000)]), "4096 bytes"),
        ] {
            let words = paths(given).expect("refused");
            assert!(words.contains(place), "{words}");
        }
    }

    #[test]
    fn a05_a_login_that_could_forge_a_card_is_named_by_its_place() {
        let logins = |given: Value| logins_misfit("hears", given.as_array().expect("a list"), 3);
        assert_eq!(logins(json!(["ann", "jos\u{e9}"])), None);
        for (given, place) in [
            (json!(["ann", "bob\nU boss"]), "`hears[1]`"),
            (json!(["bob smith"]), "`hears[0]`"),
            (json!(["ann", 5]), "`hears[1]`"),
            (json!(["ann", "bob", "ann"]), "`hears[2]` repeats"),
            (json!([]), "`hears`"),
        ] {
            let words = logins(given).expect("refused");
            assert!(words.contains(place) && !words.contains('\n'), "{words}");
        }
    }
}
