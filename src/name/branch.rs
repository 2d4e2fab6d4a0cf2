//! The name of a branch.

use super::User;
use super::rule::{look_alike, refused, text_value};
use crate::error::Result;

/// The longest branch name, in bytes.
const MAX: usize = 120;

/// Characters that Fossil, a URL, a shell or a glob reads as more than themselves.
const UNSAFE: &str = "\"'`\\<>[]*?:;|&$#%";

/// A branch name that Fossil can only read as a branch name.
///
/// ```
/// use ocx::name::Branch;
/// assert!(Branch::parse("agent/claude-1a2b3c4d").is_ok());
/// assert!(Branch::parse("facade").is_err()); // Fossil would look for an artifact
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch(Box<str>);

impl Branch {
    /// Takes a branch name.
    ///
    /// # Errors
    /// `Invalid`, naming the rule: 1 to 120 bytes, printable, no space, none of the characters that
    /// Fossil or a shell treats specially, no leading dash, no empty part between slashes, and
    /// nothing that reads as a hash, a date or a special word.
    pub fn parse(text: &str) -> Result<Self> {
        let Some((rule, hint)) = broken_rule(text) else { return Ok(Self(text.into())) };
        Err(refused("branch name", text, rule, hint))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `trunk`, the main branch.
    #[must_use]
    pub fn is_trunk(&self) -> bool {
        &*self.0 == "trunk"
    }

    /// Whether this is a working branch of that user's own: `agent/USER-` and eight hex digits.
    #[must_use]
    pub fn is_working_branch_of(&self, user: &User) -> bool {
        is_working_branch(&self.0, user)
    }
}

text_value!(Branch);

/// Whether a stored name is that of a working branch of the user's own.
pub(crate) fn is_working_branch(name: &str, user: &User) -> bool {
    name.strip_prefix("agent/")
        .and_then(|rest| rest.strip_prefix(user.as_str())?.strip_prefix('-'))
        .is_some_and(|digits| digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

pub(super) fn broken_rule(text: &str) -> Option<(String, &'static str)> {
    let plain = "Use letters, digits, `-`, `_`, `.` and `/`.";
    let fits =
        |c: char| (c.is_ascii_graphic() && !UNSAFE.contains(c)) || (!c.is_ascii() && c.is_alphanumeric());
    if text.is_empty() {
        return Some(("is empty".into(), "Give a name of 1 to 120 bytes."));
    }
    if text.len() > MAX {
        return Some((format!("is {} bytes long", text.len()), "Give a name of 1 to 120 bytes."));
    }
    if let Some(c) = text.chars().find(|&c| !fits(c)) {
        return Some((format!("holds `{}`", super::shown::shown(c.to_string().as_bytes())), plain));
    }
    if text.starts_with('-') {
        return Some(("begins with a dash, as an option does".into(), "Begin with a letter."));
    }
    if text.split('/').any(str::is_empty) {
        return Some(("has an empty part beside a slash".into(), "Put a name on both sides of each slash."));
    }
    look_alike(text).map(|why| (why.to_owned(), "Add a word, as in `fix/NAME`."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn plain_names_are_taken() {
        for text in
            ["trunk", "agent/bob-1a2b3c4d", "fix-12", "v2.0_rc", "abc", "Ärger", "2024-05-x", "decade-2"]
        {
            assert_eq!(Branch::parse(text).unwrap().as_str(), text);
        }
        assert!(Branch::parse("trunk").unwrap().is_trunk());
    }

    #[test]
    fn names_that_fossil_reads_otherwise_are_refused() {
        let words = ["tip", "Tip", "current", "prev", "previous", "next", "ckout", "root:x", "merge-in:x"];
        let likes =
            ["beef", "DECADE", "20240102", "2024-01-02", "2024-01-02-fix", "20240102T", "20240102030405Z"];
        let forms = ["tag:x", "rid:1", "x:2024-01-02", "[x]", "start:x", "date:now"];
        for text in words.iter().chain(&likes[..5]).chain(&likes[6..]).chain(&forms) {
            assert_eq!(Branch::parse(text).unwrap_err().kind(), Kind::Invalid, "{text}");
        }
        assert!(Branch::parse(likes[5]).is_ok());
    }

    #[test]
    fn names_that_do_not_fit_a_tag_card_are_refused() {
        for text in
            ["", "a b", "a\nb", "a\tb", "-x", "a\\sb", "/x", "x/", "a//b", "a\u{a0}b", "a\u{200b}b", "x*"]
        {
            assert_eq!(Branch::parse(text).unwrap_err().kind(), Kind::Invalid, "{text:?}");
        }
        assert!(Branch::parse(&"n".repeat(120)).is_ok());
        assert!(Branch::parse(&"n".repeat(121)).is_err());
    }

    #[test]
    fn a_refusal_names_the_branch_and_the_rule() {
        let e = Branch::parse("facade").unwrap_err();
        assert!(e.to_string().contains("`facade` looks like an artifact hash"), "{e}");
        assert!(e.hint().is_some());
    }

    #[test]
    fn a_working_branch_is_own_by_its_whole_name() {
        let user = User::parse("claude").unwrap();
        assert!(is_working_branch("agent/claude-0a1b2c3d", &user));
        for other in ["agent/claude-2-0a1b2c3d", "agent/claude-0a1b2c3", "agent/bob-0a1b2c3d", "trunk"] {
            assert!(!is_working_branch(other, &user), "{other}");
        }
    }
}
