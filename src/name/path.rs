//! The path of a file in a tree.

use std::borrow::Borrow;
use std::sync::Arc;

use super::rule::{refused, text_value};
use super::shown::shown;
use crate::error::Result;

/// How the names of OCX's own half-written files begin. No part of a tree path may begin so.
pub const TEMP_PREFIX: &str = ".ocx-tmp-";

/// The longest path in bytes, and the longest part of one that common disks can hold.
const MAX: usize = 1000;
const PART_MAX: usize = 255;

/// The path of a file in a tree: relative, parts separated by `/`, meaning the same to Fossil, to
/// the disk and in every tool.
///
/// Glob characters and a leading dash are plain parts of a name. Paths sort by their bytes, as the
/// `F` cards of a manifest do. Cheap to clone.
///
/// ```
/// use ocx::name::TreePath;
/// assert_eq!(TreePath::parse("src/main.rs")?.file_name(), "main.rs");
/// assert!(TreePath::parse("../main.rs").is_err());
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(Arc<str>);

impl TreePath {
    /// Takes a path that a new file may have.
    ///
    /// # Errors
    /// `Invalid`, naming the rule that the path breaks. The rules are those of [`parse_stored`](Self::parse_stored).
    /// Also: no control character, no character that Fossil cannot store (beyond U+FFFF, private use), no part that
    /// ends in a dot or a space or is reserved on Windows, no part over 255 bytes, no path over 1,000 bytes.
    pub fn parse(text: &str) -> Result<Self> {
        Self::check(text).map_err(|rule| refused("path", text, rule, hint(text)))
    }

    /// As [`parse`](Self::parse), but the error is only the rule that is broken, as in `is empty`.
    pub(crate) fn check(text: &str) -> Result<Self, String> {
        match broken_safety(text).map(str::to_owned).or_else(|| broken_portability(text)) {
            None => Ok(Self(text.into())),
            Some(rule) => Err(rule),
        }
    }

    /// Takes a path that an older manifest holds. People made names that [`parse`](Self::parse) would refuse today,
    /// and a tree that has them must stay readable.
    ///
    /// # Errors
    /// `Invalid` if the path could leave the tree, touch a checkout database, or be read as another path: absolute,
    /// empty, `.` or `..`, `//`, a trailing slash, a backslash, NUL.
    pub fn parse_stored(text: &str) -> Result<Self> {
        match broken_safety(text) {
            None => Ok(Self(text.into())),
            Some(rule) => Err(refused("path", text, rule, hint(text))),
        }
    }

    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path on one line. What cannot be shown is escaped.
    #[must_use]
    pub fn shown(&self) -> String {
        shown(self.0.as_bytes())
    }

