//! What a save leaves out, as answers tell it: each path with the rule, and how to take it along.

use schemars::JsonSchema;
use serde::Serialize;

use super::page::json_bytes;
use crate::tree::{LeftOut, Why};

/// How many paths are shown.
const SHOWN_MAX: usize = 30;

/// The most bytes that the shown paths take as JSON.
const BYTES_MAX: usize = 2_000;

/// What is left out, within a result. All of it is absent if nothing is left out.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct LeftOutFiles {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOutFile>,
    /// How many there are, where not all are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out_of: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    take_along: Option<&'static str>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct LeftOutFile {
    path: String,
    why: String,
}

const TAKE_ALONG: &str = "A save leaves these out. To take one along, name it in `include`.";

impl LeftOutFiles {
    pub fn of(all: &[LeftOut]) -> Self {
        let mut bytes = 0;
        let fits = |file: &&LeftOut| {
            bytes += json_bytes(&file.path);
            bytes <= BYTES_MAX
        };
        let shown = all.iter().take(SHOWN_MAX).take_while(fits);
        let left_out: Vec<_> =
            shown.map(|file| LeftOutFile { path: file.path.clone(), why: file.why.to_string() }).collect();
        Self {
            left_out_of: (left_out.len() < all.len()).then_some(all.len()),
            left_out,
            take_along: all.iter().any(|file| file.why.can_be_included()).then_some(TAKE_ALONG),
        }
    }
}

/// What to know of a file that a save leaves out.
pub(super) fn note(why: Why) -> String {
    let how = if why.can_be_included() { "; to take it along, name it in `include`" } else { "" };
    format!("A save leaves this file out ({why}){how}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(path: &str, count: usize) -> Vec<LeftOut> {
        vec![LeftOut { path: path.to_owned(), why: Why::DotFile }; count]
    }

    #[test]
    fn g11_what_is_shown_has_a_bound_and_says_so() {
        let shown = |all: &[LeftOut]| {
            let of = LeftOutFiles::of(all);
            (of.left_out.len(), of.left_out_of, of.take_along.is_some())
        };
        assert_eq!(shown(&[]), (0, None, false));
        assert_eq!(shown(&files(".env", 30)), (30, None, true));
        assert_eq!(shown(&files(".env", 31)), (30, Some(31), true));
        assert_eq!(shown(&files(&"x".repeat(900), 3)), (2, Some(3), true));
        assert_eq!(shown(&files(&"x".repeat(9_000), 1)), (0, Some(1), true));
        assert_eq!(shown(&[LeftOut { path: ".git/".into(), why: Why::DataOf("git") }]), (1, None, false));
    }
}