    /// The last part.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// The folder that holds it, unless that is the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(folder, _)| Self(folder.into()))
    }

    /// Whether this is `folder` or lies under it.
    #[must_use]
    pub fn is_within(&self, folder: &Self) -> bool {
        self.0.strip_prefix(&*folder.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

text_value!(TreePath);

impl Borrow<str> for TreePath {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

/// Rules without which a path is dangerous or ambiguous.
fn broken_safety(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("is empty");
    }
    if text.starts_with('/') {
        return Some("is absolute");
    }
    if text.ends_with('/') {
        return Some("ends in a slash");
    }
    text.split('/').find_map(|part| match part {
        "" => Some("holds `//`"),
        "." => Some("has a part `.`"),
        ".." => Some("has a part `..`"),
        _ if part.contains('\\') => Some("holds a backslash"),
        _ if part.contains('\0') => Some("holds a NUL"),
        _ if names_database(part) => Some("is reserved for Fossil's checkout database"),
        _ if has_prefix(part, TEMP_PREFIX) => Some("is reserved for files that are being written"),
        _ => None,
    })
}

/// Rules that keep a name the same for every program and on every system.
fn broken_portability(text: &str) -> Option<String> {
    if text.len() > MAX {
        return Some(format!("is {} bytes long, over {MAX}", text.len()));
    }
    if let Some(c) = text.chars().find(|c| c.is_control()) {
        return Some(format!("holds the control character U+{:04X}", u32::from(c)));
    }
    if let Some(c) = text.chars().find(|&c| !fossil_stores(c)) {
        return Some(format!("holds U+{:04X}, which Fossil cannot store in a name", u32::from(c)));
    }
    text.split('/').find_map(|part| {
        if part.len() > PART_MAX {
            Some(format!("has a part of {} bytes, over {PART_MAX}", part.len()))
        } else if part.ends_with(['.', ' ']) {
            Some("has a part that ends in a dot or a space, which some systems drop".to_owned())
        } else {
            windows_reserved(part).map(|word| format!("has the part `{word}`, reserved on Windows"))
        }
    })
}

/// Whether Fossil's `add` takes this character in a name.
pub(super) fn fossil_stores(c: char) -> bool {
    !matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{fffe}'..)
}

/// Whether a part names a checkout database or a file beside one, in any case and in any folder.
pub(crate) fn names_database(part: &str) -> bool {
    let base =
        ["-wal", "-shm", "-journal"].iter().find_map(|suffix| cut_suffix(part, suffix)).unwrap_or(part);
    [".fslckout", "_FOSSIL_", ".fos"].iter().any(|name| base.eq_ignore_ascii_case(name))
}

/// Returns the part up to the first dot, if Windows keeps that for a device.
fn windows_reserved(part: &str) -> Option<&str> {
    let word = part.split('.').next().unwrap_or(part);
    let device = |w: &str| ["CON", "PRN", "AUX", "NUL"].iter().any(|d| d.eq_ignore_ascii_case(w));
    let serial = |w: &str| {
        w.strip_suffix(|c: char| c.is_ascii_digit())
            .is_some_and(|w| w.eq_ignore_ascii_case("COM") || w.eq_ignore_ascii_case("LPT"))
    };
    (device(word) || serial(word)).then_some(word)
}

fn has_prefix(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

fn cut_suffix<'a>(text: &'a str, suffix: &str) -> Option<&'a str> {
    let at = text.len().checked_sub(suffix.len())?;
    let tail = text.get(at..)?;
    tail.eq_ignore_ascii_case(suffix).then(|| &text[..at])
}

fn hint(text: &str) -> &'static str {
    if text.contains('\\') {
        "Separate folders with `/`."
    } else {
        "Give the path from the root of the checkout, as in `src/main.rs`."
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn refusal(text: &str) -> String {
        let e = TreePath::parse(text).expect_err(text);
        assert_eq!(e.kind(), Kind::Invalid);
        assert!(e.hint().is_some());
        e.to_string()
    }

    #[test]
    fn p03_a_path_cannot_name_a_sibling_folder() {
        assert!(refusal("../co-evil/s").contains("`..`"));
        assert!(refusal("/w/co-evil/s").contains("absolute"));
        let (folder, beside) = (TreePath::parse("co").unwrap(), TreePath::parse("co-evil/s").unwrap());
        assert!(!beside.is_within(&folder));
        assert!(TreePath::parse("co/s").unwrap().is_within(&folder) && folder.is_within(&folder));
    }

    #[test]
    fn p05_checkout_databases_are_reserved_in_any_case_and_folder() {
        let names =
            [".FSLCKOUT-wal", "_fossil_", "dir/_FOSSIL_", ".fslckout", "a/.FslCkOut-JOURNAL", "_FOSSIL_-shm"];
        for text in names.iter().chain(&[".fos", ".fos-wal", "_fossil_/x"]) {
            assert!(refusal(text).contains("checkout database"), "{text}");
            assert!(TreePath::parse_stored(text).is_err());
        }
        for text in
            ["x.fslckout", "_FOSSIL_x", ".fslckout-wal2", "my_FOSSIL_", ".fossil-settings/ignore-glob"]
        {
            assert!(TreePath::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn p07_control_characters_are_refused_and_shown_escaped() {
        assert!(refusal("a\nREADME.md:1:all tests passed").starts_with("path `a\\nREADME.md"));
        for text in ["a\tb", "a\u{7f}", "a\u{85}b", "\u{1b}[31m"] {
            assert!(refusal(text).contains("control character"), "{text:?}");
        }
    }

    #[test]
    fn p08_endings_that_a_layer_may_strip_are_refused() {
        assert!(refusal("dir\r/x").contains("U+000D"));
        for text in ["a.", "b ", "dir./x", "dir /x", "..."] {
            assert!(refusal(text).contains("dot or a space"), "{text}");
            assert!(TreePath::parse_stored(text).is_ok());
        }
    }

    #[test]
    fn p09_a_backslash_is_refused() {
        assert!(refusal("back\\slash.txt").contains("backslash"));
    }

    #[test]
    fn p10_names_reserved_on_windows_are_refused() {
        for text in ["aux.txt", "NUL", "a/con/b", "com1", "Lpt9.c.d", "com0.c"] {
            assert!(refusal(text).contains("Windows"), "{text}");
        }
        for text in ["auxx", "comx", "com10", "nul .x", "console", "a.aux"] {
            assert!(TreePath::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn p13_only_a_plain_relative_name_is_a_path() {
        for text in ["/etc/passwd", "..", "", ".", "a/../../b", "x//y", "x/", "./x", "a/./b", "a\0b"] {
            refusal(text);
            assert!(TreePath::parse_stored(text).is_err());
        }
        for text in ["-R", "*.txt", "..a", ".x", "a..b"] {
            assert_eq!(TreePath::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn p17_glob_characters_and_dashes_are_plain() {
        for text in
            ["star*.txt", "-dash.txt", "?q", "[x].txt", "{a,b}", "~", "$HOME", "a b", " lead", "--help"]
        {
            assert_eq!(TreePath::parse(text).unwrap().shown(), text);
        }
    }

    #[test]
    fn characters_that_fossil_cannot_store_are_refused() {
        for text in ["e\u{1f600}.txt", "p\u{e000}", "x\u{fffe}", "y\u{fdd0}"] {
            assert!(refusal(text).contains("Fossil cannot store"), "{text:?}");
        }
        assert!(TreePath::parse("日本/é\u{fffd}").is_ok());
    }

    #[test]
    fn our_own_temporary_names_are_reserved() {
        assert!(refusal(".ocx-tmp-12").contains("being written"));
        assert!(refusal("a/.OCX-tmp-x/b").contains("being written"));
    }

    #[test]
    fn a_long_path_is_refused_with_its_length() {
        assert!(refusal(&"a/".repeat(500)).contains("slash"));
        assert!(refusal(&format!("{}b", "a/".repeat(500))).contains("1001 bytes"));
        assert!(TreePath::parse(&format!("{}bc", "a/".repeat(499))).is_ok());
        assert!(refusal(&"n".repeat(256)).contains("256 bytes"));
    }

    #[test]
    fn a_path_knows_its_folder() {
        let path = TreePath::parse("a/b/c.txt").unwrap();
        assert_eq!(path.parent().unwrap().as_str(), "a/b");
        assert_eq!(path.file_name(), "c.txt");
        assert!(TreePath::parse("c").unwrap().parent().is_none());
    }
}
